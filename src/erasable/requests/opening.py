"""Opening the queue that a workspace names, asking it who is suppressed, and copying it to another database."""

import atexit
import os
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from erasable.errors import QueueLost, SuppressionUnknown, WorkspaceBusy, WorkspaceError, WrongUse
from erasable.extensions import install_command
from erasable.requests._sqlite_file import asked_in_file, file_mark, marks, people_in_file
from erasable.requests.database import Connection, Database, Row, given_id
from erasable.requests.queue import Queue
from erasable.requests.request import Asked, Request
from erasable.requests.schema import ENDED_TABLES
from erasable.requests.sqlite import SqliteDatabase
from erasable.workspace.files import KEYS, MANIFEST, QUEUE_FILE, QUEUE_FILES, flush_folder, overwrite_file, remove_file
from erasable.workspace.folder import mark_of, read_manifest
from erasable.workspace.manifest import FORMAT, NO_PREFERENCES, Documents, Preferences
from erasable.workspace.workspace import Workspace

if TYPE_CHECKING:
    from erasable.requests.postgres import PostgresDatabase

T = TypeVar("T")
_MOST_OPEN = 4
_WRITER_SECONDS = 10
_PAUSE_SECONDS = 0.05
_OTHERS = ("identity", "open_deadlines", "answers", "visits")


def copy_queue(source: Database, target: Database) -> None:
    """Copy a queue into an empty one, in one change; call it inside a change of the source, so that it stands still.

    The lease of the copy is free, but keeps its number, since events refer to it. Sealed requests are copied into the
    tables.
    """

    def copy(reading: Connection, writing: Connection) -> None:
        for table in ENDED_TABLES:
            _copy_rows(reading, writing, f"all_{table}", table)
        for table in _OTHERS:
            _copy_rows(reading, writing, table, table)
        tokens = [{**row, "label": target.labels.written(row["label"])} for row in _tokens(source, reading)]
        _insert(writing, "tokens", tokens)
        lease = reading.execute("SELECT lease_number FROM lease")[0]["lease_number"]
        writing.execute("UPDATE lease SET lease_number = ?", (lease,))
        for request in source.subjects.all(reading):
            target.subjects.keep(writing, request)
        about = {row["event_number"]: row["request_id"] for row in reading.execute("SELECT * FROM events")}
        for number, said in source.remarks.of(reading, None).items():
            target.remarks.keep(writing, number, about[number], said)
        target.waiting.add(writing, source.waiting.all(reading))

    source.read(lambda reading: target.change(lambda writing: copy(reading, writing)), with_ended=True)


def typed_in(source: Database) -> bytes:
    """Return events and tokens as an SQLite file, so that they can be scanned like a workspace's own queue."""

    def found(reading: Connection) -> tuple[list[Row], list[Row]]:
        return reading.execute("SELECT * FROM events"), _tokens(source, reading)

    events, tokens = source.read(found)
    with closing(SqliteDatabase.in_memory()) as made:
        made.change(lambda writing: _insert(writing, "events", events))
        made.change(lambda writing: _insert(writing, "tokens", tokens))
        return made.content()


def _tokens(source: Database, reading: Connection) -> list[Row]:
    """Return all tokens, with labels as they were typed in."""
    rows = reading.execute("SELECT * FROM tokens")
    return [{**row, "label": source.labels.read(row["label"])} for row in rows]


def _copy_rows(reading: Connection, writing: Connection, view: str, table: str) -> None:
    _insert(writing, table, [dict(row) for row in reading.execute(f"SELECT * FROM {view}")])  # noqa: S608 - names of ours


def _insert(writing: Connection, table: str, rows: Sequence[Row]) -> None:
    if rows:
        columns = ", ".join(rows[0])
        statement = f"INSERT INTO {table} ({columns}) VALUES ({marks(rows[0])})"  # noqa: S608 - names of ours
        writing.execute_many(statement, [tuple(row.values()) for row in rows])


class Amended(Protocol):
    """A workspace that is being written."""

    def documents(self) -> Documents:
        """Return the current documents."""

    def amend(self, documents: Documents) -> None:
        """Replace the documents, keeping the state."""


def open_database(workspace: Path, session: Amended | None = None) -> Database:
    """Open the queue that a workspace names; a queue inside the workspace is made on first use.

    A caller who is already writing the workspace passes the session.
    """
    named = _preferences(workspace)
    opened = _opened(workspace, named)
    try:
        if named.queue is not None:
            remove_queue_file(workspace)  # left if a move was interrupted at its last step
        if named.queue_id is None:
            _have_named(workspace, session, opened)
    except BaseException:
        opened.close()
        raise
    return opened


def adopt_queue(workspace: Workspace) -> None:
    """Have the next commit name a queue that is there but not named yet: of 0.1, or of an interrupted command."""
    named = workspace.manifest.preferences
    if named.queue_id is None and is_there(workspace.path):
        with suppress(WorkspaceError), closing(_opened(workspace.path, named)) as opened:  # else the next time
            workspace.prefer(named.model_copy(update={"queue_id": opened.change(given_id)}))


def suppressed_in(workspace: Path) -> Asked:
    """Return who has asked to be erased, and for what; refused if the workspace's queue can't be read."""

    def people(named: Preferences) -> Asked:
        if named.queue is None:
            return people_in_file(workspace, named.queue_id)
        database = _READERS.get(workspace, named)
        return Asked.of(database.read(database.subjects.all))

    return _asked_of_named(workspace, people)


def is_there(workspace: Path) -> bool:
    """Whether a workspace has a queue, even a lost one."""
    named = _preferences(workspace)
    return bool(named.queue or named.queue_id) or os.path.lexists(workspace / QUEUE_FILE)


def asked_in(workspace: Path) -> list[Request]:
    """Return the open requests whose data may still be there, with who asked, oldest first; writes nothing."""

    def asked(named: Preferences) -> list[Request]:
        if named.queue is None:
            return asked_in_file(workspace, named.queue_id)
        return Queue(_READERS.get(workspace, named)).open_subjects()

    return _asked_of_named(workspace, asked)


def typed_in_elsewhere(workspace: Path) -> bytes | None:
    """Return the free text of an external queue as a file, since a scan of the workspace's files can't find it."""
    named = _preferences(workspace)
    return None if named.queue is None else typed_in(_READERS.get(workspace, named))


def queue_mark(workspace: Path) -> tuple[object, int]:
    """Return a value that differs once the queue has changed, and the time of that change in nanoseconds, or 0."""
    named = _preferences(workspace)
    if named.queue is not None:
        return (named.queue, named.queue_id, _READERS.get(workspace, named).mark_now()), 0
    mark, changed = file_mark(workspace)
    return (named.queue_id, mark), changed


def queue_place(workspace: Path) -> tuple[str, str] | None:
    """Return the address and schema of an external queue, None if the queue is in the workspace."""
    return _preferences(workspace).queue


def _preferences(workspace: Path) -> Preferences:
    """Return the preferences of a workspace, which name its queue."""
    try:
        return _read_preferences(workspace, mark_of(workspace))
    except (FileNotFoundError, NotADirectoryError):
        return NO_PREFERENCES  # there is no workspace yet
    except OSError as error:
        raise SuppressionUnknown(
            f"{workspace} can't be read ({error.strerror}), and it names the queue that says who has asked to be "
            "erased, so nobody is served: let this user read it"
        ) from error


@lru_cache(maxsize=8)
def _read_preferences(workspace: Path, mark: tuple[int, int, int]) -> Preferences:
    return read_manifest(workspace).preferences


def _asked_of_named(workspace: Path, ask: Callable[[Preferences], T]) -> T:
    """Ask the queue that a workspace names; again if it was moved meanwhile."""
    while True:
        named = _preferences(workspace)
        try:
            return ask(named)
        except QueueLost:
            if _preferences(workspace) == named:
                raise


def _have_named(workspace: Path, session: Amended | None, opened: Database) -> None:
    """Name a queue in the manifest before anyone can use it.

    The queue gets its id first: an interruption in between leaves an unused queue, which the next command names. The
    other way round it would leave a queue that seems lost.
    """
    if not (workspace / MANIFEST).exists():
        return
    if session is not None:
        _name(session, opened.change(given_id))
    elif read_manifest(workspace).written_in == FORMAT:  # a workspace of 0.1 stays as it is until something changes
        _name_as_writer(workspace, opened.change(given_id))


def _name_as_writer(workspace: Path, queue_id: str) -> None:
    """Name a queue in the manifest, as soon as no other command is writing."""
    end = time.monotonic() + _WRITER_SECONDS
    while _preferences(workspace).queue_id != queue_id:
        try:
            with Workspace.writing(workspace) as session:
                _name(session, queue_id)
        except WorkspaceBusy:
            is_named = _preferences(workspace).queue_id is not None
            if is_named or time.monotonic() > end:
                raise
            time.sleep(_PAUSE_SECONDS)


def _name(session: Amended, queue_id: str) -> None:
    documents = session.documents()
    if documents.preferences.queue_id not in (None, queue_id):
        raise WorkspaceBusy("another process has begun another queue just now: try again")
    preferences = documents.preferences.model_copy(update={"queue_id": queue_id})
    session.amend(replace(documents, preferences=preferences))


def database_at(workspace: Path, address: str, schema: str, queue_id: str | None = None) -> "PostgresDatabase":
    """Return the queue of a workspace at an address, without connecting yet."""
    try:
        from erasable.requests.postgres import PostgresDatabase
    except ImportError as error:
        raise WrongUse(
            "the queue of this workspace is in Postgres, and psycopg is missing: run " + install_command("postgres")
        ) from error
    return PostgresDatabase(address, schema, workspace / KEYS, queue_id)


def _opened(workspace: Path, named: Preferences) -> Database:
    return (
        SqliteDatabase.open(workspace, named.queue_id) if named.queue is None else _opened_elsewhere(workspace, named)
    )


def _opened_elsewhere(workspace: Path, named: Preferences) -> "PostgresDatabase":
    opened = database_at(workspace, *(named.queue or ("", "")), named.queue_id)
    try:
        opened.migrate()
    except BaseException:
        opened.close()
        raise
    return opened


def remove_queue_file(workspace: Path) -> None:
    """Destroy the file of a queue that has moved elsewhere, since it names people."""
    left = [path for path in (workspace / name for name in QUEUE_FILES) if path.exists()]
    for path in left:
        overwrite_file(path, bytes(path.stat().st_size))
        remove_file(path)
    if left:
        flush_folder(workspace)


class _Readers:
    """External queues that this process reads; they stay open, since they are asked again and again."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[object, PostgresDatabase] = {}
        atexit.register(self.close)

    def get(self, workspace: Path, named: Preferences) -> "PostgresDatabase":
        """Return the queue of a workspace, opened in this process."""
        key = (os.getpid(), workspace.absolute(), named.queue, named.queue_id)
        with self._lock:
            found = self._open.pop(key, None) or _opened_elsewhere(workspace, named)
            self._open[key] = found
            if len(self._open) > _MOST_OPEN:
                self._open.pop(next(iter(self._open))).close()  # a running read keeps its connection until done
            return found

    def close(self) -> None:
        """Close all."""
        with self._lock:
            for opened in self._open.values():
                opened.close()
            self._open.clear()


_READERS = _Readers()
