"""Parquet: statistics, dictionaries of any type, metadata, packed pages, and files that can't be read."""

import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from erasable.errors import WorkspaceError
from erasable.proof.residue import Target


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
    with pytest.raises(WorkspaceError, match=r"data/x.parquet begins like a Parquet file .* remove it, or restore it"):
        scan("7")


def test_an_id_with_blanks_around_it_is_somebody_else_s(parquet, scan):
    parquet({"user_id": [" ann", "ann ", "bob"], "item_id": ["x", "y", "z"]}, row_group_size=1)
    assert scan("ann").residues == ()
    assert not scan("ann ").clean
