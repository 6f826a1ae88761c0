"""What models share that keep a list of nearest items for each item: which lists a change reaches, and how they start.

Such a list follows from whole-number counts alone: how many people have an item, and how many have two. So a change is
amended by finding the lists that it reaches again, to the same bytes as training from the start.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from erasable.data.ids import Ids
from erasable.data.interactions import Interactions
from erasable.errors import WrongUse
from erasable.models._columns_kernel import NOBODY, InteractionTable, beside
from erasable.models.base import Arrays, Change, Effort, Stage, frozen, read_only
from erasable.threads import pool_of

NEIGHBOURS = "neighbours"
_COLUMNS_AT_ONCE = 64
_NO_PAIRS = read_only(np.zeros((0, 0), np.int32))


class TouchedItems(NamedTuple):
    """The items of the users whose data change, and those of them that more people have than before."""

    items: NDArray[np.int64]
    risen: NDArray[np.int64]


class Columns(ABC):
    """A list of nearest items for each item, with numbers of its own beside it; see `Model` for the public methods."""

    def __init__(self, number: int) -> None:
        self.number = number

    @abstractmethod
    def no_columns(self, items: int) -> dict[str, NDArray[Any]]:
        """Return arrays with an empty row for each item; one of them is `NEIGHBOURS`."""

    @abstractmethod
    def solved(
        self, rows: Interactions, made: dict[str, NDArray[Any]], touched: TouchedItems | None, effort: Effort
    ) -> Arrays:
        """Write every column that the touched items reach, or all if None, from these rows; return all columns."""

    @abstractmethod
    def refuse_beyond_memory(self, items: int, rows: int) -> None:
        """Refuse to learn from so many items and rows if that needs more memory than is available."""

    def start(self, catalogue: Ids) -> Arrays:
        """Return columns without neighbours."""
        self.refuse_beyond_memory(len(catalogue), 0)
        return frozen(self.no_columns(len(catalogue)))

    def extended(self, shared: Arrays, catalogue: Ids) -> Arrays:
        """Add empty columns for new items."""
        return frozen(self.renumbered(shared, np.arange(len(shared[NEIGHBOURS])), len(catalogue)))

    def train(self, shared: Arrays, interactions: Interactions, effort: Effort) -> Arrays:
        """Solve a column for each item that someone has; there is only one stage, so nothing was learned before."""
        return self.solved(interactions, self.no_columns(len(interactions.items)), None, effort)

    def amended(self, trained: Arrays, change: Change, effort: Effort) -> Arrays:
        """Solve only the columns that a change reaches, from the counts after it."""
        if change.after is None:
            raise WrongUse("to amend columns takes everyone's rows after the change: give them as Change.after")
        touched = touched_by(change)
        if change.taken.items != change.after.items:
            places = change.after.items.positions_of(change.taken.items.array)
            columns = self.renumbered(trained, places, len(change.after.items))
            if (np.diff(places[places >= 0]) < 0).any():  # ties go by number: any column may have changed
                return self.solved(change.after, self.no_columns(len(change.after.items)), None, effort)
        else:
            columns = {name: array.copy() for name, array in trained.items()}
        return self.solved(change.after, columns, touched, effort)

    def provisional(self, shared: Arrays, change: Change) -> Arrays:
        """Return the amended parameters: nothing of the users who leave is left in them."""
        if not len(change.taken) and not len(change.given):
            return shared
        return self.amended(shared, change, Effort())

    def renumbered(self, shared: Arrays, places: NDArray[np.int64], items: int) -> dict[str, NDArray[Any]]:
        """Return columns over another list of items; a column that loses an item is solved again as touched."""
        columns, stays = self.no_columns(items), places >= 0
        for name, array in shared.items():
            columns[name][places[stays]] = array[stays]
        columns[NEIGHBOURS][places[stays]] = np.append(places, NOBODY)[shared[NEIGHBOURS][stays]]
        return columns


def with_features(rows: Interactions, features: Interactions | None, weights: bool = False) -> Interactions:
    """Return rows with one more for each feature, as if somebody had its items; without weights, each row counts 1."""
    if features is None:
        return rows
    people, parts = len(rows.users), (rows if weights else rows.unweighted, features)
    users = np.concatenate([rows.user_index, features.user_index + np.int32(people)])
    items, rating = np.concatenate([part.item_index for part in parts]), np.concatenate([part.rating for part in parts])
    return Interactions(_numbered(people + len(features.users)), rows.items, users, items, rating, by_slot=True)


def rows_counted(rows: Interactions, stage: Stage) -> Interactions:
    """Return a stage's rows with features as people to count, in levels; itself if each row counts once."""
    return in_levels(rows) if stage.weights or stage.features is not None else rows


def change_counted(change: Change) -> Change:
    """Return a change in levels, with its features among the rows after it; itself if it has neither."""
    if not change.weights and change.features is None:
        return change
    parts = change.taken, change.given
    taken, given = (in_levels(part) for part in parts) if change.weights else parts
    after = change.after
    return Change(
        taken, given, None if after is None else in_levels(with_features(after, change.features, change.weights))
    )


def in_levels(interactions: Interactions) -> Interactions:
    """Return a row without weights for each unit of weight: at level n, what a person has with a weight of n or more.

    So counts stay whole numbers, weights that are all 1 give the rows themselves, and whoever has two items with the
    weights v and w adds min(v, w) to their count.
    """
    levels = interactions.rating.astype(np.int64)
    most = int(np.max(levels, initial=1))
    if most == 1:
        return interactions
    users, items, count = [], [], 0
    for level in range(1, most + 1):
        is_there = levels >= level
        begins = np.diff(interactions.user_index[is_there], prepend=-1) > 0
        users.append(count + np.cumsum(begins) - 1)
        items.append(interactions.item_index[is_there])
        count += int(np.count_nonzero(begins))
    columns = np.concatenate(users), np.concatenate(items)
    ones = np.ones(len(columns[0]), np.float32)
    return Interactions(_numbered(count), interactions.items, *columns, ones, by_slot=True)


def _numbered(count: int) -> Ids:
    """Return ids for rows of which only the number matters."""
    return Ids.unchecked(pa.array(np.arange(count)).cast(pa.string()))


def interaction_table(rows: Interactions) -> InteractionTable:
    """Return items by user and users by item; pairs are counted when they are needed."""
    starts, users = beside(read_only(rows.item_index), read_only(rows.user_index), len(rows.items))
    owners = np.diff(starts).astype(np.int32)
    arrays: list[NDArray[Any]] = [owners, rows.user_starts, rows.item_index, starts, users, _NO_PAIRS]
    return InteractionTable(*map(read_only, arrays))


def owned_items(rows: Interactions) -> NDArray[np.int64]:
    """Return the items that someone has."""
    return np.flatnonzero(np.bincount(rows.item_index, minlength=len(rows.items)))


def in_pieces(task: Callable[[int, int], Any], size: int, threads: int) -> Iterator[tuple[int, int, Any]]:
    """Run a task on pieces of some columns, on several threads; yield the results in order."""
    lows = range(0, size, _COLUMNS_AT_ONCE)
    highs = [min(low + _COLUMNS_AT_ONCE, size) for low in lows]
    with pool_of(threads) as pool:
        yield from zip(lows, highs, pool.map(task, lows, highs), strict=True)


def marked(items: NDArray[np.int64], size: int) -> NDArray[np.bool_]:
    """Return a mask of some items; its last entry stands for `NOBODY`."""
    is_marked = np.zeros(size + 1, bool)
    is_marked[items] = True
    return is_marked


def touched_by(change: Change) -> TouchedItems:
    """Return the items of the users whose data change, numbered as after the change; removed items are left out."""
    size, items = len(change.given.items), change.given.items
    taken = change.taken.item_index.astype(np.int64)
    if change.taken.items != items:
        taken = items.positions_of(change.taken.items.array)[taken]
    taken = taken[taken >= 0]
    more = np.bincount(change.given.item_index, minlength=size) - np.bincount(taken, minlength=size)
    return TouchedItems(np.union1d(taken, change.given.item_index.astype(np.int64)), np.flatnonzero(more > 0))
