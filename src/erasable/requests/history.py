"""Reading requests: one from its events, overviews from the tables of states and deadlines."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Literal

from erasable.errors import UnknownRequest
from erasable.requests._sqlite_file import in_parts, marks
from erasable.requests.database import Connection, Database, Row, event_of
from erasable.requests.request import BEGUN, WAITING, Event, Request, RequestState, Submission, state_of
from erasable.requests.tokens import receipt_code_digest, unseal

Urgency = Literal["open", "soon", "alarming", "overdue", "late", "over limit", "failed", "stuck", "action"]
"""Why an open request may need attention; several may apply."""
_SOON = timedelta(days=7)
_CONDITIONS: Mapping[Urgency, str] = {
    "open": "1 = 1",
    "soon": "window_time <= {soon}",
    "alarming": "alarm_time < {now} AND limit_time >= {now}",
    "overdue": "limit_time < {now}",
    "late": "legal_time < {now}",
    "over limit": "over_limit = 1",
    "failed": "status = 'failed'",
    "stuck": "status = 'failed' AND retry_time IS NULL",
    "action": "alarm_time < {now} OR over_limit = 1 OR (status = 'failed' AND retry_time IS NULL)",
}
_EVERY = 2**53


@dataclass(frozen=True)
class Totals:
    """How many requests there are, and the next deadlines of the open ones."""

    states: Mapping[RequestState, int]
    urgent: Mapping[Urgency, int]
    next_begin: datetime | None
    """When the next batch begins."""
    next_limit: datetime | None
    next_legal: datetime | None


class History:
    """Reads requests, without who asked."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, request_id: str) -> Request:
        """Return a request by its id, or by the id of a submission that joined it."""
        found = self.some([request_id]) or self.some(self._joined_by(request_id))
        if not found:
            raise UnknownRequest("there is no such request: check its id")
        return found[0]

    def some(self, request_ids: Sequence[str]) -> list[Request]:
        """Return those of these requests that exist, oldest first."""

        def here(connection: Connection) -> list[Request]:
            return self._told(connection, _events_of(connection, request_ids, "events"), request_ids)

        found = self._database.read(here)
        ended = sorted({*request_ids}.difference(one.request_id for one in found))
        if ended:
            found += self._database.read(
                lambda connection: self._told(connection, _events_of(connection, ended, "all_events"), ()),
                with_ended=True,
            )
        return sorted(found, key=lambda one: one.events[0].number)

    def in_states(self, states: Collection[RequestState]) -> list[Request]:
        """Return the requests in these states that are not sealed, oldest first."""

        def found(connection: Connection) -> list[Request]:
            statement = f"SELECT request_id FROM current_states WHERE status IN ({marks(states)})"  # noqa: S608
            return self.some([row["request_id"] for row in connection.execute(statement, tuple(states))])

        return self._database.read(found)

    def open_requests(self) -> list[Request]:
        """Return all open requests, oldest first; slow if there are many."""
        return self.in_states(WAITING | BEGUN)

    def ids(
        self, states: Collection[RequestState], limit: int, before: int | None = None, skipped: int = 0
    ) -> list[tuple[int, str]]:
        """Return the numbers and ids of the newest requests in some states, or of the newest before a number."""
        rows = self._database.read(
            lambda connection: connection.execute(
                f"SELECT first_number, request_id FROM all_current_states WHERE status IN ({marks(states)}) "  # noqa: S608
                "AND first_number < ? ORDER BY first_number DESC LIMIT ? OFFSET ?",
                (*states, before or 2**62, limit, skipped),
            ),
            with_ended=True,
        )
        return [(int(row["first_number"]), row["request_id"]) for row in rows]

    def urgent_ids(self, urgency: Urgency, now: datetime, limit: int = _EVERY) -> list[tuple[str, RequestState]]:
        """Return the ids and states of the open requests of one urgency, earliest limit first."""
        statement = f"SELECT request_id, status FROM open_deadlines WHERE {_condition(urgency, now)} "  # noqa: S608
        order = "ORDER BY limit_time, first_number LIMIT ?"
        rows = self._database.read(lambda connection: connection.execute(statement + order, (limit,)))
        return [(row["request_id"], row["status"]) for row in rows]

    def counts(self) -> dict[RequestState, int]:
        """Return the number of requests in each state."""
        return self._database.read(_counts, with_ended=True)

    def totals(self, now: datetime) -> Totals:
        """Return the number of requests in each state and of each urgency, and the next deadlines."""

        def found(connection: Connection) -> Totals:
            sums = ", ".join(f'count(*) FILTER (WHERE {_condition(one, now)}) AS "{one}"' for one in _CONDITIONS)
            row = connection.execute(
                f"SELECT {sums}, min(begin_time) FILTER (WHERE status = 'suppressed') AS next_begin, "  # noqa: S608
                "min(limit_time) AS next_limit, min(legal_time) AS next_legal FROM open_deadlines"
            )[0]
            return Totals(
                states=_counts(connection),
                urgent={one: int(row[one]) for one in _CONDITIONS},
                next_begin=_moment(row["next_begin"]),
                next_limit=_moment(row["next_limit"]),
                next_legal=_moment(row["next_legal"]),
            )

        return self._database.read(found, with_ended=True)

    def submission(self, code: str) -> Submission | None:
        """Return the submission that a receipt code belongs to, if there is one."""
        digest = receipt_code_digest(code)

        def found(connection: Connection) -> tuple[list[Row], list[Row]]:
            return (
                connection.execute("SELECT request_id FROM all_receipts WHERE code_digest = ?", (digest,)),
                connection.execute("SELECT * FROM all_joined_submissions WHERE code_digest = ?", (digest,)),
            )

        own, joined = self._database.read(found, with_ended=True)
        if own:
            request = self.get(own[0]["request_id"])
            return Submission(request, request.request_id, request.received, False, code, code)
        if not joined:
            return None
        (row,) = joined
        at = datetime.fromisoformat(row["submitted_time"])
        request, first_code = self.get(row["request_id"]), unseal(bytes(row["sealed_code"]), code)
        return Submission(request, row["submission_id"], at, True, code, first_code)

    def submitted_since(self, actor: str, since: datetime) -> int:
        """Return how many requests of one actor were accepted since a time, as far as they can be read."""
        one = "(SELECT count(*) FROM all_events WHERE actor_name = ? AND event_name = '{}' AND event_time > ?)"
        # Requests about unknown people are rejected at once, with the submitter as actor.
        statement = f"SELECT {one.format('received')} - {one.format('rejected')} AS total"
        values = (actor, since.isoformat()) * 2
        return int(self._database.read(lambda connection: connection.execute(statement, values))[0]["total"])

    def events(self, limit: int, before: int | None = None) -> list[Event]:
        """Return the newest events of all requests and of the service itself."""
        statement = "SELECT * FROM all_events WHERE event_number < ? ORDER BY event_number DESC LIMIT ?"
        return self._database.read(
            lambda connection: self._with_remarks(connection, connection.execute(statement, (before or 2**62, limit))),
            with_ended=True,
        )

    def last_event(self, *names: str) -> Event | None:
        """Return the newest event with one of these names, sealed requests left out."""
        return self._newest(names, "events")

    def last_erased(self) -> Event | None:
        """Return the newest event of an erasure."""
        return self._newest(["erased"], "all_events")

    def _newest(self, names: Collection[str], table: str) -> Event | None:
        statement = f"SELECT * FROM {table} WHERE event_name IN ({marks(names)}) ORDER BY event_number DESC LIMIT 1"  # noqa: S608
        found = self._database.read(
            lambda connection: self._with_remarks(connection, connection.execute(statement, tuple(names))),
            with_ended=table == "all_events",
        )
        return found[0] if found else None

    def _joined_by(self, submission_id: str) -> list[str]:
        statement = "SELECT request_id FROM all_joined_submissions WHERE submission_id = ?"
        rows = self._database.read(lambda connection: connection.execute(statement, (submission_id,)), with_ended=True)
        return [row["request_id"] for row in rows]

    def _with_remarks(self, connection: Connection, rows: Sequence[Row]) -> list[Event]:
        said = self._database.remarks.of(connection, {row["request_id"] for row in rows if row["request_id"]})
        return [event_of(row, said.get(row["event_number"])) for row in rows]

    def _told(self, connection: Connection, rows: Iterable[Row], request_ids: Collection[str]) -> list[Request]:
        """Return the requests that these events make up."""
        said = self._database.remarks.of(connection, request_ids) if request_ids else {}
        events = [event_of(row, said.get(row["event_number"])) for row in rows]
        events.sort(key=lambda event: (event.request_id or "", event.number))
        return [
            Request(request_id=request_id or "", events=tuple(part))
            for request_id, part in groupby(events, lambda event: event.request_id)
        ]


def _events_of(connection: Connection, request_ids: Collection[str], table: str) -> list[Row]:
    found: list[Row] = []
    for part in in_parts(request_ids):
        found += connection.execute(f"SELECT * FROM {table} WHERE request_id IN ({marks(part)})", part)  # noqa: S608
    return found


def _counts(connection: Connection) -> dict[RequestState, int]:
    rows = connection.execute("SELECT status, count(*) AS total FROM all_current_states GROUP BY status")
    return {state_of(row["status"]): int(row["total"]) for row in rows}


def _condition(urgency: Urgency, now: datetime) -> str:
    """Return the SQL condition of an urgency, with times as numbers."""
    return _CONDITIONS[urgency].format(now=repr(now.timestamp()), soon=repr((now + _SOON).timestamp()))


def _moment(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
