"""A queue in SQLite: one file in the workspace, or memory; what is deleted in it is overwritten.

What happened is added as events and never changed. Who asked stands in tables of its own, whose rows are deleted.
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
from erasable.requests.database import Connection, Row, Value
from erasable.requests.ended import WithEnded, refuse_moved
from erasable.requests.identity import NOBODY_SERVED
from erasable.requests.key_files import KeyFiles
from erasable.requests.plain import PlainLabels, PlainRemarks, PlainSubjects, PlainWaiting
from erasable.requests.schema import FORMAT
from erasable.requests.sqlite_file import (
    WAIT_SECONDS,
    create_file,
    explained,
    refuse_another,
    refuse_keys_of_another,
    rows_in_file,
)
from erasable.requests.sqlite_format import STEPS, format_of, make_tables, set_format
from erasable.store.layout import KEYS, LEDGER, MANIFEST
from erasable.store.opening import read_manifest

T = TypeVar("T")
_TRUNCATE_SECONDS = 10
_PAUSE_SECONDS = 0.01
_LOOK_SECONDS = 0.05
_LARGEST_LOG = 8_000_000  # bytes, of some hundred submissions
_MEMORY = Path(":memory:")
_NOTHING = "SELECT 1 WHERE 0"


class _Statements:
    """A connection of SQLite, as the queue uses it."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def execute(self, statement: str, values: Sequence[Value] = ()) -> list[Row]:
        """Run one statement, and return its rows."""
        return cast(list[Row], self._connection.execute(statement, tuple(values)).fetchall())

    def execute_many(self, statement: str, rows: Collection[Sequence[Value]]) -> None:
        """Run one statement for each row of values."""
        self._connection.executemany(statement, rows)


class _Reader:
    """A connection that reads, with the requests that are sealed in the workspace."""

    def __init__(self, connection: sqlite3.Connection, workspace: Path | None) -> None:
        self.connection = connection
        self.seen = WithEnded(connection, workspace)
        self.statements = _Statements(connection)


class SqliteDatabase:
    """An open queue in SQLite, for any number of threads; give each process its own.

    Whoever reads takes a connection of its own, and waits for nobody who writes.
    """

    def __init__(self, path: Path, queue_id: str | None = None) -> None:
        self.path = path
        self._queue_id = queue_id
        self.subjects, self.remarks, self.waiting = PlainSubjects(), PlainRemarks(), PlainWaiting()
        self.labels = PlainLabels()
        self._workspace = None if path == _MEMORY else path.parent
        self._writer = _Reader(_connected(path), self._workspace)
        self._watcher = None if self._workspace is None else _connected(path)
        self._idle: list[_Reader] = []
        self._current = threading.local()
        self._writing, self._watching = threading.RLock(), threading.Lock()
        self._seen_mark: object = None
        self._file = _number_of(path)

    @staticmethod
    def open(workspace: Path, queue_id: str | None = None) -> "SqliteDatabase":
        """Open the queue of a workspace; it is made on first use, for its owner alone.

        One that is known by its id is never made: it is refused if it is gone, empty or another one. One of an earlier
        format is brought forward, step by step.
        """
        path = workspace / LEDGER
        if queue_id is None:
            refuse_keys_of_another(workspace, queue_id)
            create_file(path)
        else:
            rows_in_file(workspace, _NOTHING, queue_id)
        with explained(path), closing(_connected(path)) as connection:
            # Looked at first: whoever is frozen in the middle of a change lets nobody write.
            if format_of(connection) == 0:
                make_tables(connection)
            found = format_of(connection)
        if found > FORMAT:
            raise WorkspaceError(f"{path} {newer(found, FORMAT)}")
        if found < 0:
            raise WorkspaceError(f"{path} is no ledger of ours: put the right one in its place")
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
        """Make a queue that is gone with this process."""
        made = SqliteDatabase(_MEMORY)
        make_tables(made._writer.connection)
        return made

    def migrate(self) -> None:
        """Bring tables of an earlier format forward by numbered steps."""
        found = format_of(self._writer.connection)
        for number in range(found, FORMAT):
            self._take_step(number)

    def read(self, work: Callable[[Connection], T], with_ended: bool = False) -> T:
        """Return what `work` finds in one snapshot; inside a change of this thread, with what it has changed so far."""
        with self._reading() as reader:
            if with_ended and reader.seen.damage is not None:
                raise reader.seen.damage
            return work(reader.statements)

    def change(self, work: Callable[[Connection], T]) -> T:
        """Change the queue: all of `work` is durable when this returns, or nothing of it ever was."""
        with self._changing() as writer:
            return work(writer.statements)

    def time(self, connection: Connection) -> float:
        """Return the time by which leases run out, in seconds."""
        return time.time()

    def mark(self) -> object:
        """Return what is different once someone has changed the queue."""
        if self._watcher is None:
            return self._writer.connection.total_changes
        with self._watching, explained(self.path):
            return int(self._watcher.execute("PRAGMA data_version").fetchone()[0])

    def wait(self, seconds: float) -> bool:
        """Wait until the queue has changed since this was last called, at most so long; say whether it has."""
        end = time.monotonic() + seconds
        while (mark := self.mark()) == self._seen_mark:
            left = end - time.monotonic()
            if left <= 0:
                return False
            time.sleep(min(left, _LOOK_SECONDS))
        self._seen_mark = mark
        return True

    def wipe(self) -> None:
        """Let nothing that was deleted be left, neither in the file nor in the log beside it.

        What is deleted is overwritten, but not where a page of the file was divided or joined before: so the file is
        written anew.
        """
        with self._writing, explained(self.path):
            self._writer.connection.execute("VACUUM")
        self.cut_log()
        self._destroy_keys()

    def tidy(self) -> None:
        """Keep the log beside the file short."""
        if self.log_size() > _LARGEST_LOG:
            self.cut_log()

    def cut_log(self) -> None:
        """Put the log into the file, and cut it off; nobody who submits waits for more than the end of that."""
        with self._writing, explained(self.path):
            self._writer.connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
        end = time.monotonic() + _TRUNCATE_SECONDS
        while self._is_log_in_use():
            if time.monotonic() > end:
                raise WorkspaceBusy("the ledger's log is in use and can't be cut off: end other programs that read it")
            time.sleep(_PAUSE_SECONDS)

    def log_size(self) -> int:
        """Return how many bytes the log takes."""
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
        """Return what is in the tables, as a file."""
        return self._writer.connection.serialize()

    def sealed_with(self, request_ids: Sequence[str]) -> bytes:
        """Return the file of sealed requests with some more, which have ended."""
        with self._reading() as reader:
            if reader.seen.damage is not None:
                raise reader.seen.damage
            return reader.seen.sealed_with(request_ids)

    def sealed_twice(self) -> list[str]:
        """Return the requests that are sealed and not deleted here yet."""
        with self._reading() as reader:
            return reader.seen.twice()

    def delete_sealed(self) -> None:
        """Delete the requests that are sealed."""
        with self._changing() as writer:
            writer.seen.delete(writer.seen.twice())

    @contextmanager
    def _reading(self) -> Iterator[_Reader]:
        """Take a connection for one snapshot; whoever reads or changes already goes on with theirs."""
        current: _Reader | None = getattr(self._current, "reader", None)
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

    def _idle_reader(self) -> _Reader:
        """Return a connection that nobody reads with now."""
        self._refuse_another_file()
        with suppress(IndexError):
            return self._idle.pop()
        return _Reader(_connected(self.path), self._workspace)

    def _refuse_another_file(self) -> None:
        if _number_of(self.path) != self._file:
            if (self.path.parent / MANIFEST).exists():
                refuse_moved(self.path.parent, read_manifest(self.path.parent))
            raise SuppressionUnknown(
                f"{self.path} was removed or replaced while it is in use, {NOBODY_SERVED}: put it back from its newest "
                "copy if it is gone, and start again what uses it"
            )

    def _refuse_another_queue(self, reader: _Reader) -> None:
        """Refuse a file into which another one was written."""
        if self._queue_id is not None:
            refuse_another(reader.connection, self.path, self._queue_id)

    @contextmanager
    def _changing(self) -> Iterator[_Reader]:
        with self._writing, explained(self.path):
            if self._writer.connection.in_transaction:  # a change inside another is a part of it
                yield self._writer
                return
            self._refuse_another_file()
            before: _Reader | None = getattr(self._current, "reader", None)
            with _transaction(self._writer.seen, "BEGIN IMMEDIATE"):
                self._refuse_another_queue(self._writer)
                self._current.reader = self._writer
                try:
                    yield self._writer
                    database_module.before_commit()
                finally:
                    self._current.reader = before

    def _take_step(self, number: int) -> None:
        """Bring the queue from a format to the next, unless another process has done so meanwhile.

        The number is written last, when nothing of what the step took away is left in the file or in the log: whoever
        is stopped before that begins again.
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
        """Destroy the keys of a move to Postgres that was killed: they open who is sealed there.

        Only a file that the workspace names is what was to be moved: beside another one they may be in use.
        """
        keys = None if self._workspace is None or self._queue_id is None else KeyFiles(self._workspace / KEYS)
        if keys is not None and keys.names():
            # In a change: whoever moves the queue just now has the file, and is named when that is over.
            self.change(lambda _: keys.destroy(keys.names()))

    def _is_log_in_use(self) -> bool:
        """Try to cut the log off, without waiting: whoever waits keeps others from writing."""
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
        ":memory:" if path == _MEMORY else f"{path.absolute().as_uri()}?mode=rw",  # one that is gone is not made again
        timeout=WAIT_SECONDS,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=256,
        uri=True,
    )
    connection.row_factory = sqlite3.Row
    for setting in ("journal_mode = WAL", "synchronous = FULL", "secure_delete = ON", "temp_store = MEMORY"):
        connection.execute(f"PRAGMA {setting}")
    # A search reads the file while others write: only cutting the log puts it into the file.
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    return connection


def _number_of(path: Path) -> int | None:
    """Return what tells a file from another that is put in its place; None of one that is gone or emptied."""
    try:
        found = None if path == _MEMORY else path.stat()
    except FileNotFoundError:
        return None
    return found.st_ino if found and found.st_size else None
