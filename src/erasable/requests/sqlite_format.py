"""The format of a queue in SQLite: its tables, and the numbered steps that bring one of an earlier version forward.

A file carries the number of its format. Each step takes it to the next number; it may be broken off anywhere, and be
taken again. What somebody typed in lies in `remarks`, beside who asked, and goes when that goes.
"""

import json
import re
import sqlite3
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from erasable.requests.lifecycle import ENDED, NOTHING_HELD, legal_deadline
from erasable.requests.schema import ENDED_TABLES, FORMAT, SQLITE, statements

_TABLES = statements(SQLITE, sealed=False)
_NOT_CHANGED = """CREATE TRIGGER events_are_not_changed BEFORE UPDATE ON events
    BEGIN SELECT RAISE(ABORT, 'events are never changed'); END"""
REMOVAL_TRIGGER = """CREATE TRIGGER events_are_not_removed BEFORE DELETE ON events
    BEGIN SELECT RAISE(ABORT, 'events are never removed'); END"""
"""What keeps events from being removed."""
_UP_TO_FORMAT_2 = "events_make_states excluded"  # a trigger that kept current_states
_ADDED_BY_2 = ("remarks", "remarks_by_request", "events_by_actor", "joined_submissions")
_ADDED_BY_3 = ("identity", "open_deadlines", "open_deadlines_by_begin")

SCHEMA_WORDS = frozenset(re.findall("[a-z_]+", " ".join([*_TABLES, _NOT_CHANGED, REMOVAL_TRIGGER, _UP_TO_FORMAT_2])))
"""The names of tables, columns and the rest, which stand in every queue in SQLite, of this format or an earlier one."""


def ended_schema() -> str:
    """Return the tables of requests that have ended, with their indexes: nothing is added there by and by."""
    wanted = re.compile(rf"CREATE (TABLE ({'|'.join(ENDED_TABLES)})|INDEX \w+ ON ({'|'.join(ENDED_TABLES)})) ")
    return "".join(f"{statement};\n" for statement in _TABLES if wanted.match(statement))


def format_of(connection: sqlite3.Connection) -> int:
    """Return the number of a file's format; 0 is a file without tables."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def make_tables(connection: sqlite3.Connection) -> None:
    """Make all tables, unless another process has made them meanwhile."""
    connection.execute("BEGIN IMMEDIATE")
    if format_of(connection) == 0:
        for statement in (*_TABLES, _NOT_CHANGED, REMOVAL_TRIGGER):
            connection.execute(statement)
        set_format(connection, FORMAT)
    connection.execute("COMMIT")


def set_format(connection: sqlite3.Connection, number: int) -> None:
    """Write down the number of the format."""
    connection.execute(f"PRAGMA user_version = {int(number)}")


def _make(connection: sqlite3.Connection, names: tuple[str, ...]) -> None:
    for statement in _TABLES:
        if any(f" {name} " in statement.split("(")[0] for name in names):
            connection.execute(re.sub("^CREATE (TABLE|INDEX)", r"CREATE \1 IF NOT EXISTS", statement))


def _set_what_was_typed_in_apart(connection: sqlite3.Connection) -> None:
    """From 1 to 2: reasons go from events to a table beside who asked; where that is gone, they are destroyed."""
    _make(connection, _ADDED_BY_2)
    kept = {row[0] for row in connection.execute("SELECT request_id FROM open_requests WHERE user_id IS NOT NULL")}
    typed = [(number, request_id, json.loads(facts)) for number, request_id, facts in connection.execute(_TYPED_IN)]
    connection.execute("DROP TRIGGER events_are_not_changed")
    for number, request_id, facts in typed:
        reason = facts.pop("reason", None)
        if reason is None or reason == NOTHING_HELD:
            continue
        connection.execute("UPDATE events SET facts = ? WHERE event_number = ?", (json.dumps(facts), number))
        if request_id in kept:
            remark = json.dumps({"reason": reason}, ensure_ascii=False)
            connection.execute("INSERT INTO remarks VALUES (?, ?, ?)", (number, request_id, remark))
    connection.execute(_NOT_CHANGED)


_TYPED_IN = (
    "SELECT event_number, request_id, facts FROM events "
    "WHERE request_id IS NOT NULL AND actor_name NOT IN ('worker', 'service')"
)


def _keep_deadlines(connection: sqlite3.Connection) -> None:
    """From 2 to 3: open requests have their deadlines in a table, and their states the names of today."""
    connection.execute("DROP TRIGGER IF EXISTS events_make_states")
    _make(connection, _ADDED_BY_3)
    connection.execute("UPDATE current_states SET status = 'certifying' WHERE status = 'verifying'")
    # Whoever was accepted is suppressed: it was said so a moment later, unless the service was stopped just then.
    connection.execute("UPDATE current_states SET status = 'suppressed' WHERE status IN ('accepted', 'received')")
    connection.execute("DELETE FROM open_requests WHERE user_id IS NULL")
    marks = ", ".join("?" * len(ENDED))
    for request_id, number, status in connection.execute(
        f"SELECT request_id, first_number, status FROM current_states WHERE status NOT IN ({marks})",  # noqa: S608
        sorted(ENDED),
    ).fetchall():
        events = connection.execute(_TOLD, (request_id,)).fetchall()
        _keep_deadlines_of(connection, request_id, number, status, events)
    rows = connection.execute("SELECT lease_number, process_number, process_start, end_time FROM lease").fetchall()
    connection.execute("DROP TABLE lease")
    connection.execute(next(one for one in _TABLES if one.startswith("CREATE TABLE lease ")))
    connection.executemany("INSERT INTO lease VALUES (?, ?, ?, ?, '')", map(tuple, rows))


_TOLD = "SELECT event_time, event_name, facts FROM events WHERE request_id = ? ORDER BY event_number"


def _keep_deadlines_of(
    connection: sqlite3.Connection, request_id: str, number: int, status: str, events: list[tuple[str, str, str]]
) -> None:
    """Keep what is known of an open request's deadlines; what depends on settings is not, until someone says them."""
    received = datetime.fromisoformat(events[0][0]).astimezone(UTC)
    legal = legal_deadline(received, any(name == "extended" for _, name, _ in events)).timestamp()
    said = [(name, json.loads(facts)) for _, name, facts in events]
    retry = next((facts.get("retry_at") for name, facts in reversed(said) if name in ("failed", "retry asked")), None)
    retry_time = datetime.fromisoformat(retry).timestamp() if retry and status == "failed" else None
    held: Mapping[str, object] = next((facts for name, facts in reversed(said) if name == "on hold"), {})
    values = (request_id, number, status, legal, retry_time, int(status == "on hold" and "limit" in held))
    connection.execute(
        "INSERT INTO open_deadlines (request_id, first_number, status, legal_time, retry_time, over_limit) "
        "VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (request_id) DO NOTHING",
        values,
    )


STEPS: Mapping[int, Callable[[sqlite3.Connection], None]] = {1: _set_what_was_typed_in_apart, 2: _keep_deadlines}
"""The step from each earlier format to the next."""
