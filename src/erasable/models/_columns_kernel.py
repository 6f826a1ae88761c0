"""Compiled parts of EASE from neighbourhoods: an item's nearest items, its column of weights, and scores from columns.

Item-kNN shares the counting and the scores.

A column depends on counts alone: how many people have the item, each of its neighbours, and any two of them. So its
bytes are the same whenever it is solved, and whichever columns are solved with it.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from erasable.seeding.compiled import compiled

NOBODY = -1
"""Fills the end of a list of neighbours that is not full."""
_CELLS_CLEARED_AT_ONCE = 8  # so many counts in a row are set to 0 while one is looked up
_SURE = 2.0**-50  # two roundings of 2⁻⁵³ each lie between a cosine's key and its square


class InteractionTable(NamedTuple):
    """Items by user and users by item, the number of owners of each item, and of each pair if `dense` is filled.

    Where few people have two items in common, pairs are counted when they are needed. The numbers are the same.
    """

    owners: NDArray[np.int32]
    user_starts: NDArray[np.int64]
    items: NDArray[np.int32]
    item_starts: NDArray[np.int64]
    users: NDArray[np.int32]
    dense: NDArray[np.int32]


class Neighbourhoods(NamedTuple):
    """Each column's neighbours and own item, ascending, then `NOBODY`; where its pairs begin; who holds an item (CSR).

    The pairs of a column are those of its second item with the first, of the third with the first two, and so on. A
    holder is a place in `whole`, row after row.
    """

    whole: NDArray[np.int32]
    starts: NDArray[np.int64]
    holder_starts: NDArray[np.int64]
    holders: NDArray[np.int64]


class Penalty(NamedTuple):
    """The constants of `penalties`."""

    base: float
    share: float
    half: float


class _Heap(NamedTuple):
    """The nearest items so far, the farthest at the root: float64 key, item, number of people who have both."""

    keys: NDArray[np.float64]
    items: NDArray[np.int32]
    counts: NDArray[np.int64]


@compiled
def is_nearer(count: int, owners: int, other_count: int, other_owners: int) -> int:
    """Compare two cosines with one item: 1 if the first is larger, −1 if the second is, 0 if they are equal.

    The squared cosines are proportional to c²/n, so c²·n' is compared with c'²·n. Counts have 31 bits, so c² has 62
    and a product 93: it is computed in two parts of 31 bits, none of which overflows 64.
    """
    low_bits = (np.int64(1) << 31) - 1
    one, two = np.int64(count) * np.int64(count), np.int64(other_count) * np.int64(other_count)
    low, other_low = (one & low_bits) * np.int64(other_owners), (two & low_bits) * np.int64(owners)
    high, other_high = (one >> 31) * np.int64(other_owners), (two >> 31) * np.int64(owners)
    high, other_high = high + (low >> 31), other_high + (other_low >> 31)
    low, other_low = low & low_bits, other_low & low_bits
    if high != other_high:
        return 1 if high > other_high else -1
    if low != other_low:
        return 1 if low > other_low else -1
    return 0


@compiled
def _is_farther(heap: _Heap, first: int, second: int, owners: NDArray[np.int32]) -> bool:
    """Whether the first place of the heap holds a farther item: a smaller cosine, or an equal one and a later id."""
    one, two = heap.keys[first], heap.keys[second]
    if abs(one - two) > (one + two) * _SURE:
        return one < two
    order = is_nearer(heap.counts[first], owners[heap.items[first]], heap.counts[second], owners[heap.items[second]])
    return heap.items[first] > heap.items[second] if order == 0 else order < 0


@compiled
def _swap(heap: _Heap, first: int, second: int) -> None:
    heap.keys[first], heap.keys[second] = heap.keys[second], heap.keys[first]
    heap.items[first], heap.items[second] = heap.items[second], heap.items[first]
    heap.counts[first], heap.counts[second] = heap.counts[second], heap.counts[first]


@compiled
def _sift_up(heap: _Heap, place: int, owners: NDArray[np.int32]) -> None:
    while place > 0 and _is_farther(heap, place, (place - 1) // 2, owners):
        _swap(heap, place, (place - 1) // 2)
        place = (place - 1) // 2


@compiled
def _sift_down(heap: _Heap, size: int, owners: NDArray[np.int32]) -> None:
    place = 0
    while 2 * place + 1 < size:
        child = 2 * place + 1
        if child + 1 < size and _is_farther(heap, child + 1, child, owners):
            child += 1
        if not _is_farther(heap, child, place, owners):
            return
        _swap(heap, child, place)
        place = child


@compiled
def _put(heap: _Heap, place: int, item: int, count: int, owners: NDArray[np.int32]) -> None:
    heap.keys[place] = np.float64(count) * np.float64(count) / owners[item]
    heap.items[place] = item
    heap.counts[place] = count


@compiled
def _offer(heap: _Heap, size: int, item: int, count: int, owners: NDArray[np.int32]) -> int:
    """Push an item onto a heap, which has one spare place, if it is near enough; return the heap's size."""
    capacity = len(heap.items) - 1
    if size < capacity:
        _put(heap, size, item, count, owners)
        _sift_up(heap, size, owners)
        return size + 1
    _put(heap, capacity, item, count, owners)
    if _is_farther(heap, 0, capacity, owners):
        _swap(heap, 0, capacity)
        _sift_down(heap, size, owners)
    return size


@compiled
def _border(heap: _Heap, size: int) -> float:
    """Return a key below which no item enters a heap: slightly less than the farthest's, 0 if it is not full."""
    return heap.keys[0] * (1 - 4 * _SURE) if size == len(heap.items) - 1 else 0.0


@compiled
def _nearest_of_row(row: NDArray[np.int32], own: int, heap: _Heap, owners: NDArray[np.int32]) -> int:
    """Push the nearest items by a row of counts onto a heap, and return their number."""
    size, border = 0, 0.0
    for item in range(len(row)):
        count = np.float64(row[item])
        if count * count > border * owners[item] and item != own:
            size = _offer(heap, size, item, row[item], owners)
            border = _border(heap, size)
    return size


@compiled
def _nearest_of_listed(
    counts: NDArray[np.int32], listed: NDArray[np.int32], own: int, heap: _Heap, owners: NDArray[np.int32]
) -> int:
    """Do the same for the listed items only, and reset their counts to 0."""
    size, border = 0, 0.0
    for item in listed:
        count = np.float64(counts[item])
        if count * count > border * owners[item] and item != own:
            size = _offer(heap, size, item, counts[item], owners)
            border = _border(heap, size)
        counts[item] = 0
    return size


@compiled
def count_together(column: int, table: InteractionTable, counts: NDArray[np.int32], listed: NDArray[np.int32]) -> int:
    """Count how many people have each item together with the column's; list these items and return their number."""
    many = 0
    for place in range(table.item_starts[column], table.item_starts[column + 1]):
        user = table.users[place]
        for other in table.items[table.user_starts[user] : table.user_starts[user + 1]]:
            item = np.uint32(other)  # numba skips its check for a negative index
            if counts[item] == 0:
                listed[many] = other
                many += 1
            counts[item] += 1
    return many


@compiled
def _comes_in(
    item: int, count: int, border: NDArray[np.int32], near: NDArray[np.int32], owners: NDArray[np.int32]
) -> bool:
    """Whether a new item is nearer than the farthest neighbour; a list that is not full already holds all it can."""
    if border[0] == NOBODY or count == 0:
        return False
    order = is_nearer(count, owners[item], border[1], owners[border[0]])
    if order < 0 or (order == 0 and item >= border[0]):
        return False
    place = np.searchsorted(near, item)
    return place == len(near) or near[place] != item


@compiled(nogil=True)
def coming_in(
    items: NDArray[np.int64], neighbours: NDArray[np.int32], borders: NDArray[np.int32], table: InteractionTable
) -> NDArray[np.bool_]:
    """Return which columns take some items in, if only these items' counts changed since the borders were found."""
    size = len(table.owners)
    found = np.zeros(size, np.bool_)
    counts, listed = np.zeros(size, np.int32), np.empty(size, np.int32)
    for item in items:
        if len(table.dense) > 0:
            row = table.dense[item]
            for column in range(size):
                found[column] |= _comes_in(item, row[column], borders[column], neighbours[column], table.owners)
        else:
            for column in listed[: count_together(item, table, counts, listed)]:
                found[column] |= _comes_in(item, counts[column], borders[column], neighbours[column], table.owners)
                counts[column] = 0
    return found


@compiled(nogil=True)
def nearest_items(
    columns: NDArray[np.int64], number: int, table: InteractionTable
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return up to `number` items with the largest cosines to each item, ascending; ties go to the earlier id.

    Where there are that many, the border is the farthest of them and the number of people who have it with the item.
    """
    found = np.full((len(columns), number), NOBODY, np.int32)
    borders = np.full((len(columns), 2), NOBODY, np.int32)
    capacity = number + 1
    heap = _Heap(np.empty(capacity, np.float64), np.empty(capacity, np.int32), np.empty(capacity, np.int64))
    counts, listed = np.zeros(len(table.owners), np.int32), np.empty(len(table.owners), np.int32)
    for place in range(len(columns)):
        if len(table.dense) > 0:
            size = _nearest_of_row(table.dense[columns[place]], columns[place], heap, table.owners)
        else:
            many = count_together(columns[place], table, counts, listed)
            size = _nearest_of_listed(counts, listed[:many], columns[place], heap, table.owners)
        found[place, :size] = np.sort(heap.items[:size])
        if size == number:
            borders[place, 0], borders[place, 1] = heap.items[0], heap.counts[0]
    return found, borders


@compiled
def _look_up(
    matrix: NDArray[np.float64], counts: NDArray[np.float64], whole: NDArray[np.int32], table: InteractionTable
) -> None:
    """Look up how many people have two neighbours (lower triangle), and a neighbour and the column's item (counts).

    `whole` holds the neighbours, then the column's item.
    """
    size = len(counts)
    for first in range(size + 1):
        row, target = table.dense[whole[first]], counts if first == size else matrix[first]
        for second in range(first):
            target[second] = row[np.uint32(whole[second])]


@compiled
def _read(matrix: NDArray[np.float64], counts: NDArray[np.float64], own: int, pairs: NDArray[np.int32]) -> None:
    """Read the same from what `count_within` wrote for the column; `own` neighbours come before the column's item."""
    size, at = len(counts), 0
    for first in range(size):
        target = matrix[first]
        if first == own:
            for second in range(own):
                counts[second] = pairs[at + second]
            at += own
        for second in range(min(first, own)):
            target[second] = pairs[at + second]
        if first >= own:
            counts[first] = pairs[at + own]
            for second in range(own, first):
                target[second] = pairs[at + second + 1]
            at += 1
        at += first
    if own == size:
        for second in range(size):
            counts[second] = pairs[at + second]


@compiled(nogil=True)
def grouped(values: NDArray[np.int32], size: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the places of each value below `size`, ascending (CSR); negative values are left out."""
    starts = np.zeros(size + 1, np.int64)
    for value in values:
        if value >= 0:
            starts[value + 1] += 1
    for value in range(size):
        starts[value + 1] += starts[value]
    places, fill = np.empty(starts[size], np.int64), starts[:-1].copy()
    for place in range(len(values)):
        value = values[place]
        if value >= 0:
            places[fill[value]] = place
            fill[value] += 1
    return starts, places


@compiled(nogil=True)
def beside(
    values: NDArray[np.int32], others: NDArray[np.int32], size: int
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return what stands beside each value below `size`, in order (CSR)."""
    starts = np.zeros(size + 1, np.int64)
    for value in values:
        starts[value + 1] += 1
    for value in range(size):
        starts[value + 1] += starts[value]
    found, fill = np.empty(len(values), np.int32), starts[:-1].copy()
    for place in range(len(values)):
        value = values[place]
        found[fill[value]] = others[place]
        fill[value] += 1
    return starts, found


@compiled(nogil=True)
def earlier_sizes(table: InteractionTable) -> NDArray[np.int64]:
    """Return for each item how many earlier ones the people have who have it, added up over them."""
    sizes = np.zeros(len(table.owners), np.int64)
    for user in range(len(table.user_starts) - 1):
        begin = table.user_starts[user]
        for place in range(begin, table.user_starts[user + 1]):
            sizes[table.items[place]] += place - begin
    return sizes


@compiled(nogil=True)
def earlier_items(numbers: NDArray[np.int32], starts: NDArray[np.int64], table: InteractionTable) -> NDArray[np.int32]:
    """List for some items the earlier ones of everyone who has it, person after person (CSR); −1 numbers the others.

    People are visited in the order in which their rows lie in memory. To visit the owners of one item after another
    takes twice as long, since each lies elsewhere.
    """
    listed, fill = np.empty(starts[-1], np.int32), starts[:-1].copy()
    for user in range(len(table.user_starts) - 1):
        begin = table.user_starts[user]
        for place in range(begin, table.user_starts[user + 1]):
            number = numbers[table.items[place]]
            if number >= 0:
                at = fill[number]
                for step in range(place - begin):
                    listed[at + step] = table.items[begin + step]
                fill[number] = at + place - begin
    return listed


@compiled(nogil=True)
def count_within(
    pairs: NDArray[np.int32],
    items: NDArray[np.int64],
    neighbourhoods: Neighbourhoods,
    starts: NDArray[np.int64],
    listed: NDArray[np.int32],
    size: int,
) -> None:
    """Write how many people have some items and each one before them, for every column that holds them.

    The earlier items of everyone who has them are listed. An item's counts are added up once, however many columns
    read them.
    """
    whole, pair_starts, holder_starts, holders = neighbourhoods
    counts = np.zeros(size, np.int32)
    for number in range(len(items)):
        item, earlier = items[number], listed[starts[number] : starts[number + 1]]
        for other in earlier:
            counts[np.uint32(other)] += 1
        for holder in holders[holder_starts[item] : holder_starts[item + 1]]:
            column, place = holder // whole.shape[1], holder % whole.shape[1]
            row, begin = whole[column], pair_starts[column] + place * (place - 1) // 2
            for before in range(place):
                pairs[begin + before] = counts[np.uint32(row[before])]
        if _CELLS_CLEARED_AT_ONCE * len(earlier) < item:
            for other in earlier:
                counts[np.uint32(other)] = 0
        else:
            counts[:item] = 0


@compiled
def penalties(near: NDArray[np.int32], owners: NDArray[np.int32], penalty: Penalty) -> NDArray[np.float64]:
    """Return the penalty on each neighbour's weight: base + share · n · m / (m + half).

    n is the number of people who have the neighbour, m its mean over the neighbourhood. Nothing else matters.
    """
    total = 0
    for item in near:
        total += owners[item]
    mean = total / len(near)
    found = np.empty(len(near))
    for place in range(len(near)):
        found[place] = penalty.base + penalty.share * owners[near[place]] * mean / (mean + penalty.half)
    return found


@compiled
def _solve(matrix: NDArray[np.float64], weights: NDArray[np.float64]) -> None:
    """Solve for the weights in place, by a Cholesky factorisation of the lower triangle."""
    factor = np.linalg.cholesky(matrix)
    size = len(weights)
    for place in range(size):
        rest, row = weights[place], factor[place]
        for before in range(place):
            rest -= row[before] * weights[before]
        weights[place] = rest / row[place]
    for place in range(size - 1, -1, -1):
        row = factor[place]
        value = weights[place] / row[place]
        weights[place] = value
        for before in range(place):
            weights[before] -= row[before] * value


@compiled(nogil=True)
def column_weights(
    columns: NDArray[np.int64],
    neighbours: NDArray[np.int32],
    table: InteractionTable,
    pairs: NDArray[np.int32],
    penalty: Penalty,
) -> NDArray[np.float32]:
    """Return for each column the weights of its neighbours, rounded once; `pairs` holds their counts one by one.

    They are (G + D)⁻¹ g: G counts people who have two neighbours, g those who have one and the column's item, and D
    holds the penalties.
    """
    found, at = np.zeros(neighbours.shape, np.float32), 0
    for place in range(len(columns)):
        near = neighbours[place][neighbours[place] != NOBODY]
        size = len(near)
        if size == 0:
            continue
        matrix, weights = np.zeros((size, size)), np.zeros(size)
        if len(table.dense) > 0:
            _look_up(matrix, weights, np.append(near, np.int32(columns[place])), table)
        else:
            _read(matrix, weights, np.searchsorted(near, columns[place]), pairs[at:])
            at += size * (size + 1) // 2
        added = penalties(near, table.owners, penalty)
        for own in range(size):
            matrix[own, own] = table.owners[near[own]] + added[own]
        _solve(matrix, weights)
        found[place, :size] = weights
    return found


_SMALL = 1 << 16  # numbers below it are sorted in one pass, in less time than it takes to load compiled code


def _by_source(
    neighbours: NDArray[np.int32], weights: NDArray[np.float32]
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]] | None:
    """Do the same as `by_source` without compiled code, for a catalogue that is not large."""
    size, number = neighbours.shape
    if size > _SMALL:
        return None
    sources = neighbours.ravel()
    places = np.flatnonzero((sources >= 0) & (sources < size))
    sources = sources[places].astype(np.uint16)
    starts = np.concatenate([[0], np.cumsum(np.bincount(sources, minlength=size))])
    places = places[np.argsort(sources, kind="stable")]
    return starts.astype(np.int64), (places // number).astype(np.int32), weights.ravel()[places]


@compiled(nogil=True, plain=_by_source)
def by_source(
    neighbours: NDArray[np.int32], weights: NDArray[np.float32]
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]:
    """Return the weights by source: for each item, the columns it is a neighbour in and its weight there (CSR)."""
    size, number = neighbours.shape
    starts = np.zeros(size + 1, np.int64)
    for column in range(size):
        for item in neighbours[column]:
            if 0 <= item < size:
                starts[item + 1] += 1
    for item in range(size):
        starts[item + 1] += starts[item]
    fill = starts[:-1].copy()
    columns, spoken = np.empty(starts[size], np.int32), np.empty(starts[size], np.float32)
    for column in range(size):
        for place in range(number):
            item = neighbours[column, place]
            if 0 <= item < size:
                columns[fill[item]], spoken[fill[item]] = column, weights[column, place]
                fill[item] += 1
    return starts, columns, spoken


def _summed(
    starts: NDArray[np.int64], columns: NDArray[np.int32], weights: NDArray[np.float32], owned: NDArray[np.int32]
) -> NDArray[np.float32]:
    """Do the same as `summed` without compiled code: item by item, so that each score is added up in the same order."""
    scores = np.zeros(len(starts) - 1, np.float32)
    for item in owned.tolist():
        own = slice(starts[item], starts[item + 1])
        scores[columns[own]] += weights[own]  # an item is at most once among the neighbours of a column
    return scores


@compiled(nogil=True, plain=_summed)
def summed(
    starts: NDArray[np.int64], columns: NDArray[np.int32], weights: NDArray[np.float32], owned: NDArray[np.int32]
) -> NDArray[np.float32]:
    """Return for each item the sum of the owned items' weights for it, in their order."""
    scores = np.zeros(len(starts) - 1, np.float32)
    for item in owned:
        for place in range(starts[item], starts[item + 1]):
            scores[np.uint32(columns[place])] += weights[place]
    return scores


@compiled(nogil=True)
def weights_for(
    starts: NDArray[np.int64],
    columns: NDArray[np.int32],
    weights: NDArray[np.float32],
    owned: NDArray[np.int32],
    item: int,
) -> NDArray[np.float32]:
    """Return the weight of each owned item for one item, 0 if there is none; the columns of an item ascend."""
    found = np.zeros(len(owned), np.float32)
    for place in range(len(owned)):
        own = owned[place]
        at = starts[own] + np.searchsorted(columns[starts[own] : starts[own + 1]], item)
        if at < starts[own + 1] and columns[at] == item:
            found[place] = weights[at]
    return found
