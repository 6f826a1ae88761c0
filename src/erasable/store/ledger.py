"""The ledger of the service: one SQLite file in the workspace; what is deleted in it is overwritten.

What happened is added as events and never changed. Who asked stands in tables of its own, whose rows are deleted.
"""

import json
import os
import secrets
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from erasable.documents import newer
from erasable.errors import DiskFull, SuppressionUnknown, WorkspaceBusy, WorkspaceDamaged, WorkspaceError
from erasable.store.ended import WithEnded
from erasable.store.files import flush_folder, write_file
from erasable.store.layout import LEDGER
from erasable.store.ledger_format import (
    FORMAT,
    LEDGER_FREE_TEXT,
    LEDGER_PEOPLE,
    SCHEMA_WORDS,
    STEPS,
    format_of,
    make_tables,
    set_format,
)

__all__ = [
    "LEDGER_FREE_TEXT",
    "LEDGER_PEOPLE",
    "SCHEMA_WORDS",
    "Ledger",
    "ledger_mark",
    "people_asking",
    "people_in_ledger",
]

_WAIT_SECONDS = 30
_TRUNCATE_SECONDS = 10
_PAUSE_SECONDS = 0.01
_NOBODY_SERVED = "and it says who has asked to be erased, so nobody is served"


def before_commit() -> None:
    """Be told just before a change becomes durable; tests put a function here that stops at the n-th."""


class Ledger:
    """An open ledger, for any number of threads; give each process its own.

    Reading has a connection of its own, so that who only reads does not wait for who waits to write.
    """

    def __init__(self, path: Path, with_ended: bool = True) -> None:
        """Open it; without the requests that are sealed, whoever reads waits for nothing else."""
        self.path = path
        self._writer, self._reader = _connected(path), _connected(path)
        workspace = path.parent if with_ended else None
        self._written, self._read = (WithEnded(one, workspace) for one in (self._writer, self._reader))
        self._writing, self._reading = threading.RLock(), threading.RLock()
        self._who_writes: int | None = None
        self._file = _number_of(path)

    @staticmethod
    def open(workspace: Path) -> "Ledger":
        """Open the ledger of a workspace; it is made on first use, for its owner alone.

        One of an earlier format is brought forward, step by step.
        """
        path = workspace / LEDGER
        _create(path)
        with _explained(path), closing(_connected(path)) as connection:
            # Looked at first: whoever is frozen in the middle of a change lets nobody write.
            if format_of(connection) == 0:
                make_tables(connection)
            found = format_of(connection)
        if found > FORMAT:
            raise WorkspaceError(f"{path} {newer(found, FORMAT)}")
        if found < 0:
            raise WorkspaceError(f"{path} is no ledger of ours: put the right one in its place")
        ledger = Ledger(path)
        try:
            for number in range(found, FORMAT):
                ledger._take_step(number)
        except BaseException:
            ledger.close()
            raise
        return ledger

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Read what is there at one moment; inside a change, what is there with it."""
        if self._who_writes == threading.get_ident():
            yield self._writer
            return
        with self._reading, _explained(self.path), _transaction(self._read, "BEGIN"):
            yield self._reader

    @contextmanager
    def reading_all(self) -> Iterator[sqlite3.Connection]:
        """Read, with the views `all_…` that have the sealed requests too; refused if their file is damaged."""
        with self._reading_with_ended() as seen:
            if seen.damage is not None:
                raise seen.damage
            yield seen.connection

    def sealed_with(self, request_ids: Sequence[str]) -> bytes:
        """Return the file of sealed requests with some more, which have ended."""
        with self.reading_all(), self._reading_with_ended() as seen:
            return seen.sealed_with(request_ids)

    def sealed_twice(self) -> list[str]:
        """Return the requests that are sealed and not deleted here yet."""
        with self._reading_with_ended() as seen:
            return seen.twice()

    def delete_sealed(self) -> None:
        """Delete the requests that are sealed."""
        with self.writing():
            self._written.delete(self._written.twice())

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Change it: all of the block is durable when it ends, or nothing of it ever was."""
        with self._writing, _explained(self.path):
            if self._writer.in_transaction:  # a block inside another is a part of it
                yield self._writer
                return
            if _number_of(self.path) != self._file:
                raise WorkspaceError(f"{self.path} was removed or replaced while it is in use: start again")
            with _transaction(self._written, "BEGIN IMMEDIATE"):
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

    @contextmanager
    def _reading_with_ended(self) -> Iterator[WithEnded]:
        with self.reading() as connection:
            yield self._written if connection is self._writer else self._read

    def _take_step(self, number: int) -> None:
        """Bring the ledger from a format to the next, unless another process has done so meanwhile.

        The number is written last, when nothing of what the step took away is left in the file or in the log: whoever
        is stopped before that begins again.
        """
        with self.writing() as connection:
            behind = format_of(connection) == number
            if behind:
                STEPS[number](connection)
        if behind:
            self.wipe()
            with self.writing() as connection:
                set_format(connection, max(number + 1, format_of(connection)))

    def _is_log_in_use(self) -> bool:
        """Try to cut the log off, without waiting: whoever waits keeps others from writing."""
        with self._writing, _explained(self.path):
            self._writer.execute("PRAGMA busy_timeout = 0")
            try:
                return bool(self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0])
            finally:
                self._writer.execute(f"PRAGMA busy_timeout = {1000 * _WAIT_SECONDS}")


def people_in_ledger(workspace: Path) -> frozenset[str]:
    """Return who has asked to be erased by the ledger of a workspace, of this format or an earlier one.

    Where that can't be read an error is raised: whoever does not know who asked must serve nobody.
    """
    path = workspace / LEDGER
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        if path.is_symlink() or any(os.path.lexists(f"{path}{ending}") for ending in ("-wal", "-shm")):
            raise SuppressionUnknown(f"{path} is gone, {_NOBODY_SERVED}: put it back from its newest copy") from None
        return frozenset()
    except OSError as error:
        raise SuppressionUnknown(f"{path} can't be looked at ({error.strerror}), {_NOBODY_SERVED}") from error
    if not found.st_size and _is_empty(path.with_name(f"{path.name}-wal")):
        raise SuppressionUnknown(
            f"{path} is empty, {_NOBODY_SERVED}: put it back from its newest copy, or start the service if it is new"
        )
    if not os.access(path, os.R_OK):
        remedy = "let this user read it and the files beside it, or ask as the user who runs the service"
        raise SuppressionUnknown(f"{path} may not be read, {_NOBODY_SERVED}: {remedy}")
    with _explained(path):
        try:
            return _people_in(path, "rw" if os.access(path, os.W_OK) else "ro")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
                raise
            return _people_without_log(path, error)


def _people_without_log(path: Path, error: sqlite3.OperationalError) -> frozenset[str]:
    """Read who asked where the files of a log can't be made: as it is, if there is no log.

    All changes go to the log first, so that without one nothing is missing in the file.
    """
    log = path.with_name(f"{path.name}-wal")
    if _is_empty(log):
        found = _people_in(path, "ro&immutable=1")
        if _is_empty(log):
            return found
    raise SuppressionUnknown(
        f"{path} can't be read with the log beside it ({error}), {_NOBODY_SERVED}: "
        "let this user read all three files, or ask as the user who runs the service"
    ) from error


def _is_empty(log: Path) -> bool:
    return not log.exists() or log.stat().st_size == 0


def _people_in(path: Path, mode: str) -> frozenset[str]:
    address = f"{path.absolute().as_uri()}?mode={mode}"
    with closing(sqlite3.connect(address, timeout=_WAIT_SECONDS, isolation_level=None, uri=True)) as connection:
        connection.execute("BEGIN")  # all that follows is read as of one moment
        found = format_of(connection)
        if found > FORMAT:
            raise SuppressionUnknown(f"{path} {newer(found, FORMAT)}; {_NOBODY_SERVED}")
        if found == 0 and connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0:
            return frozenset()  # nothing was ever written to it
        if found <= 0:
            raise SuppressionUnknown(f"{path} is no ledger of ours, {_NOBODY_SERVED}: put the right one in its place")
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
        path.absolute().as_uri(),
        timeout=_WAIT_SECONDS,
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
    """Return what tells a file from another that is put in its place."""
    return path.stat().st_ino if path.exists() else None


def _create(path: Path) -> None:
    """Make a ledger if there is none; it appears whole, so that nobody who reads meanwhile finds it empty."""
    if os.access(path, os.R_OK | os.W_OK):
        return  # opened and closed here, it would lose the locks that this process may have on it
    whole = path.with_name(f"{path.name}.new-{secrets.token_hex(4)}")
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        make_tables(connection)
        content = connection.serialize()
    try:
        write_file(whole, content)
        with suppress(FileExistsError):  # another process has made it meanwhile
            os.link(whole, path)
    except OSError as error:
        raise WorkspaceError(
            f"{path} can't be made ({error.strerror}): put the workspace on a disk with links"
        ) from error
    finally:
        whole.unlink(missing_ok=True)
    flush_folder(path.parent)


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Say what went wrong with the file in words that help."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if "full" in str(error):
            raise DiskFull(f"the disk of {path} is full: free some space and try again") from error
        raise WorkspaceBusy(f"{path} can't be used just now ({error}): try again") from error
    except (sqlite3.DatabaseError, json.JSONDecodeError) as error:
        if isinstance(error, sqlite3.IntegrityError):
            raise
        raise WorkspaceDamaged(f"{path} is damaged ({error}): restore it from a copy") from error
