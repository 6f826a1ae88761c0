"""Which items each stage knows, and how it numbers them; where the items themselves come from lives elsewhere."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from erasable.data import Catalogue, Ids, Interactions


@dataclass(frozen=True, eq=False)
class KnownItems:
    """The items that a stage knows, in the order in which it numbers them, and the number of each among all items."""

    ids: Ids
    places: NDArray[np.int64]
    total: int
    """How many items there are in all."""

    @classmethod
    def among(cls, items: Ids, places: NDArray[np.int64]) -> "KnownItems":
        """Return the items at some places of a list of all."""
        return cls(items if _is_whole(places, len(items)) else items.take(places), places, len(items))

    def over(self, rows: Interactions) -> Interactions:
        """Return the rows whose items are known, numbered as the stage numbers them."""
        return rows if self._is_whole else rows.renumbered(self.ids, self._numbers)

    def numbers_of(self, owned: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return the stage's numbers of those items that it knows, ascending."""
        if self._is_whole:
            return owned
        found = self._numbers[owned]
        return np.sort(found[found >= 0]).astype(np.int32)

    def among_all(self, scores: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return a score for each item of all, −∞ for those that the stage does not know."""
        if self._is_whole:
            return scores
        found = np.full(self.total, -np.inf, dtype=np.float32)
        found[self.places] = scores
        return found

    def __len__(self) -> int:
        return len(self.places)

    @cached_property
    def _is_whole(self) -> bool:
        return _is_whole(self.places, self.total)

    @cached_property
    def _numbers(self) -> NDArray[np.int64]:
        """The stage's number of each item of all, −1 if it does not know it."""
        numbers = np.full(self.total, -1, dtype=np.int64)
        numbers[self.places] = np.arange(len(self.places))
        return numbers


def items_brought(stages: Iterable[Interactions], items: Ids, apart: bool) -> tuple[KnownItems, ...]:
    """Return what each stage knows where items follow the people: what its learners have and earlier stages brought.

    Items are numbered in the order in which stages bring them, by id within a stage; stages that are apart do not
    follow from each other. The list of all is sorted.
    """
    brought = np.zeros(len(items), dtype=bool)
    known, found = np.empty(0, dtype=np.int64), list[KnownItems]()
    for learners in stages:
        had = np.zeros(len(items), dtype=bool)
        had[learners.item_index] = True
        if apart:
            known = np.flatnonzero(had)
        else:
            known = np.concatenate([known, np.flatnonzero(had & ~brought)])
            brought |= had
        found.append(KnownItems.among(items, known))
    return tuple(found)


def items_listed(stages: Iterable[Interactions], catalogue: Catalogue, apart: bool) -> tuple[KnownItems, ...]:
    """Return what each stage knows of a fixed list: all, but for what was added to the list since and nobody needs.

    A list that was extended later has several versions; a stage knows the last version that it needs.
    """
    largest, found = -1, list[KnownItems]()
    for learners in stages:
        last = int(np.max(learners.item_index, initial=-1))
        largest = last if apart else max(largest, last)
        count = next(items for items in catalogue.versions if items > largest)
        found.append(KnownItems.among(catalogue.items, np.arange(count)))
    return tuple(found)


def _is_whole(places: NDArray[np.int64], total: int) -> bool:
    return len(places) == total and bool(np.array_equal(places, np.arange(total)))
