"""The ledger of the service: one SQLite file in the workspace; what is deleted in it is overwritten.

What happened is added as events and never changed. Who asked stands in tables of its own, whose rows are deleted.
"""

import os
import re
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from erasable.errors import DiskFull, WorkspaceBusy, WorkspaceDamaged, WorkspaceError
from erasable.store.layout import LEDGER

FORMAT = 1
_WAIT_SECONDS = 30
_TRUNCATE_SECONDS = 10
_PAUSE_SECONDS = 0.01

_SCHEMA = """
CREATE TABLE events (
    event_number INTEGER PRIMARY KEY,
    request_id TEXT,
    event_time TEXT NOT NULL,
    event_name TEXT NOT NULL,
    status TEXT,
    actor_name TEXT NOT NULL,
    facts TEXT NOT NULL
) STRICT;
CREATE INDEX events_by_request ON events (request_id, event_number);
CREATE INDEX events_by_name ON events (event_name, event_number);
CREATE TRIGGER events_are_not_changed BEFORE UPDATE ON events
    BEGIN SELECT RAISE(ABORT, 'events are never changed'); END;
CREATE TRIGGER events_are_not_removed BEFORE DELETE ON events
    BEGIN SELECT RAISE(ABORT, 'events are never removed'); END;
CREATE TABLE current_states (
    request_id TEXT PRIMARY KEY,
    first_number INTEGER NOT NULL,
    status TEXT NOT NULL
) STRICT;
CREATE INDEX current_states_by_state ON current_states (status, first_number);
CREATE TRIGGER events_make_states AFTER INSERT ON events WHEN NEW.status IS NOT NULL
    BEGIN
        INSERT INTO current_states VALUES (NEW.request_id, NEW.event_number, NEW.status)
            ON CONFLICT (request_id) DO UPDATE SET status = excluded.status;
    END;
CREATE TABLE open_requests (
    request_id TEXT PRIMARY KEY,
    user_id TEXT,
    item_ids TEXT,
    receipt_code TEXT
) STRICT;
CREATE INDEX open_requests_by_user ON open_requests (user_id);
CREATE TABLE intake (
    interaction_number INTEGER PRIMARY KEY,
    user_id TEXT NOT NULL,
    item_id TEXT NOT NULL,
    rating REAL,
    time REAL
) STRICT;
CREATE INDEX intake_by_user ON intake (user_id);
CREATE TABLE receipts (code_digest TEXT PRIMARY KEY, request_id TEXT NOT NULL) STRICT;
CREATE TABLE answers (
    key_digest TEXT PRIMARY KEY,
    answer_time REAL NOT NULL,
    body_digest TEXT NOT NULL,
    sealed_bytes BLOB NOT NULL
) STRICT;
CREATE TABLE tokens (
    token_number TEXT PRIMARY KEY,
    token_digest TEXT NOT NULL UNIQUE,
    role_name TEXT NOT NULL,
    label TEXT NOT NULL,
    created_time TEXT NOT NULL,
    revoked_time TEXT
) STRICT;
CREATE TABLE visits (visit_digest TEXT PRIMARY KEY, token_number TEXT NOT NULL, end_time REAL NOT NULL) STRICT;
CREATE TABLE lease (
    lease_number INTEGER NOT NULL,
    process_number INTEGER NOT NULL,
    process_start TEXT NOT NULL,
    end_time REAL NOT NULL
) STRICT;
INSERT INTO lease VALUES (0, 0, '', 0);
CREATE TABLE progress (batch_number TEXT NOT NULL, step_name TEXT NOT NULL, done_count INTEGER NOT NULL,
    total_count INTEGER, change_time REAL NOT NULL) STRICT;
"""


SCHEMA_WORDS = frozenset(re.findall("[a-z_]+", _SCHEMA))
"""The names of tables, columns and the rest, which stand in every ledger."""


LEDGER_PEOPLE = frozenset({"open_requests", "intake"})
"""The tables in which people stand."""
LEDGER_FREE_TEXT = frozenset({"facts", "label"})
"""The columns of the others that hold what somebody typed in."""


def before_commit() -> None:
    """Be told just before a change becomes durable; tests put a function here that stops at the n-th."""


class Ledger:
    """An open ledger, for any number of threads; give each process its own.

    Reading has a connection of its own, so that who only reads does not wait for who waits to write.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._writer, self._reader = _connected(path), _connected(path)
        self._writing, self._reading = threading.RLock(), threading.RLock()
        self._who_writes: int | None = None
        self._file = _number_of(path)

    @staticmethod
    def open(workspace: Path) -> "Ledger":
        """Open the ledger of a workspace; it is made on first use, for its owner alone."""
        path = workspace / LEDGER
        _create(path)
        with _explained(path), closing(_connected(path)) as connection:
            _prepare(connection, path)
        return Ledger(path)

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Read what is there at one moment; inside a change, what is there with it."""
        if self._who_writes == threading.get_ident():
            yield self._writer
            return
        with self._reading, _explained(self.path), _transaction(self._reader, "BEGIN"):
            yield self._reader

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Change it: all of the block is durable when it ends, or nothing of it ever was."""
        with self._writing, _explained(self.path):
            if self._writer.in_transaction:  # a block inside another is a part of it
                yield self._writer
                return
            if _number_of(self.path) != self._file:
                raise WorkspaceError(f"{self.path} was removed or replaced while it is in use: start again")
            with _transaction(self._writer, "BEGIN IMMEDIATE"):
                self._who_writes = threading.get_ident()
                try:
                    yield self._writer
                    before_commit()
                finally:
                    self._who_writes = None

    def is_writable(self) -> bool:
        """Whether the right to change it can be had now."""
        try:
            with self.writing():
                return True
        except WorkspaceError:
            return False

    def change_mark(self) -> int:
        """Return a number that changes whenever someone has changed the ledger."""
        with self._reading, _explained(self.path):
            return int(self._reader.execute("PRAGMA data_version").fetchone()[0])

    def wipe(self) -> None:
        """Let nothing that was deleted be left, neither in the file nor in the log beside it.

        What is deleted is overwritten, but not where a page of the file was divided or joined before: so the file is
        written anew.
        """
        with self._writing, _explained(self.path):
            self._writer.execute("VACUUM")
        self.cut_log()

    def cut_log(self) -> None:
        """Put the log beside the ledger into the file, and cut it off."""
        end = time.monotonic() + _TRUNCATE_SECONDS
        while self._is_log_in_use():
            if time.monotonic() > end:
                raise WorkspaceBusy("the ledger's log is in use and can't be cut off: end other programs that read it")
            time.sleep(_PAUSE_SECONDS)

    def log_size(self) -> int:
        """Return how many bytes the log beside the ledger takes."""
        log = self.path.with_name(self.path.name + "-wal")
        return log.stat().st_size if log.exists() else 0

    def close(self) -> None:
        """Close it."""
        with self._writing, self._reading:
            self._reader.close()
            self._writer.close()

    def _is_log_in_use(self) -> bool:
        """Try to cut the log off, without waiting: whoever waits keeps others from writing."""
        with self._writing, _explained(self.path):
            self._writer.execute("PRAGMA busy_timeout = 0")
            try:
                return bool(self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0])
            finally:
                self._writer.execute(f"PRAGMA busy_timeout = {1000 * _WAIT_SECONDS}")


def people_in_ledger(workspace: Path) -> frozenset[str]:
    """Return who has asked to be erased by the ledger of a workspace, if it has one; it must be readable then."""
    path = workspace / LEDGER
    if not path.exists():
        return frozenset()
    if not os.access(path, os.R_OK | os.W_OK):
        raise WorkspaceError(f"{path} can't be read, and it says who has asked to be erased: run this as its owner")
    with _explained(path), closing(_connected(path)) as connection:
        if _format_of(connection) == 0:  # it is just being made
            return frozenset()
        _refuse_other_format(connection, path)
        return people_asking(connection)


def people_asking(connection: sqlite3.Connection) -> frozenset[str]:
    """Return everyone whose request is open and whose data may still be there."""
    rows = connection.execute("SELECT user_id FROM open_requests WHERE user_id IS NOT NULL")
    return frozenset(row[0] for row in rows)


def ledger_mark(workspace: Path) -> tuple[object, int]:
    """Return what is another once the ledger has changed, and when its files last did, in nanoseconds."""
    found = []
    for name in (LEDGER, f"{LEDGER}-wal"):
        with suppress(FileNotFoundError):
            status = (workspace / name).stat()
            found.append((name, status.st_ino, status.st_mtime_ns, status.st_size))
    return tuple(found), max((changed for _, _, changed, _ in found), default=0)


@contextmanager
def _transaction(connection: sqlite3.Connection, begin: str) -> Iterator[None]:
    if connection.in_transaction:
        yield
        return
    connection.execute(begin)
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _connected(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(
        path, timeout=_WAIT_SECONDS, isolation_level=None, check_same_thread=False, cached_statements=256
    )
    connection.row_factory = sqlite3.Row
    for setting in ("journal_mode = WAL", "synchronous = FULL", "secure_delete = ON", "temp_store = MEMORY"):
        connection.execute(f"PRAGMA {setting}")
    # A search reads the file while others write: only cutting the log puts it into the file.
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    return connection


def _number_of(path: Path) -> int | None:
    """Return what tells a file from another that is put in its place."""
    return path.stat().st_ino if path.exists() else None


def _create(path: Path) -> None:
    if os.access(path, os.R_OK | os.W_OK):
        return  # opened and closed here, it would lose the locks that this process may have on it
    try:
        os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise WorkspaceError(f"{path} can't be opened ({error.strerror}): check that you may write there") from error


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    if _format_of(connection) == 0:  # looked at first: whoever is frozen in the middle of a change lets nobody write
        _make_tables(connection)
    _refuse_other_format(connection, path)


def _refuse_other_format(connection: sqlite3.Connection, path: Path) -> None:
    found = _format_of(connection)
    if found != FORMAT:
        raise WorkspaceError(f"{path} has the format {found} and this version of erasable reads {FORMAT}: update it")


def _format_of(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _make_tables(connection: sqlite3.Connection) -> None:
    """Make all tables, unless another process has made them meanwhile."""
    connection.execute("BEGIN IMMEDIATE")
    if _format_of(connection) == 0:
        for statement in _statements(_SCHEMA):
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {FORMAT}")
    connection.execute("COMMIT")


def _statements(script: str) -> Iterator[str]:
    part = ""
    for line in script.splitlines():
        part += line + "\n"
        if sqlite3.complete_statement(part):
            yield part
            part = ""


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Say what went wrong with the file in words that help."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if "full" in str(error):
            raise DiskFull(f"the disk of {path} is full: free some space and try again") from error
        raise WorkspaceBusy(f"{path} can't be used just now ({error}): try again") from error
    except sqlite3.DatabaseError as error:
        if isinstance(error, sqlite3.IntegrityError):
            raise
        raise WorkspaceDamaged(f"{path} is damaged ({error}): restore it from a copy") from error
