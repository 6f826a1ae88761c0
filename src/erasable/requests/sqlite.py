"""The queue in SQLite, in a file of the workspace or in memory; deleted rows are overwritten.

Events are only ever added. Who asked is stored in separate tables, whose rows are deleted.
"""

import sqlite3
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TypeVar, cast

from erasable.documents import newer
from erasable.errors import SuppressionUnknown, WorkspaceBusy, WorkspaceError
from erasable.requests import database as database_module
from erasable.requests._key_files import KeyFiles
from erasable.requests._sqlite_file import (
    WAIT_SECONDS,
    PlainLabels,
    PlainRemarks,
    PlainSubjects,
    PlainWaiting,
    create_file,
    explained,
    refuse_another,
    refuse_keys_of_another,
    rows_in_file,
)
from erasable.requests.database import NOBODY_SERVED, Connection, Row, Value
from erasable.requests.history import WithEnded, refuse_moved
from erasable.requests.schema import FORMAT, STEPS, format_of, make_tables, set_format
from erasable.workspace.files import KEYS, MANIFEST, QUEUE_FILE
from erasable.workspace.folder import read_manifest

T = TypeVar("T")
_TRUNCATE_SECONDS = 10
_PAUSE_SECONDS = 0.01
_LOOK_SECONDS = 0.05
_LARGEST_LOG = 8_000_000  # bytes, after some hundred submissions
_MEMORY = Path(":memory:")
_NOTHING = "SELECT 1 WHERE 0"


class _Statements:
    """Runs the queue's statements on an SQLite connection."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def execute(self, statement: str, values: Sequence[Value] = ()) -> list[Row]:
        """Run a statement and return its rows."""
        return cast(list[Row], self._connection.execute(statement, tuple(values)).fetchall())

    def execute_many(self, statement: str, rows: Collection[Sequence[Value]]) -> None:
        """Run a statement once for each row of values."""
        self._connection.executemany(statement, rows)


class _QueueConnection:
    """A connection to the queue's file, with the workspace's sealed requests attached."""

    def __init__(self, connection: sqlite3.Connection, workspace: Path | None) -> None:
        self.connection = connection
        self.seen = WithEnded(connection, workspace)
        self.statements = _Statements(connection)


class SqliteDatabase:
    """An open queue in SQLite, usable from any number of threads; each process opens its own.

    Each reader uses a separate connection and never waits for a writer.
    """

    def __init__(self, path: Path, queue_id: str | None = None) -> None:
        self.path = path
        self._queue_id = queue_id
        self.subjects, self.remarks, self.waiting = PlainSubjects(), PlainRemarks(), PlainWaiting()
        self.labels = PlainLabels()
        self._workspace = None if path == _MEMORY else path.parent
        self._writer = _QueueConnection(_connected(path), self._workspace)
        self._watcher = None if self._workspace is None else _connected(path)
        self._idle: list[_QueueConnection] = []
        self._current = threading.local()
        self._writing, self._watching = threading.RLock(), threading.Lock()
        self._seen_mark: object = None
        self._file = _number_of(path)

    @staticmethod
    def open(workspace: Path, queue_id: str | None = None) -> "SqliteDatabase":
        """Open the queue of a workspace; it is made on first use, readable by its owner only.

        If the workspace knows the queue's id, none is made: a missing, empty or different file is refused. A file of an
        earlier format is upgraded step by step.
        """
        path = workspace / QUEUE_FILE
        if queue_id is None:
            refuse_keys_of_another(workspace, queue_id)
            create_file(path)
        else:
            rows_in_file(workspace, _NOTHING, queue_id)
        with explained(path), closing(_connected(path)) as connection:
            # Read first: a process frozen in the middle of a change blocks all other writers.
            if format_of(connection) == 0:
                make_tables(connection)
            found = format_of(connection)
        if found > FORMAT:
            raise WorkspaceError(f"{path} {newer(found, FORMAT)}")
        if found < 0:
            raise WorkspaceError(f"{path} is no queue of ours: put the right one in its place")
        opened = SqliteDatabase(path, queue_id)
        try:
            opened.migrate()
            opened._destroy_keys()
        except BaseException:
            opened.close()
            raise
        return opened

    @staticmethod
    def in_memory() -> "SqliteDatabase":
        """Make a queue that lasts as long as this process."""
        made = SqliteDatabase(_MEMORY)
        make_tables(made._writer.connection)
        return made

    def migrate(self) -> None:
        """Upgrade tables of an earlier format step by step."""
        found = format_of(self._writer.connection)
        for number in range(found, FORMAT):
            self._take_step(number)

    def read(self, work: Callable[[Connection], T], with_ended: bool = False) -> T:
        """Run `work` on one snapshot; inside a change of the same thread it also sees that change so far."""
        with self._reading() as reader:
            if with_ended and reader.seen.damage is not None:
                raise reader.seen.damage
            return work(reader.statements)

    def change(self, work: Callable[[Connection], T]) -> T:
        """Change the queue atomically: all of `work` is durable when this returns, or none of it."""
        with self._changing() as writer:
            return work(writer.statements)

    def time(self, connection: Connection) -> float:
        """Return the time that leases are measured by, in seconds."""
        return time.time()

    def mark(self) -> object:
        """Return a value that differs after any change of the queue."""
        if self._watcher is None:
            return self._writer.connection.total_changes
        with self._watching, explained(self.path):
            return int(self._watcher.execute("PRAGMA data_version").fetchone()[0])

    def wait(self, seconds: float) -> bool:
        """Wait until the queue has changed since the last call, or time is up; return whether it has."""
        end = time.monotonic() + seconds
        while (mark := self.mark()) == self._seen_mark:
            left = end - time.monotonic()
            if left <= 0:
                return False
            time.sleep(min(left, _LOOK_SECONDS))
        self._seen_mark = mark
        return True

    def wipe(self) -> None:
        """Remove the remains of deleted rows from the file and its write-ahead log.

        SQLite overwrites deleted rows, but not copies left when a page was split or merged, so the file is rewritten.
        """
        with self._writing, explained(self.path):
            self._writer.connection.execute("VACUUM")
        self.cut_log()
        self._destroy_keys()

    def tidy(self) -> None:
        """Keep the write-ahead log short."""
        if self.log_size() > _LARGEST_LOG:
            self.cut_log()

    def cut_log(self) -> None:
        """Move the write-ahead log into the file and truncate it; writers only wait for the last step."""
        with self._writing, explained(self.path):
            self._writer.connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
        end = time.monotonic() + _TRUNCATE_SECONDS
        while self._is_log_in_use():
            if time.monotonic() > end:
                raise WorkspaceBusy(
                    "the log of the queue is in use and can't be cut off: end other programs that read it"
                )
            time.sleep(_PAUSE_SECONDS)

    def log_size(self) -> int:
        """Return the size of the write-ahead log in bytes."""
        log = self.path.with_name(self.path.name + "-wal")
        return log.stat().st_size if log.exists() else 0

    def close(self) -> None:
        """Close it."""
        with self._writing, self._watching:
            idle, self._idle = self._idle, []
            for one in (*(reader.connection for reader in idle), self._watcher, self._writer.connection):
                if one is not None:
                    one.close()

    def content(self) -> bytes:
        """Return the database as the bytes of a file."""
        return self._writer.connection.serialize()

    def sealed_with(self, request_ids: Sequence[str]) -> bytes:
        """Return the file of sealed requests with these finished requests added."""
        with self._reading() as reader:
            if reader.seen.damage is not None:
                raise reader.seen.damage
            return reader.seen.sealed_with(request_ids)

    def sealed_twice(self) -> list[str]:
        """Return the requests that are sealed but not yet deleted from the tables."""
        with self._reading() as reader:
            return reader.seen.twice()

    def delete_sealed(self) -> None:
        """Delete sealed requests from the tables."""
        with self._changing() as writer:
            writer.seen.delete(writer.seen.twice())

    @contextmanager
    def _reading(self) -> Iterator[_QueueConnection]:
        """Yield a connection in one snapshot; inside a read or a change of the same thread, its connection."""
        current: _QueueConnection | None = getattr(self._current, "reader", None)
        if current is not None:
            yield current
            return
        if self._workspace is None:
            with self._changing() as writer:
                yield writer
            return
        with explained(self.path):
            reader = self._idle_reader()
            self._current.reader = reader
            try:
                with _transaction(reader.seen, "BEGIN"):
                    self._refuse_another_queue(reader)
                    yield reader
            finally:
                self._current.reader = None
                self._idle.append(reader)

    def _idle_reader(self) -> _QueueConnection:
        """Return an idle connection, or a new one."""
        self._refuse_another_file()
        with suppress(IndexError):
            return self._idle.pop()
        return _QueueConnection(_connected(self.path), self._workspace)

    def _refuse_another_file(self) -> None:
        if _number_of(self.path) != self._file:
            if (self.path.parent / MANIFEST).exists():
                refuse_moved(self.path.parent, read_manifest(self.path.parent))
            raise SuppressionUnknown(
                f"{self.path} was removed or replaced while it is in use, {NOBODY_SERVED}: restore it from its newest "
                "copy if it is gone, and restart what uses it"
            )

    def _refuse_another_queue(self, reader: _QueueConnection) -> None:
        """Refuse a file that was overwritten with another queue."""
        if self._queue_id is not None:
            refuse_another(reader.connection, self.path, self._queue_id)

    @contextmanager
    def _changing(self) -> Iterator[_QueueConnection]:
        with self._writing, explained(self.path):
            if self._writer.connection.in_transaction:  # a change inside another is a part of it
                yield self._writer
                return
            self._refuse_another_file()
            before: _QueueConnection | None = getattr(self._current, "reader", None)
            with _transaction(self._writer.seen, "BEGIN IMMEDIATE"):
                self._refuse_another_queue(self._writer)
                self._current.reader = self._writer
                try:
                    yield self._writer
                    database_module.before_commit()
                finally:
                    self._current.reader = before

    def _take_step(self, number: int) -> None:
        """Upgrade the queue to the next format, unless another process did so first.

        The format number is written last, when the remains of deleted rows are gone from the file and the log: an
        interrupted step is repeated.
        """
        with self._changing() as writer:
            behind = format_of(writer.connection) == number
            if behind:
                STEPS[number](writer.connection)
        if behind:
            self.wipe()
            with self._changing() as writer:
                set_format(writer.connection, max(number + 1, format_of(writer.connection)))

    def _destroy_keys(self) -> None:
        """Destroy the keys of an interrupted move to Postgres, which decrypt the people in that copy.

        Only if the workspace names this file: otherwise the keys may be in use.
        """
        keys = None if self._workspace is None or self._queue_id is None else KeyFiles(self._workspace / KEYS)
        if keys is not None and keys.names():
            # In a change: a move in progress holds the file until the new queue is named.
            self.change(lambda _: keys.destroy(keys.names()))

    def _is_log_in_use(self) -> bool:
        """Try to truncate the log without waiting, since waiting would block writers."""
        with self._writing, explained(self.path):
            self._writer.connection.execute("PRAGMA busy_timeout = 0")
            try:
                return bool(self._writer.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0])
            finally:
                self._writer.connection.execute(f"PRAGMA busy_timeout = {1000 * WAIT_SECONDS}")


@contextmanager
def _transaction(seen: WithEnded, begin: str) -> Iterator[None]:
    connection = seen.connection
    if connection.in_transaction:
        yield
        return
    try:
        seen.begin(begin)
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _connected(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(
        ":memory:" if path == _MEMORY else f"{path.absolute().as_uri()}?mode=rw",  # never make a missing file
        timeout=WAIT_SECONDS,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=256,
        uri=True,
    )
    connection.row_factory = sqlite3.Row
    for setting in ("journal_mode = WAL", "synchronous = FULL", "secure_delete = ON", "temp_store = MEMORY"):
        connection.execute(f"PRAGMA {setting}")
    # A scan reads the file while others write, so only `cut_log` moves the log into the file.
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    return connection


def _number_of(path: Path) -> int | None:
    """Return a number that differs once the file is replaced; None if it is missing or empty."""
    try:
        found = None if path == _MEMORY else path.stat()
    except FileNotFoundError:
        return None
    return found.st_ino if found and found.st_size else None
