"""EASE from neighbourhoods: each item's column of weights, solved from the counts of its nearest items alone.

The shared parameters are each item's neighbours (the largest cosines between the sets of people who have them), their
weights, and the border that an item must pass to become a neighbour. A column depends on counts within its own
neighbourhood alone. So a change is amended by solving the columns that it reaches, to the same bytes as training from
the start.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from erasable.data.ids import Ids
from erasable.data.interactions import Interactions
from erasable.errors import WrongUse, option
from erasable.models._columns_kernel import (
    NOBODY,
    InteractionTable,
    Penalty,
    by_source,
    column_weights,
    coming_in,
    nearest_items,
    summed,
    weights_for,
)
from erasable.models._gram import add_rows, by_item, count_pairs, signed_rows
from erasable.models.base import Arrays, Change, Effort, Scores, frozen, read_only
from erasable.models.machine import one_blas_thread, refuse_beyond_memory
from erasable.threads import pool_of

NEIGHBOURS = "neighbours"
WEIGHTS = "weights"
BORDERS = "borders"
USUAL_PENALTY = Penalty(base=40.0, share=1.0, half=40.0)
"""The penalty where no regularisation is given; see `_columns_kernel.penalties`."""
LEAST_BASE = 0.01
"""The least base that is safe for any 32-bit counts: rounding errors in a pivot stay below it, whoever leaves."""
_COLUMNS_AT_ONCE = 64
_CUBES_PER_ADDITION = 32  # measured, one core: 2 ns an addition; a column of 200 neighbours 0.4 ms, of 100 0.07 ms
_SAMPLED, _ASSUMED = 256, 64  # columns from which the number that a change reaches is estimated
_ADDITIONS_OF_A_ROW = 64  # measured: 0.07 s for 0.6 M rows, to sort them by item and to read columns
_NOT_COUNTED = read_only(np.zeros((0, 0), np.int32))
_BYTES_OF_A_NEIGHBOUR = 2 * (4 + 4 + 1)  # its number and weight, before and after, and two masks
_BYTES_OF_A_ROW = 32  # of the table: the item and the user, and sorting them
_LARGEST_DENSE = 2**14  # items; a matrix of counts of more than 1 GiB is not built


class _Touched(NamedTuple):
    """The items of the users whose data change, and those of them that more people have than before."""

    items: NDArray[np.int64]
    risen: NDArray[np.int64]


class ColumnEASE:
    """EASE from neighbourhoods; see `Model` for the methods."""

    by_item = (BORDERS, NEIGHBOURS, WEIGHTS)

    def __init__(self, number: int, regularisation: float | None) -> None:
        self.number = number
        self.regularisation = regularisation

    def start(self, catalogue: Ids) -> Arrays:
        """Return columns without neighbours."""
        self._refuse_beyond_memory(len(catalogue), 0)
        return frozen(self._no_columns(len(catalogue)))

    def extended(self, shared: Arrays, catalogue: Ids) -> Arrays:
        """Add empty columns for new items."""
        return frozen(self._renumbered(shared, np.arange(len(shared[NEIGHBOURS])), len(catalogue)))

    def train(self, shared: Arrays, interactions: Interactions, effort: Effort) -> Arrays:
        """Solve a column for each item that someone has; there is only one stage, so nothing was learned before."""
        return self._solved(interactions, self._no_columns(len(interactions.items)), None, effort)

    def amended(self, trained: Arrays, change: Change, effort: Effort) -> Arrays:
        """Solve only the columns that a change reaches, from the counts after it."""
        if change.after is None:
            raise WrongUse("to amend columns takes everyone's rows after the change: give them as Change.after")
        touched = _touched(change)
        if change.taken.items != change.after.items:
            places = change.after.items.positions_of(change.taken.items.array)
            columns = self._renumbered(trained, places, len(change.after.items))
            if (np.diff(places[places >= 0]) < 0).any():  # ties go by number: any column may have changed
                return self._solved(change.after, self._no_columns(len(change.after.items)), None, effort)
        else:
            columns = {name: array.copy() for name, array in trained.items()}
        return self._solved(change.after, columns, touched, effort)

    def provisional(self, shared: Arrays, change: Change) -> Arrays:
        """Return the amended parameters: nothing of the users who leave is left in them."""
        if not len(change.taken) and not len(change.given):
            return shared
        return self.amended(shared, change, Effort())

    def prepare(self, shared: Arrays) -> tuple[NDArray[Any], ...]:
        """Return the weights by source item: where its own begin, the columns, the weights (CSR)."""
        return tuple(map(read_only, by_source(read_only(shared[NEIGHBOURS]), read_only(shared[WEIGHTS]))))

    def score(self, prepared: tuple[NDArray[Any], ...], owned: NDArray[np.int32]) -> Scores:
        """Score each item by the sum of the owned items' weights, in the order of the catalogue."""
        scores: Scores = summed(*prepared, read_only(owned))
        return scores

    def reasons(self, prepared: tuple[NDArray[Any], ...], owned: NDArray[np.int32], item: int) -> Scores:
        """Return the weight of each owned item for one item, 0 if it is no neighbour."""
        found: Scores = weights_for(*prepared, read_only(owned), item)
        return found

    def similar(self, shared: Arrays, number: int) -> Scores:
        """Return the mean of the weights that two items have for each other; 0 if neither is the other's neighbour."""
        neighbours, weights = shared[NEIGHBOURS], shared[WEIGHTS]
        columns, places = np.nonzero(neighbours == number)
        found = np.zeros(len(neighbours), np.float32)
        found[columns] = weights[columns, places]
        own = neighbours[number] != NOBODY
        found[neighbours[number][own]] += weights[number][own]
        return found / np.float32(2)

    def samples(self, interactions: Interactions) -> int:
        """Return the number of additions to a Gram matrix, plus solving a column for each item in the same unit."""
        work = self._work(len(_owned(interactions)), len(interactions.items))
        return count_pairs(interactions.user_starts) + work

    def samples_amended(self, interactions: Interactions, change: Change) -> int:
        """Return the same for amending by a change; the number of columns that it reaches is estimated."""
        return self._announced(interactions, _touched(change).items, _table(interactions, 1, is_dense=False))

    def _announced(self, rows: Interactions, touched: NDArray[np.int64], table: InteractionTable) -> int:
        """Estimate the work of solving the columns that touched items reach.

        Some columns are sampled. Where few are reached, the sample may hold none of them, so some more columns are
        assumed in which every item is equally likely to be a neighbour.
        """
        owned = np.flatnonzero(table.owners)
        if not len(owned) or not len(touched):
            return 0
        sampled = owned[np.linspace(0, len(owned) - 1, min(len(owned), _SAMPLED)).astype(np.int64)]
        near, _ = nearest_items(sampled, self.number, table._replace(dense=_NOT_COUNTED))
        is_touched = _marked(touched, len(table.owners))
        hits = np.count_nonzero(is_touched[sampled] | is_touched[near].any(axis=1))
        assumed = 0 if len(sampled) == len(owned) else _ASSUMED
        by_chance = 1 - np.exp(-len(touched) * (1 + self.number) / len(owned))
        reached = (hits + assumed * by_chance) / (len(sampled) + assumed) * len(owned)
        counted = len(rows) * _ADDITIONS_OF_A_ROW + _is_dense(rows) * count_pairs(rows.user_starts)
        work = self._work(max(len(touched), round(reached)), len(table.owners))
        return min(counted + work * 3 // 4, self.samples(rows))  # most of them keep their neighbours

    def _work(self, columns: int, items: int) -> int:
        """Return the work of solving so many columns, as the number of additions that take as long."""
        size = max(0, min(self.number, items - 1))
        return columns * size * (size**2 // _CUBES_PER_ADDITION + _CUBES_PER_ADDITION)

    def _solved(
        self, rows: Interactions, made: dict[str, NDArray[Any]], touched: _Touched | None, effort: Effort
    ) -> Arrays:
        """Solve every column that the touched items reach, or all if None, from these rows, and return all columns.

        A touched item reaches its own column, every column that held it as a neighbour, and every column that takes it
        in, since fewer owners make a larger cosine. Any other column has the same neighbours with the same counts, and
        so the same weights.
        """
        is_dense = _is_dense(rows)
        self._refuse_beyond_memory(len(rows.items), len(rows), is_dense)
        table = _table(rows, effort.threads, is_dense=is_dense)
        if touched is None:
            solving = selecting = _owned(rows)
            announced = self.samples(rows)
        else:
            solving, selecting = _reached(touched, made, table)
            announced = self._announced(rows, touched.items, table)
        _find_nearest(selecting, made, table, effort.threads)
        task, done = partial(self._weights, solving, made[NEIGHBOURS], table), 0
        with one_blas_thread():
            for low, high, solved in _in_pieces(task, len(solving), effort.threads):
                made[WEIGHTS][solving[low:high]] = solved
                share = announced * high // len(solving)
                effort.advance(share - done)
                done = share
        effort.advance(announced - done)
        return frozen(made)

    def _weights(
        self, solving: NDArray[np.int64], neighbours: NDArray[np.int32], table: InteractionTable, low: int, high: int
    ) -> NDArray[np.float32]:
        penalty = USUAL_PENALTY if self.regularisation is None else Penalty(self.regularisation, 0.0, 1.0)
        columns = solving[low:high]
        found: NDArray[np.float32] = column_weights(columns, neighbours[columns], table, penalty)
        return found

    def _no_columns(self, items: int) -> dict[str, NDArray[Any]]:
        shape = (items, self.number)
        return {
            NEIGHBOURS: np.full(shape, NOBODY, np.int32),
            WEIGHTS: np.zeros(shape, np.float32),
            BORDERS: np.full((items, 2), NOBODY, np.int32),
        }

    def _renumbered(self, shared: Arrays, places: NDArray[np.int64], items: int) -> dict[str, NDArray[Any]]:
        """Return columns over another list of items; a column that loses an item is solved again as touched."""
        columns, stays = self._no_columns(items), places >= 0
        renamed = np.append(places, NOBODY)
        columns[NEIGHBOURS][places[stays]] = renamed[shared[NEIGHBOURS][stays]]
        columns[WEIGHTS][places[stays]] = shared[WEIGHTS][stays]
        columns[BORDERS][places[stays], 0] = renamed[shared[BORDERS][stays, 0]]
        columns[BORDERS][places[stays], 1] = shared[BORDERS][stays, 1]
        return columns

    def _refuse_beyond_memory(self, items: int, rows: int, is_dense: bool = False) -> None:
        needed = items * self.number * _BYTES_OF_A_NEIGHBOUR + rows * _BYTES_OF_A_ROW + is_dense * 4 * items**2
        refuse_beyond_memory(items, needed, "a smaller ", option("neighbours"))


def _owned(rows: Interactions) -> NDArray[np.int64]:
    """Return the items that someone has."""
    return np.flatnonzero(np.bincount(rows.item_index, minlength=len(rows.items)))


def _is_dense(rows: Interactions) -> bool:
    """Whether all pairs are counted first, which is faster where most pairs occur twice or more."""
    items = len(rows.items)
    return items <= _LARGEST_DENSE and count_pairs(rows.user_starts) > 2 * items**2


def _table(rows: Interactions, threads: int, *, is_dense: bool) -> InteractionTable:
    """Return items by user and users by item, and the Gram matrix if it is dense."""
    items, signed = len(rows.items), signed_rows(rows, 1)
    owners = by_item(signed, items)
    dense = np.zeros((items, items) if is_dense else (0, 0), np.int32)
    if is_dense:
        add_rows(dense, signed, Effort(threads))
    counts = np.diff(owners.starts).astype(np.int32)
    arrays: list[NDArray[Any]] = [counts, rows.user_starts, rows.item_index, owners.starts, owners.users, dense]
    return InteractionTable(*map(read_only, arrays))


def _in_pieces(task: Callable[[int, int], Any], size: int, threads: int) -> Iterator[tuple[int, int, Any]]:
    """Run a task on pieces of some columns, on several threads; yield the results in order."""
    lows = range(0, size, _COLUMNS_AT_ONCE)
    highs = [min(low + _COLUMNS_AT_ONCE, size) for low in lows]
    with pool_of(threads) as pool:
        yield from zip(lows, highs, pool.map(task, lows, highs), strict=True)


def _find_nearest(
    selecting: NDArray[np.int64], made: dict[str, NDArray[Any]], table: InteractionTable, threads: int
) -> None:
    """Write the neighbours and borders of some columns into `made`."""
    task = partial(_nearest_of_some, selecting, made[NEIGHBOURS].shape[1], table)
    for low, high, (found, borders) in _in_pieces(task, len(selecting), threads):
        made[NEIGHBOURS][selecting[low:high]] = found
        made[BORDERS][selecting[low:high]] = borders


def _nearest_of_some(selecting: NDArray[np.int64], number: int, table: InteractionTable, low: int, high: int) -> Any:  # noqa: ANN401 - two arrays
    return nearest_items(selecting[low:high], number, table)


def _reached(touched: _Touched, made: Arrays, table: InteractionTable) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return which columns a change reaches, and those of them whose neighbours may change.

    A column whose own item is not touched keeps its counts. So it keeps its neighbours unless a touched item comes in,
    is the farthest of them, or gets farther because more people have it.
    """
    if np.count_nonzero(table.owners[touched.items]) == np.count_nonzero(table.owners):
        return touched.items, touched.items
    neighbours, borders = made[NEIGHBOURS], made[BORDERS]
    is_touched, is_risen = (_marked(items, len(table.owners)) for items in (touched.items, touched.risen))
    selecting = is_touched[:-1] | is_touched[borders[:, 0]] | coming_in(touched.items, neighbours, borders, table)
    if len(touched.risen):
        selecting |= is_risen[neighbours].any(axis=1)
    return np.flatnonzero(selecting | is_touched[neighbours].any(axis=1)), np.flatnonzero(selecting)


def _marked(items: NDArray[np.int64], size: int) -> NDArray[np.bool_]:
    """Return a mask of some items; its last entry stands for `NOBODY`."""
    is_marked = np.zeros(size + 1, bool)
    is_marked[items] = True
    return is_marked


def _touched(change: Change) -> _Touched:
    """Return the items of the users whose data change, numbered as after the change; removed items are left out."""
    size, items = len(change.given.items), change.given.items
    taken = change.taken.item_index.astype(np.int64)
    if change.taken.items != items:
        taken = items.positions_of(change.taken.items.array)[taken]
    taken = taken[taken >= 0]
    more = np.bincount(change.given.item_index, minlength=size) - np.bincount(taken, minlength=size)
    return _Touched(np.union1d(taken, change.given.item_index.astype(np.int64)), np.flatnonzero(more > 0))
