"""Opening packed files in memory: gzip, bzip2, xz, zstd, lz4 and zip; what is inside is searched like any file."""

import bz2
import io
import lzma
import zipfile
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from erasable.errors import WorkspaceError

LARGEST = 2**30
"""How many bytes of one packed file are unpacked at most."""
_BY_ARROW: dict[bytes, Any] = {b"\x28\xb5\x2f\xfd": "zstd", b"\x04\x22\x4d\x18": "lz4"}
SHOWING_PIECES = tuple(_BY_ARROW)
"""How files begin that show pieces of what they hold, so that their own bytes say nothing."""
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
    """Yield what a packed file holds, each part with its name; nothing if it is not packed.

    Of a file that is cut off, what comes before is unpacked.
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
    """Unpack the parts that a file consists of, one after another."""
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
            f"{name} is a zip file that can't be unpacked, so nobody knows whom it holds: remove it, or unpack it"
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
