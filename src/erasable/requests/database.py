"""The interface of a queue's database, adding and reading events, and the queue's identity."""

import json
import re
import secrets
import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol, TypeAlias, TypeVar

from erasable.errors import QueueLost, Said
from erasable.requests.request import ENDED, Deadlines, Event, Request, RequestState, state_of

T = TypeVar("T")
Value: TypeAlias = str | int | float | bytes | None
Row: TypeAlias = Mapping[str, Any]
"""A row, by column name."""


def before_commit() -> None:
    """Called just before a change becomes durable; tests replace it with a function that fails at the n-th.

    Every database calls it as `database.before_commit()`, once for each outermost change.
    """


class Connection(Protocol):
    """Runs the statements of a transaction."""

    def execute(self, statement: str, values: Sequence[Value] = ()) -> list[Row]:
        """Run a statement, with a `?` for each value, and return its rows.

        Statements must work in both SQLite and Postgres: `ON CONFLICT` instead of `INSERT OR REPLACE`, `RETURNING`
        instead of a count of changed rows, no `rowid`, no `%`.
        """
        ...

    def execute_many(self, statement: str, rows: Collection[Sequence[Value]]) -> None:
        """Run a statement once for each row of values."""
        ...


@dataclass(frozen=True)
class WaitingInteraction:
    """An interaction waiting to be learned."""

    user: str = field(repr=False)
    item: str = field(repr=False)
    rating: float | None = None
    time: float | None = None
    number: int = 0
    """Its place in the order of arrival; 0 until it is stored."""


class Subjects(Protocol):
    """Who asked for what, and the receipt code; kept while the request is open and the data may still be there.

    SQLite stores them in plain text; Postgres encrypts them with one key for each request, kept in the workspace. All
    methods run inside a transaction and are rolled back with it.
    """

    def keep(self, connection: Connection, request: Request) -> None:
        """Keep user, items and receipt code of a request, replacing earlier ones."""
        ...

    def some(self, connection: Connection, request_ids: Collection[str]) -> list[Request]:
        """Return those of these requests whose subject is kept: id, user, items, receipt code; no events."""
        ...

    def of_user(self, connection: Connection, user: str) -> list[Request]:
        """Return the requests of one person whose subject is kept."""
        ...

    def all(self, connection: Connection) -> list[Request]:
        """Return all requests whose subject is kept; slow if many are open."""
        ...

    def count(self, connection: Connection) -> int:
        """Return the number of requests whose subject is kept; fast."""
        ...

    def forget(self, connection: Connection, request_ids: Collection[str]) -> None:
        """Delete the subjects and remarks of these requests; `Database.wipe` removes what is left on disk."""
        ...


class Remarks(Protocol):
    """Text that someone typed in about a request (`reason`, `reference`), by event; deleted with the subject."""

    def keep(self, connection: Connection, number: int, request_id: str, said: Mapping[str, str]) -> None:
        """Keep the text typed in with an event."""
        ...

    def of(self, connection: Connection, request_ids: Collection[str] | None) -> dict[int, Mapping[str, str]]:
        """Return the texts of some requests, or of all if None, by event number."""
        ...

    def drop(self, connection: Connection, numbers: Collection[int]) -> None:
        """Delete the texts of some events."""
        ...


class Waiting(Protocol):
    """Interactions waiting to be learned; `SELECT count(*) FROM intake` counts them in every database."""

    def add(self, connection: Connection, interactions: Sequence[WaitingInteraction]) -> None:
        """Append interactions."""
        ...

    def of_user(self, connection: Connection, user: str) -> list[WaitingInteraction]:
        """Return those of one person, in order of arrival."""
        ...

    def all(self, connection: Connection) -> list[WaitingInteraction]:
        """Return all, in order of arrival."""
        ...

    def drop(self, connection: Connection, numbers: Collection[int]) -> None:
        """Drop some, by number; `Database.wipe` removes what is left on disk."""
        ...


class Labels(Protocol):
    """The labels of tokens, as stored in the table of tokens."""

    def written(self, label: str) -> str:
        """Return a label as it is stored."""
        ...

    def read(self, written: str) -> str:
        """Return a stored label as it was typed in."""
        ...


class Database(Protocol):
    """A queue's database, usable from any number of threads; each process opens its own."""

    @property
    def subjects(self) -> Subjects:
        """Who asked."""
        ...

    @property
    def remarks(self) -> Remarks:
        """Texts typed in."""
        ...

    @property
    def waiting(self) -> Waiting:
        """Interactions waiting to be learned."""
        ...

    @property
    def labels(self) -> Labels:
        """Labels of tokens."""
        ...

    def read(self, work: Callable[[Connection], T], with_ended: bool = False) -> T:
        """Run `work` on one snapshot; inside a change of the same thread it also sees that change so far.

        The views `all_events`, `all_current_states`, `all_receipts` and `all_joined_submissions` also hold requests
        that have ended and left the tables. With `with_ended` an error is raised if those can't be read; without it,
        the views hold what can be read. `work` may run again after a lost connection.
        """
        ...

    def change(self, work: Callable[[Connection], T]) -> T:
        """Change the queue atomically: all of `work` is durable when this returns, or none of it.

        Changes are serialised across threads and processes. A change inside a change of the same thread is part of it.
        `work` may run again after a lost connection (never once it is durable), so it must only affect the database.
        """
        ...

    def time(self, connection: Connection) -> float:
        """Return the time that leases are measured by, in seconds, on one clock for everyone who shares the queue."""
        ...

    def mark(self) -> object:
        """Return a value that differs after any change of the queue, here or elsewhere."""
        ...

    def wait(self, seconds: float) -> bool:
        """Wait until the queue has changed since the last call, or time is up; return whether it has."""
        ...

    def wipe(self) -> None:
        """Destroy the remains of deleted rows: in our files and logs, and the keys that decrypt them."""
        ...

    def tidy(self) -> None:
        """Remove records that are no longer needed; the holder of the lease calls it once in a while."""
        ...

    def migrate(self) -> None:
        """Make the tables, or upgrade those of an earlier format step by step; safe to repeat."""
        ...

    def close(self) -> None:
        """Close it."""
        ...


_NEWEST_NUMBER = (  # of the tables and the sealed file, which may be newer than restored tables
    "SELECT coalesce(max(event_number), 0) AS newest FROM (SELECT max(event_number) AS event_number FROM events "
    "UNION ALL SELECT event_number FROM (SELECT event_number FROM all_events ORDER BY event_number DESC LIMIT 1) "
    "AS listed) AS newest_of_both"
)


def newest_number(connection: Connection) -> int:
    """Return the number of the newest event."""
    return int(connection.execute(_NEWEST_NUMBER)[0]["newest"])


def add_event(
    connection: Connection,
    now: datetime,
    actor: str,
    name: str,
    request_id: str | None = None,
    state: RequestState | None = None,
    facts: Mapping[str, Any] | None = None,
    after: Event | None = None,
) -> Event:
    """Add an event, with the state that it leads to, and return it; `after` is the newest event, if known."""
    number = 1 + (newest_number(connection) if after is None else after.number)
    written = json.dumps(facts or {})
    values = (number, request_id, now.isoformat(), name, state, actor, written)
    connection.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?)", values)
    if state is not None and request_id is not None:
        connection.execute(
            "INSERT INTO current_states VALUES (?, ?, ?) "
            "ON CONFLICT (request_id) DO UPDATE SET status = excluded.status",
            (request_id, number, state),
        )
        _follow_state(connection, request_id, state, facts or {})
    return Event(number, request_id, now.astimezone(UTC), name, state, actor, json.loads(written))


def _follow_state(connection: Connection, request_id: str, state: RequestState, facts: Mapping[str, Any]) -> None:
    if state in ENDED:
        connection.execute("DELETE FROM open_deadlines WHERE request_id = ?", (request_id,))
        return
    retry = facts.get("retry_at")
    connection.execute(
        "UPDATE open_deadlines SET status = ?, retry_time = ?, over_limit = ? WHERE request_id = ?",
        (state, datetime.fromisoformat(retry).timestamp() if retry else None, int("limit" in facts), request_id),
    )


def keep_deadlines(connection: Connection, request_id: str, state: RequestState, deadlines: Deadlines) -> None:
    """Store the deadlines of an open request in the table that is searched for them."""
    times = (deadlines.begin, deadlines.erase_by, deadlines.alarm, deadlines.limit, deadlines.legal)
    connection.execute(
        "INSERT INTO open_deadlines (request_id, first_number, status, begin_time, window_time, alarm_time, "
        "limit_time, legal_time, over_limit) SELECT request_id, first_number, ?, ?, ?, ?, ?, ?, 0 FROM current_states "
        "WHERE request_id = ? ON CONFLICT (request_id) DO UPDATE SET begin_time = excluded.begin_time, "
        "window_time = excluded.window_time, alarm_time = excluded.alarm_time, limit_time = excluded.limit_time, "
        "legal_time = excluded.legal_time",
        (state, *(time.timestamp() for time in times), request_id),
    )


def event_of(row: Row, remark: Mapping[str, str] | None = None) -> Event:
    """Return an event from its row, with the text typed in if it is kept."""
    return Event(
        number=int(row["event_number"]),
        request_id=row["request_id"],
        at=datetime.fromisoformat(row["event_time"]).astimezone(UTC),
        name=row["event_name"],
        state=None if row["status"] is None else state_of(row["status"]),
        actor=row["actor_name"],
        facts={**json.loads(row["facts"]), **(remark or {})},
    )


IDENTITY = re.compile("[0-9a-f]{32}")
NOBODY_SERVED = "and it says who has asked to be erased, so nobody is served"
READ_ID = "SELECT queue_id FROM identity"
_MAKE = "CREATE TABLE IF NOT EXISTS identity (queue_id TEXT PRIMARY KEY)"


def given_id(connection: Connection) -> str:
    """Return the id of a queue, giving it one if it has none."""
    connection.execute(_MAKE)
    rows = connection.execute(READ_ID)
    if not rows:
        connection.execute("INSERT INTO identity VALUES (?)", (secrets.token_hex(16),))
        rows = connection.execute(READ_ID)
    return str(rows[0]["queue_id"])


def lost(workspace: Path, what: str, remedy: str = "restore it from its newest copy") -> QueueLost:
    """Return the error for a lost queue, with the remedy."""
    return QueueLost(
        f"{what}, {NOBODY_SERVED}: {remedy}; or, if there is no copy, begin a new queue with ", beginning(workspace)
    )


def beginning(workspace: Path) -> Said:
    """Return the call or command that begins a new queue."""
    return Said("forget([], new_queue=True)", f"erasable forget {shlex.quote(str(workspace))} --new-queue")
