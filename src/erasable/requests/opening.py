"""The one way to a workspace's queue, for command, library and service: the one that the workspace names, no other."""

import atexit
import os
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from erasable.errors import QueueLost, SuppressionUnknown, WorkspaceBusy, WorkspaceError, WrongUse
from erasable.requests.asked import Asked
from erasable.requests.database import Database
from erasable.requests.identity import given_id
from erasable.requests.moving import typed_in
from erasable.requests.queue import Queue
from erasable.requests.request import Request
from erasable.requests.sqlite import SqliteDatabase
from erasable.requests.sqlite_file import asked_in_file, file_mark, people_in_file
from erasable.store import FORMAT, NO_PREFERENCES, Papers, Preferences, Workspace
from erasable.store.files import flush_folder, overwrite_file, remove_file
from erasable.store.layout import KEYS, LEDGER, LEDGER_FILES, MANIFEST
from erasable.store.opening import mark_of, read_manifest

if TYPE_CHECKING:
    from erasable.requests.postgres import PostgresDatabase

T = TypeVar("T")
_MOST_OPEN = 4
_WRITER_SECONDS = 10
_PAUSE_SECONDS = 0.05

__all__ = [
    "adopt_queue",
    "asked_in",
    "database_at",
    "is_there",
    "open_database",
    "queue_mark",
    "queue_place",
    "remove_queue_file",
    "suppressed_in",
    "typed_in_elsewhere",
]


class Amended(Protocol):
    """A workspace that is being written."""

    def papers(self) -> Papers:
        """Return the papers that are kept."""

    def amend(self, papers: Papers) -> None:
        """Put other papers beside the same state."""


def open_database(workspace: Path, session: Amended | None = None) -> Database:
    """Open the queue that a workspace names; one in a file of the workspace is made on first use.

    Whoever is writing the workspace hands over the session.
    """
    named = _preferences(workspace)
    opened = _opened(workspace, named)
    try:
        if named.queue is not None:
            remove_queue_file(workspace)  # of a move that was stopped when all but this was done
        if named.queue_id is None:
            _have_named(workspace, session, opened)
    except BaseException:
        opened.close()
        raise
    return opened


def adopt_queue(workspace: Workspace) -> None:
    """Have what is written next name the queue that lies there, of 0.1 or of whoever was stopped before naming it."""
    named = workspace.manifest.preferences
    if named.queue_id is None and is_there(workspace.path):
        with suppress(WorkspaceError), closing(_opened(workspace.path, named)) as opened:  # else the next time
            workspace.prefer(named.model_copy(update={"queue_id": opened.change(given_id)}))


def suppressed_in(workspace: Path) -> Asked:
    """Return who has asked to be erased, and for what, by the queue of a workspace; refused if that can't be read."""

    def people(named: Preferences) -> Asked:
        if named.queue is None:
            return people_in_file(workspace, named.queue_id)
        database = _READERS.get(workspace, named)
        return Asked.of(database.read(database.subjects.all))

    return _asked_of_named(workspace, people)


def is_there(workspace: Path) -> bool:
    """Whether a workspace has a queue yet; it has one that is lost, too."""
    named = _preferences(workspace)
    return bool(named.queue or named.queue_id) or os.path.lexists(workspace / LEDGER)


def asked_in(workspace: Path) -> list[Request]:
    """Return the open requests whose data may still be there, with who asked, oldest first; nothing is written."""

    def asked(named: Preferences) -> list[Request]:
        if named.queue is None:
            return asked_in_file(workspace, named.queue_id)
        return Queue(_READERS.get(workspace, named)).open_subjects()

    return _asked_of_named(workspace, asked)


def typed_in_elsewhere(workspace: Path) -> bytes | None:
    """Return a file with what was typed in to a queue outside the workspace, where no search of its files finds it."""
    named = _preferences(workspace)
    return None if named.queue is None else typed_in(_READERS.get(workspace, named))


def queue_mark(workspace: Path) -> tuple[object, int]:
    """Return what is another once the queue has changed, and when its files last did, in nanoseconds; 0: no matter."""
    named = _preferences(workspace)
    if named.queue is not None:
        return (named.queue, named.queue_id, _READERS.get(workspace, named).mark_now()), 0
    mark, changed = file_mark(workspace)
    return (named.queue_id, mark), changed


def queue_place(workspace: Path) -> tuple[str, str] | None:
    """Return the address and the schema of the queue that a workspace names, None if it lies in the workspace."""
    return _preferences(workspace).queue


def _preferences(workspace: Path) -> Preferences:
    """Return what a workspace says of its queue."""
    try:
        return _read_preferences(workspace, mark_of(workspace))
    except (FileNotFoundError, NotADirectoryError):
        return NO_PREFERENCES  # nothing was learned there yet
    except OSError as error:
        raise SuppressionUnknown(
            f"{workspace} can't be read ({error.strerror}), and it names the queue that says who has asked to be "
            "erased, so nobody is served: let this user read it"
        ) from error


@lru_cache(maxsize=8)
def _read_preferences(workspace: Path, mark: tuple[int, int, int]) -> Preferences:
    return read_manifest(workspace).preferences


def _asked_of_named(workspace: Path, ask: Callable[[Preferences], T]) -> T:
    """Ask the queue that a workspace names; again if it named another one meanwhile, as after a move."""
    while True:
        named = _preferences(workspace)
        try:
            return ask(named)
        except QueueLost:
            if _preferences(workspace) == named:
                raise


def _have_named(workspace: Path, session: Amended | None, opened: Database) -> None:
    """Have the manifest name a queue that it does not name yet, before anyone can ask anything of it.

    The id is in the queue first: whoever is stopped in between leaves a queue that nobody has asked anything of, and
    the next one names it. The other way round it would leave a queue that seems lost.
    """
    if not (workspace / MANIFEST).exists():
        return
    if session is not None:
        _name(session, opened.change(given_id))
    elif read_manifest(workspace).written_in == FORMAT:  # what 0.1 wrote stays as it is until something is changed
        _name_as_writer(workspace, opened.change(given_id))


def _name_as_writer(workspace: Path, queue_id: str) -> None:
    """Name a queue once no other command writes."""
    end = time.monotonic() + _WRITER_SECONDS
    while _preferences(workspace).queue_id != queue_id:
        try:
            with Workspace.writing(workspace) as session:
                _name(session, queue_id)
        except WorkspaceBusy:
            if time.monotonic() > end:
                raise
            time.sleep(_PAUSE_SECONDS)


def _name(session: Amended, queue_id: str) -> None:
    papers = session.papers()
    if papers.preferences.queue_id not in (None, queue_id):
        raise WorkspaceBusy("another process has begun another queue just now: try again")
    preferences = papers.preferences.model_copy(update={"queue_id": queue_id})
    session.amend(replace(papers, preferences=preferences))


def database_at(workspace: Path, address: str, schema: str, queue_id: str | None = None) -> "PostgresDatabase":
    """Return the queue of a workspace at an address, known by its id; nothing is asked of it yet."""
    try:
        from erasable.requests.postgres import PostgresDatabase
    except ImportError as error:
        raise WrongUse(
            "the queue of this workspace is in Postgres, and psycopg is missing: run pip install 'erasable[postgres]'"
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
    """Destroy the file of a queue that has moved elsewhere: people stand in it."""
    left = [path for path in (workspace / name for name in LEDGER_FILES) if path.exists()]
    for path in left:
        overwrite_file(path, bytes(path.stat().st_size))
        remove_file(path)
    if left:
        flush_folder(workspace)


class _Readers:
    """Queues elsewhere that this process has asked for people; they stay open, since they are asked again and again."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[object, PostgresDatabase] = {}
        atexit.register(self.close)

    def get(self, workspace: Path, named: Preferences) -> "PostgresDatabase":
        """Return the queue of a workspace, opened by this process."""
        key = (os.getpid(), workspace.absolute(), named.queue, named.queue_id)
        with self._lock:
            found = self._open.pop(key, None) or _opened_elsewhere(workspace, named)
            self._open[key] = found
            if len(self._open) > _MOST_OPEN:
                self._open.pop(next(iter(self._open))).close()  # whoever uses it now ends with a connection of its own
            return found

    def close(self) -> None:
        """Close all."""
        with self._lock:
            for opened in self._open.values():
                opened.close()
            self._open.clear()


_READERS = _Readers()
