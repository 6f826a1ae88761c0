"""Searching one file: its kind is told by its content, not by its name.

Packed files (gzip, bzip2, xz, zstd, lz4 and zip) are unpacked in memory, and their content is searched like any file.
"""

import bz2
import lzma
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import PurePosixPath
from typing import Any, Literal

import pyarrow as pa

from erasable.errors import WorkspaceError
from erasable.scan import _source
from erasable.scan._arrays import read_header, search_array, search_arrow, search_parquet, search_tensors
from erasable.scan._columns import Role, role_of
from erasable.scan._evidence import File
from erasable.scan._lines import search_text
from erasable.scan._search import Cells
from erasable.scan._source import BytesInMemory, Opened, Source, Unpacked, as_file
from erasable.scan._sqlite import search_database, search_journal
from erasable.scan._sqlite_pages import DATABASE_MAGIC, JOURNAL_MAGIC, WAL_MAGICS

# Packed files

LARGEST = 2**30
"""The most bytes that are unpacked from one file."""
_BY_ARROW: dict[bytes, Any] = {b"\x28\xb5\x2f\xfd": "zstd", b"\x04\x22\x4d\x18": "lz4"}
SHOWING_PIECES = tuple(_BY_ARROW)
"""Formats that keep pieces of the content readable, so that a hit in the packed bytes means nothing."""
_BLOCK = 2**20
_PACKED = 2**16
_GZIP_FORMAT = 31
_BROKEN = (EOFError, OSError, zlib.error, lzma.LZMAError, pa.ArrowException)
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")
_UNPACKERS: dict[bytes, Callable[[], Any]] = {
    b"\x1f\x8b": lambda: zlib.decompressobj(_GZIP_FORMAT),
    b"BZh": bz2.BZ2Decompressor,
    b"\xfd7zXZ\x00": lzma.LZMADecompressor,
}


def unpacked(source: Source, name: str) -> Iterator[tuple[str, Source]]:
    """Yield the name and content of each part of a packed file; nothing if it is not packed.

    A truncated file is unpacked as far as possible.
    """
    start = source.read(0, 8)
    unpacker = next((unpacker for magic, unpacker in _UNPACKERS.items() if start.startswith(magic)), None)
    if start.startswith(_ZIP):
        yield from _members(source, name)
        return
    inside: Source = BytesInMemory(b"")
    if unpacker is not None:
        inside = held_or_again(partial(_parts, source, unpacker), LARGEST, name)
    elif start.startswith(SHOWING_PIECES):
        codec = _BY_ARROW[start[:4]]
        inside = held_or_again(lambda: _blocks(pa.CompressedInputStream(as_file(source), codec)), LARGEST, name)
    if inside.size:
        yield "", inside


def _parts(source: Source, unpacker: Callable[[], Any]) -> Iterator[bytes]:
    """Unpack the parts of a file, one after another."""
    part, place, packed = unpacker(), 0, b""
    while True:
        if not packed and getattr(part, "needs_input", True):
            packed = source.read(place, _PACKED)
            place += len(packed)
            if not packed:
                return
        try:
            block = part.decompress(packed, _BLOCK)
        except _BROKEN:
            return
        if block:
            yield block
        packed = part.unused_data if part.eof else getattr(part, "unconsumed_tail", b"")
        if part.eof:
            part = unpacker()


def _members(source: Source, name: str) -> Iterator[tuple[str, Source]]:
    left = LARGEST
    try:
        with zipfile.ZipFile(Opened(source)) as archive:
            for member in archive.infolist():
                inside = held_or_again(lambda member=member: _blocks(archive.open(member)), left, name)  # type: ignore[misc]
                left -= inside.size
                yield member.filename, inside
    except (zipfile.BadZipFile, RuntimeError, NotImplementedError) as error:
        raise WorkspaceError(
            f"{name} is a zip file that can't be unpacked, so nobody can tell whose data it holds: remove it, "
            "or unpack it"
        ) from error


def _blocks(stream: Any) -> Iterator[bytes]:  # noqa: ANN401 - Python's streams and Arrow's
    with stream, suppress(*_BROKEN):
        while block := stream.read(_BLOCK):
            yield block


def held_or_again(blocks: Callable[[], Iterator[bytes]], most: int, name: str) -> Source:
    """Return unpacked content: in memory, or, if it is large, unpacked anew each time it is read."""
    held, size = list[bytes](), 0
    for block in blocks():
        size += len(block)
        if size > most:
            raise WorkspaceError(
                f"{name} holds more than {LARGEST:,} bytes when it is unpacked, too many to search: remove it, "
                "or unpack it"
            )
        held = [*held, block] if size <= _source.PIECE else []
    return BytesInMemory(b"".join(held)) if size <= _source.PIECE else Unpacked(blocks, size)


# Files

Kind = Literal["parquet", "arrow", "safetensors", "json", "sqlite", "text", "other"]
KINDS: tuple[Kind, ...] = ("parquet", "arrow", "safetensors", "json", "sqlite", "text", "other")
_PARQUET_MAGIC = b"PAR1"
JOURNAL_ENDINGS = ("-wal", "-journal")
_DEEPEST = 4
_START = 1024

Database = Callable[[], Source]
"""Finds the database that a journal belongs to; empty if there is none."""
EMPTY = BytesInMemory(b"")


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
    file.evidence.note_numbers(Cells.of([name]))
    file.search_texts(name.encode("utf-8", "surrogateescape"), place, "sentences" if own else "text")


def search_file(file: File, source: Source, name: str, database: Database, depth: int = 0) -> Kind:
    """Search the content of a file, and return its kind."""
    start = source.read(0, _START)
    if start.startswith(_PARQUET_MAGIC):
        search_parquet(file, source, name)
        return "parquet"
    if search_arrow(file, source, name):
        return "arrow"
    if start.startswith(DATABASE_MAGIC):
        search_database(file, source)
        return "sqlite"
    if start.startswith((*WAL_MAGICS, JOURNAL_MAGIC)) or _is_wiped_journal(name, start):
        search_journal(file, source, database())
        return "sqlite"
    header = read_header(source)
    if header is not None:
        search_tensors(file, source, header)
        return "safetensors"
    return search_text(file, source, PurePosixPath(name).name) or _search_other(file, source, name, depth)


def _search_other(file: File, source: Source, name: str, depth: int) -> Kind:
    for member, inside in unpacked(source, file.name) if depth < _DEEPEST else ():
        part = f"{file.inside}member {member}, " if member else f"{file.inside}unpacked, "
        opened = replace(file, inside=part)
        for name_part in PurePosixPath(member).parts:
            search_name(opened, name_part)
        search_file(opened, inside, member or PurePosixPath(name).stem, lambda: EMPTY, depth + 1)
    search_array(file, source, name)
    if not source.read(0, _START).startswith(SHOWING_PIECES):
        file.search_bytes(source, file.wanted.raw, "bytes")
    return "other"


def _is_wiped_journal(name: str, start: bytes) -> bool:
    # SQLite may keep a journal and only zero its header, which removes the magic number.
    return name.endswith(JOURNAL_ENDINGS) and start[:8] == bytes(8)


def _named_parts(part: str) -> list[str]:
    """Return the ids in names such as user=7 or user-7."""
    stem = part.split(".")[0]
    pairs = [stem.partition(sign) for sign in ("=", "-", "_")]
    return [value for key, _, value in pairs if role_of(key) is Role.USER]
