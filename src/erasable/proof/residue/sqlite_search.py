"""Searching a SQLite database: its tables, and what deleted rows left in free pages, free blocks and journals."""

import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass

from erasable.proof.residue.columns import ListColumn
from erasable.proof.residue.evidence import RAW, File
from erasable.proof.residue.field_names import Role, role_of, subject_of
from erasable.proof.residue.json_values import nested_json
from erasable.proof.residue.sqlite_leftovers import areas_of, damaged_records, records_in, rows_as_tables, shapes_in_use
from erasable.proof.residue.sqlite_pages import (
    WAL_MAGICS,
    Area,
    codec_of,
    database_pages,
    freelist,
    journal_pages,
    page_size,
    wal_pages,
)
from erasable.proof.residue.sqlite_records import Record
from erasable.proof.residue.sqlite_schema import Shape, opened, quoted, shapes_from_records, shapes_of
from erasable.proof.residue.table_search import search_column_names, search_fields, search_pairs, search_table
from erasable.proof.residue.tables import Table
from erasable.proof.residue.vocabulary import is_own_database
from erasable.requests.schema import FREE_TEXT_COLUMNS, PEOPLE_TABLES
from erasable.requests.sqlite_format import SCHEMA_WORDS

_MADE_UP = {
    "number": re.compile("[0-9a-f]{8}"),
    "id": re.compile("[0-9a-f]{32}"),
    "digest": re.compile("[0-9a-f]{64}"),
    "time": re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+\+00:00"),
}
"""What the ledger makes up, by the last word of a column's name: numbers of tokens, ids of requests, digests, times."""


@dataclass(frozen=True)
class _Left:
    """Pages and free areas of a file, in which rows may be left."""

    place: str
    codec: str
    shapes: Sequence[Shape]
    areas: Sequence[Area]
    records: Sequence[Record]


def search_database(file: File, content: bytes) -> None:
    """Search a database file."""
    shapes, codec, pages = _shapes(content), codec_of(content), list(database_pages(content))
    whole = _search_live(file, content, shapes)
    # Of a database that can't be read to its end every page is searched like one that nothing uses.
    unused = freelist(content) & {*range(len(pages))} if whole else range(len(pages))
    areas = areas_of(pages)
    parts = [*(pages[number][0] for number in unused), *(area.content for area in areas)]
    _search_left(file, _Left("what deleted rows left", codec, shapes, areas, records_in(parts, codec)))
    _search_bytes(file, content)


def search_journal(file: File, content: bytes, database: bytes) -> None:
    """Search a write-ahead log or a rollback journal; of its database, as far as there is one, the schema is used."""
    is_log, codec = content[:4] in WAL_MAGICS, codec_of(database)
    pages = list(wal_pages(content) if is_log else journal_pages(content, page_size(database)))
    records = records_in((page for page, _ in pages), codec)
    shapes = list(dict.fromkeys([*_shapes(database), *shapes_from_records(records)]))
    place = "the write-ahead log" if is_log else "the rollback journal"
    _search_left(file, _Left(place, codec, shapes, areas_of(pages), records))
    _search_bytes(file, content)


def _search_live(file: File, content: bytes, shapes: Sequence[Shape]) -> bool:
    """Search the rows that are there, and say whether all of them could be read."""
    try:
        with closing(opened(content)) as connection:
            _search_schema(file, connection)
            tables = _live_tables(connection, shapes)
            if is_own_database(file.name):
                _search_own_tables(file, list(tables))
                return True
            for table in tables:
                search_column_names(file, table)
                search_table(file, table)
    except sqlite3.Error:
        return False
    return True


def _search_own_tables(file: File, tables: Sequence[Table]) -> None:
    """Search our own ledger: where people stand, and what was typed in; what we make up explains hits elsewhere."""
    for table in tables:
        _note_own(file, table)
    for table in tables:
        if table.name in PEOPLE_TABLES:
            search_table(file, table)
        for column in table.columns:
            if table.name not in PEOPLE_TABLES and column.name in FREE_TEXT_COLUMNS:
                search_fields(file, Table(table.place, table.name, [column]))


def _note_own(file: File, table: Table) -> None:
    """Know whom and what our own ledger holds beside the data, and what is made up, so that nobody is taken for it."""
    for column in table.columns:
        made_up = _MADE_UP.get((column.name or "").rpartition("_")[2])
        if table.name not in PEOPLE_TABLES and made_up is not None:
            made = [text for text in column.texts() if made_up.fullmatch(text)]
            file.evidence.note_ids(made)
            file.evidence.note_ambiguous(made)
        elif table.name in PEOPLE_TABLES and role_of(column.name) in (Role.USER, Role.ITEM):
            lists = [[text] if (inside := nested_json(text)) is None else inside for text in column.texts()]
            file.evidence.note_ids(one for texts in lists if isinstance(texts, list) for one in texts)


def _search_schema(file: File, connection: sqlite3.Connection) -> None:
    """Search the names of tables; what describes a table of our own is nobody's id."""
    for name, statement in connection.execute("SELECT name, sql FROM sqlite_master"):
        if subject_of(name) is Role.UNKNOWN and not is_own_database(file.name):
            file.compare_text(name, "the name of a table")
        elif is_own_database(file.name) and (name in SCHEMA_WORDS or name.startswith("sqlite_")):
            words = f"{name} {statement}"
            file.evidence.note_ambiguous([user for user in file.wanted.long_ids if user in words])


def _live_tables(connection: sqlite3.Connection, shapes: Sequence[Shape]) -> Iterator[Table]:
    for shape in shapes:
        if not shape.is_table or shape.name is None:
            continue
        rows = connection.execute(f"SELECT * FROM {quoted(shape.name)}")  # noqa: S608 - a name from the schema, quoted
        names = [fact[0] for fact in rows.description]
        columns = list(zip(*rows.fetchall(), strict=True)) or [()] * len(names)
        listed = [ListColumn(name, values) for name, values in zip(names, columns, strict=True)]
        yield Table(f"table {shape.name}", shape.name, listed)


def _search_left(file: File, left: _Left) -> None:
    tables, own = list(rows_as_tables(left.records, left.shapes, left.place)), is_own_database(file.name)
    for table in tables:
        if own and table.name in PEOPLE_TABLES:
            _note_own(file, table)
    for table in tables:
        if not own or table.name is None or table.name in PEOPLE_TABLES:
            _search_rows(file, table)
    for shape in shapes_in_use(left.records, left.shapes):
        damaged = (record for area in left.areas for record in damaged_records(area, shape, left.codec))
        for table in rows_as_tables(damaged, [shape], left.place):
            _search_rows(file, table)


def _search_bytes(file: File, content: bytes) -> None:
    file.search_texts(content, RAW, "bytes")
    file.search_values(file.wanted.personal_rows, content, RAW)


def _search_rows(file: File, table: Table) -> None:
    search_fields(file, table)
    search_pairs(file, table)


def _shapes(database: bytes) -> list[Shape]:
    try:
        with closing(opened(database)) as connection:
            return shapes_of(connection)
    except (sqlite3.Error, OverflowError):
        return []
