"""Events in the ledger: adding one, and finding requests by what their events add up to."""

import json
import sqlite3
from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime
from itertools import groupby
from typing import Any

from erasable.errors import UnknownRequest
from erasable.service.filed import Event, Filed
from erasable.service.lifecycle import ENDED, RequestState

_LAST = (
    "SELECT request_id, status FROM events AS last WHERE status IS NOT NULL AND event_number = "
    "(SELECT max(event_number) FROM events WHERE request_id = last.request_id AND status IS NOT NULL)"
)


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


def state_of(connection: sqlite3.Connection, request_id: str) -> RequestState | None:
    """Return the state of a request."""
    row = connection.execute(
        "SELECT status FROM events WHERE request_id = ? AND status IS NOT NULL ORDER BY event_number DESC LIMIT 1",
        (request_id,),
    ).fetchone()
    if row is None:
        raise UnknownRequest("there is no such request: check its id")
    state: RequestState = row["status"]
    return state


def counts_by_state(connection: sqlite3.Connection) -> dict[RequestState, int]:
    """Return how many requests are in each state."""
    rows = connection.execute(f"SELECT status, count(*) AS total FROM ({_LAST}) GROUP BY status")  # noqa: S608
    return {row["status"]: int(row["total"]) for row in rows}


def ids_in_states(connection: sqlite3.Connection, states: Collection[RequestState]) -> list[str]:
    """Return the ids of all requests in some states; of those that are open not all have to be looked at."""
    if ENDED.isdisjoint(states):
        rows = connection.execute("SELECT request_id FROM open_requests").fetchall()
        return [row["request_id"] for row in rows if state_of(connection, row["request_id"]) in states]
    marks = ", ".join("?" * len(states))
    found = connection.execute(f"SELECT request_id FROM ({_LAST}) WHERE status IN ({marks})", tuple(states))  # noqa: S608
    return [row["request_id"] for row in found]


def newest_ids(
    connection: sqlite3.Connection, states: Collection[RequestState], limit: int, before: int | None
) -> list[tuple[int, str]]:
    """Return the numbers and ids of the newest requests in some states, before a number if one is given."""
    marks = ", ".join("?" * len(states))
    rows = connection.execute(
        "SELECT event_number, request_id FROM events AS first WHERE event_name = 'received' AND event_number < ? "  # noqa: S608
        "AND (SELECT status FROM events WHERE request_id = first.request_id AND status IS NOT NULL "
        f"ORDER BY event_number DESC LIMIT 1) IN ({marks}) ORDER BY event_number DESC LIMIT ?",
        (before or 2**62, *states, limit),
    ).fetchall()
    return [(int(row["event_number"]), row["request_id"]) for row in rows]


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
