"""The `::` of MovieLens files as one byte, because Arrow separates by one byte; nothing is parsed here."""

import io
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

ONE_BYTE = "\x1f"
_BLOCK_BYTES = 2**20


class DoubleColonReader(io.RawIOBase):
    """A stream of bytes in which each `::` is one byte, changed block by block."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._ready = b""

    def readable(self) -> bool:
        """Say that this stream can be read."""
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        """Fill a buffer with the next bytes and say how many; 0 at the end."""
        if not self._ready:
            self._ready = _changed(self._stream)
        target = memoryview(buffer)
        count = min(len(target), len(self._ready))
        target[:count], self._ready = self._ready[:count], self._ready[count:]
        return count

    def close(self) -> None:
        """Close the original too."""
        self._stream.close()
        super().close()


def _changed(stream: BinaryIO) -> bytes:
    block = stream.read(_BLOCK_BYTES)
    colons = len(block) - len(block.rstrip(b":"))
    # The last of an odd number may be the first half of a separator.
    if colons % 2:
        block += stream.read(1)
    return block.replace(b"::", ONE_BYTE.encode())
