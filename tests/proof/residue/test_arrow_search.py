"""Arrow's files and streams and NumPy's arrays are decoded, packed or not."""

import io

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pytest

from erasable.errors import WorkspaceError


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
    with pytest.raises(WorkspaceError, match="begins like an Arrow file"):
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
