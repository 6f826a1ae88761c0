"""The ledger of the service: one SQLite file in the workspace; what is deleted in it is overwritten.

What happened is added as events and never changed. Who asked stands in tables of its own, whose rows are deleted.
"""

import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from erasable.errors import DiskFull, WorkspaceBusy, WorkspaceDamaged, WorkspaceError
from erasable.store.layout import LEDGER

FORMAT = 1
_WAIT_SECONDS = 30
_TRUNCATE_SECONDS = 10

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
CREATE INDEX states_by_request ON events (request_id, event_number, status) WHERE status IS NOT NULL;
CREATE TRIGGER events_are_not_changed BEFORE UPDATE ON events
    BEGIN SELECT RAISE(ABORT, 'events are never changed'); END;
CREATE TRIGGER events_are_not_removed BEFORE DELETE ON events
    BEGIN SELECT RAISE(ABORT, 'events are never removed'); END;
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


def before_commit() -> None:
    """Be told just before a change becomes durable; tests put a function here that stops at the n-th."""


class Ledger:
    """An open ledger, for any number of threads; give each process its own."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self._path = path
        self._connection = connection
        self._lock = threading.RLock()

    @staticmethod
    def open(workspace: Path) -> "Ledger":
        """Open the ledger of a workspace; it is made on first use, for its owner alone."""
        path = workspace / LEDGER
        _create(path)
        with _explained(path):
            connection = sqlite3.connect(
                path, timeout=_WAIT_SECONDS, isolation_level=None, check_same_thread=False, cached_statements=256
            )
            _prepare(connection, path)
        return Ledger(path, connection)

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Read what is there at one moment."""
        with self._transaction("BEGIN") as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Change it: all of the block is durable when it ends, or nothing of it ever was."""
        with self._transaction("BEGIN IMMEDIATE") as connection:
            yield connection

    def is_writable(self) -> bool:
        """Whether something could be written now."""
        try:
            with self.writing():
                return True
        except WorkspaceError:
            return False

    def change_mark(self) -> int:
        """Return a number that changes whenever another process has changed the ledger."""
        with self._lock:
            return int(self._connection.execute("PRAGMA data_version").fetchone()[0])

    def wipe(self) -> None:
        """Let nothing that was deleted be left in the log beside the ledger: it goes into the file and is cut off."""
        end = time.monotonic() + _TRUNCATE_SECONDS
        while True:
            with self._lock:
                busy = self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
            if not busy:
                return
            if time.monotonic() > end:
                raise WorkspaceBusy("the ledger's log is in use and can't be cut off: end other programs that read it")
            time.sleep(0.01)

    def log_size(self) -> int:
        """Return how many bytes the log beside the ledger takes."""
        log = self._path.with_name(self._path.name + "-wal")
        return log.stat().st_size if log.exists() else 0

    def close(self) -> None:
        """Close it."""
        with self._lock:
            self._connection.close()

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[sqlite3.Connection]:
        with self._lock, _explained(self._path):
            if self._connection.in_transaction:  # a block inside another is a part of it
                yield self._connection
                return
            self._connection.execute(begin)
            try:
                yield self._connection
                if begin != "BEGIN":
                    before_commit()
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise


def _create(path: Path) -> None:
    if os.access(path, os.R_OK | os.W_OK):
        return  # opened and closed here, it would lose the locks that this process may have on it
    try:
        os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise WorkspaceError(f"{path} can't be opened ({error.strerror}): check that you may write there") from error


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    connection.row_factory = sqlite3.Row
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA secure_delete = ON")
    connection.execute("PRAGMA temp_store = MEMORY")
    # A search reads the file while others write: only `wipe` puts the log into it.
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    if _format_of(connection) == 0:  # looked at first: whoever is frozen in the middle of a change lets nobody write
        _make_tables(connection)
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
