"""Searching one file: its kind is told by its content, not by its name.

Packed files (gzip, bzip2, xz, zstd, lz4 and zip) are unpacked in memory, and their content is searched like any file.
"""

import bz2
import io
import lzma
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any, Literal

import pyarrow as pa

from erasable.errors import WorkspaceError
from erasable.scan._arrays import read_header, search_array, search_arrow, search_parquet, search_tensors
from erasable.scan._columns import Role, role_of
from erasable.scan._evidence import RAW, File
from erasable.scan._sqlite import search_database, search_journal
from erasable.scan._sqlite_pages import DATABASE_MAGIC, JOURNAL_MAGIC, WAL_MAGICS
from erasable.scan._texts import read_text, search_json, search_plain_text

# Packed files

LARGEST = 2**30
"""The most bytes that are unpacked from one file."""
_BY_ARROW: dict[bytes, Any] = {b"\x28\xb5\x2f\xfd": "zstd", b"\x04\x22\x4d\x18": "lz4"}
SHOWING_PIECES = tuple(_BY_ARROW)
"""Formats that keep pieces of the content readable, so that a hit in the packed bytes means nothing."""
_BLOCK = 2**20
_GZIP_FORMAT = 31
_BROKEN = (EOFError, OSError, zlib.error, lzma.LZMAError, pa.ArrowException)
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")
_UNPACKERS: dict[bytes, Callable[[], Any]] = {
    b"\x1f\x8b": lambda: zlib.decompressobj(_GZIP_FORMAT),
    b"BZh": bz2.BZ2Decompressor,
    b"\xfd7zXZ\x00": lzma.LZMADecompressor,
}


def unpacked(content: bytes, name: str) -> Iterator[tuple[str, bytes]]:
    """Yield the name and content of each part of a packed file; nothing if it is not packed.

    A truncated file is unpacked as far as possible.
    """
    unpacker = next((unpacker for magic, unpacker in _UNPACKERS.items() if content.startswith(magic)), None)
    if content.startswith(_ZIP):
        yield from _members(content, name)
        return
    inside = b""
    if unpacker is not None:
        inside = _parts(content, unpacker, name)
    elif content.startswith(SHOWING_PIECES):
        inside = _blocks(pa.CompressedInputStream(pa.BufferReader(content), _BY_ARROW[content[:4]]), LARGEST, name)
    if inside:
        yield "", inside


def _parts(content: bytes, unpacker: Callable[[], Any], name: str) -> bytes:
    """Unpack the parts of a file, one after another."""
    found = bytearray()
    while content:
        part = unpacker()
        try:
            found += part.decompress(content, LARGEST - len(found) + 1)
        except _BROKEN:
            break
        _refuse_large(found, LARGEST, name)
        content = part.unused_data if part.eof else b""
    return bytes(found)


def _members(content: bytes, name: str) -> Iterator[tuple[str, bytes]]:
    left = LARGEST
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for member in archive.infolist():
                with archive.open(member) as stream:
                    inside = _blocks(stream, left, name)
                left -= len(inside)
                yield member.filename, inside
    except (zipfile.BadZipFile, RuntimeError, NotImplementedError) as error:
        raise WorkspaceError(
            f"{name} is a zip file that can't be unpacked, so nobody can tell whose data it holds: remove it, "
            "or unpack it"
        ) from error


def _blocks(stream: Any, most: int, name: str) -> bytes:  # noqa: ANN401 - Python's streams and Arrow's
    found = bytearray()
    try:
        while block := stream.read(_BLOCK):
            found += block
            _refuse_large(found, most, name)
    except _BROKEN:
        return bytes(found)
    return bytes(found)


def _refuse_large(found: bytearray, most: int, name: str) -> None:
    if len(found) > most:
        raise WorkspaceError(
            f"{name} holds more than {LARGEST:,} bytes when it is unpacked, too many to search: remove it, or unpack it"
        )


# Files

Kind = Literal["parquet", "arrow", "safetensors", "json", "sqlite", "text", "other"]
KINDS: tuple[Kind, ...] = ("parquet", "arrow", "safetensors", "json", "sqlite", "text", "other")
_PARQUET_MAGIC = b"PAR1"
JOURNAL_ENDINGS = ("-wal", "-journal")
_DEEPEST = 4

Database = Callable[[], bytes]
"""Reads the database that a journal belongs to; empty if there is none."""


def search_order(start: bytes) -> int:
    """Return the place of a file in the order of search: files with ids, which explain hits, come first."""
    for order, magic in enumerate((_PARQUET_MAGIC, DATABASE_MAGIC)):
        if start.startswith(magic):
            return order
    return 3 if b"\0" in start else 2


def search_name(file: File, name: str, place: str = "the name") -> None:
    """Search the name of a file or a folder."""
    own = file.vocabulary.names.fullmatch(name) is not None
    if not own:
        for text in sorted({name, name.split(".")[0], *_named_parts(name)} - {""}):
            file.compare_text(text, place)
    file.evidence.note_numbers([name])
    file.search_texts(name.encode("utf-8", "surrogateescape"), place, "sentences" if own else "text")


def search_file(file: File, content: bytes, name: str, database: Database, depth: int = 0) -> Kind:
    """Search the content of a file, and return its kind."""
    if content.startswith(_PARQUET_MAGIC):
        search_parquet(file, content, name)
        return "parquet"
    if search_arrow(file, content, name):
        return "arrow"
    if content.startswith(DATABASE_MAGIC):
        search_database(file, content)
        return "sqlite"
    if content.startswith((*WAL_MAGICS, JOURNAL_MAGIC)) or _is_wiped_journal(name, content):
        search_journal(file, content, database())
        return "sqlite"
    return _search_tensors_or_text(file, content, name) or _search_other(file, content, name, depth)


def _search_tensors_or_text(file: File, content: bytes, name: str) -> Kind | None:
    header = read_header(content)
    if header is not None:
        search_tensors(file, content, header)
        return "safetensors"
    text = read_text(content) if content else None
    if text is None:
        return None
    stem = PurePosixPath(name).name.split(".")[0]
    if search_json(file, text, stem):
        return "json"
    search_plain_text(file, content, text, PurePosixPath(name).name)
    return "text"


def _search_other(file: File, content: bytes, name: str, depth: int) -> Kind:
    for member, inside in unpacked(content, file.name) if depth < _DEEPEST else ():
        part = f"{file.inside}member {member}, " if member else f"{file.inside}unpacked, "
        opened = replace(file, inside=part)
        for name_part in PurePosixPath(member).parts:
            search_name(opened, name_part)
        search_file(opened, inside, member or PurePosixPath(name).stem, lambda: b"", depth + 1)
    search_array(file, content, name)
    if not content.startswith(SHOWING_PIECES):
        file.search_texts(content, RAW, "bytes")
        file.search_values(file.wanted.personal_rows, content, RAW)
        file.search_values(file.wanted.times, content, RAW)
    return "other"


def _is_wiped_journal(name: str, content: bytes) -> bool:
    # SQLite may keep a journal and only zero its header, which removes the magic number.
    return name.endswith(JOURNAL_ENDINGS) and content[:8] == bytes(8)


def _named_parts(part: str) -> list[str]:
    """Return the ids in names such as user=7 or user-7."""
    stem = part.split(".")[0]
    pairs = [stem.partition(sign) for sign in ("=", "-", "_")]
    return [value for key, _, value in pairs if role_of(key) is Role.USER]
