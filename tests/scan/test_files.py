"""Packed files are opened in memory; what is too large or locked is refused."""

import bz2
import gzip
import io
import lzma
import zipfile

import pyarrow as pa
import pytest

from erasable.errors import WorkspaceError
from erasable.scan import _files

TABLE = b"user_id,item\nann,1\neve,2\n"
PACKERS = {
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zstd": lambda content: by_arrow(content, "zstd"),
    "lz4": lambda content: by_arrow(content, "lz4"),
}


def by_arrow(content: bytes, codec: str) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, codec) as stream:
        stream.write(content)
    return sink.getvalue().to_pybytes()


def zipped(members: dict[str, bytes]) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, inside in members.items():
            archive.writestr(name, inside)
    return content.getvalue()


@pytest.mark.parametrize("pack", PACKERS.values(), ids=PACKERS)
def test_what_is_inside_is_searched_like_any_file(write, places, pack):
    write("x", pack(TABLE))
    assert places("eve") == {("unpacked, column user_id", "id")}
    assert places("zoe") == set()


@pytest.mark.parametrize("codec", ["zstd", "lz4"])
def test_a_piece_of_somebody_else_is_no_hit(write, scan, codec):
    content = by_arrow(
        b"".join(b"\x0b\0\0\0" + one for one in (b"abcdefghij2", b"customer-12", b".yyyyyyyyyy")) * 2, codec
    )
    assert b"customer-1" in content
    write("x", content)
    assert scan("customer-1", held=("customer-12",)).residues == ()


def test_every_member_is_searched_in_any_depth(write, places):
    write("x", zipped({"a.txt": b"nothing", "b/c.zip": zipped({"d.csv.gz": gzip.compress(TABLE)})}))
    assert places("eve") == {("member b/c.zip, member d.csv.gz, unpacked, column user_id", "id")}


def test_what_was_cut_off_is_searched_as_far_as_it_goes(write, scan):
    content = gzip.compress(TABLE + bytes(range(256)) * 400)
    write("x", content[: len(content) // 2])
    assert scan("zoe").clean
    write("x", gzip.compress(TABLE)[:-6])
    assert not scan("eve").clean


def test_bytes_that_only_begin_like_a_packed_file_are_bytes(write, places):
    write("x", b"\x1f\x8b" + b"\x00customer-1\x00")
    assert places("customer-1") == {("raw bytes at 3 (utf-8)", "id")}


@pytest.mark.parametrize("pack", [gzip.compress, lambda content: zipped({"a": content})])
def test_what_grows_too_large_is_refused(write, scan, monkeypatch, pack):
    monkeypatch.setattr(_files, "LARGEST", 1000)
    write("x.gz", pack(bytes(1001)))
    with pytest.raises(WorkspaceError, match=r"x.gz holds more than .* remove it, or unpack it"):
        scan("eve")


def test_a_zip_file_that_can_not_be_opened_is_refused(write, scan):
    write("x.zip", b"PK\x03\x04" + bytes(50))
    with pytest.raises(WorkspaceError, match=r"x.zip is a zip file that can't be unpacked"):
        scan("eve")
