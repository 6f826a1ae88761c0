"""Serve recommendations from the current version, and convert results to what the library returns."""

import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace

import numpy as np
import pyarrow as pa

from erasable.data.interactions import Subject
from erasable.operations.inspect import Holding
from erasable.operations.live import Live
from erasable.operations.offers import Explanation, Offer, Served, refuse_no_items
from erasable.operations.people import NumberedIds, shown_ids
from erasable.operations.recommend import (
    History,
    Recommendation,
    Unknown,
    UserRecommendations,
    best_for_history,
    best_items,
    explain,
    similar_to_each,
)
from erasable.operations.scores import UserScores, scores_of, scores_of_history
from erasable.operations.selection import EVERYTHING, Selection
from erasable.operations.storage import AskingPeople, Storage
from erasable.operations.work import QUIET_WORK, Work
from erasable.requests.request import Asked, Request


def recommendation_table(found: Sequence[UserRecommendations], numbered: NumberedIds, why: bool = False) -> pa.Table:
    """Return recommendations, one a row; with `why`, the own items that speak for each as a list."""
    rows = [one for of_user in found for one in of_user]
    columns = {
        "user_id": shown_ids([one.user_id for one in rows], numbered.users),
        "item_id": shown_ids([one.item_id for one in rows], numbered.items),
        "score": pa.array([one.score for one in rows], pa.float64()),
        "rank": pa.array([one.rank for one in rows], pa.int64()),
        "popular": pa.array([one.popular for one in rows], pa.bool_()),
    }
    return pa.table(columns | ({"because": _reasons(rows, numbered)} if why else {}))


def _reasons(rows: Sequence[Recommendation], numbered: NumberedIds) -> pa.Array:
    own = [reason for one in rows for reason in one.because]
    ids = shown_ids([str(reason.item_id) for reason in own], numbered.items)
    pairs = pa.StructArray.from_arrays(
        [ids, pa.array([reason.weight for reason in own], pa.float64())], ["item_id", "weight"]
    )
    ends = np.cumsum([0, *(len(one.because) for one in rows)], dtype=np.int32)
    return pa.ListArray.from_arrays(pa.array(ends), pairs)


def similar_table(items: Sequence[str], found: Sequence[Sequence[Offer]], numbered: NumberedIds) -> pa.Table:
    """Return the items similar to each of some items, one a row."""
    pairs = [(item, offer) for item, alike in zip(items, found, strict=True) for offer in alike]
    columns = {
        "item_id": shown_ids([item for item, _ in pairs], numbered.items),
        "similar_id": shown_ids([offer.item_id for _, offer in pairs], numbered.items),
        "score": pa.array([offer.score for _, offer in pairs], pa.float64()),
        "rank": pa.array([rank for alike in found for rank in range(1, len(alike) + 1)], pa.int64()),
    }
    return pa.table(columns)


def score_table(found: Sequence[UserScores], numbered: NumberedIds) -> pa.Table:
    """Return scores, one a row."""
    rows = [(of_user.user_id, item, score) for of_user in found for item, score in of_user.scores]
    columns = {
        "user_id": shown_ids([user for user, _, _ in rows], numbered.users),
        "item_id": shown_ids([item for _, item, _ in rows], numbered.items),
        "score": pa.array([score for _, _, score in rows], pa.float64()),
    }
    return pa.table(columns)


def shown_explanation(found: Explanation, numbered: NumberedIds) -> Explanation:
    """Return an explanation with ids as they were in the table."""
    items = [str(found.item_id), *(str(reason.item_id) for reason in found.because)]
    item, *own = shown_ids(items, numbered.items).to_pylist()
    return replace(
        found,
        user_id=shown_ids([str(found.user_id)], numbered.users).to_pylist()[0],
        item_id=item,
        because=tuple(reason._replace(item_id=one) for one, reason in zip(own, found.because, strict=True)),
    )


def shown_holding(held: Holding, numbered: NumberedIds) -> Holding:
    """Return what is held of someone, with ids as they were in the table."""
    items = shown_ids([str(one.item_id) for one in held.interactions], numbered.items).to_pylist()
    return replace(
        held,
        user_id=shown_ids([str(held.user_id)], numbered.users).to_pylist()[0],
        interactions=tuple(replace(one, item_id=item) for one, item in zip(held.interactions, items, strict=True)),
    )


class Serving:
    """Loads a recommender on first use and updates it before each answer; for any number of threads."""

    def __init__(self, storage: Storage, work: Work = QUIET_WORK) -> None:
        self._storage = storage
        self._work = work
        self._lock = threading.Lock()
        self._looking = threading.Lock()
        self._live: Live | None = None
        self._withdrawn: Counter[Subject] = Counter()
        self._erasure_request = AskingPeople(storage)

    def recommend(
        self,
        users: Sequence[str] | None,
        k: int = 10,
        unknown: Unknown = "raise",
        why: bool = False,
        selection: Selection = EVERYTHING,
    ) -> list[UserRecommendations]:
        """Return the k best items for each of these users (None: for all), in their order."""
        return best_items(self._current(), users, k, unknown, self._work, why, selection)

    def score(self, users: Sequence[str], items: Sequence[str]) -> list[UserScores]:
        """Return the scores of these items for each of these users."""
        return scores_of(self._current(), users, items)

    def score_for_history(self, history: History, items: Sequence[str]) -> UserScores:
        """Return the same for someone with this history and no id; nothing of it is stored."""
        found = scores_of_history(self._current(), history, items)
        self._note_left_out(found.left_out)
        return found

    def similar(self, items: Sequence[str], k: int, selection: Selection = EVERYTHING) -> list[list[Offer]]:
        """Return the k items most similar to each of these."""
        refuse_no_items(k)
        return similar_to_each(self._current(), items, k, selection, self._work)

    def explain(self, user: str, item: str, k: int) -> Explanation:
        """Return the k items of a user that add most to the score of an item."""
        return explain(self._current(), user, item, k)

    @property
    def numbered(self) -> NumberedIds:
        """Which ids are shown as whole numbers."""
        return self._loaded().served.numbered

    def recommend_for_history(
        self, history: History, k: int = 10, why: bool = False, selection: Selection = EVERYTHING
    ) -> UserRecommendations:
        """Return the k best items for someone with this history and no id; nothing of it is stored."""
        found = best_for_history(self._current(), history, k, why, selection, self._work)
        self._note_left_out(found.left_out)
        return found

    def _note_left_out(self, items: Sequence[str]) -> None:
        if items:  # only the caller sees which items these are: they must not be in a log
            self._work.reporter.note(f"items of the history that nobody has, left out: {len(items)}")

    @contextmanager
    def withdrawing(self, requests: Sequence[Request]) -> Iterator[None]:
        """Stop serving these people, or these items of theirs, and subtract their training data if the model can.

        Inside the block they are forgotten; when it ends, the version that is current then is served. Their data is
        subtracted before the block, while others are served; if that fails, the erasure is carried out all the same.
        """
        asked = Counter({Subject(request.user, request.items): 1 for request in requests})
        with self._lock:
            self._withdrawn += asked
            live = self._live
            if live is not None:
                live.suppress_asked(Asked.of(self._withdrawn) | self._erasure_request.last_read)
        if live is not None:
            with suppress(Exception):
                live.subtract()
        try:
            yield
        finally:
            with self._lock:
                self._withdrawn -= asked
                self._live = None  # threads that still answer from it do so without these people

    def _current(self) -> Served:
        """Return the current version, with everyone suppressed who has asked to be erased by now, here or elsewhere."""
        with self._looking:  # one thread at a time: else an older reading of the queue could serve someone again
            # In this order: a user who left the queue because they were forgotten is missing in what is read next.
            erasure_request, before = self._erasure_request.now(), self._live
            live = self._loaded()
            with self._lock:
                live.suppress_asked(Asked.of(self._withdrawn) | erasure_request)
            # `withdrawing` subtracts the data of people it forgets, in the version that was loaded before.
            live.follow(subtract=live is not before or not self._withdrawn)
            return live.served

    def _loaded(self) -> Live:
        with self._lock:
            if self._live is None:
                self._live = Live(self._storage)
            return self._live
