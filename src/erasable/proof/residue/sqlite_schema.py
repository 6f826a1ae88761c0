"""The shapes of what a SQLite database stores: the columns of its tables and indexes, by what its schema says."""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from erasable.proof.residue.sqlite_records import Record

_SCHEMA_COLUMNS = 5
_WAL_VERSIONS = slice(18, 20)
_KINDS: dict[str, tuple[type, ...]] = {"text": (str,), "integer": (int,), "real": (int, float)}


@dataclass(frozen=True)
class Shape:
    """What the records of a table or of an index hold."""

    name: str | None
    columns: tuple[str | None, ...]
    affinities: tuple[str, ...]
    """What each column holds: text, integer, real, or anything (empty)."""
    row_column: int | None = None
    """The column that is the row's number, and is stored as nothing."""
    is_index: bool = False
    """Whether rows are stored without a number."""
    is_table: bool = False
    largest_row: int | None = None
    """The largest number of a row that is left in the table, if it is known."""

    def is_like(self, record: Record) -> bool:
        """Whether a record has as many values, and a number if rows have one."""
        return len(record.values) == len(self.columns) and self.is_index == (record.number is None)

    def fits(self, record: Record) -> bool:
        """Whether a record like this holds what the columns hold; in an index one without a name numbers the row."""
        return all(self._allows(place, value) for place, value in enumerate(record.values))

    def _allows(self, place: int, value: Any) -> bool:  # noqa: ANN401 - whatever the row holds
        if value is None:
            return not (self.is_index and self.columns[place] is None)
        return isinstance(value, _KINDS.get(self.affinities[place], (object,)))

    def row(self, record: Record) -> tuple[Any, ...]:
        """Return the values of a row, its number included where that is a column."""
        if self.row_column is None or record.number is None:
            return record.values
        place = self.row_column
        return (*record.values[:place], record.number, *record.values[place + 1 :])


def unknown_shape(record: Record) -> Shape:
    """Return the shape of a table or an index that is gone: only texts tell that it is none by chance."""
    size, is_index = len(record.values), record.number is None
    return Shape(None, ("",) * size, ("text",) + ("",) * (size - 1), is_index=is_index)


def opened(database: bytes) -> sqlite3.Connection:
    """Open a private copy of a database in memory, so that nothing is written beside it."""
    copy = bytearray(database)
    # A database with a write-ahead log can't be opened in memory; its pages are like those of any other.
    copy[_WAL_VERSIONS] = b"\1\1"
    connection = sqlite3.connect(":memory:")
    connection.text_factory = lambda content: content.decode("utf-8", "replace")
    try:
        connection.deserialize(bytes(copy))
    except BaseException:
        connection.close()
        raise
    return connection


def shapes_of(connection: sqlite3.Connection) -> list[Shape]:
    """Return the shapes of everything in a database."""
    names = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall()
    tables = {name: _table(connection, name, statement or "") for name, statement in names}
    indexes = connection.execute("SELECT name, tbl_name FROM sqlite_master WHERE type = 'index'").fetchall()
    return [*tables.values(), *(_index(connection, name, tables[table]) for name, table in indexes if table in tables)]


def shapes_from_records(records: Iterable[Record]) -> list[Shape]:
    """Return the shapes that rows of a schema describe, such as lie in a write-ahead log."""
    with closing(sqlite3.connect(":memory:")) as connection:
        for statement in dict.fromkeys(_statements(records)):
            try:
                connection.execute(statement)
            except sqlite3.Error:
                continue
        return shapes_of(connection)


def quoted(name: str) -> str:
    """Return a name as SQL has it."""
    return '"' + name.replace('"', '""') + '"'


def _statements(records: Iterable[Record]) -> Iterator[str]:
    for record in records:
        values = record.values
        if len(values) == _SCHEMA_COLUMNS and values[0] in ("table", "index") and isinstance(values[4], str):
            yield values[4]


def _table(connection: sqlite3.Connection, name: str, statement: str) -> Shape:
    facts = connection.execute(f"PRAGMA table_info({quoted(name)})").fetchall()
    without_rows = statement.upper().rstrip("; \n").endswith("WITHOUT ROWID")
    if without_rows:  # stored like an index, the key first
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
    """Return what a declared type means, by SQLite's own rules."""
    if "INT" in kind:
        return "integer"
    if any(word in kind for word in ("CHAR", "CLOB", "TEXT")):
        return "text"
    return "real" if any(word in kind for word in ("REAL", "FLOA", "DOUB")) else ""
