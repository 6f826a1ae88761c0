"""What one person is offered: the model's best, popular items where the model says nothing, never what they have."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from erasable.data import Ids, Interactions
from erasable.errors import UnknownItem, UnknownUser
from erasable.models.ranking import ItemNumbers, top_items
from erasable.operations.given_ids import ALL_TEXT, NumberedIds
from erasable.operations.meanwhile import Lessened, all_lessened
from erasable.requests.asked import Asked
from erasable.training import Knowledge, Place, Scoring

_SILENT = 1e-6  # scores are fitted to 0 and 1; als lets the rows of those who share no item with anyone shrink to this


class Offer(NamedTuple):
    """One item. If it is a popular one, the model says nothing about it and the score is how many people have it."""

    item_id: str
    score: float
    popular: bool = False


class OwnItem(NamedTuple):
    """One item that someone has, and the weight that it adds to the score of another."""

    item_id: str | int
    weight: float


@dataclass(frozen=True)
class Explanation:
    """Which items of a person speak for an item; the weights and what the others add make the score."""

    user_id: str | int
    item_id: str | int
    score: float
    because: tuple[OwnItem, ...]
    """Those that speak most for it, the largest weight first."""
    others: float
    """What all the other items of the person add together; below 0 where they speak against it."""
    owned: bool
    """Whether the person has the item itself: then this is what the person's other items say of it."""


class Stock:
    """What the people of a dataset have, and what of it a model has learned from; counted when it is first needed."""

    def __init__(self, knowledge: Knowledge) -> None:
        self._knowledge = knowledge

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """How many people have each item in training."""
        items = len(self._knowledge.items)
        return sum(
            (np.bincount(group.item_index, minlength=items) for group in self._knowledge.groups),
            start=np.zeros(items, dtype=np.int64),
        )

    def counts_of(self, users: Collection[str]) -> NDArray[np.int64]:
        """Return how many of some users have each item in training; unknown ones are ignored."""
        counts, wanted = np.zeros(len(self._knowledge.items), dtype=np.int64), list(users)
        for group in self._knowledge.groups if wanted else ():
            rows = group.users.positions(wanted)
            for row in rows[rows >= 0].tolist():
                counts[group.items_at(row)] += 1  # a user has an item once
        return counts

    @cached_property
    def learned(self) -> NDArray[np.bool_] | None:
        """Which items shared parameters have learned from someone; None if from everyone."""
        knowledge = self._knowledge
        of_everyone = knowledge.config.anchors >= 1 and knowledge.stages == len(knowledge.groups)
        if not knowledge.solves_rows or (of_everyone and knowledge.known_to_some.all()):
            return None
        found = np.zeros(len(knowledge.items), dtype=bool)
        for position in range(knowledge.stages):
            found[knowledge.known(position).places[knowledge.learners(position).item_index]] = True
        return found

    def owned(self, place: Place) -> NDArray[np.int32]:
        """Return the numbers of the items that a user has, held out or not."""
        position, row = place
        group, held_out = self._knowledge.groups[position], self._knowledge.held_out
        trained = group.items_at(row)
        other = int(held_out.users.positions([group.users[row]])[0]) if len(held_out) else -1
        return trained if other < 0 else np.concatenate([trained, held_out.items_at(other)])

    def is_told_of(self, items: NDArray[np.int32]) -> bool:
        """Whether the model has learned from anyone who has one of these items."""
        return self.learned is None or bool(self.learned[items].any())


@dataclass(frozen=True)
class Served:
    """What recommendations come from, and who has asked to be erased: they get none, or some without some items."""

    knowledge: Knowledge
    scoring: Scoring
    asked: Asked
    stock: Stock
    numbered: NumberedIds = ALL_TEXT
    """Whose ids are shown as whole numbers."""

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """How many people who are served have each item."""
        return self._counts_changed(self.stock.counts, frozenset(), {}) if self.asked.people else self.stock.counts

    @cached_property
    def _of_nobody(self) -> ItemNumbers:
        """The items that nobody has who is served."""
        return np.flatnonzero(self.counts <= 0)

    @cached_property
    def withheld(self) -> frozenset[str]:
        """Who gets no recommendations."""
        return self.asked.wholly.union(user for user, left in self._left.items() if left is None)

    @cached_property
    def lessened(self) -> dict[str, Lessened]:
        """Who gets recommendations without some items, and what they have beside these."""
        return {user: left for user, left in self._left.items() if left is not None}

    @cached_property
    def _left(self) -> dict[str, Lessened | None]:
        return all_lessened(self.knowledge, self.asked)

    @cached_property
    def _lessened_at(self) -> dict[Place, Lessened]:
        return {left.place: left for left in self.lessened.values()}

    def withholding(self, asked: Asked) -> "Served":
        """Return the same for other people who have asked; what was counted is counted on."""
        after = replace(self, asked=asked)
        after.__dict__["_left"] = all_lessened(self.knowledge, asked, self._left)
        if "counts" in self.__dict__:
            after.__dict__["counts"] = after._counts_changed(self.counts, self.withheld, self.lessened)
        return after

    def withholding_also(self, users: frozenset[str]) -> "Served":
        """Return the same without these users, who had not asked for anything; the others are not gone through."""
        after = replace(self, asked=Asked(self.asked.wholly | users, self.asked.some))
        after.__dict__.update(_left=self._left, lessened=self.lessened, withheld=self.withheld | users)
        if "counts" in self.__dict__:
            after.__dict__["counts"] = self.counts - self.stock.counts_of(users)
        return after

    def _counts_changed(
        self, counts: NDArray[np.int64], withheld: frozenset[str], before: Mapping[str, Lessened]
    ) -> NDArray[np.int64]:
        """Return counts for those who have asked now, from those for who was withheld or served without some items."""
        now, stock = self.lessened, self.stock
        left, come = now.keys() - before.keys(), before.keys() - now.keys()
        changed = {user for user in now.keys() & before.keys() if now[user] is not before[user]}
        counts = counts - stock.counts_of(self.withheld - withheld) + stock.counts_of(withheld - self.withheld)
        counts = counts - stock.counts_of(left) + stock.counts_of(come)
        for user in left | changed:
            counts[now[user].training.item_index] += 1  # a user has an item once
        for user in come | changed:
            counts[before[user].training.item_index] -= 1
        return counts

    def scored_by(self, scoring: Scoring) -> "Served":
        """Return the same with other scores; who has what is counted already."""
        after = replace(self, scoring=scoring)
        after.__dict__["_left"] = self._left
        if "counts" in self.__dict__:
            after.__dict__["counts"] = self.counts
        return after

    def find(self, user: str) -> Place | None:
        """Return the position and row of a user, None if nothing is held that may be used.

        Whoever is withheld is looked for under an id that nobody has: so it takes as long to find nothing of them as of
        someone who was never known, and nobody learns from that who has asked to be erased.
        """
        nobody = f"\0{user[1:]}"  # as long, and refused as an id
        try:
            return self.knowledge.find(nobody if user in self.withheld else user)
        except UnknownUser:
            return None

    def best(self, place: Place, k: int) -> list[Offer]:
        """Return the k best items for whoever is at a place, of those that the person does not have."""
        return next(self.best_of_each([place], k))

    def best_of_each(self, places: Sequence[Place], k: int) -> Iterator[list[Offer]]:
        """Yield the same for several people, in their order; rows that are to be solved are solved together."""
        lessened = self._lessened_at
        found = self.scoring.each([place for place in places if place not in lessened])
        for place in places:
            if place in lessened:
                yield self._best_without(lessened[place], k)
            else:
                is_told_of = self.stock.is_told_of(self.scoring.owned(*place))
                yield self._best(next(found), self.stock.owned(place), is_told_of, k)

    def _best_without(self, left: Lessened, k: int) -> list[Offer]:
        """Return the k best for someone from a row without some items, which are offered like any they never had."""
        scores = self.scoring.of_history(left.training)
        return self._best(scores, left.owned, self.stock.is_told_of(left.training.item_index), k)

    def best_for_history(self, history: Interactions, k: int) -> list[Offer]:
        """Return the k best items for someone with this history; without any, those that most people have."""
        if not len(history):
            return self.popular(k)
        owned = history.item_index
        return self._best(self.scoring.of_history(history), owned, self.stock.is_told_of(owned), k)

    def _best(self, scores: NDArray[np.float32], owned: NDArray[np.int32], is_told_of: bool, k: int) -> list[Offer]:
        scores = self._of_who_is_served(scores)
        if is_told_of:
            found = top_items(scores, k, excluded=owned)
            if not len(found) or scores[found[-1]] > _SILENT:
                return self._offers(found, scores, popular=False)
        return self._filled_up(scores if is_told_of else np.zeros_like(scores), owned, k)

    def why(self, place: Place, offers: Sequence[Offer], k: int) -> list[tuple[OwnItem, ...]]:
        """Return for each offer which items of whoever is at a place speak most for it, at most k; none if popular."""
        return self._why(self._speaking(place), offers, k, place[0])

    def why_for_history(self, history: Interactions, offers: Sequence[Offer], k: int) -> list[tuple[OwnItem, ...]]:
        """Return the same for someone with this history."""
        return self._why(history.item_index, offers, k)

    def _why(
        self, speaking: NDArray[np.int32], offers: Sequence[Offer], k: int, position: int | None = None
    ) -> list[tuple[OwnItem, ...]]:
        numbers = self.knowledge.items.positions([offer.item_id for offer in offers]).tolist()
        return [
            () if offer.popular else self._reasons(speaking, number, k, position)
            for offer, number in zip(offers, numbers, strict=True)
        ]

    def explained(self, place: Place, item: str, k: int) -> Explanation:
        """Say which items of whoever is at a place speak most for one item, at most k."""
        number, left = self._number_of(item), self._lessened_at.get(place)
        scores = self.scoring.scores(*place) if left is None else self.scoring.of_history(left.training)
        owned = self.stock.owned(place) if left is None else left.owned
        score = float(scores[number]) if np.isfinite(scores[number]) else 0.0
        because, user = self._reasons(self._speaking(place), number, k, place[0]), self._user_at(place)
        others = score - sum(reason.weight for reason in because)
        return Explanation(user, item, score, because, others, number in owned)

    def _user_at(self, place: Place) -> str:
        return self.knowledge.groups[place[0]].users[place[1]]

    def _speaking(self, place: Place) -> NDArray[np.int32]:
        """Return the numbers of the items that scores of whoever is at a place come from, but for what they asked."""
        left = self._lessened_at.get(place)
        return self.scoring.owned(*place) if left is None else left.training.item_index

    def _reasons(
        self, speaking: NDArray[np.int32], number: int, k: int, position: int | None = None
    ) -> tuple[OwnItem, ...]:
        weights, items = self.scoring.reasons(speaking, number, position), self.knowledge.items
        best = top_items(weights, k, excluded=np.flatnonzero(weights <= _SILENT))
        return tuple(OwnItem(items[int(speaking[place])], float(weights[place])) for place in best.tolist())

    def history(self, ratings: Mapping[str, float | None]) -> tuple[Interactions, list[str]]:
        """Return a history as interactions of the id "", and the items that are not in the catalogue.

        An item without a rating counts as rated with the highest of the scale.
        """
        items, scale = self.knowledge.items, self.knowledge.scale
        numbers = self._numbers_of(list(ratings))
        given = np.array([scale.high if rating is None else rating for rating in ratings.values()], np.float32)
        scale.check(given)
        order = np.argsort(numbers, kind="stable")[int(np.sum(numbers < 0)) :]
        users = Ids.of([""] if len(order) else [])
        history = Interactions(
            users, items, np.zeros(len(order), np.int32), numbers[order].astype(np.int32), given[order]
        )
        return history, [item for item, number in zip(ratings, numbers.tolist(), strict=True) if number < 0]

    def popular(self, k: int) -> list[Offer]:
        """Return the k items that most people have."""
        return self._of_a_block(np.ones(len(self.counts), dtype=bool), self.counts, k, popular=True)

    def similar(self, item: str, k: int) -> list[Offer]:
        """Return the k items that are most like one, and none that is not like it at all."""
        number = self._number_of(item)
        scores = self._of_who_is_served(self.scoring.similar(number))
        return self._offers(top_items(scores, k, excluded=_unlike(scores, number)), scores, popular=False)

    def warm_up(self) -> None:
        """Work out what is worked out once, and score someone of each group."""
        _ = self.counts
        for position, group in enumerate(self.knowledge.groups):
            if len(group):
                self.best((position, 0), 1)
                if self.scoring.explains:
                    self.scoring.reasons(self.scoring.owned(position, 0), 0, position)

    def _number_of(self, item: str) -> int:
        number = int(self._numbers_of([item])[0])
        if number < 0:
            raise UnknownItem(f"the catalogue has no item {item!r}: check the id, exactly as in the data")
        return number

    def _numbers_of(self, items: Sequence[str]) -> NDArray[np.int64]:
        """Return the numbers of items, −1 for one that is unknown, or that nobody has who is served."""
        numbers = self.knowledge.items.positions(items)
        if self.knowledge.catalogue is None and self.asked.people:
            gone = (self.stock.counts > 0) & (self.counts == 0)
            numbers = np.where((numbers >= 0) & gone[numbers], -1, numbers)
        return numbers

    def _of_who_is_served(self, scores: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the scores; an item that nobody has who is served goes with those who are not."""
        if self.knowledge.catalogue is not None or not self.asked.people or not len(self._of_nobody):
            return scores
        without = scores.copy()
        without[self._of_nobody] = -np.inf
        return without

    def _filled_up(self, scores: NDArray[np.float32], owned: NDArray[np.int32], k: int) -> list[Offer]:
        """Return what the model speaks for; then, most popular first, what it says nothing about; then the others."""
        found: list[Offer] = []
        for block, popular in _blocks(scores):
            if len(found) == k:
                break
            block[owned] = False
            values: NDArray[Any] = self.counts if popular else scores
            found += self._of_a_block(block, values, k - len(found), popular)
        return found

    def _of_a_block(self, block: NDArray[np.bool_], values: NDArray[Any], k: int, popular: bool) -> list[Offer]:
        if popular:
            block &= values > 0
        return self._offers(top_items(values, k, excluded=np.flatnonzero(~block)), values, popular)

    def _offers(self, numbers: ItemNumbers, values: NDArray[Any], popular: bool) -> list[Offer]:
        items = self.knowledge.items
        pairs = zip(numbers.tolist(), values[numbers].tolist(), strict=True)
        return [Offer(items[number], float(value), popular) for number, value in pairs]


def _unlike(scores: NDArray[np.float32], number: int) -> ItemNumbers:
    """Return the item itself, and all that are not like it."""
    unlike = scores <= _SILENT
    unlike[number] = True
    return np.flatnonzero(unlike)


def _blocks(scores: NDArray[np.float32]) -> Iterator[tuple[NDArray[np.bool_], bool]]:
    """Yield items that belong together, best first, and whether popularity decides among them.

    Zero says neither for nor against; an item that no stage knows, −∞, comes after everything with a score.
    """
    yield scores > _SILENT, False
    yield np.abs(scores) <= _SILENT, True
    yield (scores < -_SILENT) & np.isfinite(scores), False
    yield np.isneginf(scores), True
