"""Items for one person: the model's best, popular ones where the model has no score, and only what may be offered."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from erasable.chain.buckets import Place
from erasable.chain.dataset import Dataset
from erasable.chain.scoring import Scoring
from erasable.data.ids import Ids
from erasable.data.interactions import Interactions
from erasable.errors import UnknownItem, UnknownUser, WrongUse
from erasable.models.machine import ItemNumbers, top_items
from erasable.operations.declared_items import NOTHING_DECLARED, DeclaredItems
from erasable.operations.people import ALL_TEXT, NumberedIds, RemainingData, all_remaining_data
from erasable.operations.selection import EVERYTHING, Barring, Selection
from erasable.requests.request import Asked
from erasable.seeding.compiled import load_compiler

MOST_REASONS = 3
"""How many of the user's items are named with each recommendation, if it is asked why."""
_NOTHING = np.empty(0, np.int32)
_SILENT = 1e-6  # scores are fitted to 0 and 1; for users who share no item with anyone, als rows shrink to this


class Offer(NamedTuple):
    """One item. If it is `popular`, the model has no score for it, and the score is how many people have it."""

    item_id: str
    score: float
    popular: bool = False


class OwnItem(NamedTuple):
    """An item that the user has, and the weight that it adds to the score of another."""

    item_id: str | int
    weight: float


@dataclass(frozen=True)
class Explanation:
    """Why an item is recommended: the user's items with the largest weights; with `others` they sum to the score."""

    user_id: str | int
    item_id: str | int
    score: float
    because: tuple[OwnItem, ...]
    """The items with the largest weights, in descending order."""
    others: float
    """The sum of the weights of all other items of the person; negative if they lower the score."""
    owned: bool
    """Whether the person has the item: then it is explained by their other items."""


Shortage = Literal["has all", "none may be", "no score"]
"""Why somebody gets no item: they have all of them, no other may be offered, or others have no score and no owner."""


class Stock:
    """How many people have each item, and which items the model has learned; counted on first use."""

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """How many people have each item in training."""
        return self._dataset.counts.trained

    def counts_of(self, users: Collection[str]) -> NDArray[np.int64]:
        """Return how many of some users have each item in training; unknown ones are ignored."""
        counts, buckets = np.zeros(len(self._dataset.items), dtype=np.int64), self._dataset.buckets
        for place in map(buckets.find, users):
            if place is not None:
                counts[buckets[place.bucket].training.items_at(place.row)] += 1  # a user has an item once
        return counts

    @cached_property
    def learned(self) -> NDArray[np.bool_] | None:
        """Which items the shared parameters were trained on; None if on all of them."""
        dataset = self._dataset
        of_everyone = dataset.config.anchors >= 1 and dataset.stages == dataset.group_count
        if not dataset.solves_rows or (of_everyone and dataset.known_to_some.all()):
            return None
        return np.asarray((dataset.counts.learned > 0).any(axis=0))

    def owned(self, place: Place) -> NDArray[np.int32]:
        """Return the numbers of the items that a user has, held out or not."""
        bucket = self._dataset.buckets[place.bucket]
        trained, held_out = bucket.training.items_at(place.row), bucket.held_out_of(place.row)
        return np.concatenate([trained, held_out]) if len(held_out) else trained

    def was_trained_on(self, items: NDArray[np.int32]) -> bool:
        """Whether the model was trained on one of these items."""
        return self.learned is None or bool(self.learned[items].any())


@dataclass(frozen=True)
class Served:
    """What recommendations come from, and who has asked to be erased: they get none, or none based on some items."""

    dataset: Dataset
    scoring: Scoring
    asked: Asked
    stock: Stock
    numbered: NumberedIds = ALL_TEXT
    """Which ids are shown as whole numbers."""
    declared: DeclaredItems = NOTHING_DECLARED
    """Which items are hidden, and attributes of items."""

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """How many people who are served have each item."""
        return self._counts_changed(self.stock.counts, frozenset(), {}) if self.asked.people else self.stock.counts

    @cached_property
    def _items_of_nobody(self) -> ItemNumbers:
        """The items that nobody who is served has, unless they are declared."""
        return np.flatnonzero((self.counts <= 0) & ~self.dataset.is_declared)

    @property
    def items(self) -> list[str]:
        """The items that are known, in the order of the catalogue."""
        items = [*self.dataset.items]
        return [item for item, number in zip(items, self._numbers_of(items).tolist(), strict=True) if number >= 0]

    @cached_property
    def suppressed(self) -> frozenset[str]:
        """Who gets no recommendations."""
        return self.asked.wholly.union(user for user, left in self._left.items() if left is None)

    @cached_property
    def partly_served(self) -> dict[str, RemainingData]:
        """Who is served without some items, and what they have beside these."""
        return {user: left for user, left in self._left.items() if left is not None}

    @cached_property
    def _left(self) -> dict[str, RemainingData | None]:
        return all_remaining_data(self.dataset, self.asked)

    @cached_property
    def _partly_served_at(self) -> dict[Place, RemainingData]:
        return {left.place: left for left in self.partly_served.values()}

    def suppressing(self, asked: Asked) -> "Served":
        """Return the same for other people who have asked; the counts are updated, not made again."""
        after = replace(self, asked=asked)
        after.__dict__["_left"] = all_remaining_data(self.dataset, asked, self._left)
        if "counts" in self.__dict__:
            after.__dict__["counts"] = after._counts_changed(self.counts, self.suppressed, self.partly_served)
        return after

    def suppressing_also(self, users: frozenset[str]) -> "Served":
        """Return the same without these users, who had not asked before; the others are not gone through again."""
        after = replace(self, asked=Asked(self.asked.wholly | users, self.asked.some))
        after.__dict__.update(_left=self._left, partly_served=self.partly_served, suppressed=self.suppressed | users)
        if "counts" in self.__dict__:
            after.__dict__["counts"] = self.counts - self.stock.counts_of(users)
        return after

    def _counts_changed(
        self, counts: NDArray[np.int64], suppressed: frozenset[str], before: Mapping[str, RemainingData]
    ) -> NDArray[np.int64]:
        """Return the counts for those who have asked now, updated from an earlier set of people."""
        now, stock = self.partly_served, self.stock
        left, come = now.keys() - before.keys(), before.keys() - now.keys()
        changed = {user for user in now.keys() & before.keys() if now[user] is not before[user]}
        counts = counts - stock.counts_of(self.suppressed - suppressed) + stock.counts_of(suppressed - self.suppressed)
        counts = counts - stock.counts_of(left) + stock.counts_of(come)
        for user in left | changed:
            counts[now[user].training.item_index] += 1  # a user has an item once
        for user in come | changed:
            counts[before[user].training.item_index] -= 1
        return counts

    def scored_by(self, scoring: Scoring) -> "Served":
        """Return the same with other scores; the counts are kept."""
        after = replace(self, scoring=scoring)
        after.__dict__["_left"] = self._left
        if "counts" in self.__dict__:
            after.__dict__["counts"] = self.counts
        return after

    def find(self, user: str) -> Place | None:
        """Return the position and row of a user; None if they are unknown or suppressed.

        A suppressed user is looked up under an id that nobody has. So the lookup takes as long as for an unknown user,
        and its time does not reveal who has asked to be erased.
        """
        nobody = f"\0{user[1:]}"  # of the same length, and never a valid id
        try:
            return self.dataset.find(nobody if user in self.suppressed else user)
        except UnknownUser:
            return None

    @cached_property
    def everything(self) -> Barring:
        """What may not be offered where a call does not limit it: hidden items."""
        return self.barring(EVERYTHING)

    def barring(self, selection: Selection) -> Barring:
        """Return what may not be offered with this selection."""
        hidden = self._numbers_of(sorted(self.declared.hidden))
        if selection.where is not None:
            fitting = self.declared.where(selection.where)
            selection = replace(selection, available=(*selection.available, fitting), where=None)
        return Barring(selection, self._numbers_of, len(self.dataset.items), hidden[hidden >= 0])

    def best(self, place: Place, k: int) -> list[Offer]:
        """Return the k best items for the user at a place, of those that they do not have."""
        return next(self.best_of_each([place], k))

    def best_of_each(self, places: Sequence[Place], k: int, barring: Barring | None = None) -> Iterator[list[Offer]]:
        """Yield the k best items for each of several users, in their order; user rows are solved together."""
        partly_served, barring = self._partly_served_at, barring or self.everything
        found = self.scoring.each([place for place in places if place not in partly_served])
        for place in places:
            user = self.dataset.user_at(place) if barring.selection.names_users else ""
            if place in partly_served:
                yield self._best_without(partly_served[place], k, barring, user)
            else:
                was_trained_on = self.stock.was_trained_on(self.scoring.owned(place))
                excluded = _excluded(self.stock.owned(place), barring, user)
                yield self._best(next(found), excluded, was_trained_on, k)

    def _best_without(self, left: RemainingData, k: int, barring: Barring, user: str) -> list[Offer]:
        """Return the k best for a user without some of their items, which may be recommended again."""
        was_trained_on = self.stock.was_trained_on(left.training.item_index)
        excluded = _excluded(left.owned, barring, user)
        return self._best(self.scoring.of_history(left.training), excluded, was_trained_on, k)

    def scores_at(self, place: Place, items: Sequence[str]) -> list[float | None]:
        """Return the model's scores of some items for the user at a place; None for one that is not offered."""
        left = self._partly_served_at.get(place)
        if left is not None:
            return self.scores_for_history(left.training, items)
        trained = self.stock.was_trained_on(self.scoring.owned(place))
        return self._scores_of(self.scoring.scores(place) if trained else None, items)

    def scores_for_history(self, history: Interactions, items: Sequence[str]) -> list[float | None]:
        """Return the same for someone with this history."""
        trained = len(history) > 0 and self.stock.was_trained_on(history.item_index)
        return self._scores_of(self.scoring.of_history(history) if trained else None, items)

    def _scores_of(self, scores: NDArray[np.float32] | None, items: Sequence[str]) -> list[float | None]:
        numbers = self._numbers_of(items).tolist()
        barred = frozenset(self.everything.barred_for("").tolist())
        return [
            None
            if scores is None or number < 0 or number in barred or not np.isfinite(scores[number])
            # As a list of plain numbers, so that JSON and Arrow can hold them.
            else float(scores[number])
            for number in numbers
        ]

    def best_for_history(self, history: Interactions, k: int, barring: Barring | None = None) -> list[Offer]:
        """Return the k best items for someone with this history; without any, those that most people have."""
        barring = barring or self.everything
        if not len(history):
            return self.popular(k, barring)
        owned = history.item_index
        excluded = _excluded(owned, barring, "")
        return self._best(self.scoring.of_history(history), excluded, self.stock.was_trained_on(owned), k)

    def _best(self, scores: NDArray[np.float32], excluded: ItemNumbers, was_trained_on: bool, k: int) -> list[Offer]:
        scores = self._without_suppressed_items(scores)
        if was_trained_on:
            found = top_items(scores, k, excluded)
            if not len(found) or scores[found[-1]] > _SILENT:
                return self._offers(found, scores, popular=False)
        return self._filled_up(scores if was_trained_on else np.zeros_like(scores), excluded, k)

    def why(self, place: Place, offers: Sequence[Offer], k: int) -> list[tuple[OwnItem, ...]]:
        """Return for each offer the k items of the user at a place with the largest weights; none if it is popular."""
        return self._why(self._contributing(place), offers, k, place.group)

    def why_for_history(self, history: Interactions, offers: Sequence[Offer], k: int) -> list[tuple[OwnItem, ...]]:
        """Return the same for someone with this history."""
        return self._why(history.item_index, offers, k)

    def _why(
        self, contributing: NDArray[np.int32], offers: Sequence[Offer], k: int, position: int | None = None
    ) -> list[tuple[OwnItem, ...]]:
        numbers = self.dataset.items.positions([offer.item_id for offer in offers]).tolist()
        return [
            () if offer.popular else self._reasons(contributing, number, k, position)
            for offer, number in zip(offers, numbers, strict=True)
        ]

    def explained(self, place: Place, item: str, k: int) -> Explanation:
        """Return the k items of the user at a place that add most to the score of one item."""
        number, left = self._number_of(item), self._partly_served_at.get(place)
        scores = self.scoring.scores(place) if left is None else self.scoring.of_history(left.training)
        owned = self.stock.owned(place) if left is None else left.owned
        score = float(scores[number]) if np.isfinite(scores[number]) else 0.0
        because = self._reasons(self._contributing(place), number, k, place.group)
        user = self.dataset.user_at(place)
        others = score - sum(reason.weight for reason in because)
        return Explanation(user, item, score, because, others, number in owned)

    def _contributing(self, place: Place) -> NDArray[np.int32]:
        """Return the items that the scores of the user at a place come from, without those they asked to erase."""
        left = self._partly_served_at.get(place)
        return self.scoring.owned(place) if left is None else left.training.item_index

    def _reasons(
        self, contributing: NDArray[np.int32], number: int, k: int, position: int | None = None
    ) -> tuple[OwnItem, ...]:
        weights, items = self.scoring.reasons(contributing, number, position), self.dataset.items
        best = top_items(weights, k, excluded=np.flatnonzero(weights <= _SILENT))
        return tuple(OwnItem(items[int(contributing[place])], float(weights[place])) for place in best.tolist())

    def history(self, ratings: Mapping[str, float | None]) -> tuple[Interactions, list[str]]:
        """Return a history as interactions of the id "", and the items that are not in the catalogue.

        An item without a rating counts as rated with the highest of the scale; where weights are learned it weighs 1.
        The order in which they are given is the order in time, oldest first.
        """
        items, scale = self.dataset.items, self.dataset.scale
        usual = scale.low if self.dataset.config.weighed else scale.high
        numbers = self._numbers_of(list(ratings))
        try:
            given = np.array([usual if rating is None else rating for rating in ratings.values()], np.float32)
        except (TypeError, ValueError, OverflowError):
            raise WrongUse("the ratings of a history are numbers: give one for each item, or none") from None
        scale.check(given)
        order = np.argsort(numbers, kind="stable")[int(np.sum(numbers < 0)) :]
        users = Ids.of([""] if len(order) else [])
        numbered = np.zeros(len(order), np.int32), numbers[order].astype(np.int32)
        history = Interactions(users, items, *numbered, given[order], order.astype(np.float64))
        return history, [item for item, number in zip(ratings, numbers.tolist(), strict=True) if number < 0]

    def popular(self, k: int, barring: Barring | None = None, user: str = "") -> list[Offer]:
        """Return the k items that most people have, for somebody unknown."""
        block = np.ones(len(self.counts), dtype=bool)
        block[(barring or self.everything).barred_for(user)] = False
        return self._of_a_block(block, self.counts, k, popular=True)

    def shortage(self, place: Place | None, user: str, barring: Barring) -> Shortage:
        """Say why the user at a place, or without one somebody unknown, gets no item."""
        left = None if place is None else self._partly_served_at.get(place)
        owned = _NOTHING if place is None else self.stock.owned(place) if left is None else left.owned
        return self._shortage(owned, user, barring)

    def shortage_for_history(self, history: Interactions, barring: Barring) -> Shortage:
        """Say why someone with this history gets no item."""
        return self._shortage(history.item_index, "", barring)

    def _shortage(self, owned: NDArray[np.int32], user: str, barring: Barring) -> Shortage:
        if not len(barring.barred_for(user)):
            return "has all"
        left = ~self._gone
        left[_excluded(owned, barring, user)] = False
        return "no score" if left.any() else "none may be"

    def similar(self, item: str, k: int, barring: Barring | None = None) -> list[Offer]:
        """Return the k items most similar to one that may be offered, without those that are not similar at all."""
        number = self._number_of(item)
        scores = self._without_suppressed_items(self.scoring.similar(number))
        excluded = np.concatenate([_unlike(scores, number), (barring or self.everything).barred_for("")])
        return self._offers(top_items(scores, k, excluded), scores, popular=False)

    def _one_of_each_group(self) -> list[Place]:
        """Return somebody of each group in the first bucket."""
        groups = self.dataset.buckets[0].groups
        found = zip(*np.unique(groups, return_index=True), strict=True)
        return [Place(int(group), 0, int(row)) for group, row in found]

    def warm_up(self) -> None:
        """Load compiled code, compute what is cached, and score one user of each group."""
        load_compiler()
        _ = self.counts
        for place in self._one_of_each_group():
            self.best(place, 1)
            if self.scoring.explains:
                self.scoring.reasons(self.scoring.owned(place), 0, place.group)

    def _number_of(self, item: str) -> int:
        number = int(self._numbers_of([item])[0])
        if number < 0:
            raise UnknownItem(f"the catalogue has no item {item!r}: check the id, exactly as in the data")
        return number

    def _numbers_of(self, items: Sequence[str]) -> NDArray[np.int64]:
        """Return the numbers of items; −1 for one that is unknown, or that nobody who is served has."""
        numbers = self.dataset.items.positions(items)
        if self.dataset.catalogue is None and self.asked.people:
            numbers = np.where((numbers >= 0) & self._gone[numbers], -1, numbers)
        return numbers

    @property
    def _gone(self) -> NDArray[np.bool_]:
        """Which items only suppressed people have: they count as unknown."""
        if self.dataset.catalogue is not None or not self.asked.people:
            return np.zeros(len(self.dataset.items), dtype=bool)
        gone: NDArray[np.bool_] = (self.stock.counts > 0) & (self.counts == 0) & ~self.dataset.is_declared
        return gone

    def _without_suppressed_items(self, scores: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the scores without items that only suppressed people have."""
        if self.dataset.catalogue is not None or not self.asked.people or not len(self._items_of_nobody):
            return scores
        without = scores.copy()
        without[self._items_of_nobody] = -np.inf
        return without

    def _filled_up(self, scores: NDArray[np.float32], excluded: ItemNumbers, k: int) -> list[Offer]:
        """Return items with positive scores; then those without a score, most popular first; then the others."""
        found: list[Offer] = []
        for block, popular in _blocks(scores):
            if len(found) == k:
                break
            block[excluded] = False
            values: NDArray[Any] = self.counts if popular else scores
            found += self._of_a_block(block, values, k - len(found), popular)
        return found

    def _of_a_block(self, block: NDArray[np.bool_], values: NDArray[Any], k: int, popular: bool) -> list[Offer]:
        if popular:
            block &= values > 0
        return self._offers(top_items(values, k, excluded=np.flatnonzero(~block)), values, popular)

    def _offers(self, numbers: ItemNumbers, values: NDArray[Any], popular: bool) -> list[Offer]:
        items = self.dataset.items
        pairs = zip(numbers.tolist(), values[numbers].tolist(), strict=True)
        return [Offer(items[number], float(value), popular) for number, value in pairs]


def _excluded(owned: NDArray[np.int32], barring: Barring, user: str) -> ItemNumbers:
    """Return the items that are not offered to a user: barred ones, and those they have unless these are wanted."""
    barred = barring.barred_for(user)
    return barred if barring.selection.seen else np.concatenate([owned, barred])


def _unlike(scores: NDArray[np.float32], number: int) -> ItemNumbers:
    """Return the item itself, and all that are not similar to it."""
    unlike = scores <= _SILENT
    unlike[number] = True
    return np.flatnonzero(unlike)


def _blocks(scores: NDArray[np.float32]) -> Iterator[tuple[NDArray[np.bool_], bool]]:
    """Yield blocks of items, best first, and whether popularity ranks the items of the block.

    A score of zero says nothing; an item that no stage knows has −∞ and comes last.
    """
    yield scores > _SILENT, False
    yield np.abs(scores) <= _SILENT, True
    yield (scores < -_SILENT) & np.isfinite(scores), False
    yield np.isneginf(scores), True


def refuse_no_items(k: int) -> None:
    """Refuse to recommend fewer than one item."""
    if not isinstance(k, int | np.integer) or k < 1:
        raise WrongUse(f"{k!r} items make no sense: give k of 1 or more, a whole number")
