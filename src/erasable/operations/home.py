"""Where a recommender lives: a workspace on disk, or memory; operations treat both alike."""

import shlex
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from erasable.errors import Said, WorkspaceBusy, WrongUse
from erasable.models import Model
from erasable.proof.suppression import SuppressionList
from erasable.requests import Request
from erasable.requests.lifecycle import AT_ONCE, BEGUN
from erasable.requests.opening import adopt_queue, asked_in, is_there, open_database
from erasable.requests.queue import Queue
from erasable.requests.sqlite import SqliteDatabase
from erasable.store import FORMAT, NO_PAPERS, Papers, Stamp, Workspace
from erasable.training import CheckpointStore, MemoryStore, State


class Session(Protocol):
    """A recommender while one operation uses it."""

    @property
    def path(self) -> Path | None:
        """The folder that it lives in, if it does."""

    @property
    def checkpoints(self) -> CheckpointStore:
        """The checkpoints of the chain."""

    @property
    def format(self) -> int:
        """The number of the format that it lies in."""

    @property
    def erasures(self) -> int:
        """How many people's requests were carried out."""

    @property
    def leftovers(self) -> tuple[str, ...]:
        """Files of an earlier version that could not be removed; normally none."""

    @property
    def stamp(self) -> Stamp:
        """The number of the current version, 1 after learning, and its salt."""

    @property
    def newer(self) -> bool:
        """Whether a newer version has written something there that this one does not know."""

    def state(self) -> State:
        """Return what it knows."""

    def issued(self) -> Mapping[str, bytes]:
        """Return the certificates by file name."""

    def papers(self) -> Papers:
        """Return the papers that are kept, the certificates apart."""

    @property
    def size(self) -> int:
        """How many bytes its files take."""

    @property
    def pending_files(self) -> tuple[str, ...]:
        """The file of the requests that are being carried out, if there are any."""

    @property
    def sealed_files(self) -> frozenset[str]:
        """The files of finished papers, which were searched when they were sealed."""

    def refuse_if_full(self, needed: int) -> None:
        """Refuse what would not fit on the disk, before any of it is written."""

    def damaged(self) -> list[str]:
        """Return every file that is missing, or is not what it must be."""

    def unchecked_audit(self) -> bytes:
        """Return the audit chain as it lies there, to find where it was changed."""

    def commit(self, state: State, papers: Papers = NO_PAPERS, stamp: Stamp | None = None) -> None:
        """Make a state current and destroy what it replaces."""

    def amend(self, papers: Papers) -> None:
        """Put other papers beside the same state."""


class Home(Protocol):
    """Gives sessions: any number of readers, one writer."""

    @property
    def path(self) -> Path | None:
        """The folder that it is in, if it is in one."""

    def reading(self) -> AbstractContextManager[Session]:
        """Open for reading."""

    def writing(self) -> AbstractContextManager[Session]:
        """Open for writing."""

    def mark(self) -> object:
        """Return what is another after anything has become current; taken before reading, it misses nothing."""

    def certificate_place(self, name: str) -> str:
        """Say where a certificate is."""

    def fenced(self, fence: Callable[[], None]) -> "Home":
        """Return the same, where a fence is asked before each change."""

    def queue(self, session: Session | None = None) -> AbstractContextManager[Queue]:
        """Open the queue of requests; it is made on first use. Whoever is writing hands over the session."""

    @property
    def has_queue(self) -> bool:
        """Whether there is a queue yet that another process may use."""

    def has_begun(self, session: Session) -> bool:
        """Whether the queue has requests that were begun and have not ended; to be asked by whoever is writing."""

    def asked(self) -> list[Request]:
        """Return the open requests whose data may still be there, with who asked; without a queue there are none."""


class DiskHome:
    """A recommender in a workspace folder; a fence is asked before each change, and stops whoever may not write.

    A model that is not registered is handed over.
    """

    def __init__(self, path: Path, fence: Callable[[], None] | None = None, model: type[Model] | None = None) -> None:
        self.path = path
        self._fence = fence
        self._model = model

    def reading(self) -> AbstractContextManager[Session]:
        """Open the workspace for reading."""
        return Workspace.reading(self.path, model=self._model)

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """Open the workspace for writing."""
        with Workspace.writing(self.path, self._fence, self._model) as workspace:
            adopt_queue(workspace)
            yield workspace

    def fenced(self, fence: Callable[[], None]) -> "DiskHome":
        """Return the same workspace, where a fence is asked before each change."""
        return DiskHome(self.path, fence, self._model)

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
        """Whether there is a queue yet."""
        return is_there(self.path)

    def has_begun(self, session: Session) -> bool:
        """Whether the queue has requests that were begun and have not ended."""
        if not self.has_queue:
            return False
        with self.queue(session) as queue:
            return bool(queue.history.in_states(BEGUN))

    def asked(self) -> list[Request]:
        """Return the open requests of the queue; nothing is changed for it."""
        return asked_in(self.path)

    def mark(self) -> object:
        """Return the mark of the manifest."""
        return Workspace.mark(self.path)

    def certificate_place(self, name: str) -> str:
        """Return the path of a certificate."""
        return str(self.path / "certificates" / name)


class MemorySession:
    """A recommender in memory as it is at one moment; committing hands the next moment to its home."""

    path: Path | None = None
    newer: bool = False
    leftovers: tuple[str, ...] = ()
    pending_files: tuple[str, ...] = ()
    sealed_files: frozenset[str] = frozenset()
    size: int = 0
    format: int = FORMAT

    def __init__(self, before: "MemorySession | None" = None) -> None:
        self.checkpoints: MemoryStore = before.checkpoints.copy() if before else MemoryStore()
        self.stamp: Stamp = before.stamp if before else Stamp(0, "")
        self._papers: Papers = before._papers if before else NO_PAPERS
        self._certificates: dict[str, bytes] = dict(before._certificates) if before else {}
        self._state: State | None = before._state if before else None
        self.do_not_learn: SuppressionList | None = before.do_not_learn if before else None
        """Who must not be learned again; none before there was need for it."""

    @property
    def erasures(self) -> int:
        """How many people's requests were carried out."""
        return sum(name.endswith(".json") for name in self._certificates)

    def state(self) -> State:
        """Return what it knows."""
        if self._state is None:
            raise WrongUse("nothing was learned yet: call fit first")
        return self._state

    def issued(self) -> Mapping[str, bytes]:
        """Return the certificates by file name."""
        return self._certificates

    def papers(self) -> Papers:
        """Return the papers that are kept, the certificates apart."""
        return self._papers

    def refuse_if_full(self, needed: int) -> None:
        """Refuse nothing: there is no disk."""

    def damaged(self) -> list[str]:
        """Return no file: there are none."""
        return []

    def unchecked_audit(self) -> bytes:
        """Return the audit chain."""
        return self._papers.audit

    def commit(self, state: State, papers: Papers = NO_PAPERS, stamp: Stamp | None = None) -> None:
        """Make a state current and destroy what it replaces."""
        self._state = state
        self.stamp = stamp or Stamp.after(self.stamp.version)
        self.checkpoints.keep_only(link.fingerprint for link in state.chain)
        self.amend(papers)

    def amend(self, papers: Papers) -> None:
        """Put other papers beside the same state."""
        self._certificates |= papers.certificates
        self._papers = replace(papers, certificates={})


class MemoryHome:
    """A recommender in memory. Readers keep what they began with; a writer's outcome replaces it as a whole."""

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

    def fenced(self, fence: Callable[[], None]) -> "MemoryHome":
        """Return itself: nobody else writes here."""
        return self

    @contextmanager
    def queue(self, session: Session | None = None) -> Iterator[Queue]:
        """Give the queue, which is gone with this process."""
        if self._queue is None:
            self._queue = Queue(SqliteDatabase.in_memory(), AT_ONCE)
        yield self._queue

    @property
    def has_queue(self) -> bool:
        """Whether another process may use its queue: none can."""
        return False

    def has_begun(self, session: Session) -> bool:
        """Whether something was begun and has not ended: in memory nothing is left half done."""
        return False

    def asked(self) -> list[Request]:
        """Return the open requests of the queue."""
        return [] if self._queue is None else self._queue.open_subjects()

    def mark(self) -> object:
        """Return how many writers have replaced what was here."""
        return self._outcomes

    def certificate_place(self, name: str) -> str:
        """Return the name of a certificate, which is in memory."""
        return name


def upgrading(session: Session) -> Said:
    """Return what brings a recommender to this numeric environment, as it is typed."""
    return Said("upgrade()", f"erasable upgrade {shlex.quote(str(session.path))}")


def resuming(path: Path | None) -> Said:
    """Return what finishes an erasure that was interrupted, as it is typed."""
    return Said("forget([])", f"erasable forget {shlex.quote(str(path))} --resume")


def withdrawing(path: Path | None) -> Said:
    """Return what takes back what was submitted and not carried out, as it is typed."""
    return Said("withdraw_submitted()", f"erasable forget {shlex.quote(str(path))} --withdraw")
