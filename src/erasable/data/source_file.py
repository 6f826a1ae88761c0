"""Files of text as they come: opened (gzip too), their lines numbered and checked; not what a line means."""

import gzip
import io
import zlib
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

from erasable.errors import DataRefused

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

GZIP_MAGIC = b"\x1f\x8b"
_BOM = b"\xef\xbb\xbf"
_UTF16_BOMS = (b"\xff\xfe", b"\xfe\xff")


def require_file(path: Path) -> None:
    """Refuse a path that is missing, a folder, unreadable or empty."""
    if path.is_dir():
        raise DataRefused(f"{path} is a directory: name a file in it")
    try:
        with path.open("rb") as stream:
            first = stream.read(1)
    except FileNotFoundError as error:
        raise DataRefused(f"{path} does not exist: check the path") from error
    except OSError as error:
        raise DataRefused(f"{path} can't be opened ({error.strerror}): check the path and its rights") from error
    if not first:
        raise DataRefused(f"{path} is empty: give a file with one interaction a line")


def is_gzip(path: Path) -> bool:
    """Say whether a file is compressed, by its first bytes and not by its name."""
    with path.open("rb") as stream:
        return stream.read(2) == GZIP_MAGIC


def open_bytes(path: Path) -> BinaryIO:
    """Open a file for reading bytes, unpacking it where it is compressed."""
    return cast(BinaryIO, gzip.open(path, "rb")) if is_gzip(path) else path.open("rb")


class WithoutLines(io.RawIOBase):
    """A stream of bytes without some of its lines, which are numbered from 1."""

    def __init__(self, stream: BinaryIO, left_out: Collection[int]) -> None:
        self._stream = stream
        self._lines = (line for number, line in enumerate(stream, 1) if number not in left_out)
        self._ready = b""

    def readable(self) -> bool:
        """Say that this stream can be read."""
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        """Fill a buffer with the next bytes and say how many; 0 at the end."""
        self._ready = self._ready or next(self._lines, b"")
        target = memoryview(buffer)
        count = min(len(target), len(self._ready))
        target[:count], self._ready = self._ready[:count], self._ready[count:]
        return count

    def close(self) -> None:
        """Close the original too."""
        self._stream.close()
        super().close()


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield each line's number from 1 and its text without the line end; refuse what is not UTF-8 text."""
    require_file(path)
    try:
        with open_bytes(path) as stream:
            for number, line in enumerate(stream, 1):
                yield number, _line_text(path, number, line)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataRefused(f"{path}: the gzip file is damaged: compress it again") from error


def _line_text(path: Path, number: int, line: bytes) -> str:
    if number == 1:
        if line.startswith(_UTF16_BOMS):
            raise DataRefused(f"{path}, line 1: the text is UTF-16: save it as UTF-8")
        line = line.removeprefix(_BOM)
    if b"\0" in line:
        raise DataRefused(f"{path}, line {number}: holds a NUL byte: give plain UTF-8 text")
    text = _decoded(line)
    if text is None:
        raise DataRefused(f"{path}, line {number}: is not UTF-8: save the file as UTF-8")
    return text.removesuffix("\n").removesuffix("\r")


def _decoded(line: bytes) -> str | None:
    try:
        return line.decode()
    except UnicodeDecodeError:
        # The error carries the whole line, which is personal: it must not travel with ours.
        return None
