"""Serving: recommendations from memory, rid of someone at once, while the erasure itself is still being carried out."""

import threading
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from erasable.models import Change
from erasable.operations.home import Home, Session
from erasable.operations.recommend import Served, UserRecommendations, best_items
from erasable.operations.work import QUIET_WORK, Work
from erasable.proof import read_pending
from erasable.store import Stamp
from erasable.training import MemoryStore, Scoring, State
from erasable.unlearning import Request


@dataclass(frozen=True)
class _Loaded:
    """One version of a recommender, in memory."""

    stamp: Stamp
    served: Served

    @staticmethod
    def of(session: Session) -> "_Loaded":
        state, checkpoints = session.state(), MemoryStore()
        knowledge = replace(state.knowledge, groups=tuple(state.knowledge.groups))
        for link in state.chain:
            checkpoints.put(session.checkpoints.get(link.fingerprint))
        scoring = Scoring(State(knowledge, state.chain), checkpoints)
        return _Loaded(session.stamp, Served(knowledge, scoring, frozenset()))

    def rid_of(self, users: Collection[str]) -> "_Loaded":
        """Return the same without what some users taught, as far as that can be told at once."""
        taken = self.served.knowledge.lessons_of(users)
        if not len(taken):
            return self
        scoring = self.served.scoring.rid_of(Change(taken, taken.of_users([])))
        return replace(self, served=replace(self.served, scoring=scoring))


class Serving:
    """Keeps what is current of a recommender in memory, and follows it when it changes; for any number of threads."""

    def __init__(self, home: Home, work: Work = QUIET_WORK) -> None:
        self._home = home
        self._work = work
        self._lock = threading.Lock()
        self._loaded: _Loaded | None = None
        self._withdrawn: frozenset[str] = frozenset()

    def recommend(
        self, users: Sequence[str] | None, k: int = 10, popular_fallback: bool = False
    ) -> list[UserRecommendations]:
        """Return the k best items for each of these users (None: for all), in their order."""
        return best_items(self._served(), users, k, popular_fallback, self._work)

    @contextmanager
    def withdrawing(self, requests: Sequence[Request]) -> Iterator[None]:
        """Serve without these people from now on, and without what they taught where a model can tell that at once.

        Inside the block they are forgotten for good; when it ends, what is current then is served as it is.
        """
        asked = frozenset(request.user for request in requests)
        self._withdrawn |= asked  # nobody is served while the rest is worked out
        with self._lock:
            self._loaded = self._current().rid_of(asked) if self._loaded else None
        try:
            yield
        finally:
            with self._lock:
                self._withdrawn -= asked
                self._loaded = None

    def _served(self) -> Served:
        with self._lock:
            loaded = self._current()
        with self._home.reading() as session:
            pending = read_pending(session.papers().pending).users
        return replace(loaded.served, withheld=pending | self._withdrawn)

    def _current(self) -> _Loaded:
        """Return what is in memory, loaded anew if another version has become current."""
        with self._home.reading() as session:
            if self._loaded is None or self._loaded.stamp != session.stamp:
                self._loaded = _Loaded.of(session).rid_of(self._withdrawn)
            return self._loaded
