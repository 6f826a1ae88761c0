"""Where a recommender lives: a workspace on disk, or memory; operations treat both alike."""

import secrets
import threading
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

from erasable.errors import WorkspaceBusy, WrongUse
from erasable.store import Workspace
from erasable.training import CheckpointStore, MemoryStore, State, numeric_environment

_NONE: Mapping[str, bytes] = MappingProxyType({})


class Session(Protocol):
    """A recommender while one operation uses it."""

    @property
    def checkpoints(self) -> CheckpointStore:
        """The checkpoints of the chain."""

    @property
    def environment(self) -> dict[str, str]:
        """The numeric environment in which it learned."""

    @property
    def version(self) -> int:
        """How often it has changed, learning included."""

    @property
    def erasures(self) -> int:
        """How many people's requests were carried out."""

    @property
    def leftovers(self) -> tuple[str, ...]:
        """Files of an earlier version that could not be removed; normally none."""

    @property
    def next_salt(self) -> str:
        """The salt of the version that the next commit makes."""

    def state(self) -> State:
        """Return what it knows."""

    def issued(self) -> Mapping[str, bytes]:
        """Return the certificates by request id."""

    def commit(self, state: State, certificates: Mapping[str, bytes] = _NONE) -> None:
        """Make a state current and destroy what it replaces."""


class Home(Protocol):
    """Gives sessions: any number of readers, one writer."""

    def reading(self) -> AbstractContextManager[Session]:
        """Open for reading."""

    def writing(self) -> AbstractContextManager[Session]:
        """Open for writing."""

    def certificate_place(self, name: str) -> str:
        """Say where a certificate is."""


class DiskHome:
    """A recommender in a workspace folder."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def reading(self) -> AbstractContextManager[Session]:
        """Open the workspace for reading."""
        return Workspace.reading(self.path)

    def writing(self) -> AbstractContextManager[Session]:
        """Open the workspace for writing."""
        return Workspace.writing(self.path)

    def certificate_place(self, name: str) -> str:
        """Return the path of a certificate."""
        return str(self.path / "certificates" / f"{name}.json")


class MemorySession:
    """A recommender in memory as it is at one moment; committing hands the next moment to its home."""

    leftovers: tuple[str, ...] = ()

    def __init__(self, before: "MemorySession | None" = None) -> None:
        self.checkpoints: MemoryStore = before.checkpoints.copy() if before else MemoryStore()
        self.environment: dict[str, str] = before.environment if before else numeric_environment()
        self.version: int = before.version if before else 0
        self.next_salt = secrets.token_hex(32)
        self._certificates: dict[str, bytes] = dict(before._certificates) if before else {}
        self._state: State | None = before._state if before else None

    @property
    def erasures(self) -> int:
        """How many people's requests were carried out."""
        return len(self._certificates)

    def state(self) -> State:
        """Return what it knows."""
        if self._state is None:
            raise WrongUse("nothing was learned yet: call fit first")
        return self._state

    def issued(self) -> Mapping[str, bytes]:
        """Return the certificates by request id."""
        return self._certificates

    def commit(self, state: State, certificates: Mapping[str, bytes] = _NONE) -> None:
        """Make a state current and destroy what it replaces."""
        self._state = state
        self._certificates |= certificates
        self.version += 1
        self.environment = numeric_environment()
        self.checkpoints.keep_only(link.fingerprint for link in state.chain)


class MemoryHome:
    """A recommender in memory. Readers keep what they began with; a writer's outcome replaces it as a whole."""

    def __init__(self) -> None:
        self._current = MemorySession()
        self._writer = threading.Lock()

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
        finally:
            self._writer.release()

    def certificate_place(self, name: str) -> str:
        """Return the name of a certificate, which is in memory."""
        return name
