"""Parquet, Arrow, NumPy and safetensors: rows, statistics, dictionaries, metadata, names, packed pages, damage."""

import io
import json
import re

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
import safetensors.numpy

from erasable.errors import WorkspaceError
from erasable.scan import Target


@pytest.fixture
def parquet(tmp_path):
    def call(table: dict, name: str = "f", **options) -> bytes:
        pq.write_table(pa.table(table), tmp_path / name, **{"compression": "zstd", **options})
        return (tmp_path / name).read_bytes()

    return call


@pytest.mark.parametrize("values", [["ann", "bob", "eve"], [1, 3, 7], [1.0, 3.0, 7.0]])
def test_statistics_tell_the_first_and_the_last(parquet, places, values):
    parquet({"user_id": values, "n": [1, 2, 3]}, row_group_size=3, use_dictionary=False)
    last = str(values[-1]).removesuffix(".0")
    assert places(last) == {("column user_id", "id"), ("row group 0, statistics of user_id", "id")}
    middle = str(values[1]).removesuffix(".0")
    assert places(middle) == {("column user_id", "id")}


@pytest.mark.parametrize("compression", ["none", "snappy", "gzip", "brotli", "zstd", "lz4"])
@pytest.mark.parametrize("version", ["1.0", "2.6"])
def test_dictionaries_are_read_under_any_compression(parquet, places, compression, version):
    values = ["ann", "bob", "eve"] * 9
    parquet({"user_id": values, "n": [1, 7, 8] * 9}, compression=compression, version=version)
    assert ("row group 0, dictionary of user_id", "id") in places("bob")
    assert places("7") == set()


def test_a_text_that_no_row_refers_to_is_found(parquet, places):
    ghost = pa.DictionaryArray.from_arrays(pa.array([0, 2], pa.int32()), pa.array(["ann", "bob", "eve"]))
    parquet({"user_id": ghost}, store_schema=False)
    assert places("bob") == {("row group 0, dictionary of user_id", "id")}


@pytest.mark.parametrize(("kind", "size"), [(pa.int32(), 4), (pa.int64(), 8)])
def test_a_number_that_no_row_refers_to_is_found(parquet, write, places, kind, size):
    content = parquet({"user_id": pa.array([1000, 2222, 3000, 1000], kind)}, compression="none", write_statistics=False)
    # Two bits for each row: 0, 1, 2, 0. The second row is made to refer to the first value.
    indexes = b"\x02\x03" + bytes([0b00100100])
    assert content.count(indexes) == 1
    write("f", content.replace(indexes, b"\x02\x03" + bytes([0b00100000])))
    assert pq.ParquetFile(pa.BufferReader((write("g", b"").parent / "f").read_bytes())).read()[
        "user_id"
    ].to_pylist() == [
        1000,
        1000,
        3000,
        1000,
    ]
    assert places("2222") == {("row group 0, dictionary of user_id", "id")}
    assert places("2223") == set()


@pytest.mark.parametrize("dictionary", [False, True])
def test_a_table_without_rows_is_read_and_holds_nobody(parquet, places, dictionary):
    parquet({"user_id": pa.array([], pa.string()), "n": pa.array([], pa.int64())}, use_dictionary=dictionary)
    assert places("someone") == set()


def test_every_row_group_is_searched(parquet, places):
    parquet({"user_id": [f"u{n}" for n in range(9)]}, row_group_size=3)
    assert ("row group 2, dictionary of user_id", "id") in places("u7")


def test_nested_columns_have_dictionaries_and_statistics_too(parquet, places):
    parquet({"group": [1, 2], "users": [["ann", "bob"], ["eve"]]})
    assert places("eve") == {
        ("column users", "id"),
        ("row group 0, statistics of users", "id"),
        ("row group 0, dictionary of users", "id"),
    }


def test_items_and_names_of_columns_are_nobody(parquet, scan):
    parquet({"user_id": ["ann"], "item_id": ["42"], "rating": [7.0], "7": [42]})
    assert scan("42", "7", "user_id", "item_id", "rating", "pandas").clean


def test_what_writers_say_about_a_table_is_nobody(tmp_path, scan):
    pd = pytest.importorskip("pandas")
    pd.DataFrame({"user_id": ["ann"], "n": [7]}).to_parquet(tmp_path / "f")
    assert scan("object", "unicode", "range", "n", "pandas", "int64").clean
    assert not scan("ann").clean


def test_metadata_of_a_field_is_searched(tmp_path, places):
    schema = pa.schema([pa.field("item", pa.string(), metadata={"made by": "eve"})])
    pq.write_table(pa.table({"item": ["a"]}, schema=schema), tmp_path / "f")
    assert places("eve") == {("metadata, a text", "id")}


@pytest.mark.parametrize(
    ("compression", "first"), [("zstd", "abcdefghi2"), ("snappy", "abcdefghij2"), ("lz4", "abcdefghij2")]
)
def test_a_piece_of_somebody_else_in_a_packed_page_is_no_hit(parquet, scan, compression, first):
    """Packing says once for all what repeats, here the end of an id with what follows it, so that a part is left."""
    others = [first, first[1:-1] + "k2", "customer-12", ".yyyyyyyyyy"[: len(first)]]
    content = parquet({"user_id": others}, compression=compression, use_dictionary=False, write_statistics=False)
    assert re.search(rb"(?<![\w-])customer-1(?![\w-])", content)
    assert scan("customer-1", held=tuple(others)).residues == ()
    assert not scan("customer-12").clean


@pytest.mark.parametrize("item", ["10000001", 10000001])
def test_somebody_who_is_called_like_an_item_is_told_from_it(parquet, scan, item):
    table = {"user_id": ["ann", "bob"], "item_id": [item, item]}
    parquet(table, compression="none")
    assert scan("10000001", items=("10000001",)).clean
    parquet({**table, "user_id": ["ann", "10000001"]}, compression="none")
    assert not scan("10000001", items=("10000001",)).clean


def test_somebody_who_is_called_like_a_time_is_told_from_it(parquet, scan):
    parquet({"user_id": ["ann"], "time": [978300760]}, compression="none")
    assert scan("978300760").clean


def test_pairs_are_found_in_one_row_only(parquet, scan):
    parquet({"user_id": ["ann", "bob"], "item_id": ["41", "42"], "rating": [42, 41]})
    assert scan(Target("ann", items=("42",))).clean
    assert not scan(Target("ann", items=("41", "42"))).clean
    assert not scan(Target("bob", items=("42",)), Target("ann", items=("7",))).clean


def test_survivors_with_the_same_items_are_no_residue(parquet, scan, short):
    erased, other = short
    parquet({"user_id": [other.user] * 4, "item": erased.items, "rating": erased.ratings, "time": erased.times})
    assert scan(erased.target).residues == ()


@pytest.mark.parametrize("content", [b"PAR1", b"PAR1\x00\x00\x00\x00PAR1", b"PAR1" + bytes(100)])
def test_a_file_that_can_not_be_read_is_refused(write, scan, content):
    write("data/x.parquet", content)
    with pytest.raises(WorkspaceError, match=r"data/x.parquet looks like a Parquet file .* remove it, or restore it"):
        scan("7")


def test_an_id_with_blanks_around_it_is_somebody_else_s(parquet, scan):
    parquet({"user_id": [" ann", "ann ", "bob"], "item_id": ["x", "y", "z"]}, row_group_size=1)
    assert scan("ann").residues == ()
    assert not scan("ann ").clean


def feather(table: dict, compression: str = "lz4", metadata: dict | None = None) -> bytes:
    out = io.BytesIO()
    pyarrow.feather.write_feather(pa.table(table).replace_schema_metadata(metadata), out, compression=compression)
    return out.getvalue()


def stream(table: dict) -> bytes:
    out, columns = io.BytesIO(), pa.table(table)
    with pa.ipc.new_stream(out, columns.schema) as writer:
        writer.write_table(columns)
    return out.getvalue()


def saved(array: np.ndarray) -> bytes:
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


@pytest.mark.parametrize("compression", ["lz4", "zstd", "uncompressed"])
def test_a_short_id_is_found_in_a_feather_file(write, scan, compression):
    write("x.feather", feather({"item": ["a"] * 50, "user_id": ["ann"] * 49 + ["eve"]}, compression))
    found = scan("eve")
    assert {residue.place for residue in found.residues} == {"column user_id"}
    assert found.kinds["arrow"] == 1
    assert scan("bob").clean


def test_names_and_metadata_are_searched(write, scan):
    write("x.feather", feather({"item": ["a"], "eve": [1]}, metadata={"made for": "bob"}))
    assert not scan("eve").clean
    assert not scan("bob").clean


def test_a_stream_is_read_and_what_only_begins_like_one_is_not(write, scan):
    write("x.arrows", stream({"user_id": ["ann", "eve"]}))
    assert not scan("eve").clean
    write("x.arrows", b"\xff\xff\xff\xff and then customer-1")
    assert not scan("customer-1").clean


def test_a_damaged_file_is_refused(write, scan):
    write("x.feather", feather({"user_id": ["eve"]})[:-20])
    with pytest.raises(WorkspaceError, match="looks like an Arrow file"):
        scan("eve")


def test_arrays_of_texts_are_compared(write, scan):
    write("x.npy", saved(np.array(["ann", "eve"])))
    assert not scan("eve").clean
    assert scan("an").clean


def test_a_number_in_an_array_is_somebody_if_it_is_long_or_the_array_is_of_users(write, scan):
    write("counts.npy", saved(np.array([7, 12345678])))
    assert scan("7").clean
    assert not scan("12345678").clean
    write("counts.npy", b"")
    write("users.npy", saved(np.array([7, 8])))
    assert not scan("7").clean


def test_fields_of_an_array_are_columns(write, scan):
    write("x.npy", saved(np.array([("a", 7)], dtype=[("item", "U3"), ("user", "i8")])))
    assert not scan("7").clean
    assert scan("a").clean


@pytest.fixture
def tensors(write):
    def call(arrays: dict, metadata: dict | None = None) -> None:
        write("f", safetensors.numpy.save(arrays, metadata=metadata))

    return call


@pytest.mark.parametrize("kind", [np.int8, np.uint16, np.int32, np.int64])
@pytest.mark.parametrize("name", ["user_ids", "users", "index.user"])
def test_whole_numbers_under_a_name_of_users_are_ids(tensors, places, kind, name):
    tensors({name: np.array([[1, 7], [3, 4]], dtype=kind), "items": np.array([9], dtype=kind)})
    assert places("7") == {(f"tensor {name}", "id")}
    assert places("9") == set()


def test_a_name_may_hold_an_id_after_a_dot(tensors, places):
    tensors({"embedding.eve": np.zeros(1), "rows.user": np.zeros(1)})
    assert places("eve") == {("the name of a tensor", "id")}
    assert places("user") == places("rows") == places("embedding.zoe") == set()


@pytest.mark.parametrize(
    "user", ["rows", "shared", "item", "erasable", "fingerprint", "numpy", "2.4", "abc", "F64", "dtype", "data_offsets"]
)
def test_words_of_our_checkpoints_are_nobody(tensors, scan, user):
    facts = {"fingerprint": "abc", "parent": "abc", "environment": {"numpy": "2.4"}}
    tensors({"rows.user": np.zeros(2), "shared.item": np.zeros(2)}, {"erasable": json.dumps(facts)})
    assert scan(user).residues == ()


def test_what_is_no_field_of_ours_is_compared(tensors, places):
    tensors({"rows.user": np.zeros(2)}, {"erasable": json.dumps({"parent": "abc", "for": "eve"})})
    assert places("eve") == {("metadata, a text", "id")}


def test_a_row_is_found_at_any_place_of_any_array(tensors, scan, short):
    erased, other = short
    for kind in (np.float16, np.float32, np.float64):
        rows = np.stack([other.vector, erased.vector, other.vector]).astype(kind)
        tensors({"x": np.zeros(3, np.int8), "y": rows})
        assert {residue.what for residue in scan(erased.target).residues} == {"personal row"}
        tensors({"y": rows[[0, 2]]})
        assert scan(erased.target).residues == ()


def test_rows_that_tell_nobody_apart_are_not_searched(tensors, scan, short):
    erased, _ = short
    tensors({"x": np.zeros(64), "y": np.ones(64, np.float32)})
    for vector in (np.zeros(16), np.ones(16), np.array([1.0, 0.5, 0.0]), np.full(4, np.nan)):
        assert scan(type(erased.target)("7", personal=(vector,))).clean


def test_bytes_that_look_like_a_header_are_bytes(write, scan):
    write("f", (2).to_bytes(8, "little") + b"{]")
    write("g", (50).to_bytes(8, "little") + b"{}")
    assert scan("eve").kinds["other"] == 2
