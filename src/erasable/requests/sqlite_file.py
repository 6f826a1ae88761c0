"""The file of a queue in a workspace: made, looked at for who has asked, and refused where it is another or damaged."""

import json
import os
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import cast

from erasable.documents import newer
from erasable.errors import DiskFull, QueueLost, SuppressionUnknown, WorkspaceBusy, WorkspaceDamaged, WorkspaceError
from erasable.requests.asked import Asked
from erasable.requests.database import Row
from erasable.requests.events import event_of
from erasable.requests.identity import NOBODY_SERVED, READ_ID, lost
from erasable.requests.plain import kept_subject
from erasable.requests.request import Request
from erasable.requests.schema import FORMAT
from erasable.requests.sqlite_format import format_of, make_tables
from erasable.store.files import flush_folder, refuse_if_full, write_file
from erasable.store.layout import KEYS, LEDGER

WAIT_SECONDS = 30
_LEAST_ROOM = 100_000  # bytes, for the log and the index of it that lie beside the file
_PEOPLE = "SELECT * FROM open_requests WHERE user_id IS NOT NULL"
_ASKED = (
    "SELECT * FROM open_requests JOIN events USING (request_id) WHERE user_id IS NOT NULL "
    "ORDER BY request_id, event_number"
)
_JOURNAL_MODE = slice(18, 20)  # where a file of SQLite says how it is written and read


def people_in_file(workspace: Path, queue_id: str | None = None) -> Asked:
    """Return who has asked to be erased, and for what, by the queue in a workspace, of this format or an earlier one.

    Where that can't be read an error is raised: whoever does not know who asked must serve nobody.
    """
    rows = rows_in_file(workspace, _PEOPLE, queue_id)
    with explained(workspace / LEDGER):
        return Asked.of(map(kept_subject, rows))


def asked_in_file(workspace: Path, queue_id: str | None = None) -> list[Request]:
    """Return the open requests of the queue in a workspace, of this format or an earlier one, oldest first."""
    rows = rows_in_file(workspace, _ASKED, queue_id)
    told = [(request_id, [*part]) for request_id, part in groupby(rows, lambda row: row["request_id"])]
    found = [replace(kept_subject(part[0]), events=tuple(map(event_of, part))) for _, part in told]
    return sorted(found, key=lambda one: one.events[0].number)


def rows_in_file(workspace: Path, statement: str, queue_id: str | None) -> list[Row]:
    """Return what is in the file of a queue; one that is not there is nobody's, unless the workspace knows its id."""
    path = workspace / LEDGER
    refuse_keys_of_another(workspace, queue_id)
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        beside = any(os.path.lexists(f"{path}{ending}") for ending in ("-wal", "-shm"))
        if queue_id is not None or beside or path.is_symlink():
            raise lost(workspace, f"{path} is gone") from None
        return []
    except OSError as error:
        raise SuppressionUnknown(f"{path} can't be looked at ({error.strerror}), {NOBODY_SERVED}") from error
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
    """Refuse where keys of a queue elsewhere lie beside no file that the workspace names: it is an older manifest."""
    keys = workspace / KEYS
    if (queue_id is None or not (workspace / LEDGER).exists()) and keys.is_dir() and any(keys.iterdir()):
        raise QueueLost(
            f"{keys} holds keys of a queue in Postgres that the manifest does not name, {NOBODY_SERVED}: put the "
            "newest manifest back"
        )


def _rows_without_log(path: Path, statement: str, queue_id: str | None, error: sqlite3.OperationalError) -> list[Row]:
    """Read who asked where the files of a log can't be made: as it is, if there is no log.

    All changes go to the log first, so that without one nothing is missing in the file.
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
        connection.execute("BEGIN")  # all that follows is read as of one moment
        found = format_of(connection)
        if found > FORMAT:
            raise SuppressionUnknown(f"{path} {newer(found, FORMAT)}; {NOBODY_SERVED}")
        if found == 0 and queue_id is None and not connection.execute("SELECT 1 FROM sqlite_master").fetchall():
            return []  # nothing was ever written to it
        if found <= 0:
            raise lost(path.parent, f"{path} is no ledger of ours", "put the right one in its place")
        if queue_id is not None:
            refuse_another(connection, path, queue_id)
        _refuse_damaged_people(connection, path)
        connection.row_factory = sqlite3.Row
        return cast(list[Row], connection.execute(statement).fetchall())


def _refuse_damaged_people(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse where a bit of who asked has changed: ids stand twice, in their table and in its index."""
    if [row[0] for row in connection.execute("PRAGMA integrity_check(open_requests)")] != ["ok"]:
        raise SuppressionUnknown(f"{path} is damaged, {NOBODY_SERVED}: put it back from its newest copy")


def refuse_another(connection: sqlite3.Connection, path: Path, queue_id: str) -> None:
    """Refuse the file of another queue than the one that the workspace names."""
    try:
        found = [row[0] for row in connection.execute(READ_ID)]
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_ERROR:  # that there is no such table
            raise
        found = []
    if found != [queue_id]:
        raise lost(path.parent, f"{path} is not the queue of this workspace but another one")


def file_mark(workspace: Path) -> tuple[object, int]:
    """Return what is another once the queue in a workspace has changed, and when its files last did, in nanoseconds."""
    found = []
    for name in (LEDGER, f"{LEDGER}-wal"):
        with suppress(FileNotFoundError):
            status = (workspace / name).stat()
            found.append((name, status.st_ino, status.st_mtime_ns, status.st_size))
    return tuple(found), max((changed for _, _, changed, _ in found), default=0)


def create_file(path: Path) -> None:
    """Make a file if there is none; it appears whole, so that nobody who reads meanwhile finds it empty."""
    if os.access(path, os.R_OK | os.W_OK):
        return  # opened and closed here, it would lose the locks that this process may have on it
    whole = path.with_name(f"{path.name}.new-{secrets.token_hex(4)}")
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        make_tables(connection)
        content = bytearray(connection.serialize())
    content[_JOURNAL_MODE] = (
        b"\2\2"  # a write-ahead log from the beginning: who switches is refused while others open it
    )
    try:
        write_file(whole, bytes(content))
        with suppress(FileExistsError):  # another process has made it meanwhile
            os.link(whole, path)
        for left in path.parent.glob(f"{path.name}.new-*"):  # by whoever was killed here; nobody needs another now
            left.unlink(missing_ok=True)
    except FileNotFoundError:  # taken away by whoever has made it meanwhile
        if not path.exists():
            raise
    except OSError as error:
        raise WorkspaceError(
            f"{path} can't be made ({error.strerror}): put the workspace on a disk with links"
        ) from error
    finally:
        whole.unlink(missing_ok=True)
    flush_folder(path.parent)


def _is_full(path: Path) -> bool:
    """Whether a disk has no room for the files beside the queue's: SQLite calls that an error of the disk."""
    try:
        refuse_if_full(path.parent, _LEAST_ROOM)
    except (DiskFull, OSError) as error:
        return isinstance(error, DiskFull)
    return False


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Say what went wrong with the file in words that help."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if "full" in str(error) or _is_full(path):
            raise DiskFull(f"the disk is full at {path}: free some space and try again") from error
        raise WorkspaceBusy(f"{path} can't be used just now ({error}): try again") from error
    except (sqlite3.DatabaseError, json.JSONDecodeError) as error:
        if isinstance(error, sqlite3.IntegrityError):
            raise
        raise WorkspaceDamaged(f"{path} is damaged ({error}): restore it from a copy") from error
