"""Compiled parts that every model trained by gradient steps shares: batches, their samples, and Adam.

A unit is one positive with its negatives; a tile is a run of units of one batch. Rows are updated in lanes: a lane owns
the rows whose number ends in its bits, and adds their slopes in the order of the batch, whoever computed them.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from erasable.models.sampling import missing_item
from erasable.seeding.compiled import below, compiled, draw

ROW_LANES = 8
UPDATE_LANES = ROW_LANES + 1  # the last one updates the network
FIRST_DECAY = 0.9
SECOND_DECAY = 0.999
EPSILON = 1e-8
TINY = np.float32(1e-30)  # a moment that has faded below this is 0: arithmetic on denormal numbers is very slow

Floats = NDArray[np.float32]


class Positives(NamedTuple):
    """The interactions of a stage as arrays: row pointer by user, and user, item and target of each."""

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


class Table(NamedTuple):
    """Rows of parameters with Adam's two moments, which lie together since only a step needs them.

    `slots` says where a row's slopes are added up while a batch is worked on, −1 for rows that have none.
    """

    rows: Floats
    moments: Floats  # [row, first or second moment, place]
    slots: NDArray[np.int32]


class Shares(NamedTuple):
    """Which places of a batch (units or samples) each lane has to look at, tile by tile, in their order."""

    places: NDArray[np.int32]  # [tile, lane, number]
    counts: NDArray[np.int64]  # [tile, lane]


class Batch(NamedTuple):
    """Room for one batch: its samples, and the slopes that the tiles leave for the lanes."""

    users: NDArray[np.int32]
    items: NDArray[np.int32]
    user_shares: Shares
    item_shares: Shares
    targets: Floats
    weights: Floats
    user_slopes: Floats
    item_slopes: Floats
    network_slopes: Floats
    lane_rows: NDArray[np.int32]
    lane_slopes: Floats


class Tile(NamedTuple):
    """The part of a batch that one gradient task works on: its samples, and where its slopes go."""

    users: NDArray[np.int32]
    items: NDArray[np.int32]
    targets: Floats
    weights: Floats
    user_slopes: Floats
    item_slopes: Floats
    network_slopes: Floats


class Rates(NamedTuple):
    """The step size and Adam's two bias corrections of each batch."""

    step: Floats
    root: Floats


def make_table(rows: Floats) -> Table:
    """Return a table that starts with these rows and fresh moments."""
    count, width = rows.shape
    return Table(rows.copy(), np.zeros((count, 2, width), np.float32), np.full(count, -1, np.int32))


def make_batch(sizes: Sizes, width: int, network: int) -> Batch:
    """Return room for one batch."""
    samples = sizes.batch_units * (1 + sizes.negatives)
    tiles = -(-sizes.batch_units // sizes.tile_units)
    return Batch(
        users=np.empty(sizes.batch_units, np.int32),
        items=np.empty(samples, np.int32),
        user_shares=_make_shares(tiles, sizes.tile_units),
        item_shares=_make_shares(tiles, sizes.tile_units * (1 + sizes.negatives)),
        targets=np.empty(samples, np.float32),
        weights=np.empty(samples, np.float32),
        user_slopes=np.empty((sizes.batch_units, width), np.float32),
        item_slopes=np.empty((samples, width), np.float32),
        network_slopes=np.empty((tiles, network), np.float32),
        lane_rows=np.empty((ROW_LANES, samples), np.int32),
        lane_slopes=np.empty((ROW_LANES, samples, width), np.float32),
    )


def _make_shares(tiles: int, places: int) -> Shares:
    return Shares(np.empty((tiles, ROW_LANES, places), np.int32), np.zeros((tiles, ROW_LANES), np.int64))


def rates_of(learning_rate: float, first_step: int, batches: int) -> Rates:
    """Return Adam's step sizes for batches number `first_step` and on (Kingma and Ba, 2015, bias corrected)."""
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
    """Write the samples of the units `place` = (batch, low, high): each positive, then items the user has not.

    A user who has every item gets no negatives: their samples repeat the positive with weight 0.
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
def turn(matrix: Floats, turned: Floats) -> None:
    """Write the transpose of a matrix; BLAS is quicker on it than on a transposed view."""
    for row in range(matrix.shape[0]):
        for column in range(matrix.shape[1]):
            turned[column, row] = matrix[row, column]


@compiled
def share_out(index: NDArray[np.int32], low: int, high: int, tile: int, shares: Shares) -> None:
    """Note for each lane which places from low up to high hold its rows."""
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
        batch.user_slopes[low:high],
        batch.item_slopes[samples],
        batch.network_slopes[task],
    )


@compiled
def adam_row(table: Table, row: int, slopes: Floats, rate: tuple[float, float, float]) -> None:
    """Take one Adam step on one row of a table, its slopes scaled to a mean."""
    values, firsts, seconds = table.rows[row], table.moments[row, 0], table.moments[row, 1]
    scale, step, root = rate
    for place in range(len(slopes)):
        slope = slopes[place] * scale
        first = firsts[place] + np.float32(1 - FIRST_DECAY) * (slope - firsts[place])
        second = seconds[place] + np.float32(1 - SECOND_DECAY) * (slope * slope - seconds[place])
        values[place] -= step * first / (np.sqrt(second) * root + np.float32(EPSILON))
        firsts[place] = first if abs(first) > TINY else np.float32(0)
        seconds[place] = second


@compiled
def update_rows(
    table: Table,
    index: NDArray[np.int32],
    shares: Shares,
    slopes: Floats,
    lane: tuple[int, NDArray[np.int32], Floats],
    rate: tuple[float, float, float],
) -> None:
    """Add up the slopes of the rows that belong to a lane, and step each of those rows once."""
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
                for place in range(slopes.shape[1]):
                    totals[found, place] = slopes[sample, place]
                found += 1
            else:
                for place in range(slopes.shape[1]):
                    totals[slot, place] += slopes[sample, place]
    for slot in range(found):
        adam_row(table, rows[slot], totals[slot], rate)
        table.slots[rows[slot]] = -1


@compiled
def _of_tiles(shares: Shares, tiles: int) -> Shares:
    return Shares(shares.places[:tiles], shares.counts[:tiles])


@compiled
def update_lane(
    lane: int,
    tables: tuple[Table, Table, Table],
    batch: Batch,
    units: int,
    sizes: Sizes,
    rate: tuple[float, float],
) -> None:
    """Do one update task of a batch: the rows of a lane, or the network from the tiles' slopes in their order."""
    users, items, network = tables
    samples = units * (1 + sizes.negatives)
    tiles = -(-units // sizes.tile_units)
    counted = np.float32(0)
    for sample in range(samples):
        counted += batch.weights[sample]
    mean_rate = (np.float32(1) / counted, rate[0], rate[1])
    if lane < ROW_LANES:
        own = (lane, batch.lane_rows[lane], batch.lane_slopes[lane])
        update_rows(users, batch.users, _of_tiles(batch.user_shares, tiles), batch.user_slopes, own, mean_rate)
        update_rows(items, batch.items, _of_tiles(batch.item_shares, tiles), batch.item_slopes, own, mean_rate)
    else:
        total = batch.network_slopes[0]
        for tile in range(1, tiles):
            for place in range(len(total)):
                total[place] += batch.network_slopes[tile, place]
        adam_row(network, 0, total, mean_rate)
