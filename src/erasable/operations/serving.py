"""Serving: recommendations from what is current at each call, without those who have asked to be erased."""

import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from erasable.operations.given_ids import NumberedIds
from erasable.operations.home import Home
from erasable.operations.live import Live
from erasable.operations.offers import Explanation, Offer, Served
from erasable.operations.recommend import (
    History,
    Unknown,
    UserRecommendations,
    best_for_history,
    best_items,
    explain,
    refuse_no_items,
)
from erasable.operations.suppressed import FiledPeople
from erasable.operations.work import QUIET_WORK, Work
from erasable.requests import Request
from erasable.requests.asked import Asked
from erasable.unlearning import Subject


class Serving:
    """Loads a recommender when someone first asks, and follows it before each answer; for any number of threads."""

    def __init__(self, home: Home, work: Work = QUIET_WORK) -> None:
        self._home = home
        self._work = work
        self._lock = threading.Lock()
        self._looking = threading.Lock()
        self._live: Live | None = None
        self._withdrawn: Counter[Subject] = Counter()
        self._filed = FiledPeople(home)

    def recommend(
        self, users: Sequence[str] | None, k: int = 10, unknown: Unknown = "raise"
    ) -> list[UserRecommendations]:
        """Return the k best items for each of these users (None: for all), in their order."""
        return best_items(self._current(), users, k, unknown, self._work)

    def similar(self, items: Sequence[str], k: int) -> list[list[Offer]]:
        """Return the k items that are most like each of these."""
        refuse_no_items(k)
        served = self._current()
        return [served.similar(item, k) for item in items]

    def explain(self, user: str, item: str, k: int) -> Explanation:
        """Say which items of a user speak most for an item, at most k."""
        return explain(self._current(), user, item, k)

    @property
    def numbered(self) -> NumberedIds:
        """Whose ids are shown as whole numbers."""
        return self._loaded().served.numbered

    def recommend_for_history(self, history: History, k: int = 10) -> UserRecommendations:
        """Return the k best items for someone with this history and no id; nothing of it is stored."""
        found = best_for_history(self._current(), history, k)
        if found.left_out:
            count = len(found.left_out)  # what they are is told to who asked, and stands in no log
            self._work.reporter.note(f"items of the history that nobody has, and that are left out: {count}")
        return found

    @contextmanager
    def withdrawing(self, requests: Sequence[Request]) -> Iterator[None]:
        """Serve without these people, or these items of theirs, from now on; and without what they taught, if possible.

        Inside the block they are forgotten for good; when it ends, what is current then is served as it is. What they
        taught, where a model can tell that at once, is worked out before it begins, while others are served: nothing of
        that can keep an erasure from being carried out.
        """
        asked = Counter({Subject(request.user, request.items): 1 for request in requests})
        with self._lock:
            self._withdrawn += asked
            live = self._live
            if live is not None:
                live.withhold_asked(Asked.of(self._withdrawn) | self._filed.last_read)
        if live is not None:
            with suppress(Exception):
                live.settle()
        try:
            yield
        finally:
            with self._lock:
                self._withdrawn -= asked
                self._live = None  # whoever is still answering from it goes on without these people

    def _current(self) -> Served:
        """Return what is current, for everyone but those who have asked to be erased by now, wherever they did."""
        with self._looking:  # one after the other: nobody is served again because of what was read before a request
            # In this order: whoever has left the ledger because they were forgotten is missing in what is read next.
            filed, before = self._filed.now(), self._live
            live = self._loaded()
            with self._lock:
                live.withhold_asked(Asked.of(self._withdrawn) | filed)
            # Whoever forgets someone here works out what they taught, in what was loaded before.
            live.follow(settle=live is not before or not self._withdrawn)
            return live.served

    def _loaded(self) -> Live:
        with self._lock:
            if self._live is None:
                self._live = Live(self._home)
            return self._live
