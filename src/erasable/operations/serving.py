"""Serving: recommendations from what is current at each call, without those whose erasure is being carried out."""

import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from erasable.operations.home import Home
from erasable.operations.live import Live
from erasable.operations.recommend import UserRecommendations, best_items
from erasable.operations.work import QUIET_WORK, Work
from erasable.unlearning import Request


class Serving:
    """Loads a recommender when someone first asks, and follows it before each answer; for any number of threads."""

    def __init__(self, home: Home, work: Work = QUIET_WORK) -> None:
        self._home = home
        self._work = work
        self._lock = threading.Lock()
        self._live: Live | None = None
        self._withdrawn: Counter[str] = Counter()

    def recommend(
        self, users: Sequence[str] | None, k: int = 10, popular_fallback: bool = False
    ) -> list[UserRecommendations]:
        """Return the k best items for each of these users (None: for all), in their order."""
        live = self._loaded()
        live.follow()
        return best_items(live.served, users, k, popular_fallback, self._work)

    @contextmanager
    def withdrawing(self, requests: Sequence[Request]) -> Iterator[None]:
        """Serve without these people from now on, and without what they taught where a model can tell that at once.

        Inside the block they are forgotten for good; when it ends, what is current then is served as it is. What they
        taught is worked out when someone is next served: nothing of that can keep an erasure from being carried out.
        """
        asked = Counter({request.user: 1 for request in requests})
        with self._lock:
            self._withdrawn += asked
            if self._live is not None:
                self._live.withhold(self._withdrawn)
        try:
            yield
        finally:
            with self._lock:
                self._withdrawn -= asked
                self._live = None  # whoever is still answering from it goes on without these people

    def _loaded(self) -> Live:
        with self._lock:
            if self._live is None:
                self._live = Live(self._home)
                self._live.withhold(self._withdrawn)
            return self._live
