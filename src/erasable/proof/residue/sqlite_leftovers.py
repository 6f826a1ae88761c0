"""What deleted rows left in a SQLite file, as rows again: whole ones, and those that lost their first four bytes."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

from erasable.proof.residue.columns import ListColumn
from erasable.proof.residue.sqlite_pages import Area, free_areas
from erasable.proof.residue.sqlite_records import (
    Record,
    read_varint,
    record_length,
    record_values,
    size_of,
    type_of,
    typed_values,
    untyped_number,
    untyped_values,
    whole_records,
)
from erasable.proof.residue.sqlite_schema import Shape, unknown_shape
from erasable.proof.residue.tables import Table

_BETWEEN = bytes(16)
_BATCH = 1 << 19
_NOTE = 4


def areas_of(pages: Iterable[tuple[bytes, int]]) -> list[Area]:
    """Return what is free in some pages."""
    return [area for page, header in pages for area in free_areas(page, header) if area.content]


def records_in(parts: Iterable[bytes], codec: str) -> list[Record]:
    """Return the whole rows in some parts, none of which goes on in the next; many parts are read at once."""
    found: list[Record] = []
    batch: list[bytes] = []
    for part in chain(parts, (b"",)):
        if sum(map(len, batch)) > _BATCH or not part:
            found += whole_records(_BETWEEN.join(batch), codec)
            batch = []
        batch.append(part)
    return found


def rows_as_tables(records: Iterable[Record], shapes: Sequence[Shape], place: str) -> Iterator[Table]:
    """Return rows as tables, by the shapes that they fit; those of a table that is gone fit none."""
    found: dict[Shape, list[tuple[Any, ...]]] = {}
    for record in records:
        for shape in _shapes_like(record, shapes):
            if shape.fits(record):
                found.setdefault(shape, []).append(shape.row(record))
    return (_as_table(shape, rows, place) for shape, rows in found.items())


def shapes_in_use(records: Iterable[Record], shapes: Sequence[Shape]) -> list[Shape]:
    """Return the shapes that are known; without a schema, those that whole rows show."""
    seen = ((unknown_shape(record), record) for record in records)
    return list(shapes) or list(dict.fromkeys(shape for shape, record in seen if shape.fits(record)))


def damaged_records(area: Area, shape: Shape, codec: str) -> Iterator[Record]:
    """Yield what the damaged rows in an area may have been.

    The first four bytes held the length of a row, in a table its number, and as much of the record's header as had
    room. The size of the row tells what is missing. Where several readings are possible, the one counts whose values
    are most like those of the rows that are left in the page, and of these the one that misses least.
    """
    if not area.damaged or area.of_index not in (None, shape.is_index):
        return
    number = None if shape.is_index else 0
    sizes = [0] if shape.is_index else _number_sizes([number for number, _ in area.starts], len(area.damaged))
    usual = _usual_types(area, codec)
    for row in area.damaged:
        readings = [one for size in reversed(sizes) for one in _readings(row, shape, codec, _NOTE - 1 - size)]
        if readings:
            yield Record(max(readings, key=lambda values: _likeness(values, shape, usual)), number)


def _likeness(values: Sequence[Any], shape: Shape, usual: frozenset[tuple[int, int]]) -> tuple[bool, int]:
    """Return how much a reading is like the rows that are left: a row of an index is one that the table can have."""
    row = values[-1] if shape.is_index and shape.columns[-1] is None else None
    possible = row is None or shape.largest_row is None or 0 < row <= shape.largest_row
    return possible, len(usual & {*enumerate(map(type_of, values))})


def _number_sizes(numbers: Sequence[int], deleted: int) -> list[int]:
    """Return how many bytes the numbers of deleted rows may take, which are among or near those that are left."""
    if not numbers:
        return list(range(1, 10))
    least, most = max(min(numbers) - deleted, 1), max(numbers) + deleted
    return list(range(_varint_size(least), _varint_size(most) + 1))


def _varint_size(number: int) -> int:
    return max(1, -(-number.bit_length() // 7))


def _usual_types(area: Area, codec: str) -> frozenset[tuple[int, int]]:
    """Return which type stands at which place of the rows that are left."""
    rows = (record_values(area.page, start, codec) for _, start in area.starts)
    return frozenset(kind for values in rows if values for kind in enumerate(map(type_of, values)))


def _readings(row: bytes, shape: Shape, codec: str, lost: int) -> Iterator[tuple[Any, ...]]:
    """Yield what a row may say of which so many bytes of the record's header are lost; none are if it is negative."""
    if lost > 0:
        return _without_types(row, shape, codec, lost - 1)
    fits = -lost < len(row) and len(shape.columns) < row[-lost] <= len(row)
    return _after_header(row, -lost, codec) if fits else iter(())


def _after_header(row: bytes, start: int, codec: str) -> Iterator[tuple[Any, ...]]:
    values = record_values(row, start, codec)
    if values is not None and start + record_length(row, start) == len(row):
        yield values


def _without_types(row: bytes, shape: Shape, codec: str, lost: int) -> Iterator[tuple[Any, ...]]:
    """Yield the values of a row that lost the length of its header and some types."""
    types, place = [], 0
    for _ in range(len(shape.columns) - lost):
        kind, place = read_varint(row, place)
        types.append(kind)
    rest = len(row) - place - sum(map(size_of, types))
    known = typed_values(row[place + rest :], types, codec) if place <= len(row) and rest >= 0 else None
    if known is None:
        return
    unknown = row[place : place + rest]
    if lost == 0 and not rest:
        yield known
    elif lost == 1:
        yield from ((value, *known) for value in untyped_values(unknown, codec))
    elif lost == 2:
        yield from ((*pair, *known) for pair in _two_values(unknown, codec))


def _two_values(content: bytes, codec: str) -> Iterator[tuple[Any, int]]:
    """Yield what two values may be of which the second is a number, as it is in an index of one column."""
    for split in range(1, len(content)):
        second = untyped_number(content[split:])
        if second is not None:
            yield from ((first, second) for first in untyped_values(content[:split], codec))
    yield from ((first, 1) for first in untyped_values(content, codec))


def _shapes_like(record: Record, shapes: Sequence[Shape]) -> list[Shape]:
    return [shape for shape in shapes if shape.is_like(record)] or [unknown_shape(record)]


def _as_table(shape: Shape, rows: Sequence[tuple[Any, ...]], place: str) -> Table:
    columns = zip(shape.columns, zip(*rows, strict=True), strict=True)
    return Table(place, shape.name, [ListColumn(name or None, values) for name, values in columns])
