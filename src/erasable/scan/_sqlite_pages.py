"""Records and pages of SQLite's file format, read from bytes.

A row of a table is stored as its length, its rowid and a record, a row of an index as its length and a record. A record
is the length of its header, a type for each value, and the values. A deleted row stays where it was, or loses its first
four bytes to the header of a free block (called a note here), which says how many bytes are free.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from erasable.scan import _source
from erasable.scan._source import Source

# Records: whole ones, and those whose first bytes were overwritten

_FIXED_SIZES = (0, 1, 2, 3, 4, 6, 8, 8, 0, 0)
_INTEGER_SIZES = (1, 2, 3, 4, 6, 8)
_IMPOSSIBLE = 1 << 40
_LONGEST_HEADER = 127
_LONGEST_NUMBER = 9
_FEWEST_COLUMNS = 2
_SHORTEST_ROW = 4
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f]")  # all but tab, line feed and carriage return

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Record:
    """The values of one row, and its rowid, if known."""

    values: tuple[Any, ...]
    number: int | None = None


def whole_records(content: bytes, codec: str) -> Iterator[Record]:
    """Yield everything that looks like a row with at least two values.

    The length before it must fit its header, its types must exist, and its texts must be text. A row that continues in
    another page has only the values stored here.
    """
    for start, number_size in _row_starts(content):
        values = record_values(content, start, codec)
        if values is not None:
            yield Record(values, read_varint(content, start - number_size)[0] if number_size else None)


def whole_row_places(content: bytes) -> set[int]:
    """Return where whole rows start, with their length and rowid."""
    found = set()
    for start, number_size in _row_starts(content):
        length = record_length(content, start)
        found.add(start - number_size - max(1, -(-length.bit_length() // 7)))
    return found


def record_values(content: bytes, start: int, codec: str) -> tuple[Any, ...] | None:
    """Return the values of the record that starts here, None if it can't be one."""
    end, place = read_varint(content, start)
    end += start
    types = []
    while place < end <= len(content):
        kind, place = read_varint(content, place)
        types.append(kind)
    return typed_values(content[end:], types, codec) if place == end else None


def record_length(content: bytes, start: int) -> int:
    """Return the size in bytes of the record that starts here."""
    length, place = read_varint(content, start)
    end = start + length
    while place < end:
        kind, place = read_varint(content, place)
        length += size_of(kind)
    return length


def typed_values(content: bytes, types: Sequence[int], codec: str) -> tuple[Any, ...] | None:
    """Return consecutive values of these types; None if a type does not exist or a text is not text."""
    values, place = [], 0
    for kind in types:
        size = size_of(kind)
        part = content[place : place + size]
        try:
            values.append(_value(kind, part, codec) if len(part) == size else None)
        except ValueError:
            return None
        place += size
    return tuple(values)


def size_of(kind: int) -> int:
    """Return the size in bytes of a value of a type."""
    if kind >= 12:
        return (kind - 12) // 2
    return _FIXED_SIZES[kind] if kind < len(_FIXED_SIZES) else _IMPOSSIBLE


def type_of(value: Any) -> int:  # noqa: ANN401 - whatever the row holds
    """Return the type code of a value; all texts have the same one here, and all bytes."""
    if value is None:
        return 0
    if isinstance(value, int):
        bits = (value if value >= 0 else ~value).bit_length() + 1
        return 8 + value if value in (0, 1) else next(n for n, size in enumerate(_INTEGER_SIZES, 1) if 8 * size >= bits)
    if isinstance(value, float):
        return 7
    return 13 if isinstance(value, str) else 12


def untyped_values(content: bytes, codec: str) -> Iterator[Any]:
    """Yield the possible values of bytes whose type was overwritten: a text, or an integer."""
    text = _text_or_none(content, codec)
    if text:
        yield text
    number = untyped_number(content)
    if number is not None:
        yield number


def untyped_number(content: bytes) -> int | None:
    """Return bytes as an integer, None if SQLite would store it in fewer."""
    number = int.from_bytes(content, "big", signed=True)
    shorter = max((size for size in (0, *_INTEGER_SIZES) if size < len(content)), default=0)
    fits_shorter = number in (0, 1) if shorter == 0 else -(1 << (8 * shorter - 1)) <= number < 1 << (8 * shorter - 1)
    return None if len(content) not in _INTEGER_SIZES or fits_shorter else number


def read_varint(content: bytes, place: int) -> tuple[int, int]:
    """Return the variable-length integer that starts here, and where it ends."""
    number = 0
    for step, byte in enumerate(content[place : place + 9]):
        if step == 8:
            return (number << 8) | byte, place + 9
        number = (number << 7) | (byte & 127)
        if byte < 128:
            return number, place + step + 1
    return number, len(content) + 1


def _value(kind: int, part: bytes, codec: str) -> Any:  # noqa: ANN401 - whatever the row holds
    if kind in (0, 10, 11):
        if kind:
            raise ValueError("there is no such type")
        return None
    if kind < 7:
        return int.from_bytes(part, "big", signed=True)
    if kind == 7:
        return float(np.frombuffer(part, ">f8")[0])
    if kind in (8, 9):
        return kind - 8
    return _text(part, codec) if kind % 2 else part


def _text(part: bytes, codec: str) -> str:
    text = part.decode(codec)
    if _CONTROL.search(text):
        raise ValueError("this is no text")
    return text


def _text_or_none(part: bytes, codec: str) -> str | None:
    try:
        return _text(part, codec)
    except ValueError:
        return None


def _row_starts(content: bytes) -> list[tuple[int, int]]:
    """Return where records start, and how many bytes the rowid before each takes, 0 in an index.

    All offsets are tried at once: the sizes of the values are summed over the header, and the length of the row must
    stand right before its rowid.
    """
    if len(content) < _SHORTEST_ROW:
        return []
    data = np.frombuffer(content, np.uint8).astype(np.int64)
    starts = np.flatnonzero((data > _FEWEST_COLUMNS) & (data <= _LONGEST_HEADER))
    starts = starts[(starts > 0) & (starts + data[starts] <= len(data))]
    ends = starts + data[starts] - 1
    last = data < 128
    summed, counted = np.cumsum(np.where(last, _sizes(_numbers_ending(data, 3)), 0)), np.cumsum(last)
    lengths = data[starts] + summed[ends] - summed[starts]
    likely = (counted[ends] - counted[starts] >= _FEWEST_COLUMNS) & last[ends] & (lengths < _IMPOSSIBLE)
    return list(_behind_lengths(data, starts[likely], lengths[likely]))


def _behind_lengths(data: Integers, starts: Integers, lengths: Integers) -> Iterator[tuple[int, int]]:
    """Yield the starts that follow the length of their row, and how many bytes of a rowid are between."""
    # Bytes before the length may look like part of it.
    endings = [_numbers_ending(data, most) for most in (1, 2, 3)]
    for size in range(_LONGEST_NUMBER + 1):
        fits = (starts > size) & _is_number(data, starts, size)
        before = starts[fits] - size - 1
        same = np.any([numbers[before] == lengths[fits] for numbers in endings], axis=0)
        yield from ((start, size) for start in starts[fits][same].tolist())


def _is_number(data: Integers, starts: Integers, size: int) -> NDArray[np.bool_]:
    """Whether the so many bytes before each start are one number."""
    fits = np.ones(len(starts), dtype=bool)
    for step in range(1, size + 1):
        byte = data[np.maximum(starts - step, 0)]
        fits &= byte < 128 if step == 1 else byte >= 128
    return fits


def _numbers_ending(data: Integers, most: int) -> Integers:
    """Return the number of at most so many bytes that ends at each byte."""
    numbers, goes_on = data.copy(), np.ones(len(data), dtype=bool)
    for step in range(1, most):
        before = np.concatenate([np.zeros(step, dtype=np.int64), data[:-step]])
        goes_on &= before >= 128
        numbers += np.where(goes_on, (before & 127) << 7 * step, 0)
    return numbers


def _sizes(kinds: Integers) -> Integers:
    fixed = np.array([*_FIXED_SIZES, _IMPOSSIBLE, _IMPOSSIBLE], dtype=np.int64)
    return np.where(kinds >= 12, (kinds - 12) // 2, fixed[np.minimum(kinds, 11)])


# Pages: their free areas, and pages in journals

DATABASE_MAGIC = b"SQLite format 3\0"
WAL_MAGICS = (b"\x37\x7f\x06\x82", b"\x37\x7f\x06\x83")
JOURNAL_MAGIC = bytes.fromhex("d9d505f920a163d7")
_FILE_HEADER = 100
_WAL_HEADER, _FRAME_HEADER = 32, 24
_SECTOR = 512
_TABLE_LEAF, _INDEXES, _LEAVES, _TREES = 13, (2, 10), (10, 13), (2, 5, 10, 13)
_NOTE = 4
_CODECS = {2: "utf-16-le", 3: "utf-16-be"}


@dataclass(frozen=True)
class Area:
    """Free bytes of a page, with the damaged rows in them, which lost their first four bytes."""

    content: bytes
    damaged: tuple[bytes, ...] = ()
    of_index: bool | None = None
    """Whether the page belongs to an index, if known."""
    starts: tuple[tuple[int, int], ...] = ()
    """The rowid of each row left in the page, 0 in an index, and where its record starts."""
    page: bytes = b""


def page_size(database: bytes) -> int:
    """Return the page size in the header of a database."""
    size = int.from_bytes(database[16:18], "big")
    return 65536 if size == 1 else size


def codec_of(database: bytes) -> str:
    """Return the text encoding of a database."""
    return _CODECS.get(int.from_bytes(database[56:60], "big"), "utf-8")


def database_pages(database: Source) -> Iterator[tuple[bytes, int]]:
    """Yield each page with the offset of its header."""
    size = page_size(database.read(0, _FILE_HEADER))
    for place, page in _spaced_pages(database, 0, size, size):
        yield page, _FILE_HEADER if place == 0 else 0


def wal_pages(content: Source) -> Iterator[tuple[bytes, int]]:
    """Yield the pages in a write-ahead log, also those from before its last restart."""
    size = int.from_bytes(content.read(8, 4), "big")
    yield from _logged_pages(content, _WAL_HEADER + _FRAME_HEADER, size, size + _FRAME_HEADER)


def journal_pages(content: Source, size: int) -> Iterator[tuple[bytes, int]]:
    """Yield the pages in a rollback journal; if its header is zeroed, the given page size is used."""
    sector = int.from_bytes(content.read(20, 4), "big") or _SECTOR
    size = int.from_bytes(content.read(24, 4), "big") or size
    yield from _logged_pages(content, sector + 4, size, size + 8)


def _logged_pages(content: Source, first: int, size: int, step: int) -> Iterator[tuple[bytes, int]]:
    for _, page in _spaced_pages(content, first, size, step):
        yield page, _FILE_HEADER if page.startswith(DATABASE_MAGIC) else 0


def _spaced_pages(content: Source, first: int, size: int, step: int) -> Iterator[tuple[int, bytes]]:
    """Yield pages with their offsets; many are read at once."""
    if size < _SECTOR:
        return
    at_once = max(1, _source.PIECE // step) * step
    for begin in range(first, content.size, at_once):
        part = content.read(begin, min(at_once, content.size - begin))
        yield from ((begin + place, part[place : place + size]) for place in range(0, len(part), step))


def freelist(database: Source) -> frozenset[int]:
    """Return the numbers, from 0, of the unused pages of a database."""
    head = database.read(0, _FILE_HEADER)
    size, found = page_size(head), set[int]()
    trunk = int.from_bytes(head[32:36], "big")
    while 0 < trunk <= database.size // max(size, 1) and trunk - 1 not in found:
        found.add(trunk - 1)
        page = database.read((trunk - 1) * size, size)
        count = min(int.from_bytes(page[4:8], "big"), size // 4 - 2)
        found |= {int.from_bytes(page[8 + 4 * n : 12 + 4 * n], "big") - 1 for n in range(count)}
        trunk = int.from_bytes(page[:4], "big")
    return frozenset(found)


def free_areas(page: bytes, header: int) -> Iterator[Area]:
    """Yield the free areas of a page: all of it if it belongs to no table or index."""
    kind = page[header] if header < len(page) else 0
    if kind not in _TREES:
        yield _area(page, 0, len(page))
        return
    count = int.from_bytes(page[header + 3 : header + 5], "big")
    content = int.from_bytes(page[header + 5 : header + 7], "big") or 65536
    pointers = header + (8 if kind in _LEAVES else 12)
    gap = (pointers + 2 * count, min(content, len(page)))
    for start, end in (gap, *_free_blocks(page, header)):
        # Only a free block of a table merges rows; elsewhere whole rows are old copies, which a note meets by chance.
        area = _area(page, start, end, joined=kind == _TABLE_LEAF and (start, end) != gap)
        starts = _record_starts(page, pointers, count, kind) if kind in _LEAVES and area.damaged else ()
        yield replace(area, of_index=kind in _INDEXES, starts=tuple(starts), page=page)


def _record_starts(page: bytes, pointers: int, count: int, kind: int) -> Iterator[tuple[int, int]]:
    for place in range(pointers, min(pointers + 2 * count, len(page) - 1), 2):
        _, start = read_varint(page, int.from_bytes(page[place : place + 2], "big"))
        yield read_varint(page, start) if kind == _TABLE_LEAF else (0, start)


def _free_blocks(page: bytes, header: int) -> Iterator[tuple[int, int]]:
    seen, place = set[int](), int.from_bytes(page[header + 1 : header + 3], "big")
    while place and place not in seen and place + _NOTE <= len(page):
        seen.add(place)
        yield place, place + int.from_bytes(page[place + 2 : place + 4], "big")
        place = int.from_bytes(page[place : place + 2], "big")


def _area(page: bytes, start: int, end: int, joined: bool = False) -> Area:
    """Return an area with its damaged rows.

    The note on a deleted row says how many bytes are free from there on: the row itself, or also the rows behind it if
    they were deleted before. So one note leads to another, to the end, or to a row that was merged later and is still
    whole. A row ends where the next one starts, or at the one after that, if the next is a false match.
    """
    content = page[start:end]
    if not content.strip(b"\0"):
        return Area(b"")
    data = np.frombuffer(content, np.uint8).astype(np.int64)
    ends = np.arange(len(data) - 3) + (data[2:-1] << 8) + data[3:]
    bounds, notes = {len(content), *(whole_row_places(content) if joined else ())}, []
    for place in np.flatnonzero((ends <= len(content)) & (ends - np.arange(len(ends)) >= _NOTE))[::-1].tolist():
        # A whole row ends a chain of notes, and is not damaged itself.
        if int(ends[place]) in bounds and place not in bounds:
            bounds.add(place)
            notes.append(place)
    order = sorted(bounds)
    rows = [
        content[place + _NOTE : stop]
        for place in notes
        for stop in order[bisect_right(order, place) : bisect_right(order, place) + 2]
    ]
    return Area(content, tuple(rows))
