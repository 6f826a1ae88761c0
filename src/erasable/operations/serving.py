"""Serving: recommendations from memory, rid of someone at once, while the erasure itself is still being carried out."""

import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace

from erasable.errors import Refused
from erasable.models import Change
from erasable.operations.home import Home, Session
from erasable.operations.recommend import Served, UserRecommendations, best_items
from erasable.operations.work import QUIET_WORK, Work
from erasable.proof import read_pending
from erasable.store import Stamp
from erasable.training import MemoryStore, Scoring, State
from erasable.unlearning import Request

NOBODY: frozenset[str] = frozenset()


@dataclass(frozen=True)
class _Loaded:
    """One version of a recommender, in memory, and whose lessons it is rid of already."""

    stamp: Stamp
    served: Served
    rid: frozenset[str] = NOBODY

    @staticmethod
    def of(session: Session) -> "_Loaded":
        """Load what is needed to score."""
        state, checkpoints = session.state(), MemoryStore()
        knowledge = replace(state.knowledge, groups=tuple(state.knowledge.groups))
        for link in state.scoring_links:
            checkpoints.put(session.checkpoints.get(link.fingerprint))
        loaded = _Loaded(session.stamp, Served(knowledge, Scoring(State(knowledge, state.chain), checkpoints), NOBODY))
        with suppress(Refused):
            loaded.rid_of(frozenset(next((group.users.texts()[:1] for group in knowledge.groups if len(group)), [])))
        return loaded  # whoever asks first need not wait for code to be compiled

    def rid_of(self, users: frozenset[str]) -> "_Loaded":
        """Return the same without what some users taught, as far as that can be told at once."""
        taken = self.served.knowledge.lessons_of(users - self.rid)
        if not len(taken):
            return replace(self, rid=self.rid | users)
        scoring = self.served.scoring.rid_of(Change(taken, taken.of_users([])))
        return _Loaded(self.stamp, replace(self.served, scoring=scoring), self.rid | users)


class Serving:
    """Keeps what is current of a recommender in memory, and follows it when it changes; for any number of threads."""

    def __init__(self, home: Home, work: Work = QUIET_WORK) -> None:
        self._home = home
        self._work = work
        self._lock = threading.Lock()
        self._loaded: _Loaded | None = None
        self._withdrawn: Counter[str] = Counter()

    def recommend(
        self, users: Sequence[str] | None, k: int = 10, popular_fallback: bool = False
    ) -> list[UserRecommendations]:
        """Return the k best items for each of these users (None: for all), in their order."""
        return best_items(self._served(), users, k, popular_fallback, self._work)

    @contextmanager
    def withdrawing(self, requests: Sequence[Request]) -> Iterator[None]:
        """Serve without these people from now on, and without what they taught where a model can tell that at once.

        Inside the block they are forgotten for good; when it ends, what is current then is served as it is. What they
        taught is worked out when someone is next served: nothing of that can keep an erasure from being carried out.
        """
        asked = Counter({request.user: 1 for request in requests})
        with self._lock:
            self._withdrawn += asked
        try:
            yield
        finally:
            with self._lock:
                self._withdrawn -= asked
                self._loaded = None

    def _served(self) -> Served:
        """Return what is current, loaded anew if another version is, rid of everyone who is being erased now."""
        with self._lock, self._home.reading() as session:
            # All in one session: whoever is neither withdrawn nor pending here is not being erased in this version.
            withheld = frozenset(self._withdrawn) | read_pending(session.papers().pending).users
            loaded = self._loaded
            if loaded is None or loaded.stamp != session.stamp or not loaded.rid <= withheld:
                loaded = _Loaded.of(session)  # another version, or someone has taken a request back
            try:
                self._loaded = loaded.rid_of(withheld)
            except Refused:  # too little memory: what they taught is served until they are forgotten
                self._loaded = replace(loaded, rid=loaded.rid | withheld)
            return replace(self._loaded.served, withheld=withheld)
