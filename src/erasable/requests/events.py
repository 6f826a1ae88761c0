"""Events: adding one, and what follows from it for the tables that tell states and deadlines at once."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from erasable.requests.database import Connection, Row
from erasable.requests.lifecycle import ENDED, Deadlines, RequestState, state_of
from erasable.requests.request import Event

_NEWEST_NUMBER = (  # of the tables and of what is sealed, which may be younger than tables that were put back
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
    """Add an event, with the state that it leads to, and return it; which is the newest is asked for unless given."""
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
    """Keep by when what has to happen to an open request, where it can be looked for."""
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
    """Return an event, with what was typed in as far as it is kept."""
    return Event(
        number=int(row["event_number"]),
        request_id=row["request_id"],
        at=datetime.fromisoformat(row["event_time"]).astimezone(UTC),
        name=row["event_name"],
        state=None if row["status"] is None else state_of(row["status"]),
        actor=row["actor_name"],
        facts={**json.loads(row["facts"]), **(remark or {})},
    )
