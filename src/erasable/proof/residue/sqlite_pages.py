"""Pages of SQLite: what is free in them, and the pages that lie in its journals; no tables here."""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from erasable.proof.residue.sqlite_records import read_varint, whole_row_places

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
    """Free bytes of a page, with the rows in them that lost their first four bytes."""

    content: bytes
    damaged: tuple[bytes, ...] = ()
    of_index: bool | None = None
    """Whether the page belongs to an index or to a table, if that is known."""
    starts: tuple[tuple[int, int], ...] = ()
    """The number of each row that is left in the page, 0 in an index, and where in the page its record begins."""
    page: bytes = b""


def page_size(database: bytes) -> int:
    """Return how large the pages of a database are, as its header says."""
    size = int.from_bytes(database[16:18], "big")
    return 65536 if size == 1 else size


def codec_of(database: bytes) -> str:
    """Return how texts are encoded in a database."""
    return _CODECS.get(int.from_bytes(database[56:60], "big"), "utf-8")


def database_pages(database: bytes) -> Iterator[tuple[bytes, int]]:
    """Yield each page with where its own header begins."""
    size = page_size(database)
    if size < _SECTOR:
        return
    for place in range(0, len(database), size):
        yield database[place : place + size], _FILE_HEADER if place == 0 else 0


def wal_pages(content: bytes) -> Iterator[tuple[bytes, int]]:
    """Yield the pages in a write-ahead log, also those of rounds before."""
    size = int.from_bytes(content[8:12], "big")
    yield from _spaced_pages(content, _WAL_HEADER + _FRAME_HEADER, size, size + _FRAME_HEADER)


def journal_pages(content: bytes, size: int) -> Iterator[tuple[bytes, int]]:
    """Yield the pages in a rollback journal; its header may be wiped, so the size of a page must be known."""
    sector = int.from_bytes(content[20:24], "big") or _SECTOR
    size = int.from_bytes(content[24:28], "big") or size
    yield from _spaced_pages(content, sector + 4, size, size + 8)


def _spaced_pages(content: bytes, first: int, size: int, step: int) -> Iterator[tuple[bytes, int]]:
    if size < _SECTOR:
        return
    for place in range(first, len(content), step):
        page = content[place : place + size]
        yield page, _FILE_HEADER if page.startswith(DATABASE_MAGIC) else 0


def freelist(database: bytes) -> frozenset[int]:
    """Return the numbers, from 0, of the pages that a database does not use."""
    size, found = page_size(database), set[int]()
    trunk = int.from_bytes(database[32:36], "big")
    while 0 < trunk <= len(database) // size and trunk - 1 not in found:
        found.add(trunk - 1)
        page = database[(trunk - 1) * size : trunk * size]
        count = min(int.from_bytes(page[4:8], "big"), size // 4 - 2)
        found |= {int.from_bytes(page[8 + 4 * n : 12 + 4 * n], "big") - 1 for n in range(count)}
        trunk = int.from_bytes(page[:4], "big")
    return frozenset(found)


def free_areas(page: bytes, header: int) -> Iterator[Area]:
    """Yield what is free in a page: all of it if it is no page of a table or an index."""
    kind = page[header] if header < len(page) else 0
    if kind not in _TREES:
        yield _area(page, 0, len(page))
        return
    count = int.from_bytes(page[header + 3 : header + 5], "big")
    content = int.from_bytes(page[header + 5 : header + 7], "big") or 65536
    pointers = header + (8 if kind in _LEAVES else 12)
    gap = (pointers + 2 * count, min(content, len(page)))
    for start, end in (gap, *_free_blocks(page, header)):
        # Only a free block of a table joins rows; elsewhere whole rows are old copies, and what leads there is chance.
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

    The note on a deleted row says how many bytes are free from there on. That is the row, or all rows up to the end
    where those behind it were deleted before, so that one note leads to another, to the end, or to a row that was
    joined later and is still whole. A row ends where the next begins; at the one after, if what looks like it is none.
    """
    content = page[start:end]
    if not content.strip(b"\0"):
        return Area(b"")
    data = np.frombuffer(content, np.uint8).astype(np.int64)
    ends = np.arange(len(data) - 3) + (data[2:-1] << 8) + data[3:]
    bounds, notes = {len(content), *(whole_row_places(content) if joined else ())}, []
    for place in np.flatnonzero((ends <= len(content)) & (ends - np.arange(len(ends)) >= _NOTE))[::-1].tolist():
        # A whole row ends a chain of notes and is no damaged row itself.
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
