"""Searching an SQLite database: its tables, and remains of deleted rows in free pages, free blocks and journals."""

import os
import sqlite3
import urllib.parse
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cache, partial
from itertools import chain
from typing import Any

from erasable.scan import _source
from erasable.scan._columns import Column, ListColumn, Role, role_of, subject_of
from erasable.scan._evidence import File
from erasable.scan._source import BytesInMemory, OnDisk, ReadElsewhere, Source
from erasable.scan._sqlite_pages import (
    WAL_MAGICS,
    Area,
    Record,
    codec_of,
    database_pages,
    free_areas,
    freelist,
    journal_pages,
    page_size,
    read_varint,
    record_length,
    record_values,
    size_of,
    type_of,
    typed_values,
    untyped_number,
    untyped_values,
    wal_pages,
    whole_records,
)
from erasable.scan._tables import (
    Read,
    Table,
    search_column_names,
    search_fields,
    search_pairs,
    search_parts,
    search_table,
)
from erasable.scan._texts import nested_json

# Shapes: the columns of tables and indexes, from the schema

_SCHEMA_COLUMNS = 5
_WAL_VERSIONS = slice(18, 20)
_KINDS: dict[str, tuple[type, ...]] = {"text": (str,), "integer": (int,), "real": (int, float)}


@dataclass(frozen=True)
class Shape:
    """The columns of the records in a table or an index."""

    name: str | None
    columns: tuple[str | None, ...]
    affinities: tuple[str, ...]
    """The type of each column: text, integer, real, or any (empty)."""
    row_column: int | None = None
    """The column that is an alias of the rowid, which is stored as NULL."""
    is_index: bool = False
    """Whether rows are stored without a rowid."""
    is_table: bool = False
    largest_row: int | None = None
    """The largest rowid in the table, if known."""

    def is_like(self, record: Record) -> bool:
        """Whether a record has as many values, and a rowid if rows have one."""
        return len(record.values) == len(self.columns) and self.is_index == (record.number is None)

    def fits(self, record: Record) -> bool:
        """Whether the values of a record fit the types of the columns."""
        return all(self._allows(place, value) for place, value in enumerate(record.values))

    def _allows(self, place: int, value: Any) -> bool:  # noqa: ANN401 - whatever the row holds
        if value is None:
            return not (self.is_index and self.columns[place] is None)
        return isinstance(value, _KINDS.get(self.affinities[place], (object,)))

    def row(self, record: Record) -> tuple[Any, ...]:
        """Return the values of a row, with the rowid if it is a column."""
        if self.row_column is None or record.number is None:
            return record.values
        place = self.row_column
        return (*record.values[:place], record.number, *record.values[place + 1 :])


def unknown_shape(record: Record) -> Shape:
    """Return a shape for a record of a dropped table or index; a text first makes a chance match unlikely."""
    size, is_index = len(record.values), record.number is None
    return Shape(None, ("",) * size, ("text",) + ("",) * (size - 1), is_index=is_index)


def opened(database: Source) -> sqlite3.Connection:
    """Open a copy of a database in memory, so that no files are written beside it; a large one where it is.

    A large one is opened as one that nobody changes: then SQLite takes no locks and writes nothing.
    """
    if isinstance(database, OnDisk | ReadElsewhere):
        place = f"file:{urllib.parse.quote(os.fspath(database.path.absolute()))}?mode=ro&immutable=1"
        connection = sqlite3.connect(place, uri=True, check_same_thread=False)
    else:
        connection = sqlite3.connect(":memory:")
    connection.text_factory = lambda content: content.decode("utf-8", "replace")
    try:
        if isinstance(database, BytesInMemory):
            copy = bytearray(database.content)
            # A database in WAL mode can't be opened in memory; its pages are the same in either mode.
            copy[_WAL_VERSIONS] = b"\1\1"
            connection.deserialize(bytes(copy))
    except BaseException:
        connection.close()
        raise
    return connection


def shapes_of(connection: sqlite3.Connection) -> list[Shape]:
    """Return the shapes of all tables and indexes in a database."""
    names = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall()
    tables = {name: _table(connection, name, statement or "") for name, statement in names}
    indexes = connection.execute("SELECT name, tbl_name FROM sqlite_master WHERE type = 'index'").fetchall()
    return [*tables.values(), *(_index(connection, name, tables[table]) for name, table in indexes if table in tables)]


def shapes_from_records(records: Iterable[Record]) -> list[Shape]:
    """Return the shapes described by rows of a schema, such as those in a write-ahead log."""
    with closing(sqlite3.connect(":memory:")) as connection:
        for statement in dict.fromkeys(_statements(records)):
            try:
                connection.execute(statement)
            except sqlite3.Error:
                continue
        return shapes_of(connection)


def quoted(name: str) -> str:
    """Return a name quoted for SQL."""
    return '"' + name.replace('"', '""') + '"'


def _statements(records: Iterable[Record]) -> Iterator[str]:
    for record in records:
        values = record.values
        if len(values) == _SCHEMA_COLUMNS and values[0] in ("table", "index") and isinstance(values[4], str):
            yield values[4]


def _table(connection: sqlite3.Connection, name: str, statement: str) -> Shape:
    facts = connection.execute(f"PRAGMA table_info({quoted(name)})").fetchall()
    without_rows = statement.upper().rstrip("; \n").endswith("WITHOUT ROWID")
    if without_rows:  # stored like an index, with the key first
        facts = sorted(facts, key=lambda fact: (not fact[5], fact[5]))
    keys = [place for place, fact in enumerate(facts) if fact[5]]
    alone = len(keys) == 1 and str(facts[keys[0]][2]).upper() == "INTEGER" and not without_rows
    columns, affinities = tuple(fact[1] for fact in facts), _affinities([fact[2] for fact in facts])
    largest = None if without_rows else _largest_row(connection, name)
    row_column = keys[0] if alone else None
    return Shape(name, columns, affinities, row_column, is_index=without_rows, is_table=True, largest_row=largest)


def _largest_row(connection: sqlite3.Connection, name: str) -> int | None:
    try:
        found = connection.execute(f"SELECT max(rowid) FROM {quoted(name)}").fetchone()  # noqa: S608 - quoted
    except sqlite3.Error:
        return None
    return found[0] if isinstance(found[0], int) else None


def _index(connection: sqlite3.Connection, name: str, table: Shape) -> Shape:
    columns = tuple(fact[2] for fact in connection.execute(f"PRAGMA index_xinfo({quoted(name)})").fetchall())
    known = dict(zip(table.columns, table.affinities, strict=True))
    affinities = tuple("integer" if column is None else known.get(column, "") for column in columns)
    return Shape(table.name, columns, affinities, is_index=True, largest_row=table.largest_row)


def _affinities(types: Sequence[str]) -> tuple[str, ...]:
    return tuple(_affinity(kind.upper()) for kind in types)


def _affinity(kind: str) -> str:
    """Return the affinity of a declared type, by SQLite's rules."""
    if "INT" in kind:
        return "integer"
    if any(word in kind for word in ("CHAR", "CLOB", "TEXT")):
        return "text"
    return "real" if any(word in kind for word in ("REAL", "FLOA", "DOUB")) else ""


# Restoring deleted rows: whole ones, and those that lost their first four bytes

_BETWEEN = bytes(16)
_BATCH = 1 << 19
_NOTE = 4
_ROW = 200  # what a row takes in memory beside its texts


def areas_of(pages: Iterable[tuple[bytes, int]]) -> list[Area]:
    """Return the free areas of some pages."""
    return [area for page, header in pages for area in free_areas(page, header) if area.content]


def records_in(parts: Iterable[bytes], codec: str) -> list[Record]:
    """Return the whole rows in some separate parts; many parts are read at once."""
    found: list[Record] = []
    batch: list[bytes] = []
    for part in chain(parts, (b"",)):
        if sum(map(len, batch)) > _BATCH or not part:
            found += whole_records(_BETWEEN.join(batch), codec)
            batch = []
        batch.append(part)
    return found


def rows_as_tables(records: Iterable[Record], shapes: Sequence[Shape], place: str) -> Iterator[Table]:
    """Return rows as tables, by the shapes that they fit; rows of a dropped table fit none."""
    found: dict[Shape, list[tuple[Any, ...]]] = {}
    for record in records:
        for shape in _shapes_like(record, shapes):
            if shape.fits(record):
                found.setdefault(shape, []).append(shape.row(record))
    return (_as_table(shape, rows, place) for shape, rows in found.items())


def shapes_in_use(records: Iterable[Record], shapes: Sequence[Shape]) -> list[Shape]:
    """Return the known shapes; without a schema, those of the whole rows."""
    seen = ((unknown_shape(record), record) for record in records)
    return list(shapes) or list(dict.fromkeys(shape for shape, record in seen if shape.fits(record)))


def damaged_records(area: Area, shape: Shape, codec: str) -> Iterator[Record]:
    """Yield the most likely reading of each damaged row in an area.

    The lost four bytes held the length of the row, in a table its rowid, and the start of the record's header. The size
    of the row tells what is missing. Of several possible readings the one wins whose types are most like those of the
    rows left in the page, and of these the one that misses least.
    """
    if not area.damaged or area.of_index not in (None, shape.is_index):
        return
    number = None if shape.is_index else 0
    sizes = [0] if shape.is_index else _number_sizes([number for number, _ in area.starts], len(area.damaged))
    usual = cache(lambda: _usual_types(area, codec))  # reads every row left, and few rows can be read in several ways
    for row in area.damaged:
        readings = [one for size in reversed(sizes) for one in _readings(row, shape, codec, _NOTE - 1 - size)]
        if len(readings) > 1:
            yield Record(max(readings, key=lambda values: _likeness(values, shape, usual())), number)
        elif readings:
            yield Record(readings[0], number)


def _likeness(values: Sequence[Any], shape: Shape, usual: frozenset[tuple[int, int]]) -> tuple[bool, int]:
    """Return how much a reading resembles the rows left; an index must refer to a rowid that the table can have."""
    row = values[-1] if shape.is_index and shape.columns[-1] is None else None
    possible = row is None or shape.largest_row is None or 0 < row <= shape.largest_row
    return possible, len(usual & {*enumerate(map(type_of, values))})


def _number_sizes(numbers: Sequence[int], deleted: int) -> list[int]:
    """Return how many bytes the rowids of deleted rows may take; they are among or near those left."""
    if not numbers:
        return list(range(1, 10))
    least, most = max(min(numbers) - deleted, 1), max(numbers) + deleted
    return list(range(_varint_size(least), _varint_size(most) + 1))


def _varint_size(number: int) -> int:
    return max(1, -(-number.bit_length() // 7))


def _usual_types(area: Area, codec: str) -> frozenset[tuple[int, int]]:
    """Return the pairs of position and type that occur in the rows left."""
    rows = (record_values(area.page, start, codec) for _, start in area.starts)
    return frozenset(kind for values in rows if values for kind in enumerate(map(type_of, values)))


def _readings(row: bytes, shape: Shape, codec: str, lost: int) -> Iterator[tuple[Any, ...]]:
    """Yield the possible values of a row that lost so many bytes of its record header; none if negative."""
    if lost > 0:
        return _without_types(row, shape, codec, lost - 1)
    fits = -lost < len(row) and len(shape.columns) < row[-lost] <= len(row)
    return _after_header(row, -lost, codec) if fits else iter(())


def _after_header(row: bytes, start: int, codec: str) -> Iterator[tuple[Any, ...]]:
    values = record_values(row, start, codec)
    if values is not None and start + record_length(row, start) == len(row):
        yield values


def _without_types(row: bytes, shape: Shape, codec: str, lost: int) -> Iterator[tuple[Any, ...]]:
    """Yield the possible values of a row that lost the length of its header and some types."""
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
    """Yield the possible pairs of a value and a rowid, as in an index of one column."""
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


# Searching


@dataclass(frozen=True)
class _Left:
    """What is searched for remains of deleted rows in a file."""

    place: str
    codec: str
    shapes: Sequence[Shape]
    areas: Sequence[Area]
    records: Sequence[Record]


Page = tuple[bytes, int]
"""A page, and the offset of its header."""


def search_database(file: File, source: Source) -> None:
    """Search a database file."""
    shapes, codec = _shapes(source), codec_of(source.read(0, 100))
    whole = _search_live(file, source, shapes)
    # If a database can't be read to its end, every page is searched as if it were unused.
    unused = freelist(source) if whole else None
    for first, pages in _some_pages(database_pages(source)):
        areas = areas_of(pages)
        free = (page for number, (page, _) in enumerate(pages, first) if unused is None or number in unused)
        records = records_in([*free, *(area.content for area in areas)], codec)
        _search_left(file, _Left("what deleted rows left", codec, shapes, areas, records))
    _search_bytes(file, source)


def search_journal(file: File, source: Source, database: Source) -> None:
    """Search a write-ahead log or a rollback journal, with the schema of its database, if there is one."""
    head = database.read(0, 100)
    is_log, codec = source.read(0, 4) in WAL_MAGICS, codec_of(head)

    def parts() -> Iterator[tuple[Sequence[Page], list[Record]]]:
        pages = wal_pages(source) if is_log else journal_pages(source, page_size(head))
        return ((some, records_in((page for page, _ in some), codec)) for _, some in _some_pages(pages))

    described = (shape for _, records in parts() for shape in shapes_from_records(records))
    shapes = list(dict.fromkeys([*_shapes(database), *described]))
    place = "the write-ahead log" if is_log else "the rollback journal"
    for pages, records in parts():
        _search_left(file, _Left(place, codec, shapes, areas_of(pages), records))
    _search_bytes(file, source)


def _some_pages(pages: Iterable[Page]) -> Iterator[tuple[int, Sequence[Page]]]:
    """Yield as many pages as a piece holds, with the number of the first."""
    first, some, size = 0, list[Page](), 0
    for page in pages:
        some.append(page)
        size += len(page[0])
        if size >= _source.PIECE:
            yield first, some
            first, some, size = first + len(some), [], 0
    yield first, some


def _search_live(file: File, source: Source, shapes: Sequence[Shape]) -> bool:
    """Search the live rows; return whether all of them could be read."""
    try:
        with closing(opened(source)) as connection:
            _search_schema(file, connection)
            names = [shape.name for shape in shapes if shape.is_table and shape.name is not None]
            if _is_own(file):
                _search_own_tables(file, [table for name in names for table in _rows_of(connection, name)])
                return True
            for name in names:
                read: Read = partial(_rows_of, connection, name)
                search_column_names(file, next(iter(read())))
                search_parts(file, read)
    except sqlite3.Error:
        return False
    return True


def _search_own_tables(file: File, tables: Sequence[Table]) -> None:
    """Search a database of the vocabulary: tables of people and free text; generated ids explain hits."""
    for table in tables:
        _note_own(file, table)
    for table in tables:
        if table.name in file.vocabulary.people_tables:
            search_table(file, table)
        for column in table.columns:
            if table.name not in file.vocabulary.people_tables and column.name in file.vocabulary.free_text_columns:
                search_fields(file, Table(table.place, table.name, [column]))


def _note_own(file: File, table: Table) -> None:
    """Register the ids of people and items in a database of the vocabulary, and the ids generated there."""
    for column in table.columns:
        made_up = file.vocabulary.made_up.get((column.name or "").rpartition("_")[2])
        if table.name not in file.vocabulary.people_tables and made_up is not None:
            made = [text for text in _texts_of(column) if made_up.fullmatch(text)]
            file.evidence.note_ids(made)
            file.evidence.note_ambiguous(made)
        elif table.name in file.vocabulary.people_tables and role_of(column.name) in (Role.USER, Role.ITEM):
            lists = [[text] if (inside := nested_json(text)) is None else inside for text in _texts_of(column)]
            file.evidence.note_ids(one for texts in lists if isinstance(texts, list) for one in texts)


def _texts_of(column: Column) -> list[str]:
    cells = column.texts()
    return [cells.at(cell).decode("utf-8", "surrogatepass") for cell in range(len(cells))]


def _search_schema(file: File, connection: sqlite3.Connection) -> None:
    """Search the names of tables; the schema of the vocabulary's tables names nobody."""
    for name, statement in connection.execute("SELECT name, sql FROM sqlite_master"):
        if subject_of(name) is Role.UNKNOWN and not _is_own(file):
            file.compare_text(name, "the name of a table")
        elif _is_own(file) and (name in file.vocabulary.schema or name.startswith("sqlite_")):
            words = f"{name} {statement}"
            file.evidence.note_ambiguous([user for user in file.wanted.long_ids if user in words])


def _rows_of(connection: sqlite3.Connection, name: str) -> Iterator[Table]:
    """Yield the rows of a table, about as many at once as a piece holds."""
    found = connection.execute(f"SELECT * FROM {quoted(name)}")  # noqa: S608 - a name from the schema, quoted
    names, numeric = [fact[0] for fact in found.description], dict[int, bool]()

    def table(rows: Sequence[tuple[Any, ...]]) -> Table:
        columns = list(zip(*rows, strict=True)) or [()] * len(names)
        listed = [ListColumn(name, values) for name, values in zip(names, columns, strict=True)]
        return Table(f"table {name}", name, [one.like_first(numeric, place) for place, one in enumerate(listed)])

    rows, size, yielded = list[tuple[Any, ...]](), 0, False
    for row in found:
        rows.append(row)
        size += _ROW + sum(len(value) for value in row if isinstance(value, str | bytes))
        if size >= _source.PIECE:
            yield table(rows)
            rows, size, yielded = [], 0, True
    if rows or not yielded:
        yield table(rows)


def _search_left(file: File, left: _Left) -> None:
    tables, own = list(rows_as_tables(left.records, left.shapes, left.place)), _is_own(file)
    for table in tables:
        if own and table.name in file.vocabulary.people_tables:
            _note_own(file, table)
    for table in tables:
        if not own or table.name is None or table.name in file.vocabulary.people_tables:
            _search_rows(file, table)
    for shape in shapes_in_use(left.records, left.shapes):
        damaged = (record for area in left.areas for record in damaged_records(area, shape, left.codec))
        for table in rows_as_tables(damaged, [shape], left.place):
            _search_rows(file, table)


def _is_own(file: File) -> bool:
    return file.vocabulary.databases.fullmatch(file.name) is not None


def _search_bytes(file: File, source: Source) -> None:
    file.search_bytes(source, file.wanted.raw_text, "bytes")


def _search_rows(file: File, table: Table) -> None:
    search_fields(file, table)
    search_pairs(file, table)


def _shapes(database: Source) -> list[Shape]:
    if not database.size:
        return []
    try:
        with closing(opened(database)) as connection:
            return shapes_of(connection)
    except (sqlite3.Error, OverflowError):
        return []
