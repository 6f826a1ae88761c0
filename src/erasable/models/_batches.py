"""Compiled parts of training by gradient steps: the order of samples, negatives, batches, and Adam."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from erasable.seeding.compiled import below, compiled, draw

HELPERS_REVISION = 1
"""The revision of what other packages' models build on: `seeding`, `shuffled`, `missing_item`, the defaults of `Model`.
It goes up when one of them gives different bytes, and is recorded with the checkpoints of models that are not ours."""


@compiled
def shuffled(count: int, key: np.uint64) -> NDArray[np.int32]:
    """Return 0 … count − 1 in random order (Fisher and Yates); it can be called in compiled code.

    Parameters
    ----------
    count : int
        How many numbers.
    key : uint64
        A key of `erasable.seeding`; the same key gives the same order.

    Returns
    -------
    array of int32
        The numbers in their order.

    Examples
    --------
    >>> from erasable.seeding import child_key
    >>> order = shuffled(6, np.uint64(child_key(7, "epoch", 0)))
    >>> sorted(order.tolist())
    [0, 1, 2, 3, 4, 5]
    """
    order = np.empty(count, np.int32)
    for place in range(count):
        order[place] = place
    for last in range(count - 1, 0, -1):
        other = below(draw(key, np.uint64(last)), last + 1)
        order[last], order[other] = order[other], order[last]
    return order


@compiled
def missing_item(owned: NDArray[np.int32], rank: int) -> int:
    """Return an item that someone does not have; it can be called in compiled code.

    `owned[p] − p` items below `owned[p]` are missing, so the answer is found by bisection, without rejection.

    Parameters
    ----------
    owned : array of int32
        The numbers of the items that they have, ascending.
    rank : int
        Which of the missing items, counted from 0.

    Returns
    -------
    int
        The number of the item.

    Examples
    --------
    >>> int(missing_item(np.array([1, 3], np.int32), 1))
    2
    """
    low, left = 0, len(owned)
    while left > 0:
        half = (left + 1) >> 1  # no branch depends on the data: a mispredicted one costs more than the whole step
        probe = low + half - 1
        low += half * (owned[probe] - probe <= rank)
        left -= half
    return rank + low


ROW_LANES = 8
UPDATE_LANES = ROW_LANES + 1  # the last one updates the network
FIRST_DECAY = 0.9
SECOND_DECAY = 0.999
EPSILON = 1e-8
TINY = np.float32(1e-30)  # a moment that has faded below this is 0: arithmetic on denormal numbers is very slow

Floats = NDArray[np.float32]


class Positives(NamedTuple):
    """The interactions of a stage as arrays: the row pointer by user, then the user, item and target of each."""

    starts: NDArray[np.int64]
    users: NDArray[np.int32]
    items: NDArray[np.int32]
    targets: Floats


class Sizes(NamedTuple):
    """The numbers that shape the batches of an epoch."""

    catalogue: int
    negatives: int
    batch_units: int
    tile_units: int


class ParameterTable(NamedTuple):
    """Rows of parameters with Adam's two moments, which lie together since only a step reads them.

    `slots` says where a row's gradients are summed within a batch; −1 for rows that have none.
    """

    rows: Floats
    moments: Floats  # [row, first or second moment, place]
    slots: NDArray[np.int32]


class Shares(NamedTuple):
    """Which places of a batch (units or samples) belong to each lane, tile by tile, in order."""

    places: NDArray[np.int32]  # [tile, lane, number]
    counts: NDArray[np.int64]  # [tile, lane]


class Batch(NamedTuple):
    """Buffers for one batch: its samples, and the gradients that tiles write and lanes add up."""

    users: NDArray[np.int32]
    items: NDArray[np.int32]
    user_shares: Shares
    item_shares: Shares
    targets: Floats
    weights: Floats
    user_gradients: Floats
    item_gradients: Floats
    network_gradients: Floats
    lane_rows: NDArray[np.int32]
    lane_gradients: Floats


class Tile(NamedTuple):
    """The part of a batch that one gradient task works on: its samples, and where its gradients go."""

    users: NDArray[np.int32]
    items: NDArray[np.int32]
    targets: Floats
    weights: Floats
    user_gradients: Floats
    item_gradients: Floats
    network_gradients: Floats


class Rates(NamedTuple):
    """The step size and Adam's two bias corrections of each batch."""

    step: Floats
    root: Floats


def make_table(rows: Floats) -> ParameterTable:
    """Return a table that starts with these rows and fresh moments."""
    count, width = rows.shape
    return ParameterTable(rows.copy(), np.zeros((count, 2, width), np.float32), np.full(count, -1, np.int32))


def make_batch(sizes: Sizes, width: int, network: int) -> Batch:
    """Allocate the buffers of one batch."""
    samples = sizes.batch_units * (1 + sizes.negatives)
    tiles = -(-sizes.batch_units // sizes.tile_units)
    return Batch(
        users=np.empty(sizes.batch_units, np.int32),
        items=np.empty(samples, np.int32),
        user_shares=_make_shares(tiles, sizes.tile_units),
        item_shares=_make_shares(tiles, sizes.tile_units * (1 + sizes.negatives)),
        targets=np.empty(samples, np.float32),
        weights=np.empty(samples, np.float32),
        user_gradients=np.empty((sizes.batch_units, width), np.float32),
        item_gradients=np.empty((samples, width), np.float32),
        network_gradients=np.empty((tiles, network), np.float32),
        lane_rows=np.empty((ROW_LANES, samples), np.int32),
        lane_gradients=np.empty((ROW_LANES, samples, width), np.float32),
    )


def _make_shares(tiles: int, places: int) -> Shares:
    return Shares(np.empty((tiles, ROW_LANES, places), np.int32), np.zeros((tiles, ROW_LANES), np.int64))


def rates_of(learning_rate: float, first_step: int, batches: int) -> Rates:
    """Return Adam's step sizes from batch number `first_step` on (Kingma and Ba, 2015, bias corrected)."""
    steps = np.arange(first_step + 1, first_step + 1 + batches, dtype=np.float64)
    step = learning_rate / (1 - FIRST_DECAY**steps)
    root = 1 / np.sqrt(1 - SECOND_DECAY**steps)
    return Rates(step.astype(np.float32), root.astype(np.float32))


@compiled
def units_in_batch(order: NDArray[np.int32], sizes: Sizes, batch: int) -> int:
    """Return how many units a batch holds; the last one may be smaller."""
    return min(sizes.batch_units, len(order) - batch * sizes.batch_units)


@compiled
def sample_units(
    out: Batch,
    order: NDArray[np.int32],
    positives: Positives,
    sizes: Sizes,
    key: np.uint64,
    place: tuple[int, int, int],
) -> None:
    """Write the samples of the units `place` = (batch, low, high): each positive, then its negatives.

    For a user who has every item, the negatives repeat the positive with weight 0.
    """
    batch, low, high = place
    each = 1 + sizes.negatives
    for unit in range(low, high):
        positive = order[batch * sizes.batch_units + unit]
        user = positives.users[positive]
        owned = positives.items[positives.starts[user] : positives.starts[user + 1]]
        out.users[unit] = user
        at = unit * each
        out.items[at : at + each] = positives.items[positive]
        out.targets[at] = positives.targets[positive]
        out.weights[at] = 1
        missing = sizes.catalogue - len(owned)
        for sample in range(at + 1, at + each):
            out.targets[sample] = 0
            out.weights[sample] = 1 if missing > 0 else 0
            if missing > 0:
                number = np.uint64(positive) * np.uint64(each) + np.uint64(sample - at)
                out.items[sample] = missing_item(owned, below(draw(key, number), missing))
    tile = low // sizes.tile_units
    share_out(out.users, low, high, tile, out.user_shares)
    share_out(out.items, low * each, high * each, tile, out.item_shares)


@compiled
def transpose(matrix: Floats, transposed: Floats) -> None:
    """Write the transpose of a matrix; BLAS is faster on it than on a transposed view."""
    for row in range(matrix.shape[0]):
        for column in range(matrix.shape[1]):
            transposed[column, row] = matrix[row, column]


@compiled
def share_out(index: NDArray[np.int32], low: int, high: int, tile: int, shares: Shares) -> None:
    """Record for each lane which places from low up to high hold its rows."""
    counts = shares.counts[tile]
    for lane in range(ROW_LANES):
        counts[lane] = 0
    for place in range(low, high):
        lane = index[place] & (ROW_LANES - 1)
        shares.places[tile, lane, counts[lane]] = place
        counts[lane] += 1


@compiled
def tile_of(batch: Batch, task: int, low: int, high: int) -> Tile:
    """Return the part of a batch that holds the units from low up to high."""
    each = len(batch.items) // len(batch.users)
    samples = slice(low * each, high * each)
    return Tile(
        batch.users[low:high],
        batch.items[samples],
        batch.targets[samples],
        batch.weights[samples],
        batch.user_gradients[low:high],
        batch.item_gradients[samples],
        batch.network_gradients[task],
    )


@compiled
def adam_row(table: ParameterTable, row: int, gradients: Floats, rate: tuple[float, float, float]) -> None:
    """Take one Adam step on one row of a table, its gradients scaled to a mean."""
    values, firsts, seconds = table.rows[row], table.moments[row, 0], table.moments[row, 1]
    scale, step, root = rate
    for place in range(len(gradients)):
        gradient = gradients[place] * scale
        first = firsts[place] + np.float32(1 - FIRST_DECAY) * (gradient - firsts[place])
        second = seconds[place] + np.float32(1 - SECOND_DECAY) * (gradient * gradient - seconds[place])
        values[place] -= step * first / (np.sqrt(second) * root + np.float32(EPSILON))
        firsts[place] = first if abs(first) > TINY else np.float32(0)
        seconds[place] = second


@compiled
def update_rows(
    table: ParameterTable,
    index: NDArray[np.int32],
    shares: Shares,
    gradients: Floats,
    lane: tuple[int, NDArray[np.int32], Floats],
    rate: tuple[float, float, float],
) -> None:
    """Sum the gradients of a lane's rows, and take one step on each of these rows."""
    own, rows, totals = lane
    found = 0
    for tile in range(len(shares.counts)):
        for number in range(shares.counts[tile, own]):
            sample = shares.places[tile, own, number]
            row = index[sample]
            slot = table.slots[row]
            if slot < 0:
                table.slots[row] = found
                rows[found] = row
                for place in range(gradients.shape[1]):
                    totals[found, place] = gradients[sample, place]
                found += 1
            else:
                for place in range(gradients.shape[1]):
                    totals[slot, place] += gradients[sample, place]
    for slot in range(found):
        adam_row(table, rows[slot], totals[slot], rate)
        table.slots[rows[slot]] = -1


@compiled
def _of_tiles(shares: Shares, tiles: int) -> Shares:
    return Shares(shares.places[:tiles], shares.counts[:tiles])


@compiled
def update_lane(
    lane: int,
    tables: tuple[ParameterTable, ParameterTable, ParameterTable],
    batch: Batch,
    units: int,
    sizes: Sizes,
    rate: tuple[float, float],
) -> None:
    """Do one update task of a batch: a lane's rows, or the network from the tiles' gradients in order."""
    users, items, network = tables
    samples = units * (1 + sizes.negatives)
    tiles = -(-units // sizes.tile_units)
    counted = np.float32(0)
    for sample in range(samples):
        counted += batch.weights[sample]
    mean_rate = (np.float32(1) / counted, rate[0], rate[1])
    if lane < ROW_LANES:
        own = (lane, batch.lane_rows[lane], batch.lane_gradients[lane])
        update_rows(users, batch.users, _of_tiles(batch.user_shares, tiles), batch.user_gradients, own, mean_rate)
        update_rows(items, batch.items, _of_tiles(batch.item_shares, tiles), batch.item_gradients, own, mean_rate)
    else:
        total = batch.network_gradients[0]
        for tile in range(1, tiles):
            for place in range(len(total)):
                total[place] += batch.network_gradients[tile, place]
        adam_row(network, 0, total, mean_rate)
