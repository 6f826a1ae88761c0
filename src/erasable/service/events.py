"""Events in the ledger: adding one, and finding requests by what their events add up to."""

import json
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import Any

from erasable.errors import UnknownRequest
from erasable.service.filed import Event, Filed
from erasable.service.lifecycle import RequestState

_AT_ONCE = 500


def add_event(
    connection: sqlite3.Connection,
    now: datetime,
    actor: str,
    name: str,
    request_id: str | None = None,
    state: RequestState | None = None,
    facts: Mapping[str, Any] | None = None,
) -> None:
    """Add an event to the ledger."""
    values = (request_id, now.isoformat(), name, state, actor, json.dumps(facts or {}))
    connection.execute(
        "INSERT INTO events (request_id, event_time, event_name, status, actor_name, facts) VALUES (?, ?, ?, ?, ?, ?)",
        values,
    )


def state_of(connection: sqlite3.Connection, request_id: str) -> RequestState:
    """Return the state of a request."""
    row = connection.execute("SELECT status FROM current_states WHERE request_id = ?", (request_id,)).fetchone()
    if row is None:
        raise UnknownRequest("there is no such request: check its id")
    state: RequestState = row["status"]
    return state


def counts_by_state(connection: sqlite3.Connection) -> dict[RequestState, int]:
    """Return how many requests are in each state."""
    rows = connection.execute("SELECT status, count(*) AS total FROM current_states GROUP BY status")
    return {row["status"]: int(row["total"]) for row in rows}


def ids_in_states(connection: sqlite3.Connection, states: Collection[RequestState]) -> list[str]:
    """Return the ids of all requests in some states."""
    rows = connection.execute(
        f"SELECT request_id FROM current_states WHERE status IN ({_marks(states)})",  # noqa: S608 - only marks
        tuple(states),
    )
    return [row["request_id"] for row in rows]


def newest_ids(
    connection: sqlite3.Connection, states: Collection[RequestState], limit: int, before: int | None
) -> list[tuple[int, str]]:
    """Return the numbers and ids of the newest requests in some states, before a number if one is given."""
    rows = connection.execute(
        f"SELECT first_number, request_id FROM current_states WHERE status IN ({_marks(states)}) "  # noqa: S608
        "AND first_number < ? ORDER BY first_number DESC LIMIT ?",
        (*states, before or 2**62, limit),
    )
    return [(int(row["first_number"]), row["request_id"]) for row in rows]


def events_of(connection: sqlite3.Connection, request_ids: Sequence[str]) -> Iterator[sqlite3.Row]:
    """Yield all events of some requests."""
    for start in range(0, len(request_ids), _AT_ONCE):
        part = request_ids[start : start + _AT_ONCE]
        yield from connection.execute(f"SELECT * FROM events WHERE request_id IN ({_marks(part)})", part)  # noqa: S608


def folded(rows: Iterable[sqlite3.Row]) -> list[Filed]:
    """Return the requests that some events add up to."""
    events = sorted(map(event_of, rows), key=lambda event: (event.request_id or "", event.number))
    return [
        Filed(request_id or "", tuple(part)) for request_id, part in groupby(events, lambda event: event.request_id)
    ]


def event_of(row: sqlite3.Row) -> Event:
    """Return an event of the ledger."""
    return Event(
        number=int(row["event_number"]),
        request_id=row["request_id"],
        at=datetime.fromisoformat(row["event_time"]).astimezone(UTC),
        name=row["event_name"],
        state=row["status"],
        actor=row["actor_name"],
        facts=json.loads(row["facts"]),
    )


def _marks(values: Collection[object]) -> str:
    return ", ".join("?" * len(values))
