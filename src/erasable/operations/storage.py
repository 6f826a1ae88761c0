"""Where a recommender is kept, on disk or in memory; operations treat both alike. And who there is suppressed."""

import shlex
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from erasable import proof
from erasable.chain.buckets import Bucket, StoredBucket
from erasable.chain.checkpoints import (
    CheckpointStore,
    MemoryStore,
)
from erasable.chain.dataset import State
from erasable.data.item_attributes import ITEM
from erasable.errors import Said, WorkspaceBusy, WorkspaceError, WrongUse, option
from erasable.models.base import Model
from erasable.operations.people import not_served
from erasable.progress import Reporter
from erasable.proof.do_not_learn import DoNotLearnList
from erasable.requests.opening import adopt_queue, asked_in, is_there, open_database, queue_mark, suppressed_in
from erasable.requests.queue import Queue
from erasable.requests.request import AT_ONCE, BEGUN, NOBODY_ASKED, Asked, Request
from erasable.requests.sqlite import SqliteDatabase
from erasable.workspace.dealing import Dealing, dealing
from erasable.workspace.declared_items import decode_declared
from erasable.workspace.manifest import FORMAT, NO_DOCUMENTS, Documents, Stamp
from erasable.workspace.scratch import Scratch
from erasable.workspace.workspace import Workspace

_WRITTEN = "is being changed by another command; Ctrl-C ends the waiting"


class Session(Protocol):
    """A recommender during one operation."""

    @property
    def path(self) -> Path | None:
        """Its folder; None in memory."""

    @property
    def checkpoints(self) -> CheckpointStore:
        """The checkpoints of the chain."""

    @property
    def format(self) -> int:
        """The format of its files."""

    @property
    def erasures(self) -> int:
        """How many requests were carried out."""

    @property
    def leftovers(self) -> tuple[str, ...]:
        """Files of an earlier version that could not be removed; normally none."""

    @property
    def stamp(self) -> Stamp:
        """The number of the current version, 1 after learning, and its salt."""

    @property
    def newer(self) -> bool:
        """Whether a newer release wrote something that this one does not know."""

    def state(self) -> State:
        """Return the current state: dataset and chain."""

    def issued(self) -> Mapping[str, bytes]:
        """Return the certificates by file name."""

    def documents(self) -> Documents:
        """Return the documents, without the certificates."""

    def declared_items(self) -> pa.Table | None:
        """Return which items are hidden, and their attributes; None if nothing was declared."""

    @property
    def size(self) -> int:
        """How many bytes its files take."""

    @property
    def current_files(self) -> tuple[str, ...]:
        """The files of the current version."""

    @property
    def pending_files(self) -> tuple[str, ...]:
        """The search file, if there is one."""

    @property
    def sealed_files(self) -> frozenset[str]:
        """The files of finished documents, which were searched when they were sealed."""

    def refuse_if_full(self, needed: int) -> None:
        """Refuse if so many bytes do not fit on the disk."""

    def dealing(self, seed: int, most: int | None = None) -> AbstractContextManager[Dealing]:
        """Deal rows out to shares of the slots; nothing of it is left afterwards."""

    def keep(self, bucket: Bucket, number: int, seed: int, groups: int) -> Bucket | StoredBucket:
        """Keep a bucket for the next commit; on disk it is written now."""

    def scratch(self) -> AbstractContextManager[Scratch]:
        """Make a folder for the files of tasks that run elsewhere; nothing of it is left afterwards."""

    def damaged(self) -> list[str]:
        """Return every file that is missing or damaged."""

    def unchecked_log(self) -> bytes:
        """Return the log unchecked, to find where it was changed."""

    def commit(self, state: State, documents: Documents = NO_DOCUMENTS, stamp: Stamp | None = None) -> None:
        """Make a state current and destroy what it replaces."""

    def amend(self, documents: Documents) -> None:
        """Replace the documents and keep the state."""


def declared_ids(session: Session) -> list[str]:
    """Return the ids of declared items."""
    table = session.declared_items()
    return [] if table is None else table[ITEM].to_pylist()


class Storage(Protocol):
    """Opens sessions: any number of readers, one writer."""

    @property
    def path(self) -> Path | None:
        """Its folder; None in memory."""

    def reading(self) -> AbstractContextManager[Session]:
        """Open for reading."""

    def writing(self) -> AbstractContextManager[Session]:
        """Open for writing."""

    def mark(self) -> object:
        """Return a value that changes whenever something becomes current; take it before reading to miss nothing."""

    def certificate_place(self, name: str) -> str:
        """Say where a certificate is."""

    def fenced(self, fence: Callable[[], None]) -> "Storage":
        """Return the same storage with a fence that is called before each change."""

    def queue(self, session: Session | None = None) -> AbstractContextManager[Queue]:
        """Open the queue of requests, which is made on first use; a writer passes its session."""

    @property
    def has_queue(self) -> bool:
        """Whether there is a queue that another process may use."""

    def has_begun(self, session: Session) -> bool:
        """Whether the queue has requests that were begun and have not ended; for writers."""

    def asked(self) -> list[Request]:
        """Return the open requests whose data may still be there, with their subjects; none if there is no queue."""


class DiskStorage:
    """A recommender in a workspace folder.

    The fence is called before each change and stops a process that may not write. `model` is needed for a model that no
    package registers. With a reporter for it, a writer waits for another one to end, and says so; else it is refused.
    """

    def __init__(
        self,
        path: Path,
        fence: Callable[[], None] | None = None,
        model: type[Model] | None = None,
        waiting: Reporter | None = None,
    ) -> None:
        self.path = path
        self._fence = fence
        self._model = model
        self._waiting = waiting

    def reading(self) -> AbstractContextManager[Session]:
        """Open the workspace for reading."""
        return Workspace.reading(self.path, model=self._model)

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """Open the workspace for writing."""
        waiting = None if self._waiting is None else partial(self._waiting.note, f"waiting: {self.path} {_WRITTEN}")
        with Workspace.writing(self.path, self._fence, self._model, waiting) as workspace:
            adopt_queue(workspace)
            yield workspace

    def fenced(self, fence: Callable[[], None]) -> "DiskStorage":
        """Return the same workspace with a fence."""
        return DiskStorage(self.path, fence, self._model, self._waiting)

    @contextmanager
    def queue(self, session: Session | None = None) -> Iterator[Queue]:
        """Open the queue of the workspace."""
        database = open_database(self.path, session)
        try:
            yield Queue(database, AT_ONCE)
        finally:
            database.close()

    @property
    def has_queue(self) -> bool:
        """Whether there is a queue."""
        return is_there(self.path)

    def has_begun(self, session: Session) -> bool:
        """Whether the queue has requests that were begun and have not ended."""
        if not self.has_queue:
            return False
        with self.queue(session) as queue:
            return bool(queue.history.in_states(BEGUN))

    def asked(self) -> list[Request]:
        """Return the open requests of the queue, without changing anything."""
        return asked_in(self.path)

    def mark(self) -> object:
        """Return the mark of the manifest."""
        return Workspace.mark(self.path)

    def certificate_place(self, name: str) -> str:
        """Return the path of a certificate."""
        return str(self.path / "certificates" / name)


class MemorySession:
    """A recommender in memory at one moment; the storage replaces it when a writer ends."""

    path: Path | None = None
    newer: bool = False
    leftovers: tuple[str, ...] = ()
    current_files: tuple[str, ...] = ()
    pending_files: tuple[str, ...] = ()
    sealed_files: frozenset[str] = frozenset()
    size: int = 0
    format: int = FORMAT

    def __init__(self, before: "MemorySession | None" = None) -> None:
        self.checkpoints: MemoryStore = before.checkpoints.copy() if before else MemoryStore()
        self.stamp: Stamp = before.stamp if before else Stamp(0, "")
        self._documents: Documents = before._documents if before else NO_DOCUMENTS
        self._certificates: dict[str, bytes] = dict(before._certificates) if before else {}
        self._declared: bytes = before._declared if before else b""
        self._state: State | None = before._state if before else None
        self.do_not_learn: DoNotLearnList | None = before.do_not_learn if before else None
        """Who must not be learned again; None until the list is first needed."""

    @property
    def erasures(self) -> int:
        """How many requests were carried out."""
        return sum(name.endswith(".json") for name in self._certificates)

    def state(self) -> State:
        """Return the current state."""
        if self._state is None:
            raise WrongUse("nothing was learned yet: call fit first")
        return self._state

    def issued(self) -> Mapping[str, bytes]:
        """Return the certificates by file name."""
        return self._certificates

    def documents(self) -> Documents:
        """Return the documents, without the certificates."""
        return self._documents

    def declared_items(self) -> pa.Table | None:
        """Return which items are hidden, and their attributes; None if nothing was declared."""
        return decode_declared(self._declared) if self._declared else None

    def refuse_if_full(self, needed: int) -> None:
        """Refuse nothing: there is no disk."""

    def dealing(self, seed: int, most: int | None = None) -> AbstractContextManager[Dealing]:
        """Deal rows out to shares of the slots."""
        return dealing(seed, None, most)

    def keep(self, bucket: Bucket, number: int, seed: int, groups: int) -> Bucket:
        """Return the bucket, which stays in memory."""
        return bucket

    def scratch(self) -> AbstractContextManager[Scratch]:
        """Refuse: in memory there is nothing that another machine could read."""
        raise WrongUse(option("executor", "ray"), " needs a workspace on disk: save this, and open it from there")

    def damaged(self) -> list[str]:
        """Return no file: there are none."""
        return []

    def unchecked_log(self) -> bytes:
        """Return the log."""
        return self._documents.log

    def commit(self, state: State, documents: Documents = NO_DOCUMENTS, stamp: Stamp | None = None) -> None:
        """Make a state current and destroy what it replaces."""
        self._state = state
        self.stamp = stamp or Stamp.after(self.stamp.version)
        self.checkpoints.keep_only(link.fingerprint for link in state.chain)
        self.amend(documents)

    def amend(self, documents: Documents) -> None:
        """Replace the documents and keep the state."""
        self._certificates |= documents.certificates
        if documents.declared_items is not None:
            self._declared = documents.declared_items
        self._documents = replace(documents, certificates={}, declared_items=None)


class MemoryStorage:
    """A recommender in memory. Readers keep the version they began with; a writer replaces it as a whole."""

    path: Path | None = None

    def __init__(self) -> None:
        self._current = MemorySession()
        self._outcomes = 0
        self._writer = threading.Lock()
        self._queue: Queue | None = None

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """Open for reading."""
        yield self._current

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """Open for writing; a second writer is refused."""
        if not self._writer.acquire(blocking=False):
            raise WorkspaceBusy("another thread is changing this recommender: wait for it to end")
        try:
            session = MemorySession(self._current)
            yield session
            self._current = session
            self._outcomes += 1
        finally:
            self._writer.release()

    def fenced(self, fence: Callable[[], None]) -> "MemoryStorage":
        """Return itself: nobody else writes here."""
        return self

    @contextmanager
    def queue(self, session: Session | None = None) -> Iterator[Queue]:
        """Give the queue, which ends with this process."""
        if self._queue is None:
            self._queue = Queue(SqliteDatabase.in_memory(), AT_ONCE)
        yield self._queue

    @property
    def has_queue(self) -> bool:
        """Whether another process may use the queue: none can."""
        return False

    def has_begun(self, session: Session) -> bool:
        """Whether requests were begun and have not ended: in memory nothing is left half done."""
        return False

    def asked(self) -> list[Request]:
        """Return the open requests of the queue."""
        return [] if self._queue is None else self._queue.open_subjects()

    def mark(self) -> object:
        """Return how many writers have ended."""
        return self._outcomes

    def certificate_place(self, name: str) -> str:
        """Return the name of a certificate, which is in memory."""
        return name


def upgrading(session: Session) -> Said:
    """Return the call or command that brings a recommender to this numeric environment."""
    return Said("upgrade()", f"erasable upgrade {shlex.quote(str(session.path))}")


def resuming(path: Path | None) -> Said:
    """Return the call or command that finishes an interrupted erasure."""
    return Said("forget([])", f"erasable forget {shlex.quote(str(path))} --resume")


def withdrawing(path: Path | None) -> Said:
    """Return the call or command that withdraws what was submitted and not carried out."""
    return Said("withdraw_submitted()", f"erasable forget {shlex.quote(str(path))} --withdraw")


_SETTLED_NANOSECONDS = 1_000_000_000  # two changes within one tick of the file clock look like one


def suppressed_people(storage: Storage, session: Session) -> frozenset[str]:
    """Return everyone who is not served."""
    return not_served(session.state().dataset, asked_people(storage, session))


def asked_people(storage: Storage, session: Session) -> Asked:
    """Return everyone with an open request; an error if that can't be read, since then nobody may be served."""
    return pending_people(session) | (suppressed_in(session.path) if session.path else Asked.of(storage.asked()))


def queue_fault(storage: Storage) -> str | None:
    """Return why the queue can't be read, if it can't."""
    try:
        if storage.path is not None:
            suppressed_in(storage.path)
    except WorkspaceError as error:
        return error.said
    return None


def pending_people(session: Session) -> Asked:
    """Return whose requests the workspace itself holds; the others are in the queue.

    People who are erased and not certified are served like those who wait: this version has none of the items they
    named. People who asked an earlier release were told that they are not served at all.
    """
    content = session.documents().pending
    if session.pending_files and not content:
        raise WorkspaceError(
            f"{session.pending_files[0]} may not be read by this user, and it says who has asked to be erased: run "
            "this as the owner of the workspace"
        )
    if not content:  # as mostly: then nothing has to be loaded to understand it
        return NOBODY_ASKED
    search = proof.read_search(content)
    return Asked.of(one.request for one in search.people) | Asked(frozenset(one.user for one in search.accepted))


def places_found(session: Session) -> dict[str, tuple[str, ...]]:
    """Return where something is left of people who can't be certified, by request; it names nobody."""
    return proof.read_search(session.documents().pending).places_shown


class AskingPeople:
    """The people with an open request in the queue; read again whenever the queue may have changed."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._folder = storage.path
        self._mark: object = None
        self.last_read = NOBODY_ASKED

    def now(self) -> Asked:
        """Return who they are now."""
        if self._folder is None:
            self.last_read = Asked.of(self._storage.asked())
            return self.last_read
        # In this order: what is written after the mark is read next time at the latest.
        mark, changed = queue_mark(self._folder)
        if mark != self._mark or time.time_ns() - changed < _SETTLED_NANOSECONDS:
            self.last_read = suppressed_in(self._folder)
            self._mark = mark
        return self.last_read
