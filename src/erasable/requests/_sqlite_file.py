"""The queue's SQLite file in a workspace: its tables of personal data, creating it, and reading it unopened."""

import json
import os
import secrets
import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import TypeVar, cast

from erasable.documents import newer
from erasable.errors import DiskFull, QueueLost, SuppressionUnknown, WorkspaceBusy, WorkspaceDamaged, WorkspaceError
from erasable.requests.database import NOBODY_SERVED, READ_ID, Connection, Row, WaitingInteraction, event_of, lost
from erasable.requests.request import Asked, Request
from erasable.requests.schema import FORMAT, format_of, make_tables
from erasable.workspace.files import KEYS, QUEUE_FILE, flush_folder, refuse_if_full, write_file

T = TypeVar("T")
_AT_ONCE = 500  # parameters of a statement


def marks(values: Collection[object]) -> str:
    """Return a `?` for each value, separated by commas."""
    return ", ".join("?" * len(values))


def in_parts(values: Collection[T]) -> Iterator[list[T]]:
    """Yield values in batches small enough for one statement."""
    listed = list(values)
    for start in range(0, len(listed), _AT_ONCE):
        yield listed[start : start + _AT_ONCE]


class PlainSubjects:
    """Who asked for what, in plain text."""

    def keep(self, connection: Connection, request: Request) -> None:
        """Keep user, items and receipt code of a request, replacing earlier ones."""
        items = None if request.items is None else json.dumps(list(request.items))
        connection.execute(
            "INSERT INTO open_requests (request_id, user_id, item_ids, receipt_code) VALUES (?, ?, ?, ?) "
            "ON CONFLICT (request_id) DO UPDATE SET user_id = excluded.user_id, item_ids = excluded.item_ids, "
            "receipt_code = excluded.receipt_code",
            (request.request_id, request.user, items, request.receipt_code),
        )

    def some(self, connection: Connection, request_ids: Collection[str]) -> list[Request]:
        """Return those of these requests whose subject is kept."""
        found: list[Request] = []
        for part in in_parts(request_ids):
            statement = f"SELECT * FROM open_requests WHERE request_id IN ({marks(part)})"  # noqa: S608 - only marks
            found += map(kept_subject, connection.execute(statement, part))
        return found

    def of_user(self, connection: Connection, user: str) -> list[Request]:
        """Return the requests of one person whose subject is kept."""
        return [*map(kept_subject, connection.execute("SELECT * FROM open_requests WHERE user_id = ?", (user,)))]

    def all(self, connection: Connection) -> list[Request]:
        """Return all requests whose subject is kept."""
        return [*map(kept_subject, connection.execute("SELECT * FROM open_requests"))]

    def count(self, connection: Connection) -> int:
        """Return the number of requests whose subject is kept."""
        return int(connection.execute("SELECT count(*) AS total FROM open_requests")[0]["total"])

    def forget(self, connection: Connection, request_ids: Collection[str]) -> None:
        """Delete the subjects and remarks of these requests."""
        for table in ("open_requests", "remarks"):
            statement = f"DELETE FROM {table} WHERE request_id = ?"  # noqa: S608 - a name of ours
            connection.execute_many(statement, [(request_id,) for request_id in request_ids])


class PlainRemarks:
    """Text that someone typed in, in plain text."""

    def keep(self, connection: Connection, number: int, request_id: str, said: Mapping[str, str]) -> None:
        """Keep the text typed in with an event."""
        remark = json.dumps(dict(said), ensure_ascii=False)
        connection.execute("INSERT INTO remarks VALUES (?, ?, ?)", (number, request_id, remark))

    def of(self, connection: Connection, request_ids: Collection[str] | None) -> dict[int, Mapping[str, str]]:
        """Return the texts of some requests, or of all if None, by event number."""
        rows: list[Row] = []
        if request_ids is None:
            rows = connection.execute("SELECT * FROM remarks")
        for part in in_parts(request_ids or ()):
            rows += connection.execute(f"SELECT * FROM remarks WHERE request_id IN ({marks(part)})", part)  # noqa: S608
        return {row["event_number"]: json.loads(row["facts"]) for row in rows}

    def drop(self, connection: Connection, numbers: Collection[int]) -> None:
        """Delete the texts of some events."""
        connection.execute_many("DELETE FROM remarks WHERE event_number = ?", [(number,) for number in numbers])


class PlainWaiting:
    """Interactions waiting to be learned, in plain text."""

    def add(self, connection: Connection, interactions: Sequence[WaitingInteraction]) -> None:
        """Append interactions."""
        rows = [(one.user, one.item, one.rating, one.time) for one in interactions]
        connection.execute_many("INSERT INTO intake (user_id, item_id, rating, time) VALUES (?, ?, ?, ?)", rows)

    def of_user(self, connection: Connection, user: str) -> list[WaitingInteraction]:
        """Return those of one person, in order of arrival."""
        statement = "SELECT * FROM intake WHERE user_id = ? ORDER BY interaction_number"
        return [*map(_interaction, connection.execute(statement, (user,)))]

    def all(self, connection: Connection) -> list[WaitingInteraction]:
        """Return all, in order of arrival."""
        return [*map(_interaction, connection.execute("SELECT * FROM intake ORDER BY interaction_number"))]

    def drop(self, connection: Connection, numbers: Collection[int]) -> None:
        """Drop some, by number."""
        connection.execute_many("DELETE FROM intake WHERE interaction_number = ?", [(one,) for one in numbers])


class PlainLabels:
    """Labels of tokens, in plain text."""

    def written(self, label: str) -> str:
        """Return the label unchanged."""
        return label

    def read(self, written: str) -> str:
        """Return the label unchanged."""
        return written


def kept_subject(row: Row) -> Request:
    """Return a request from the row of its subject: id, user, items, receipt code."""
    items = None if row["item_ids"] is None else tuple(json.loads(row["item_ids"]))
    return Request(row["user_id"], items, row["request_id"], row["receipt_code"])


def _interaction(row: Row) -> WaitingInteraction:
    return WaitingInteraction(row["user_id"], row["item_id"], row["rating"], row["time"], row["interaction_number"])


WAIT_SECONDS = 30
_LEAST_ROOM = 100_000  # bytes, for the write-ahead log and its index beside the file
_PEOPLE = "SELECT * FROM open_requests WHERE user_id IS NOT NULL"
_ASKED = (
    "SELECT * FROM open_requests JOIN events USING (request_id) WHERE user_id IS NOT NULL "
    "ORDER BY request_id, event_number"
)
_JOURNAL_MODE = slice(18, 20)  # where an SQLite file stores its write and read versions


def people_in_file(workspace: Path, queue_id: str | None = None) -> Asked:
    """Return who has asked to be erased, and for what, from a queue file of this or an earlier format.

    If it can't be read, an error is raised: without knowing who asked, nobody may be served.
    """
    rows = rows_in_file(workspace, _PEOPLE, queue_id)
    with explained(workspace / QUEUE_FILE):
        return Asked.of(map(kept_subject, rows))


def asked_in_file(workspace: Path, queue_id: str | None = None) -> list[Request]:
    """Return the open requests in a queue file of this or an earlier format, oldest first."""
    rows = rows_in_file(workspace, _ASKED, queue_id)
    told = [(request_id, [*part]) for request_id, part in groupby(rows, lambda row: row["request_id"])]
    found = [replace(kept_subject(part[0]), events=tuple(map(event_of, part))) for _, part in told]
    return sorted(found, key=lambda one: one.events[0].number)


def rows_in_file(workspace: Path, statement: str, queue_id: str | None) -> list[Row]:
    """Query the queue's file; a missing file counts as empty, unless the workspace knows the queue's id."""
    path = workspace / QUEUE_FILE
    refuse_keys_of_another(workspace, queue_id)
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        beside = any(os.path.lexists(f"{path}{ending}") for ending in ("-wal", "-shm"))
        if queue_id is not None or beside or path.is_symlink():
            raise lost(workspace, f"{path} is gone") from None
        return []
    except OSError as error:
        raise SuppressionUnknown(f"{path} can't be examined ({error.strerror}), {NOBODY_SERVED}") from error
    if not found.st_size and _is_empty(path.with_name(f"{path.name}-wal")):
        raise lost(workspace, f"{path} is empty")
    if not os.access(path, os.R_OK):
        remedy = "let this user read it and the files beside it, or ask as the user who runs the service"
        raise SuppressionUnknown(f"{path} may not be read, {NOBODY_SERVED}: {remedy}")
    with explained(path):
        try:
            return _rows_in(path, "rw" if os.access(path, os.W_OK) else "ro", statement, queue_id)
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
                raise
            return _rows_without_log(path, statement, queue_id, error)


def refuse_keys_of_another(workspace: Path, queue_id: str | None) -> None:
    """Refuse if there are keys of an external queue that the manifest does not name: the manifest is an old one."""
    keys = workspace / KEYS
    if (queue_id is None or not (workspace / QUEUE_FILE).exists()) and keys.is_dir() and any(keys.iterdir()):
        raise QueueLost(
            f"{keys} holds keys of a queue in Postgres that the manifest does not name, {NOBODY_SERVED}: put the "
            "newest manifest back"
        )


def _rows_without_log(path: Path, statement: str, queue_id: str | None, error: sqlite3.OperationalError) -> list[Row]:
    """Read the file alone where SQLite can't make its log files; refused if there is a log.

    All changes go to the log first, so without a log the file is complete.
    """
    log = path.with_name(f"{path.name}-wal")
    if _is_empty(log):
        found = _rows_in(path, "ro&immutable=1", statement, queue_id)
        if _is_empty(log):
            return found
    raise SuppressionUnknown(
        f"{path} can't be read with the log beside it ({error}), {NOBODY_SERVED}: "
        "let this user read all three files, or ask as the user who runs the service"
    ) from error


def _is_empty(log: Path) -> bool:
    return not log.exists() or log.stat().st_size == 0


def _rows_in(path: Path, mode: str, statement: str, queue_id: str | None) -> list[Row]:
    address = f"{path.absolute().as_uri()}?mode={mode}"
    with closing(sqlite3.connect(address, timeout=WAIT_SECONDS, isolation_level=None, uri=True)) as connection:
        connection.execute("BEGIN")  # everything below reads one snapshot
        found = format_of(connection)
        if found > FORMAT:
            raise SuppressionUnknown(f"{path} {newer(found, FORMAT)}; {NOBODY_SERVED}")
        if found == 0 and queue_id is None and not connection.execute("SELECT 1 FROM sqlite_master").fetchall():
            return []  # nothing was ever written to it
        if found <= 0:
            raise lost(path.parent, f"{path} is no queue of ours", "put the right one in its place")
        if queue_id is not None:
            refuse_another(connection, path, queue_id)
        _refuse_damaged_people(connection, path)
        connection.row_factory = sqlite3.Row
        return cast(list[Row], connection.execute(statement).fetchall())


def _refuse_damaged_people(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse a file in which an id was changed: each id is stored twice, in its table and in the index."""
    if [row[0] for row in connection.execute("PRAGMA integrity_check(open_requests)")] != ["ok"]:
        raise SuppressionUnknown(f"{path} is damaged, {NOBODY_SERVED}: restore it from its newest copy")


def refuse_another(connection: sqlite3.Connection, path: Path, queue_id: str) -> None:
    """Refuse a queue that the workspace does not name."""
    try:
        found = [row[0] for row in connection.execute(READ_ID)]
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_ERROR:  # no such table
            raise
        found = []
    if found != [queue_id]:
        raise lost(path.parent, f"{path} is not the queue of this workspace but another one")


def file_mark(workspace: Path) -> tuple[object, int]:
    """Return a value that differs once the queue's files have changed, and the time of that change in nanoseconds."""
    found = []
    for name in (QUEUE_FILE, f"{QUEUE_FILE}-wal"):
        with suppress(FileNotFoundError):
            status = (workspace / name).stat()
            found.append((name, status.st_ino, status.st_mtime_ns, status.st_size))
    return tuple(found), max((changed for _, _, changed, _ in found), default=0)


def create_file(path: Path) -> None:
    """Make the file if there is none; it appears complete, so that no reader ever finds it empty."""
    if os.access(path, os.R_OK | os.W_OK):
        return  # opening and closing it here would release locks that this process may hold on it
    whole = path.with_name(f"{path.name}.new-{secrets.token_hex(4)}")
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        make_tables(connection)
        content = bytearray(connection.serialize())
    # With a write-ahead log from the start: switching later fails while others have the file open.
    content[_JOURNAL_MODE] = b"\2\2"
    try:
        write_file(whole, bytes(content))
        with suppress(FileExistsError):  # another process made it first
            os.link(whole, path)
        for left in path.parent.glob(f"{path.name}.new-*"):  # left by a process killed here
            left.unlink(missing_ok=True)
    except FileNotFoundError:  # removed by the process that made the file first
        if not path.exists():
            raise
    except OSError as error:
        raise WorkspaceError(
            f"{path} can't be made ({error.strerror}): put the workspace on a disk with links"
        ) from error
    finally:
        with suppress(OSError):  # a disk that can't be written to, of which the error above tells
            whole.unlink(missing_ok=True)
    flush_folder(path.parent)


def _is_full(path: Path) -> bool:
    """Whether the disk has no room for the log files, which SQLite reports as an I/O error."""
    try:
        refuse_if_full(path.parent, _LEAST_ROOM)
    except (DiskFull, OSError) as error:
        return isinstance(error, DiskFull)
    return False


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn errors of SQLite into ours, with a remedy."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if "full" in str(error) or _is_full(path):
            raise DiskFull(f"the disk is full at {path}: free some space and try again") from error
        is_read_only = getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_READONLY
        if is_read_only or not os.access(path.parent, os.W_OK):
            raise WorkspaceError(f"{path} can't be written to: check the disk, and that you may write there") from error
        raise WorkspaceBusy(f"{path} can't be used just now ({error}): try again") from error
    except (sqlite3.DatabaseError, json.JSONDecodeError) as error:
        if isinstance(error, sqlite3.IntegrityError):
            raise
        raise WorkspaceDamaged(f"{path} is damaged ({error}): restore it from a copy") from error
