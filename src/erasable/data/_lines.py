"""The lines of a text file, compressed or not: one by one with their numbers, or in blocks of whole lines."""

from collections.abc import Iterator

from erasable.data.sources import InputSource
from erasable.errors import DataRefused

BLOCK_BYTES = 8 * 2**20
_MOST_QUOTES = 10_000
_BOM = b"\xef\xbb\xbf"
_UTF16_BOMS = (b"\xff\xfe", b"\xfe\xff")


def numbered_lines(source: InputSource) -> Iterator[tuple[int, str]]:
    """Yield each line's number, from 1, and its text without the line end; refuse anything but UTF-8."""
    with source.unpacked() as stream:
        for number, line in enumerate(stream, 1):
            yield number, line_text(source, number, line)


def blocks_of_lines(source: InputSource, first: int, quotes: bool) -> Iterator[tuple[int, bytes]]:
    """Yield whole lines, about `BLOCK_BYTES` at a time, and how many lines come before; the first block has `first`.

    Where a format has quotes, a block does not end inside a quoted field.
    """
    before, rest, needed = 0, b"", max(first, 1)
    with source.unpacked() as stream:
        while block := stream.read(BLOCK_BYTES):
            rest += block
            end = rest.rfind(b"\n") + 1
            if quotes:
                end = _before_open_quote(rest, end) or end
            lines = rest.count(b"\n", 0, end)
            if lines < needed:
                continue
            yield before, rest[:end]
            before, rest, needed = before + lines, rest[end:], 1
    if rest:
        yield before, rest


def _before_open_quote(text: bytes, end: int) -> int:
    """Return the last line end with an even number of quotes before it, 0 if there is none near."""
    is_open = text.count(b'"', 0, end) % 2
    for _ in range(_MOST_QUOTES):
        if not is_open or not end:
            break
        earlier = text.rfind(b"\n", 0, text.rfind(b'"', 0, end)) + 1
        is_open ^= text.count(b'"', earlier, end) % 2
        end = earlier
    return 0 if is_open else end


def line_text(source: InputSource, number: int, line: bytes) -> str:
    """Return the text of a line without its end; refuse anything but UTF-8."""
    if number == 1:
        if line.startswith(_UTF16_BOMS):
            raise DataRefused(f"{source.name}, line 1: the text is UTF-16: save it as UTF-8")
        line = line.removeprefix(_BOM)
    if b"\0" in line:
        raise DataRefused(f"{source.name}, line {number}: holds a NUL byte: give plain UTF-8 text")
    text = _decoded(line)
    if text is None:
        raise DataRefused(f"{source.name}, line {number}: is not UTF-8: save the file as UTF-8")
    return text.removesuffix("\n").removesuffix("\r")


def _decoded(line: bytes) -> str | None:
    try:
        return line.decode()
    except UnicodeDecodeError:
        # The error holds the whole line, which is personal data: it must not be chained to ours.
        return None
