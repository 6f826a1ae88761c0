"""The items that each stage of a chain knows, and their numbers there."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from erasable.data.catalogue import Catalogue
from erasable.data.ids import Ids
from erasable.data.interactions import Interactions


@dataclass(frozen=True, eq=False)
class KnownItems:
    """The items that a stage knows, in the order of its numbering, and the place of each among all items."""

    ids: Ids
    places: NDArray[np.int64]
    total: int
    """How many items there are in all."""

    @classmethod
    def among(cls, items: Ids, places: NDArray[np.int64]) -> "KnownItems":
        """Return the items at some places in the list of all items."""
        return cls(items if _is_whole(places, len(items)) else items.take(places), places, len(items))

    def over(self, rows: Interactions) -> Interactions:
        """Return the rows whose items are known, numbered as the stage numbers them."""
        return rows if self._is_whole else rows.renumbered(self.ids, self._numbers)

    def numbers_of(self, owned: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return the stage's numbers of the items that it knows, ascending."""
        if self._is_whole:
            return owned
        found = self._numbers[owned]
        return np.sort(found[found >= 0]).astype(np.int32)

    def among_all(self, scores: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return a score for each of all items, −∞ for those that the stage does not know."""
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
        """The stage's number of each of all items, −1 if it does not know the item."""
        numbers = np.full(self.total, -1, dtype=np.int64)
        numbers[self.places] = np.arange(len(self.places))
        return numbers


def items_brought(had: NDArray[np.bool_], items: Ids, apart: bool) -> tuple[KnownItems, ...]:
    """Return the items each stage knows without a declared catalogue: those of its learners and of earlier stages.

    `had` says which items the learners of each stage have. Items are numbered in the order in which stages bring them,
    by id within a stage. Stages that are `apart` (sisa) know only their own. The list of all items is sorted.
    """
    brought = np.zeros(len(items), dtype=bool)
    known, found = np.empty(0, dtype=np.int64), list[KnownItems]()
    for own in had:
        if apart:
            known = np.flatnonzero(own)
        else:
            known = np.concatenate([known, np.flatnonzero(own & ~brought)])
            brought |= own
        found.append(KnownItems.among(items, known))
    return tuple(found)


def items_listed(had: NDArray[np.bool_], catalogue: Catalogue, apart: bool) -> tuple[KnownItems, ...]:
    """Return the items each stage knows of a declared catalogue: the first version that holds all it needs.

    A catalogue that was extended later has several versions.
    """
    largest, found = -1, list[KnownItems]()
    for own in had:
        last = int(np.max(np.flatnonzero(own), initial=-1))
        largest = last if apart else max(largest, last)
        count = next(items for items in catalogue.versions if items > largest)
        found.append(KnownItems.among(catalogue.items, np.arange(count)))
    return tuple(found)


def _is_whole(places: NDArray[np.int64], total: int) -> bool:
    return len(places) == total and bool(np.array_equal(places, np.arange(total)))
