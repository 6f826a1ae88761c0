"""EASE from neighbourhoods: each item's column of weights, solved from the counts of its nearest items alone.

The shared parameters are each item's neighbours (the largest cosines between the sets of people who have them), their
weights, and the border that an item must pass to become a neighbour. A column depends on counts within its own
neighbourhood alone. So a change is amended by solving the columns that it reaches, to the same bytes as training from
the start.

Dense EASE shares the counting: Gram matrices item by item, and the correction of a stored inverse for users who came or
went.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from erasable.data.interactions import Interactions
from erasable.errors import option
from erasable.models._columns import (
    NEIGHBOURS,
    Columns,
    TouchedItems,
    in_pieces,
    interaction_table,
    marked,
    owned_items,
    touched_by,
)
from erasable.models._columns_kernel import (
    NOBODY,
    InteractionTable,
    Neighbourhoods,
    Penalty,
    beside,
    by_source,
    column_weights,
    coming_in,
    count_within,
    earlier_items,
    earlier_sizes,
    grouped,
    nearest_items,
    summed,
    weights_for,
)
from erasable.models.base import Arrays, Change, Effort, Scores, Size, frozen, read_only
from erasable.models.machine import one_blas_thread, refuse_beyond_memory
from erasable.seeding.compiled import compiled
from erasable.threads import pool_of

_TILE = 64
_ROWS_AT_ONCE = 64


class SignedRows(NamedTuple):
    """The items of some users (CSR); each user is added (+1) or subtracted (−1)."""

    starts: NDArray[np.int64]
    items: NDArray[np.int32]
    signs: NDArray[np.int32]


class ByItem(NamedTuple):
    """The users of each item (CSR)."""

    starts: NDArray[np.int64]
    users: NDArray[np.int32]


NO_ROWS = SignedRows(np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0, np.int32))


def signed_rows(interactions: Interactions, sign: int) -> SignedRows:
    """Return the rows of some interactions, all with one sign."""
    signs = np.full(len(interactions.users), sign, np.int32)
    return SignedRows(interactions.user_starts, interactions.item_index, signs)


def rows_of_change(change: Change) -> SignedRows:
    """Return what a change adds, then what it removes, so that no intermediate matrix goes below 0."""
    return joined(signed_rows(change.given, 1), signed_rows(change.taken, -1))


def joined(first: SignedRows, second: SignedRows) -> SignedRows:
    """Return the rows of both, one after the other."""
    starts = np.concatenate([first.starts, second.starts[1:] + len(first.items)])
    items, signs = (np.concatenate(columns) for columns in zip(first[1:], second[1:], strict=True))
    return SignedRows(starts, items, signs)


def count_pairs(starts: NDArray[np.int64]) -> int:
    """Return the number of additions that these rows take in the Gram matrix."""
    lengths = np.diff(starts)
    return int(lengths @ lengths)


def by_item(rows: SignedRows, catalogue: int) -> ByItem:
    """Return the users of each item of the catalogue."""
    users = np.repeat(np.arange(len(rows.signs), dtype=np.int32), np.diff(rows.starts))
    return ByItem(*beside(read_only(rows.items), read_only(users), catalogue))


@compiled(nogil=True)
def add_pairs(gram: NDArray[np.int32], rows: SignedRows, owners: ByItem, low: int, high: int) -> int:
    """Add each user's pairs of items to the rows from low up to high, in place; return the number of additions.

    A row of the Gram matrix stays in the processor's cache while all users of its item are added. A sum is at most the
    number of users, which fits in 32 bits, so it can't overflow.
    """
    added = 0
    for item in range(low, high):
        total = gram[item]
        for place in range(owners.starts[item], owners.starts[item + 1]):
            user = owners.users[place]
            sign = rows.signs[user]
            owned = rows.items[rows.starts[user] : rows.starts[user + 1]]
            added += len(owned)
            for other in owned:
                total[np.uint32(other)] += sign  # numba skips its check for a negative index: twice as fast
    return added


def add_rows(gram: NDArray[np.int32], rows: SignedRows, effort: Effort) -> None:
    """Add rows to a Gram matrix in place; a thread owns whole rows of it, so threads can't change a sum."""
    fixed = SignedRows(*(read_only(column) for column in rows))
    task = partial(add_pairs, gram, fixed, by_item(fixed, len(gram)))
    lows = range(0, len(gram), _ROWS_AT_ONCE)
    highs = [min(low + _ROWS_AT_ONCE, len(gram)) for low in lows]
    with pool_of(effort.threads) as pool:
        for added in pool.map(task, lows, highs):
            effort.advance(added)


@compiled(nogil=True)
def rounded_from_upper(matrix: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return the symmetric matrix of a given upper triangle, rounded; tile by tile, to stay in the cache."""
    size = len(matrix)
    rounded = np.empty((size, size), np.float32)
    for top in range(0, size, _TILE):
        for left in range(top, size, _TILE):
            for row in range(top, min(top + _TILE, size)):
                for column in range(max(left, row), min(left + _TILE, size)):
                    value = np.float32(matrix[row, column])
                    rounded[row, column] = value
                    rounded[column, row] = value
    return rounded


_BLOCK = 16  # vectors that stay in the processor's cache together

Doubles = NDArray[np.float64]


@compiled
def _sum_at(values: Doubles, places: NDArray[np.int32]) -> float:
    total = 0.0
    for place in places:
        total += values[place]
    return total


@compiled
def _sum_rows(matrix: NDArray[np.float32], rows: NDArray[np.int32], total: Doubles) -> None:
    """Write the sum of some rows, in their order; four at a time, to write the total less often."""
    for column in range(len(total)):
        total[column] = 0.0
    fours = len(rows) - len(rows) % 4
    for at in range(0, fours, 4):
        one, two = matrix[rows[at]], matrix[rows[at + 1]]
        three, four = matrix[rows[at + 2]], matrix[rows[at + 3]]
        for column in range(len(total)):
            total[column] = (((total[column] + one[column]) + two[column]) + three[column]) + four[column]
    for row in rows[fours:]:
        for column in range(len(total)):
            total[column] += matrix[row, column]


@compiled
def _take_away(target: Doubles, factor: float, vector: Doubles) -> None:
    for place in range(len(target)):
        target[place] -= factor * vector[place]


@compiled(nogil=True)
def add_vectors(
    inverse: NDArray[np.float32],
    vectors: Doubles,
    pivots: Doubles,
    rows: SignedRows,
    known: int,
) -> None:
    """Compute the vectors and pivots from number `known` on, in place, from all rows."""
    starts, items, signs = rows.starts, rows.items, rows.signs
    count = len(vectors)
    for number in range(known, count):
        _sum_rows(inverse, items[starts[number] : starts[number + 1]], vectors[number])
    for low in range(0, count, _BLOCK):
        high = min(low + _BLOCK, count)
        for number in range(max(low, known), count):
            own = items[starts[number] : starts[number + 1]]
            for earlier in range(low, min(high, number)):
                _take_away(vectors[number], _sum_at(vectors[earlier], own) / pivots[earlier], vectors[earlier])
            if number < high:
                pivots[number] = signs[number] + _sum_at(vectors[number], own)


@compiled(nogil=True)
def item_scores(
    inverse: NDArray[np.float32],
    diagonal: Doubles,
    vectors: Doubles,
    pivots: Doubles,
    owned: NDArray[np.int32],
) -> NDArray[np.float32]:
    """Return −(Σ of P'_ij over the owned items i ≠ j) / P'_jj for each item j, summed in the order of the items."""
    sums = np.empty(len(diagonal), np.float64)
    _sum_rows(inverse, owned, sums)
    for number in range(len(vectors)):
        _take_away(sums, _sum_at(vectors[number], owned) / pivots[number], vectors[number])
    for item in owned:
        sums[item] -= diagonal[item]
    scores = np.empty(len(diagonal), np.float32)
    for item in range(len(diagonal)):
        scores[item] = -sums[item] / diagonal[item]
    return scores


MOST_ROWS = 2048
# Beyond these limits, which only a tiny regularisation reaches, rounding the inverse to float32 shows in the scores.
# Measured with 150 users, 120 items and 0.0001 to 0.1: up to 1e-3 off after 110 erasures, with these limits 3e-5.
_SMALLEST_PIVOT = 0.01
_LARGEST_GROWTH = 100.0
_ROWS = ("changed_starts", "changed_items", "changed_signs")
_SUMS = ("vectors", "pivots", "diagonal")


@dataclass(frozen=True, eq=False)
class Correction:
    """The rows that came or went, their vectors and pivots, and the diagonal of the corrected inverse."""

    rows: SignedRows
    vectors: Doubles
    pivots: Doubles
    diagonal: Doubles

    @classmethod
    def of(cls, shared: Arrays) -> Self:
        """Return the correction that shared parameters hold, or an empty one."""
        if _ROWS[0] in shared:
            return cls(SignedRows(*(shared[name] for name in _ROWS)), *(shared[name] for name in _SUMS))
        diagonal = shared["inverse"].diagonal().astype(np.float64)
        return cls(NO_ROWS, np.empty((0, len(diagonal))), np.empty(0), diagonal)

    def arrays(self) -> Arrays:
        """Return the arrays that go into the shared parameters."""
        sums = (self.vectors, self.pivots, self.diagonal)
        return {**dict(zip(_ROWS, self.rows, strict=True)), **dict(zip(_SUMS, sums, strict=True))}

    def enlarged(self, inverse: NDArray[np.float32], further: SignedRows) -> Self | None:
        """Return the correction with more rows, or None if a new inverse is due: too many rows, or too imprecise."""
        known, count = len(self.pivots), len(self.pivots) + len(further.signs)
        if count > min(MOST_ROWS, len(inverse)):
            return None
        rows = joined(self.rows, further)
        vectors, pivots = np.empty((count, len(inverse))), np.empty(count)
        vectors[:known], pivots[:known] = self.vectors, self.pivots
        add_vectors(inverse, vectors, pivots, rows, known)
        if not (pivots * rows.signs >= _SMALLEST_PIVOT).all():
            return None
        diagonal = self.diagonal - np.einsum("ki,ki,k->i", vectors[known:], vectors[known:], 1 / pivots[known:])
        if (diagonal > _LARGEST_GROWTH * inverse.diagonal()).any():
            return None
        return type(self)(rows, vectors, pivots, diagonal)


WEIGHTS = "weights"
BORDERS = "borders"
USUAL_PENALTY = Penalty(base=40.0, share=1.0, half=40.0)
"""The penalty where no regularisation is given; see `_columns_kernel.penalties`."""
LEAST_BASE = 0.01
"""The least base that is safe for any 32-bit counts: rounding errors in a pivot stay below it, whoever leaves."""
_CUBES_PER_ADDITION = 32  # measured, one core: 2 ns an addition; a column of 200 neighbours 0.4 ms, of 100 0.07 ms
_SAMPLED, _ASSUMED = 256, 64  # columns from which the number that a change reaches is estimated
_ADDITIONS_OF_A_ROW = 64  # measured: 0.07 s for 0.6 M rows, to sort them by item and to read columns
_NOT_COUNTED = read_only(np.zeros((0, 0), np.int32))
_BYTES_OF_A_NEIGHBOUR = 2 * (4 + 4 + 1)  # its number and weight, before and after, and two masks
_BYTES_OF_A_ROW = 32  # of the table: the item and the user, and sorting them
_PAIRS_AT_ONCE = 2**28  # counts of 4 bytes: columns are solved in parts of at most 1 GiB of them
_LISTED_AT_ONCE = 2**26  # earlier items of everyone, of 4 bytes: at most 256 MiB of them, or those of one item
_LARGEST_DENSE = 2**14  # items; a matrix of counts of more than 1 GiB is not built


class ColumnEASE(Columns):
    """EASE from neighbourhoods; see `Model` for the methods."""

    by_item = (BORDERS, NEIGHBOURS, WEIGHTS)

    def __init__(self, number: int, regularisation: float | None) -> None:
        super().__init__(number)
        self.regularisation = regularisation

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

    def samples(self, size: Size) -> int:
        """Return the number of additions to a Gram matrix, plus solving a column for each item in the same unit."""
        return size.pairs + self._work(size.items_had, size.items)

    def samples_amended(self, interactions: Interactions, change: Change) -> int:
        """Return the same for amending by a change; the number of columns that it reaches is estimated."""
        return self._announced(interactions, touched_by(change).items, interaction_table(interactions))

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
        is_touched = marked(touched, len(table.owners))
        hits = np.count_nonzero(is_touched[sampled] | is_touched[near].any(axis=1))
        assumed = 0 if len(sampled) == len(owned) else _ASSUMED
        by_chance = 1 - np.exp(-len(touched) * (1 + self.number) / len(owned))
        reached = (hits + assumed * by_chance) / (len(sampled) + assumed) * len(owned)
        counted = len(rows) * _ADDITIONS_OF_A_ROW + _is_dense(rows) * count_pairs(rows.user_starts)
        work = self._work(max(len(touched), round(reached)), len(table.owners))
        return min(counted + work * 3 // 4, self.samples(Size.of(rows)))  # most of them keep their neighbours

    def _work(self, columns: int, items: int) -> int:
        """Return the work of solving so many columns, as the number of additions that take as long."""
        size = max(0, min(self.number, items - 1))
        return columns * size * (size**2 // _CUBES_PER_ADDITION + _CUBES_PER_ADDITION)

    def solved(
        self, rows: Interactions, made: dict[str, NDArray[Any]], touched: TouchedItems | None, effort: Effort
    ) -> Arrays:
        """Solve every column that the touched items reach, or all if None, from these rows, and return all columns.

        A touched item reaches its own column, every column that held it as a neighbour, and every column that takes it
        in, since fewer owners make a larger cosine. Any other column has the same neighbours with the same counts, and
        so the same weights.
        """
        is_dense = _is_dense(rows)
        self.refuse_beyond_memory(len(rows.items), len(rows), self._counts(rows, is_dense))
        table = _table(rows, effort.threads)
        if touched is None:
            solving = selecting = owned_items(rows)
            announced = self.samples(Size.of(rows))
        else:
            solving, selecting = _reached(touched, made, table)
            announced = self._announced(rows, touched.items, table)
        _find_nearest(selecting, made, table, effort.threads)
        done = 0
        for first, columns in _in_parts(solving, made[NEIGHBOURS], is_dense):
            starts, pairs = _pairs_within(columns, made[NEIGHBOURS], table, effort.threads)
            task = partial(self._weights, columns, made[NEIGHBOURS], table, starts, pairs)
            with one_blas_thread():
                for low, high, solved in in_pieces(task, len(columns), effort.threads):
                    made[WEIGHTS][columns[low:high]] = solved
                    share = announced * (first + high) // len(solving)
                    effort.advance(share - done)
                    done = share
        effort.advance(announced - done)
        return frozen(made)

    def _weights(
        self,
        solving: NDArray[np.int64],
        neighbours: NDArray[np.int32],
        table: InteractionTable,
        starts: NDArray[np.int64],
        pairs: NDArray[np.int32],
        low: int,
        high: int,
    ) -> NDArray[np.float32]:
        penalty = USUAL_PENALTY if self.regularisation is None else Penalty(self.regularisation, 0.0, 1.0)
        columns = solving[low:high]
        found: NDArray[np.float32] = column_weights(columns, neighbours[columns], table, pairs[starts[low] :], penalty)
        return found

    def no_columns(self, items: int) -> dict[str, NDArray[Any]]:
        shape = (items, self.number)
        return {
            NEIGHBOURS: np.full(shape, NOBODY, np.int32),
            WEIGHTS: np.zeros(shape, np.float32),
            BORDERS: np.full((items, 2), NOBODY, np.int32),
        }

    def renumbered(self, shared: Arrays, places: NDArray[np.int64], items: int) -> dict[str, NDArray[Any]]:
        """Return columns over another list of items; a border names an item too."""
        columns, stays = super().renumbered(shared, places, items), places >= 0
        columns[BORDERS][places[stays], 0] = np.append(places, NOBODY)[shared[BORDERS][stays, 0]]
        return columns

    def _counts(self, rows: Interactions, is_dense: bool) -> int:
        """Return how many counts of pairs are held at once, at most."""
        if is_dense:
            return len(rows.items) ** 2
        neighbours = min(len(rows.items) * self.number, count_pairs(rows.user_starts))
        listed = min(count_pairs(rows.user_starts) // 2, _LISTED_AT_ONCE)
        return min(neighbours * (self.number + 1) // 2, _PAIRS_AT_ONCE) + listed

    def refuse_beyond_memory(self, items: int, rows: int, counts: int = 0) -> None:
        needed = items * self.number * _BYTES_OF_A_NEIGHBOUR + rows * _BYTES_OF_A_ROW + 4 * counts
        refuse_beyond_memory("ease", items, needed, "a smaller ", option("neighbours"))


def _is_dense(rows: Interactions) -> bool:
    """Whether all pairs are counted first, which is faster where most pairs occur twice or more."""
    items = len(rows.items)
    return items <= _LARGEST_DENSE and count_pairs(rows.user_starts) > 2 * items**2


def _table(rows: Interactions, threads: int) -> InteractionTable:
    """Return items by user and users by item, and the Gram matrix if that is faster."""
    table, items = interaction_table(rows), len(rows.items)
    if not _is_dense(rows):
        return table
    dense = np.zeros((items, items), np.int32)
    add_rows(dense, signed_rows(rows, 1), Effort(threads))
    return table._replace(dense=read_only(dense))


def _in_parts(
    solving: NDArray[np.int64], neighbours: NDArray[np.int32], is_dense: bool
) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Divide columns into parts whose pairs fit in memory together; yield where each begins, and its columns."""
    for first, end in _runs(_pairs_of(neighbours[solving]) * (not is_dense), _PAIRS_AT_ONCE):
        yield first, solving[first:end]


def _pairs_of(neighbours: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return how many pairs the neighbours and the item of each column make."""
    sizes = np.count_nonzero(neighbours != NOBODY, axis=1)
    return sizes * (sizes + 1) // 2


def _pairs_within(
    columns: NDArray[np.int64], neighbours: NDArray[np.int32], table: InteractionTable, threads: int
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return where the pairs of each column begin, and how many people have both; nothing where the table has it."""
    starts = np.zeros(len(columns) + 1, np.int64)
    if len(table.dense):
        return starts, np.empty(0, np.int32)
    near = neighbours[columns]
    np.cumsum(_pairs_of(near), out=starts[1:])
    whole = np.append(near, columns[:, None].astype(np.int32), axis=1)
    whole.view(np.uint32).sort(axis=1)  # without its sign, NOBODY is the last
    holders = grouped(read_only(whole.ravel()), len(table.owners))
    pairs, held = np.empty(starts[-1], np.int32), np.flatnonzero(np.diff(holders[0]))
    neighbourhoods = Neighbourhoods(*map(read_only, (whole, starts, *holders)))
    sizes = earlier_sizes(table)[held]
    for low, high in _runs(sizes, _LISTED_AT_ONCE):
        items, numbers = held[low:high], np.full(len(table.owners), NOBODY, np.int32)
        numbers[items] = np.arange(len(items))
        begins = np.concatenate([[0], np.cumsum(sizes[low:high])])
        listed = earlier_items(read_only(numbers), read_only(begins), table)
        task = partial(_count_some, pairs, items, neighbourhoods, begins, listed, len(table.owners))
        for _ in in_pieces(task, len(items), threads):
            pass
    return starts, pairs


def _count_some(
    pairs: NDArray[np.int32],
    items: NDArray[np.int64],
    neighbourhoods: Neighbourhoods,
    begins: NDArray[np.int64],
    listed: NDArray[np.int32],
    size: int,
    low: int,
    high: int,
) -> None:
    count_within(pairs, items[low:high], neighbourhoods, read_only(begins[low : high + 1]), read_only(listed), size)


def _runs(sizes: NDArray[np.int64], most: int) -> Iterator[tuple[int, int]]:
    """Divide a list of sizes into runs, each of which adds up to at most so much, or is one size alone."""
    ends, first = np.cumsum(sizes), 0
    while first < len(sizes):
        before = ends[first - 1] if first else 0
        end = max(first + 1, int(np.searchsorted(ends, before + most, side="right")))
        yield first, end
        first = end


def _find_nearest(
    selecting: NDArray[np.int64], made: dict[str, NDArray[Any]], table: InteractionTable, threads: int
) -> None:
    """Write the neighbours and borders of some columns into `made`."""
    task = partial(_nearest_of_some, selecting, made[NEIGHBOURS].shape[1], table)
    for low, high, (found, borders) in in_pieces(task, len(selecting), threads):
        made[NEIGHBOURS][selecting[low:high]] = found
        made[BORDERS][selecting[low:high]] = borders


def _nearest_of_some(selecting: NDArray[np.int64], number: int, table: InteractionTable, low: int, high: int) -> Any:  # noqa: ANN401 - two arrays
    return nearest_items(selecting[low:high], number, table)


def _reached(
    touched: TouchedItems, made: Arrays, table: InteractionTable
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return which columns a change reaches, and those of them whose neighbours may change.

    A column whose own item is not touched keeps its counts. So it keeps its neighbours unless a touched item comes in,
    is the farthest of them, or gets farther because more people have it.
    """
    if np.count_nonzero(table.owners[touched.items]) == np.count_nonzero(table.owners):
        return touched.items, touched.items
    neighbours, borders = made[NEIGHBOURS], made[BORDERS]
    is_touched, is_risen = (marked(items, len(table.owners)) for items in (touched.items, touched.risen))
    selecting = is_touched[:-1] | is_touched[borders[:, 0]] | coming_in(touched.items, neighbours, borders, table)
    if len(touched.risen):
        selecting |= is_risen[neighbours].any(axis=1)
    return np.flatnonzero(selecting | is_touched[neighbours].any(axis=1)), np.flatnonzero(selecting)
