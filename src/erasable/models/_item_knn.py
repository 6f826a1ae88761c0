"""Item-kNN: cosines between the sets of people who have two items, shrunk (Deshpande and Karypis, TOIS 2004).

The shared parameters are whole numbers: how many people have each item, its nearest items, and how many people have
both. Similarities are computed from them when people are scored. So someone is subtracted without rounding.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from erasable.data.ids import Ids
from erasable.data.interactions import Interactions
from erasable.errors import option
from erasable.models._columns import (
    NEIGHBOURS,
    Columns,
    TouchedItems,
    change_counted,
    in_pieces,
    interaction_table,
    marked,
    owned_items,
    rows_counted,
    touched_by,
    with_features,
)
from erasable.models._columns_kernel import NOBODY, InteractionTable, by_source, count_together, summed, weights_for
from erasable.models.base import Arrays, Change, Effort, Model, Parameters, Scores, Size, Stage, frozen, read_only
from erasable.models.machine import refuse_beyond_memory
from erasable.models.settings import Settings
from erasable.seeding.compiled import compiled

OWNERS = "counts"
TOGETHER = "joint_counts"  # a scan takes an array of this name for numbers, one of "owners" for people
_LAST = 2**31 - 1
_CLOSED = 2**63 - 1  # above every key: a list that takes in nothing
_BYTES_OF_A_NEIGHBOUR = 2 * (4 + 4) + 4  # its number and count, before and after, and its similarity
_BYTES_OF_A_ROW = 32  # of the table: the item and the user, and sorting them
_ADDITIONS_OF_A_ROW = 64  # measured: to sort the rows by item takes 0.1 s for a million
_CLAMP = 1e-4


@compiled
def similarity(both: int, owners: int, others: int, shrinkage: float) -> np.float32:
    """Return both / (√(owners · others) + shrinkage), rounded to 32 bits: the number that is ranked and served."""
    return np.float32(both / (np.sqrt(np.float64(owners) * np.float64(others)) + shrinkage))


@compiled
def _key(bits: int, item: int) -> np.int64:
    """Return a number that is larger for a larger similarity, given by its bits; if equal, for the earlier item."""
    return (np.int64(bits) << 32) | (_LAST - item)


@compiled(nogil=True)
def nearest_columns(
    columns: NDArray[np.int64], number: int, shrinkage: float, table: InteractionTable
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return up to `number` most similar items of each item, ascending, and how many people have both."""
    size = len(table.owners)
    found = np.full((len(columns), number), NOBODY, np.int32)
    together = np.zeros((len(columns), number), np.int32)
    counts, listed = np.zeros(size, np.int32), np.empty(size, np.int32)
    near, keys = np.empty(size, np.float32), np.empty(size, np.int64)
    bits = near.view(np.int32)
    for place in range(len(columns)):
        column, others = columns[place], 0
        many = count_together(column, table, counts, listed)
        for item in listed[:many]:
            if item != column:
                near[others] = similarity(counts[item], table.owners[column], table.owners[item], shrinkage)
                keys[others] = _key(bits[others], item)
                others += 1
        kept = keys[:others]
        if others > number:
            kept = np.partition(kept, others - number)[others - number :]
        items = np.sort(_LAST - (kept & _LAST))
        for at in range(len(items)):
            found[place, at], together[place, at] = items[at], counts[items[at]]
        for item in listed[:many]:
            counts[item] = 0
    return found, together


def _weights_of(
    columns: NDArray[np.int64],
    neighbours: NDArray[np.int32],
    together: NDArray[np.int32],
    owners: NDArray[np.int32],
    shrinkage: float,
) -> NDArray[np.float32]:
    """Do the same as `weights_of` without compiled code: each number by the operations of `similarity`."""
    near, both = neighbours[columns], together[columns]
    others = np.append(owners, 1).astype(np.float64)[near]  # the last one stands for nobody
    scale = np.sqrt(owners[columns].astype(np.float64)[:, None] * others) + shrinkage
    found = np.divide(both, scale, out=np.zeros(near.shape), where=near != NOBODY)
    return found.astype(np.float32)


@compiled(nogil=True, plain=_weights_of)
def weights_of(
    columns: NDArray[np.int64],
    neighbours: NDArray[np.int32],
    together: NDArray[np.int32],
    owners: NDArray[np.int32],
    shrinkage: float,
) -> NDArray[np.float32]:
    """Return the similarities of some items to their neighbours, 0 where a list is not full."""
    found = np.zeros((len(columns), neighbours.shape[1]), np.float32)
    for place in range(len(columns)):
        column = columns[place]
        for at in range(neighbours.shape[1]):
            item = neighbours[column, at]
            if item != NOBODY:
                found[place, at] = similarity(together[column, at], owners[column], owners[item], shrinkage)
    return found


@compiled
def _farthest(
    column: int, near: NDArray[np.int32], both: NDArray[np.int32], owners: NDArray[np.int32], shrinkage: float
) -> int:
    """Return the key of a full list's farthest item."""
    value, smallest = np.empty(1, np.float32), _CLOSED
    bits = value.view(np.int32)
    for at in range(len(near)):
        value[0] = similarity(both[at], owners[column], owners[near[at]], shrinkage)
        smallest = min(smallest, _key(bits[0], near[at]))
    return smallest


@compiled
def _replace(near: NDArray[np.int32], both: NDArray[np.int32], gone: int, item: int, count: int) -> None:
    """Put an item and its count into an ascending list in place of another."""
    at = np.searchsorted(near, gone)
    while at > 0 and near[at - 1] > item:
        near[at], both[at] = near[at - 1], both[at - 1]
        at -= 1
    while at + 1 < len(near) and near[at + 1] < item:
        near[at], both[at] = near[at + 1], both[at + 1]
        at += 1
    near[at], both[at] = item, count


@compiled(nogil=True)
def let_in(
    items: NDArray[np.int64],
    is_found: NDArray[np.bool_],
    neighbours: NDArray[np.int32],
    together: NDArray[np.int32],
    table: InteractionTable,
    shrinkage: float,
) -> None:
    """Let some items into the full lists of others where they are nearer than the farthest, in place.

    Lists that are found anew are left out; one that is not full already holds every item that someone has with it.
    """
    size, number = neighbours.shape
    borders = np.full(size, _CLOSED, np.int64)
    for column in range(size):
        if not is_found[column] and neighbours[column, number - 1] != NOBODY:
            borders[column] = _farthest(column, neighbours[column], together[column], table.owners, shrinkage)
    counts, listed = np.zeros(size, np.int32), np.empty(size, np.int32)
    value = np.empty(1, np.float32)
    bits = value.view(np.int32)
    for item in items:
        for column in listed[: count_together(item, table, counts, listed)]:
            count = counts[column]
            counts[column] = 0
            if borders[column] == _CLOSED:
                continue
            value[0] = similarity(count, table.owners[column], table.owners[item], shrinkage)
            near, both = neighbours[column], together[column]
            place = np.searchsorted(near, item)
            if _key(bits[0], item) <= borders[column] or (place < number and near[place] == item):
                continue
            _replace(near, both, _LAST - (borders[column] & _LAST), item, count)
            borders[column] = _farthest(column, near, both, table.owners, shrinkage)


class CosineColumns(Columns):
    """The nearest items of each item, by shrunk cosines."""

    by_item = (NEIGHBOURS, OWNERS, TOGETHER)

    def __init__(self, number: int, shrinkage: float) -> None:
        super().__init__(number)
        self.shrinkage = shrinkage

    def no_columns(self, items: int) -> dict[str, NDArray[Any]]:
        """Return lists without neighbours, of items that nobody has."""
        return {
            NEIGHBOURS: np.full((items, self.number), NOBODY, np.int32),
            TOGETHER: np.zeros((items, self.number), np.int32),
            OWNERS: np.zeros(items, np.int32),
        }

    def refuse_beyond_memory(self, items: int, rows: int) -> None:
        """Refuse more items and rows than fit into memory."""
        needed = items * self.number * _BYTES_OF_A_NEIGHBOUR + rows * _BYTES_OF_A_ROW
        refuse_beyond_memory("item-knn", items, needed, "a smaller ", option("neighbours"))

    def solved(
        self, rows: Interactions, made: dict[str, NDArray[Any]], touched: TouchedItems | None, effort: Effort
    ) -> Arrays:
        """Find every list that the touched items reach, or all if None, from these rows, and return all lists.

        A touched item's own list is found anew, and so is a list that holds an item which more people have now: it may
        get farther. Any other list keeps its items and counts, and takes in touched items that got nearer.
        """
        self.refuse_beyond_memory(len(rows.items), len(rows))
        table, owned = interaction_table(rows), owned_items(rows)
        announced = self.samples(Size.of(rows)) if touched is None else self._announced(rows, touched)
        is_found = np.ones(len(table.owners), bool)
        if touched is None or 2 * len(touched.items) > len(owned):  # to find all lists takes less
            made, finding = self.no_columns(len(table.owners)), owned
        else:
            is_risen = marked(touched.risen, len(table.owners))
            is_found = marked(touched.items, len(table.owners))[:-1] | is_risen[made[NEIGHBOURS]].any(axis=1)
            finding = np.flatnonzero(is_found)
        made[OWNERS] = table.owners.copy()
        self._find(finding, made, table, effort, announced)
        if touched is not None and not is_found.all():
            let_in(touched.items, is_found, made[NEIGHBOURS], made[TOGETHER], table, self.shrinkage)
        return frozen(made)

    def _find(
        self,
        finding: NDArray[np.int64],
        made: dict[str, NDArray[Any]],
        table: InteractionTable,
        effort: Effort,
        announced: int,
    ) -> None:
        """Write some lists, and report the work that was announced."""
        task = partial(_nearest_of_some, finding, self.number, self.shrinkage, table)
        done = 0
        for low, high, (found, together) in in_pieces(task, len(finding), effort.threads):
            made[NEIGHBOURS][finding[low:high]], made[TOGETHER][finding[low:high]] = found, together
            share = announced * high // len(finding)
            effort.advance(share - done)
            done = share
        effort.advance(announced - done)

    def weights(self, shared: Arrays, columns: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the similarities of some items to their neighbours."""
        arrays = (read_only(shared[name]) for name in (NEIGHBOURS, TOGETHER, OWNERS))
        found: NDArray[np.float32] = weights_of(read_only(columns), *arrays, self.shrinkage)
        return found

    def samples(self, size: Size) -> int:
        """Return how many pairs of items are counted."""
        return size.pairs

    def samples_amended(self, interactions: Interactions, change: Change) -> int:
        """Return the same for amending by a change; how many lists hold an item that rose is estimated."""
        return self._announced(interactions, touched_by(change))

    def _announced(self, rows: Interactions, touched: TouchedItems) -> int:
        """Return the pairs that touched items are counted in, twice: for their own lists, and to let them in."""
        everything = self.samples(Size.of(rows))
        if not len(touched.items):
            return 0
        lengths = np.diff(rows.user_starts)
        pairs = np.bincount(rows.item_index, lengths[rows.user_index], minlength=len(rows.items))
        lists = min(1.0, len(touched.risen) * self.number / len(rows.items))
        work = 2 * int(pairs[touched.items].sum()) + int(lists * everything) + _ADDITIONS_OF_A_ROW * len(rows)
        return min(work, everything)


def _nearest_of_some(
    finding: NDArray[np.int64], number: int, shrinkage: float, table: InteractionTable, low: int, high: int
) -> Any:  # noqa: ANN401 - two arrays
    return nearest_columns(finding[low:high], number, shrinkage, table)


class ItemKNNSettings(Settings):
    """The settings of item-kNN."""

    searched: ClassVar[Mapping[str, Any]] = {"neighbours": (20, 1000), "shrinkage": (0.5, 500.0)}

    neighbours: int = Field(200, ge=1, le=10_000)
    """How many nearest items an item is scored by."""

    shrinkage: float = Field(50.0, ge=0, le=1e9)
    """What is added to the denominator of a cosine, so that items which few people have are less similar."""


class ItemKNN(Model):
    """Scores an item by its similarities to the user's items, summed over those among its nearest; see `Model`.

    The similarity of two items is c / (√(n · m) + shrinkage): n and m people have one of them, c people both. Ratings
    make no difference. Of equally similar items the earlier id is nearer.

    Parameters
    ----------
    **settings
        Those of `ItemKNNSettings`: `neighbours` and `shrinkage`.

    Examples
    --------
    >>> ItemKNN(neighbours=100, shrinkage=10)
    ItemKNN(neighbours=100, shrinkage=10.0)
    """

    name: ClassVar[str] = "item-knn"
    settings_class: ClassVar[type[Settings]] = ItemKNNSettings
    revision: ClassVar[int] = 1
    uses: ClassVar[tuple[str, ...]] = ("numba",)
    strategies: ClassVar[tuple[str, ...]] = ("retrain",)
    settings: ItemKNNSettings
    trains_rows = True  # there are none
    by_slot = True  # counts are whole numbers, so their order makes no difference
    has_rows = False
    uses_features = True

    def __init__(self, **settings: Any) -> None:  # noqa: ANN401 - as the settings class says
        super().__init__(**settings)
        self._columns = CosineColumns(self.settings.neighbours, self.settings.shrinkage)

    def start(self, catalogue: Ids, seed: int) -> Arrays:
        """Return lists without neighbours."""
        return self._columns.start(catalogue)

    def extended(self, shared: Arrays, catalogue: Ids, seed: int) -> Arrays:
        """Add new items, which nobody has yet."""
        return self._columns.extended(shared, catalogue)

    def by_item(self) -> tuple[str, ...]:
        """Return all arrays: a change reaches few of their rows."""
        return self._columns.by_item

    def train(self, shared: Arrays, stage: Stage, effort: Effort) -> Parameters:
        """Find the nearest items of each item; the stage holds all data there is.

        A feature counts like as many people as its weight says, who have its items.
        """
        rows = with_features(stage.interactions, stage.features)
        if len(rows) == 0:
            return Parameters({name: array.copy() for name, array in shared.items()}, {})
        counted = rows_counted(rows, stage)
        if counted is rows:
            return Parameters(self._columns.train(shared, rows, effort), {})
        found = self._columns.train(shared, counted, Effort(effort.threads))
        effort.advance(self.samples(rows, stage.epochs))  # which counts features once
        return Parameters(found, {})

    def amended(self, trained: Arrays, change: Change, effort: Effort) -> Arrays:
        """Find again only the lists that a change reaches."""
        if change.features is None:
            return self._columns.amended(trained, change, effort)
        found = self._columns.amended(trained, change_counted(change), Effort(effort.threads))
        effort.advance(self.samples_amended(change.given if change.after is None else change.after, change))
        return found

    def provisional(self, shared: Arrays, change: Change) -> Arrays:
        """Return the amended lists: nothing of the users who leave is left in them."""
        return self._columns.provisional(shared, change_counted(change))

    def prepare(self, shared: Arrays) -> tuple[NDArray[Any], ...]:
        """Return the similarities by source item: where its own begin, the items scored, the similarities (CSR)."""
        weights = self._columns.weights(shared, np.arange(len(shared[OWNERS])))
        return tuple(map(read_only, by_source(read_only(shared[NEIGHBOURS]), read_only(weights))))

    def represent(self, prepared: tuple[NDArray[Any], ...], people: Stage, effort: Effort) -> Arrays:
        """Return no rows: item-kNN has none."""
        return {}

    def score(self, prepared: tuple[NDArray[Any], ...], row: Arrays, owned: NDArray[np.int32]) -> Scores:
        """Score each item by the sum of the owned items' similarities to it, in the order of the catalogue."""
        scores: Scores = summed(*prepared, read_only(owned))
        return scores

    def reasons(self, prepared: tuple[NDArray[Any], ...], owned: NDArray[np.int32], item: int) -> Scores:
        """Return the similarity of each owned item to one item, 0 where it is not among its nearest."""
        found: Scores = weights_for(*prepared, read_only(owned), item)
        return found

    def similar(self, shared: Arrays, number: int) -> Scores:
        """Return the similarity to each item, 0 where neither is among the other's nearest."""
        neighbours = shared[NEIGHBOURS]
        found = np.zeros(len(neighbours), np.float32)
        holders = np.flatnonzero((neighbours == number).any(axis=1))
        found[holders] = self._columns.weights(shared, holders)[neighbours[holders] == number]
        own = neighbours[number] != NOBODY
        found[neighbours[number][own]] = self._columns.weights(shared, np.array([number]))[0][own]
        return found

    def probability(self, scores: Scores) -> NDArray[np.float64]:
        """Return s / (1 + s) of each score s, clamped away from 0 and 1."""
        wide = scores.astype(np.float64)
        return np.clip(wide / (1 + wide), _CLAMP, 1 - _CLAMP)

    def samples(self, interactions: Interactions | Size, epochs: int) -> int:
        """Return how many pairs of items are counted."""
        return self._columns.samples(Size.of(interactions))

    def samples_amended(self, interactions: Interactions, change: Change) -> int:
        """Return the same for amending by a change."""
        return self._columns.samples_amended(with_features(interactions, change.features), change)
