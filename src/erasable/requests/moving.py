"""Moving a queue into another database, with all that it holds: requests, people, tokens, what waits to be learned."""

from collections.abc import Sequence
from contextlib import closing

from erasable.requests.database import Connection, Database, Row
from erasable.requests.plain import marks
from erasable.requests.schema import ENDED_TABLES
from erasable.requests.sqlite import SqliteDatabase

_OTHERS = ("identity", "open_deadlines", "answers", "visits")


def copy_queue(source: Database, target: Database) -> None:
    """Copy a queue into an empty one, in one change; to be done inside a change of the source, so that it stands still.

    Nobody holds the lease of the copy, which goes on counting: events say under which number each was begun. Requests
    that have ended and were sealed are among the others there.
    """

    def copy(reading: Connection, writing: Connection) -> None:
        for table in ENDED_TABLES:
            _copy_rows(reading, writing, f"all_{table}", table)
        for table in _OTHERS:
            _copy_rows(reading, writing, table, table)
        tokens = [{**row, "label": target.labels.written(row["label"])} for row in _tokens(source, reading)]
        _insert(writing, "tokens", tokens)
        lease = reading.execute("SELECT lease_number FROM lease")[0]["lease_number"]
        writing.execute("UPDATE lease SET lease_number = ?", (lease,))
        for request in source.subjects.all(reading):
            target.subjects.keep(writing, request)
        about = {row["event_number"]: row["request_id"] for row in reading.execute("SELECT * FROM events")}
        for number, said in source.remarks.of(reading, None).items():
            target.remarks.keep(writing, number, about[number], said)
        target.waiting.add(writing, source.waiting.all(reading))

    source.read(lambda reading: target.change(lambda writing: copy(reading, writing)), with_ended=True)


def typed_in(source: Database) -> bytes:
    """Return events and tokens as a file of SQLite, in which people are searched for as in that of a workspace."""

    def found(reading: Connection) -> tuple[list[Row], list[Row]]:
        return reading.execute("SELECT * FROM events"), _tokens(source, reading)

    events, tokens = source.read(found)
    with closing(SqliteDatabase.in_memory()) as made:
        made.change(lambda writing: _insert(writing, "events", events))
        made.change(lambda writing: _insert(writing, "tokens", tokens))
        return made.content()


def _tokens(source: Database, reading: Connection) -> list[Row]:
    """Return all tokens, their labels as they were typed in."""
    rows = reading.execute("SELECT * FROM tokens")
    return [{**row, "label": source.labels.read(row["label"])} for row in rows]


def _copy_rows(reading: Connection, writing: Connection, view: str, table: str) -> None:
    _insert(writing, table, [dict(row) for row in reading.execute(f"SELECT * FROM {view}")])  # noqa: S608 - names of ours


def _insert(writing: Connection, table: str, rows: Sequence[Row]) -> None:
    if rows:
        columns = ", ".join(rows[0])
        statement = f"INSERT INTO {table} ({columns}) VALUES ({marks(rows[0])})"  # noqa: S608 - names of ours
        writing.execute_many(statement, [tuple(row.values()) for row in rows])
