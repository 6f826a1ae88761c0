"""The bytes of a file, read in pieces, so that memory does not grow with the file."""

import io
import os
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

PIECE = 1 << 22
"""How many bytes are read at once; smaller files are read whole."""

Made = TypeVar("Made")


class Source(Protocol):
    """The bytes of a file."""

    @property
    def size(self) -> int:
        """How many there are."""

    def read(self, start: int, size: int) -> bytes:
        """Return some of them."""

    def close(self) -> None:
        """Release the file."""


def pieces(source: Source, start: int = 0, end: int | None = None) -> Iterator[bytes]:
    """Yield the bytes of a source from an offset on, in pieces; the next is read while one is searched."""
    stop = source.size if end is None else end
    found = (source.read(place, min(PIECE, stop - place)) for place in range(start, stop, PIECE))
    return ahead(found) if stop - start > PIECE else found


@dataclass(frozen=True, eq=False)
class Part:
    """A piece in a buffer that is used again, behind room for what is kept of the piece before."""

    buffer: NDArray[np.uint8]
    room: int


def parts(source: Source, room: int, start: int = 0, end: int | None = None) -> Iterator[Part]:
    """Yield the bytes of a source from an offset on, in pieces without making new objects of them.

    Two buffers take turns: the next piece is read into one while that in the other is searched.
    """
    stop = source.size if end is None else end
    if isinstance(source, BytesInMemory) and stop - start <= PIECE:
        return iter((Part(np.frombuffer(source.content, np.uint8)[start:stop], 0),))
    buffers = [np.empty(room + min(PIECE, stop - start), np.uint8) for _ in range(2)]
    places = enumerate(range(start, stop, PIECE))
    read = (Part(_filled(source, buffers[n % 2], room, place, min(PIECE, stop - place)), room) for n, place in places)
    return ahead(read) if stop - start > PIECE else read


def _filled(source: Source, buffer: NDArray[np.uint8], room: int, start: int, size: int) -> NDArray[np.uint8]:
    if isinstance(source, OnDisk):
        count = source.read_into(start, buffer[room : room + size])
    else:
        part = source.read(start, size)
        count = len(part)
        buffer[room : room + count] = np.frombuffer(part, np.uint8)
    return buffer[: room + count]


def as_file(source: Source) -> Any:  # noqa: ANN401 - Arrow's own
    """Return a source as a file for Arrow."""
    return (
        pa.BufferReader(source.content)
        if isinstance(source, BytesInMemory)
        else pa.PythonFile(Opened(source), mode="r")
    )


class Opened(io.RawIOBase):
    """A source as a file of Python's."""

    def __init__(self, source: Source) -> None:
        self._source, self._place = source, 0

    def readable(self) -> bool:
        """Say so."""
        return True

    def seekable(self) -> bool:
        """Say so."""
        return True

    def tell(self) -> int:
        """Return where the next byte is read."""
        return self._place

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to an offset."""
        self._place = offset + (0, self._place, self._source.size)[whence]
        return self._place

    def read(self, size: int | None = -1) -> bytes:
        """Return the next bytes."""
        left = max(0, self._source.size - self._place)
        part = self._source.read(self._place, left if size is None or size < 0 else min(size, left))
        self._place += len(part)
        return part


def whole(source: Source) -> bytes:
    """Return all bytes of a source."""
    return source.read(0, source.size)


def ahead(parts: Iterator[Made]) -> Iterator[Made]:
    """Yield parts, each of which is made by another thread while the one before is used."""
    pool, end = ThreadPoolExecutor(1), object()
    try:
        waiting = pool.submit(next, parts, end)
        while (part := waiting.result()) is not end:
            waiting = pool.submit(next, parts, end)
            yield part  # type: ignore[misc]
    finally:
        # Who stops early, or presses Ctrl-C, does not wait.
        pool.shutdown(wait=False, cancel_futures=True)


@dataclass(frozen=True)
class BytesInMemory:
    """Bytes in memory."""

    content: bytes

    @property
    def size(self) -> int:
        """How many there are."""
        return len(self.content)

    def read(self, start: int, size: int) -> bytes:
        """Return some of them."""
        return self.content[start : start + size] if start or size < len(self.content) else self.content

    def close(self) -> None:
        """Do nothing."""


@dataclass(frozen=True)
class OnDisk:
    """An open file; it stays readable if it is removed meanwhile."""

    path: Path
    descriptor: int
    size: int

    @staticmethod
    def of(path: Path) -> "OnDisk":
        """Open a file."""
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
        return OnDisk(path, descriptor, os.fstat(descriptor).st_size)

    def read(self, start: int, size: int) -> bytes:
        """Return some of its bytes."""
        found: list[bytes] = []
        while size and (part := os.pread(self.descriptor, size, start)):
            found.append(part)
            start, size = start + len(part), size - len(part)
        return found[0] if len(found) == 1 else b"".join(found)

    def read_into(self, start: int, buffer: NDArray[np.uint8]) -> int:
        """Read bytes into a buffer, and return how many there were."""
        count = 0
        while count < len(buffer) and (size := os.preadv(self.descriptor, [buffer[count:].data], start + count)):
            count += size
        return count

    def close(self) -> None:
        """Close it."""
        with suppress(OSError):
            os.close(self.descriptor)


@dataclass(frozen=True)
class ReadElsewhere:
    """A file that is read by another process, piece by piece, since this one must not open it."""

    path: Path
    size: int

    def read(self, start: int, size: int) -> bytes:
        """Return some of its bytes."""
        first = start // _UNIT
        count = -(-(start + size) // _UNIT) - first
        found = by_another_process("dd", f"if={self.path}", f"bs={_UNIT}", f"skip={first}", f"count={count}")
        return found[start - first * _UNIT :][:size]

    def close(self) -> None:
        """Do nothing."""


@dataclass(eq=False)
class Unpacked:
    """The content of a packed file; reading what lies before the last piece unpacks it again from its beginning."""

    blocks: Callable[[], Iterator[bytes]]
    size: int
    _stream: Iterator[bytes] = field(default_factory=lambda: iter(()))
    _held: bytes = b""
    _start: int = -1

    def read(self, start: int, size: int) -> bytes:
        """Return some of its bytes."""
        if self._start < 0 or start < self._start:
            self._stream, self._held, self._start = self.blocks(), b"", 0
        while self._start + len(self._held) < start + size:
            block = next(self._stream, b"")
            if not block:
                break
            self._held += block
            passed = max(0, min(start - self._start - PIECE, len(self._held)))  # a little is kept for going back
            self._held, self._start = self._held[passed:], self._start + passed
        return self._held[start - self._start :][:size]

    def close(self) -> None:
        """Do nothing."""


_UNIT = 1 << 16


def by_another_process(*command: str | Path) -> bytes:
    """Return what a command prints.

    Closing a file releases all locks that the process holds on it. A process that searched a database that it has open
    would look dead to others, who would then remove the log that it writes (sqlite.org/howtocorrupt.html, 2.2).
    """
    found = subprocess.run([*command], capture_output=True, check=False)  # noqa: S603 - fixed commands
    if found.returncode:
        raise OSError(0, found.stderr.decode(errors="replace").strip() or f"{command[0]} has failed")
    return found.stdout
