"""The gradient of NMF over one tile of a batch, written out by hand; no chain, no files.

With α a user's row and β an item's (the paper's "Choice of Recommendation Models"), ⊙ the product by element:

    first = relu(α·user_in + β·item_in + first_bias)        second = relu(first·hidden + second_bias)
    logit = product_out·(α ⊙ β) + hidden_out·second + bias_out        score = 1 / (1 + exp(−logit))

A row holds two embeddings, one for the product and one for the layers. The user's half of the first layer is computed
once for each unit. Matrix products go through BLAS (`np.dot` in compiled code), the rest is fused. Sums across a row
are written in lanes, since the compiler may not reorder them (see `seeding.compiled`).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from erasable.models.batches import (
    Batch,
    Floats,
    Positives,
    Rates,
    Sizes,
    Table,
    Tile,
    sample_units,
    tile_of,
    turn,
    units_in_batch,
    update_lane,
)
from erasable.models.crew import Schedule, finish_task, take_task
from erasable.seeding.compiled import compiled

WIDTH = 16
ROW = 2 * WIDTH  # a row holds the part for the product, then the part for the layers
FIRST = 64
SECOND = 32
SHAPES = {
    "user_in": (WIDTH, FIRST),
    "item_in": (WIDTH, FIRST),
    "first_bias": (FIRST,),
    "hidden": (FIRST, SECOND),
    "second_bias": (SECOND,),
    "product_out": (WIDTH,),
    "hidden_out": (SECOND,),
    "bias_out": (1,),
}
_ITEM_IN = WIDTH * FIRST
_FIRST_BIAS = _ITEM_IN + WIDTH * FIRST
_HIDDEN = _FIRST_BIAS + FIRST
_SECOND_BIAS = _HIDDEN + FIRST * SECOND
_PRODUCT_OUT = _SECOND_BIAS + SECOND
_HIDDEN_OUT = _PRODUCT_OUT + WIDTH
_BIAS_OUT = _HIDDEN_OUT + SECOND


class NmfNetwork(NamedTuple):
    """The arrays of the network, as views into one flat vector (in the order of SHAPES)."""

    user_in: Floats
    item_in: Floats
    first_bias: Floats
    hidden: Floats
    second_bias: Floats
    product_out: Floats
    hidden_out: Floats
    bias_out: Floats


class NmfRoom(NamedTuple):
    """Room for what one thread computes on a tile: a row for each unit (user_…) or for each sample."""

    user_product: Floats
    user_rows: Floats
    user_first: Floats
    user_back: Floats
    item_product: Floats
    item_rows: Floats
    item_back: Floats
    first: Floats
    first_slopes: Floats
    second: Floats
    item_in_turned: Floats
    hidden_turned: Floats
    lanes: Floats


@compiled
def nmf_network(flat: Floats) -> NmfNetwork:
    """Return the named views into a flat network vector."""
    return NmfNetwork(
        flat[:_ITEM_IN].reshape(WIDTH, FIRST),
        flat[_ITEM_IN:_FIRST_BIAS].reshape(WIDTH, FIRST),
        flat[_FIRST_BIAS:_HIDDEN],
        flat[_HIDDEN:_SECOND_BIAS].reshape(FIRST, SECOND),
        flat[_SECOND_BIAS:_PRODUCT_OUT],
        flat[_PRODUCT_OUT:_HIDDEN_OUT],
        flat[_HIDDEN_OUT:_BIAS_OUT],
        flat[_BIAS_OUT:],
    )


@compiled
def nmf_room(units: int, samples: int) -> NmfRoom:
    """Return room for tiles of up to this many units and samples."""
    return NmfRoom(
        np.empty((units, WIDTH), np.float32),
        np.empty((units, WIDTH), np.float32),
        np.empty((units, FIRST), np.float32),
        np.empty((units, WIDTH), np.float32),
        np.empty((samples, WIDTH), np.float32),
        np.empty((samples, WIDTH), np.float32),
        np.empty((samples, WIDTH), np.float32),
        np.empty((samples, FIRST), np.float32),
        np.empty((samples, FIRST), np.float32),
        np.empty((samples, SECOND), np.float32),
        np.empty((FIRST, WIDTH), np.float32),
        np.empty((SECOND, FIRST), np.float32),
        np.empty(WIDTH, np.float32),
    )


@compiled
def nmf_gradient(network: NmfNetwork, users: Floats, items: Floats, tile: Tile, room: NmfRoom) -> None:
    """Write the slopes of the summed loss over a tile: for each unit's user, each sample's item, and the network."""
    units, samples = len(tile.users), len(tile.items)
    whole = NmfRoom(
        room.user_product[:units],
        room.user_rows[:units],
        room.user_first[:units],
        room.user_back[:units],
        room.item_product[:samples],
        room.item_rows[:samples],
        room.item_back[:samples],
        room.first[:samples],
        room.first_slopes[:samples],
        room.second[:samples],
        room.item_in_turned,
        room.hidden_turned,
        room.lanes,
    )
    slopes = nmf_network(tile.network_slopes)
    tile.network_slopes[:] = 0
    _forward(network, users, items, tile, whole)
    _output(network, slopes, tile, whole)
    _backward(network, slopes, tile, whole)


@compiled
def _forward(network: NmfNetwork, users: Floats, items: Floats, tile: Tile, room: NmfRoom) -> None:
    each = len(tile.items) // len(tile.users)
    for unit in range(len(tile.users)):
        for place in range(WIDTH):
            room.user_product[unit, place] = users[tile.users[unit], place]
            room.user_rows[unit, place] = users[tile.users[unit], WIDTH + place]
    for sample in range(len(tile.items)):
        for place in range(WIDTH):
            room.item_product[sample, place] = items[tile.items[sample], place]
            room.item_rows[sample, place] = items[tile.items[sample], WIDTH + place]
    np.dot(room.user_rows, network.user_in, room.user_first)
    np.dot(room.item_rows, network.item_in, room.first)
    for unit in range(len(tile.users)):
        for place in range(FIRST):
            room.user_first[unit, place] += network.first_bias[place]
        for sample in range(unit * each, (unit + 1) * each):
            for place in range(FIRST):
                room.first[sample, place] = max(room.first[sample, place] + room.user_first[unit, place], np.float32(0))
    np.dot(room.first, network.hidden, room.second)


@compiled
def _output(network: NmfNetwork, slopes: NmfNetwork, tile: Tile, room: NmfRoom) -> None:
    """Score each sample and pass its error back to the rows and the second layer, which then holds its slopes."""
    each = len(tile.items) // len(tile.users)
    zero = np.float32(0)
    lanes, second = room.lanes, room.second
    for unit in range(len(tile.users)):
        user = room.user_product[unit]
        user_slopes = tile.user_slopes[unit]
        for place in range(WIDTH):
            user_slopes[place] = 0
        for sample in range(unit * each, (unit + 1) * each):
            item = room.item_product[sample]
            item_slopes = tile.item_slopes[sample]
            for place in range(SECOND):
                second[sample, place] = max(second[sample, place] + network.second_bias[place], zero)
            for place in range(WIDTH):
                lanes[place] = (
                    network.product_out[place] * user[place] * item[place]
                    + network.hidden_out[place] * second[sample, place]
                    + network.hidden_out[WIDTH + place] * second[sample, WIDTH + place]
                )
            for place in range(8):
                lanes[place] += lanes[place + 8]
            for place in range(4):
                lanes[place] += lanes[place + 4]
            logit = ((lanes[0] + lanes[2]) + (lanes[1] + lanes[3])) + network.bias_out[0]
            score = np.float32(1) / (np.float32(1) + np.exp(-logit))
            error = (score - tile.targets[sample]) * tile.weights[sample]
            slopes.bias_out[0] += error
            for place in range(WIDTH):
                product = error * network.product_out[place]
                slopes.product_out[place] += error * user[place] * item[place]
                user_slopes[place] += product * item[place]
                item_slopes[place] = product * user[place]
            for place in range(SECOND):
                value = second[sample, place]
                passed = error * network.hidden_out[place] if value > zero else zero
                slopes.hidden_out[place] += error * value
                slopes.second_bias[place] += passed
                second[sample, place] = passed


@compiled
def _backward(network: NmfNetwork, slopes: NmfNetwork, tile: Tile, room: NmfRoom) -> None:
    each = len(tile.items) // len(tile.users)
    turn(network.hidden, room.hidden_turned)
    turn(network.item_in, room.item_in_turned)
    np.dot(room.first.T, room.second, slopes.hidden)
    np.dot(room.second, room.hidden_turned, room.first_slopes)
    for unit in range(len(tile.users)):
        for place in range(FIRST):
            room.user_first[unit, place] = 0
        for sample in range(unit * each, (unit + 1) * each):
            for place in range(FIRST):
                passed = room.first_slopes[sample, place] if room.first[sample, place] > 0 else np.float32(0)
                room.first_slopes[sample, place] = passed
                room.user_first[unit, place] += passed
        for place in range(FIRST):
            slopes.first_bias[place] += room.user_first[unit, place]
    np.dot(room.item_rows.T, room.first_slopes, slopes.item_in)
    np.dot(room.user_rows.T, room.user_first, slopes.user_in)
    np.dot(room.first_slopes, room.item_in_turned, room.item_back)
    np.dot(room.user_first, network.user_in.T, room.user_back)
    for sample in range(len(tile.items)):
        for place in range(WIDTH):
            tile.item_slopes[sample, WIDTH + place] = room.item_back[sample, place]
    for unit in range(len(tile.users)):
        for place in range(WIDTH):
            tile.user_slopes[unit, WIDTH + place] = room.user_back[unit, place]


@compiled(nogil=True)
def nmf_shift(
    control: NDArray[np.int64],
    schedule: Schedule,
    order: NDArray[np.int32],
    positives: Positives,
    sizes: Sizes,
    key: np.uint64,
    tables: tuple[Table, Table, Table],
    batch: Batch,
    rates: Rates,
) -> None:
    """Work off the tasks of a run of batches as one member of a crew."""
    users, items, network = tables
    room = nmf_room(sizes.tile_units, sizes.tile_units * (1 + sizes.negatives))
    number, task = take_task(control, schedule)
    while number >= 0:
        units = units_in_batch(order, sizes, number)
        low = task * sizes.tile_units
        high = min(units, low + sizes.tile_units)
        if task >= schedule.tiles:
            update_lane(task - schedule.tiles, tables, batch, units, sizes, (rates.step[number], rates.root[number]))
        elif low < high:
            sample_units(batch, order, positives, sizes, key, (number, low, high))
            tile = tile_of(batch, task, low, high)
            nmf_gradient(nmf_network(network.rows[0]), users.rows, items.rows, tile, room)
        finish_task(control)
        number, task = take_task(control, schedule)
