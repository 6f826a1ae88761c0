"""Reading requests: open ones from the tables, finished ones from one sealed file; both are read as one.

The sealed file always holds all requests sealed so far. It becomes current with the manifest, and only then are its
requests deleted from the tables. An interruption in between leaves them in both, and they are read once.
"""

import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import Literal

from erasable import fingerprint
from erasable.documents import newer
from erasable.errors import SuppressionUnknown, UnknownRequest, WorkspaceDamaged, WorkspaceError
from erasable.requests._sqlite_file import in_parts, marks
from erasable.requests.database import Connection, Database, Row, event_of
from erasable.requests.request import BEGUN, WAITING, Event, Request, RequestState, Submission, state_of
from erasable.requests.schema import ENDED_TABLES, FORMAT, REMOVAL_TRIGGER, ended_schema, set_format
from erasable.requests.tokens import receipt_code_digest, unseal
from erasable.workspace.files import MANIFEST
from erasable.workspace.folder import mark_of, read_manifest, read_whole
from erasable.workspace.manifest import RESTORE, Manifest

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


_NUMBER = slice(60, 64)  # where an SQLite file stores its user_version
_ENDED = "sealed"  # the schema name of the attached file
_TWICE = f"EXISTS (SELECT 1 FROM {_ENDED}.current_states AS ended WHERE ended.request_id = one.request_id)"  # noqa: S608


class WithEnded:
    """A connection to the queue whose views `all_…` also have the workspace's sealed requests."""

    def __init__(self, connection: sqlite3.Connection, workspace: Path | None) -> None:
        self.connection = connection
        self.damage: WorkspaceError | None = None
        """Why the sealed requests can't be read, if so; then the views only have the rows of the tables."""
        self._workspace = workspace
        self._mark: object = ()
        self._file: Path | None = None

    def begin(self, how: str) -> None:
        """Begin a transaction in which the tables and the sealed file are consistent.

        Refused if the workspace names another queue: a move locks the tables until the new queue is named.
        """
        if self._workspace is None:
            if self._mark == ():
                self._attach(None)
                self._mark = None
            self.connection.execute(how)
            return
        while True:
            self._follow(self._workspace)
            self.connection.execute(how)
            # The first read fixes the snapshot; whatever had left the tables by then is in the current file.
            self.connection.execute("SELECT 1 FROM main.sqlite_master LIMIT 1").fetchone()
            if _mark(self._workspace) == self._mark:
                return
            self.connection.execute("ROLLBACK")

    def twice(self) -> list[str]:
        """Return the requests that are sealed but not yet deleted from the tables.

        If the queue was restored from an older copy, such a request may be open there: it must end first, so that its
        subject is deleted.
        """
        if self._file is None:
            return []
        rows = self.connection.execute(
            f"SELECT request_id FROM main.current_states AS one WHERE {_TWICE} "  # noqa: S608
            "AND request_id NOT IN (SELECT request_id FROM main.open_deadlines)"
        )
        return [row[0] for row in rows]

    def sealed_with(self, request_ids: Sequence[str]) -> bytes:
        """Return the file of sealed requests with these finished requests added."""
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as made:
            if self._file is None:
                made.executescript(ended_schema())
            else:
                made.deserialize(self.connection.serialize(name=_ENDED))
            # The tables never changed since requests are sealed, so an earlier file only needs the new format number.
            set_format(made, FORMAT)
            made.execute("BEGIN")
            for table in ENDED_TABLES:
                self._copy(table, request_ids, made)
            made.execute("COMMIT")
            return made.serialize()

    def delete(self, request_ids: Sequence[str]) -> None:
        """Delete sealed requests from the tables."""
        self.connection.execute("DROP TRIGGER main.events_are_not_removed")
        for table in ENDED_TABLES:
            statement = f"DELETE FROM main.{table} WHERE request_id = ?"  # noqa: S608 - a name of ours
            self.connection.executemany(statement, [(request_id,) for request_id in request_ids])
        self.connection.execute(REMOVAL_TRIGGER)

    def _copy(self, table: str, request_ids: Sequence[str], made: sqlite3.Connection) -> None:
        columns = ENDED_TABLES[table]
        for part in in_parts(request_ids):
            wanted = f"SELECT {columns} FROM main.{table} WHERE request_id IN ({marks(part)})"  # noqa: S608
            rows = self.connection.execute(wanted, part)
            made.executemany(f"INSERT INTO {table} ({columns}) VALUES ({marks(rows.description)})", map(tuple, rows))  # noqa: S608

    def _follow(self, workspace: Path) -> None:
        """Attach the current file if it has changed; refused if the queue is elsewhere."""
        mark = _mark(workspace)
        if mark == self._mark:
            return
        try:
            file, self.damage = _current_file(workspace), None
        except SuppressionUnknown:
            raise
        except WorkspaceError as error:
            file, self.damage = None, error
        if file != self._file or self._mark == ():
            self._attach(file)
        self._mark = mark

    def _attach(self, file: Path | None) -> None:
        for table in ENDED_TABLES:
            self.connection.execute(f"DROP VIEW IF EXISTS temp.all_{table}")
        if self._file is not None:
            self.connection.execute(f"DETACH {_ENDED}")
        self._file = None
        if file is not None:
            self.connection.execute(f"ATTACH ? AS {_ENDED}", (f"{file.absolute().as_uri()}?mode=ro&immutable=1",))
            self._file = file
        for table, columns in ENDED_TABLES.items():
            both = f" WHERE NOT {_TWICE} UNION ALL SELECT {columns} FROM {_ENDED}.{table}" if file else ""  # noqa: S608
            rows = f"SELECT {columns} FROM main.{table} AS one{both}"  # noqa: S608
            self.connection.execute(f"CREATE TEMP VIEW all_{table} AS {rows}")


def refuse_moved(workspace: Path, manifest: Manifest) -> None:
    """Refuse the queue's file if the manifest names a queue elsewhere."""
    if manifest.preferences.queue is not None:
        raise SuppressionUnknown(f"the queue of {workspace} is in a Postgres now: restart the service, or try again")


def _current_file(workspace: Path) -> Path | None:
    """Return the file of sealed requests that the manifest names, checked; refused if it names another queue."""
    if not (workspace / MANIFEST).exists():
        return None
    manifest = read_manifest(workspace)
    refuse_moved(workspace, manifest)
    if manifest.requests is None:
        return None
    file = workspace / manifest.requests
    digest, number = _digest_and_format_of(file, _changed(file))
    if digest != manifest.files[manifest.requests]:
        raise WorkspaceDamaged(f"{file} is damaged, and it holds the finished requests: {RESTORE}")
    if number > FORMAT:
        raise WorkspaceError(f"{file} {newer(number, FORMAT)}")
    return file


@lru_cache(maxsize=4)
def _digest_and_format_of(file: Path, changed: object) -> tuple[str, int]:
    """Return hash and format of a file; cached until the file changes, since every connection asks after each commit.

    The first files had no format number: it reads as 0.
    """
    content = read_whole(file)
    return fingerprint.of_bytes(content), int.from_bytes(content[_NUMBER], "big")


def _changed(file: Path) -> object:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_ctime_ns, found.st_size


def _mark(workspace: Path) -> object:
    try:
        return mark_of(workspace)
    except OSError:
        return None
