"""Events in the ledger: adding one, and finding requests by what their events add up to.

What somebody typed in stands in a table of its own, beside who asked; until it goes it is read with its event.
"""

import json
import re
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import Any

from erasable.service.filed import Event, Filed
from erasable.service.lifecycle import RequestState

_AT_ONCE = 500
_LONG = 8  # shorter ids are parts of many words
_EVENTS = "SELECT events.*, remarks.facts AS remark FROM {} AS events LEFT JOIN remarks USING (event_number)"
_IN_LEDGER, _EVERYWHERE = _EVENTS.format("main.events"), _EVENTS.format("all_events")
_NEWEST_NUMBER = (  # of the ledger and of what is sealed, which may be younger than a ledger that was put back
    "SELECT coalesce(max(event_number), 0) FROM (SELECT max(event_number) AS event_number FROM main.events UNION ALL "
    "SELECT event_number FROM (SELECT event_number FROM all_events ORDER BY event_number DESC LIMIT 1))"
)


def add_event(
    connection: sqlite3.Connection,
    now: datetime,
    actor: str,
    name: str,
    request_id: str | None = None,
    state: RequestState | None = None,
    facts: Mapping[str, Any] | None = None,
    typed: Mapping[str, str | None] | None = None,
) -> None:
    """Add an event to the ledger; what somebody typed in goes to the table beside who asked."""
    number = 1 + connection.execute(_NEWEST_NUMBER).fetchone()[0]
    values = (number, request_id, now.isoformat(), name, state, actor, json.dumps(facts or {}))
    connection.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?)", values)
    said = {key: text for key, text in (typed or {}).items() if text}
    if said:
        remark = json.dumps(said, ensure_ascii=False)
        connection.execute("INSERT INTO remarks VALUES (?, ?, ?)", (number, request_id, remark))


def forget_remarks(connection: sqlite3.Connection, request_id: str) -> None:
    """Forget what was typed in about a request."""
    connection.execute("DELETE FROM remarks WHERE request_id = ?", (request_id,))


def strike_remarks(connection: sqlite3.Connection, users: Collection[str]) -> int:
    """Forget whatever was typed in about any request that names one of these people; return how often that was."""
    rows = connection.execute("SELECT event_number, facts FROM remarks").fetchall()
    naming = [
        (row["event_number"],)
        for row in rows
        if any(names(user, text) for user in users for text in json.loads(row["facts"]).values())
    ]
    connection.executemany("DELETE FROM remarks WHERE event_number = ?", naming)
    return len(naming)


def names(user: str, text: str) -> bool:
    """Whether a text names a user: a long id anywhere, a short one as a word of its own.

    >>> names("ann", "Hannah waits"), names("ann", "for ann!"), names("newcomer-4711", "xnewcomer-4711y")
    (False, True, True)
    """
    if len(user) >= _LONG:
        return user in text
    return re.search(rf"(?<!\w){re.escape(user)}(?!\w)", text) is not None


def state_of(connection: sqlite3.Connection, request_id: str) -> RequestState | None:
    """Return the state of a request that is not sealed, None if there is no such."""
    row = connection.execute("SELECT status FROM main.current_states WHERE request_id = ?", (request_id,)).fetchone()
    return None if row is None else row["status"]


def counts_by_state(connection: sqlite3.Connection) -> dict[RequestState, int]:
    """Return how many requests are in each state, sealed or not."""
    rows = connection.execute("SELECT status, count(*) AS total FROM all_current_states GROUP BY status")
    return {row["status"]: int(row["total"]) for row in rows}


def ids_in_states(connection: sqlite3.Connection, states: Collection[RequestState]) -> list[str]:
    """Return the ids of all requests in some states that are not sealed."""
    rows = connection.execute(
        f"SELECT request_id FROM main.current_states WHERE status IN ({_marks(states)})",  # noqa: S608 - only marks
        tuple(states),
    )
    return [row["request_id"] for row in rows]


def newest_ids(
    connection: sqlite3.Connection, states: Collection[RequestState], limit: int, before: int | None
) -> list[tuple[int, str]]:
    """Return the numbers and ids of the newest requests in some states, sealed or not, before a number if given."""
    rows = connection.execute(
        f"SELECT first_number, request_id FROM all_current_states WHERE status IN ({_marks(states)}) "  # noqa: S608
        "AND first_number < ? ORDER BY first_number DESC LIMIT ?",
        (*states, before or 2**62, limit),
    )
    return [(int(row["first_number"]), row["request_id"]) for row in rows]


def events_of(
    connection: sqlite3.Connection, request_ids: Sequence[str], sealed: bool = False
) -> Iterator[sqlite3.Row]:
    """Yield all events of some requests, of sealed ones only if that is wanted."""
    events = _EVERYWHERE if sealed else _IN_LEDGER
    for start in range(0, len(request_ids), _AT_ONCE):
        part = request_ids[start : start + _AT_ONCE]
        yield from connection.execute(f"{events} WHERE events.request_id IN ({_marks(part)})", part)


def newest_events(connection: sqlite3.Connection, limit: int, before: int | None) -> list[Event]:
    """Return the newest events, also of sealed requests, before a number if one is given."""
    rows = connection.execute(
        f"{_EVERYWHERE} WHERE event_number < ? ORDER BY event_number DESC LIMIT ?", (before or 2**62, limit)
    )
    return [event_of(row) for row in rows]


def newest_event(connection: sqlite3.Connection, names: Collection[str], sealed: bool = False) -> Event | None:
    """Return the newest event with one of these names, also of sealed requests if that is wanted."""
    events = _EVERYWHERE if sealed else _IN_LEDGER
    row = connection.execute(
        f"{events} WHERE event_name IN ({_marks(names)}) ORDER BY event_number DESC LIMIT 1",
        tuple(names),
    ).fetchone()
    return event_of(row) if row else None


def newest_id(connection: sqlite3.Connection) -> str | None:
    """Return which request the newest event of the ledger is about, None if it is about the service itself."""
    row = connection.execute("SELECT request_id FROM main.events ORDER BY event_number DESC LIMIT 1").fetchone()
    return None if row is None else row["request_id"]


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
        facts=json.loads(row["facts"]) | (json.loads(row["remark"]) if row["remark"] else {}),
    )


def _marks(values: Collection[object]) -> str:
    return ", ".join("?" * len(values))
