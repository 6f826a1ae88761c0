"""The ledger's tables, and the numbered steps that bring a ledger of an earlier version forward.

A ledger carries the number of its format. Each step takes it to the next number; it may be broken off anywhere, and be
taken again. What somebody typed in lies in `remarks`, beside who asked, and goes when that goes.
"""

import json
import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping

FORMAT = 2
"""1 is what version 0.1 wrote; 2 has what was typed in in a table of its own."""

_SCHEMA = """
CREATE TABLE events (
    event_number INTEGER PRIMARY KEY,
    request_id TEXT,
    event_time TEXT NOT NULL,
    event_name TEXT NOT NULL,
    status TEXT,
    actor_name TEXT NOT NULL,
    facts TEXT NOT NULL
) STRICT;
CREATE INDEX events_by_request ON events (request_id, event_number);
CREATE INDEX events_by_name ON events (event_name, event_number);
CREATE INDEX events_by_actor ON events (actor_name, event_name, event_time);
CREATE TRIGGER events_are_not_changed BEFORE UPDATE ON events
    BEGIN SELECT RAISE(ABORT, 'events are never changed'); END;
CREATE TRIGGER events_are_not_removed BEFORE DELETE ON events
    BEGIN SELECT RAISE(ABORT, 'events are never removed'); END;
CREATE TABLE current_states (
    request_id TEXT PRIMARY KEY,
    first_number INTEGER NOT NULL,
    status TEXT NOT NULL
) STRICT;
CREATE INDEX current_states_by_state ON current_states (status, first_number);
CREATE TRIGGER events_make_states AFTER INSERT ON events WHEN NEW.status IS NOT NULL
    BEGIN
        INSERT INTO current_states VALUES (NEW.request_id, NEW.event_number, NEW.status)
            ON CONFLICT (request_id) DO UPDATE SET status = excluded.status;
    END;
CREATE TABLE open_requests (
    request_id TEXT PRIMARY KEY,
    user_id TEXT,
    item_ids TEXT,
    receipt_code TEXT
) STRICT;
CREATE INDEX open_requests_by_user ON open_requests (user_id);
CREATE TABLE remarks (
    event_number INTEGER PRIMARY KEY,
    request_id TEXT NOT NULL,
    facts TEXT NOT NULL
) STRICT;
CREATE INDEX remarks_by_request ON remarks (request_id);
CREATE TABLE intake (
    interaction_number INTEGER PRIMARY KEY,
    user_id TEXT NOT NULL,
    item_id TEXT NOT NULL,
    rating REAL,
    time REAL
) STRICT;
CREATE INDEX intake_by_user ON intake (user_id);
CREATE TABLE receipts (code_digest TEXT PRIMARY KEY, request_id TEXT NOT NULL) STRICT;
CREATE TABLE joined_submissions (
    submission_id TEXT PRIMARY KEY,
    code_digest TEXT NOT NULL UNIQUE,
    request_id TEXT NOT NULL,
    submitted_time TEXT NOT NULL,
    sealed_code BLOB NOT NULL
) STRICT;
CREATE TABLE answers (
    key_digest TEXT PRIMARY KEY,
    answer_time REAL NOT NULL,
    body_digest TEXT NOT NULL,
    sealed_bytes BLOB NOT NULL
) STRICT;
CREATE TABLE tokens (
    token_number TEXT PRIMARY KEY,
    token_digest TEXT NOT NULL UNIQUE,
    role_name TEXT NOT NULL,
    label TEXT NOT NULL,
    created_time TEXT NOT NULL,
    revoked_time TEXT
) STRICT;
CREATE TABLE visits (visit_digest TEXT PRIMARY KEY, token_number TEXT NOT NULL, end_time REAL NOT NULL) STRICT;
CREATE TABLE lease (
    lease_number INTEGER NOT NULL,
    process_number INTEGER NOT NULL,
    process_start TEXT NOT NULL,
    end_time REAL NOT NULL
) STRICT;
INSERT INTO lease VALUES (0, 0, '', 0);
CREATE TABLE progress (batch_number TEXT NOT NULL, step_name TEXT NOT NULL, done_count INTEGER NOT NULL,
    total_count INTEGER, change_time REAL NOT NULL) STRICT;
"""
_ADDED_BY_2 = ("remarks", "remarks_by_request", "events_by_actor", "joined_submissions")
_NOTHING_HELD = "nothing is held of what was asked for"  # the one reason in requests of format 1 that nobody typed in

ENDED_TABLES: Mapping[str, str] = {
    "events": "event_number, request_id, event_time, event_name, status, actor_name, facts",
    "current_states": "request_id, first_number, status",
    "receipts": "code_digest, request_id",
    "joined_submissions": "submission_id, code_digest, request_id, submitted_time, sealed_code",
}
"""The tables whose rows are of one request, and are sealed with it once it has ended; with their columns."""

SCHEMA_WORDS = frozenset(re.findall("[a-z_]+", _SCHEMA))
"""The names of tables, columns and the rest, which stand in every ledger."""
LEDGER_PEOPLE = frozenset({"open_requests", "intake"})
"""The tables in which people stand."""
LEDGER_FREE_TEXT = frozenset({"facts", "label"})
"""The columns of the others that hold what somebody typed in."""


def ended_schema() -> str:
    """Return the tables of requests that have ended, with their indexes: nothing is added there by and by."""
    wanted = re.compile(rf"CREATE (TABLE ({'|'.join(ENDED_TABLES)})|INDEX \w+ ON ({'|'.join(ENDED_TABLES)})) ")
    return "".join(statement for statement in _statements(_SCHEMA) if wanted.match(statement.lstrip()))


def format_of(connection: sqlite3.Connection) -> int:
    """Return the number of a ledger's format; 0 is a file without tables."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def make_tables(connection: sqlite3.Connection) -> None:
    """Make all tables, unless another process has made them meanwhile."""
    connection.execute("BEGIN IMMEDIATE")
    if format_of(connection) == 0:
        for statement in _statements(_SCHEMA):
            connection.execute(statement)
        set_format(connection, FORMAT)
    connection.execute("COMMIT")


def set_format(connection: sqlite3.Connection, number: int) -> None:
    """Write down the number of the format."""
    connection.execute(f"PRAGMA user_version = {int(number)}")


def _set_what_was_typed_in_apart(connection: sqlite3.Connection) -> None:
    """From 1 to 2: reasons go from events to a table beside who asked; where that is gone, they are destroyed."""
    for statement in _statements(_SCHEMA):
        if any(f" {name} " in statement.split("(")[0] for name in _ADDED_BY_2):
            connection.execute(re.sub("^CREATE (TABLE|INDEX)", r"CREATE \1 IF NOT EXISTS", statement))
    kept = {row[0] for row in connection.execute("SELECT request_id FROM open_requests WHERE user_id IS NOT NULL")}
    typed = [(number, request_id, json.loads(facts)) for number, request_id, facts in connection.execute(_TYPED_IN)]
    connection.execute("DROP TRIGGER events_are_not_changed")
    for number, request_id, facts in typed:
        reason = facts.pop("reason", None)
        if reason is None or reason == _NOTHING_HELD:
            continue
        connection.execute("UPDATE events SET facts = ? WHERE event_number = ?", (json.dumps(facts), number))
        if request_id in kept:
            remark = json.dumps({"reason": reason}, ensure_ascii=False)
            connection.execute("INSERT INTO remarks VALUES (?, ?, ?)", (number, request_id, remark))
    connection.execute(next(one for one in _statements(_SCHEMA) if "TRIGGER events_are_not_changed" in one))


_TYPED_IN = (
    "SELECT event_number, request_id, facts FROM events "
    "WHERE request_id IS NOT NULL AND actor_name NOT IN ('worker', 'service')"
)
STEPS: Mapping[int, Callable[[sqlite3.Connection], None]] = {1: _set_what_was_typed_in_apart}
"""The step from each earlier format to the next."""


def _statements(script: str) -> Iterator[str]:
    part = ""
    for line in script.splitlines():
        part += line + "\n"
        if sqlite3.complete_statement(part):
            yield part
            part = ""


REMOVAL_TRIGGER = next(one for one in _statements(_SCHEMA) if "TRIGGER events_are_not_removed" in one)
"""What keeps events from being removed."""
