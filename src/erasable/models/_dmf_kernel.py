"""The gradient of DMF over one tile of a batch, written out by hand; no chain, no files.

With α a user's row and β an item's (the paper's "Choice of Recommendation Models"), and a tower of two layers for each:

    tower(row) = relu(relu(row·first + first_bias)·second + second_bias)        score = cos(tower(α), tower(β))

The second relu keeps the cosine in [0, 1]; it is clamped away from both ends, where the cross entropy has no gradient.
The user's tower is computed once for each unit. On BLAS, fused loops and sums in lanes see `_nmf_kernel`.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from erasable.models._batches import (
    Batch,
    Floats,
    ParameterTable,
    Positives,
    Rates,
    Sizes,
    Tile,
    sample_units,
    tile_of,
    transpose,
    units_in_batch,
    update_lane,
)
from erasable.models.machine import TaskCounts, finish_task, take_task
from erasable.seeding.compiled import compiled

WIDTH = 16
FIRST = 64
SECOND = 32
TOWER_SHAPES = {
    "first": (WIDTH, FIRST),
    "first_bias": (FIRST,),
    "second": (FIRST, SECOND),
    "second_bias": (SECOND,),
}
SHAPES = {f"{side}_{name}": shape for side in ("user", "item") for name, shape in TOWER_SHAPES.items()}
CLAMP = 1e-4
SMALLEST_NORM = 1e-6
_FIRST_BIAS = WIDTH * FIRST
_SECOND = _FIRST_BIAS + FIRST
_SECOND_BIAS = _SECOND + FIRST * SECOND
_TOWER = _SECOND_BIAS + SECOND


class Tower(NamedTuple):
    """The arrays of one tower, as views into a flat vector (in the order of TOWER_SHAPES)."""

    first: Floats
    first_bias: Floats
    second: Floats
    second_bias: Floats


class TowerBuffers(NamedTuple):
    """One thread's buffers for one tower: a row for each input."""

    inputs: Floats
    first: Floats
    first_gradients: Floats
    output: Floats
    output_gradients: Floats
    norms: Floats
    first_transposed: Floats
    second_transposed: Floats


@compiled
def tower_of(flat: Floats, side: int) -> Tower:
    """Return named views into a flat network vector: side 0 is the users' tower, 1 the items'."""
    own = flat[side * _TOWER : (side + 1) * _TOWER]
    return Tower(
        own[:_FIRST_BIAS].reshape(WIDTH, FIRST),
        own[_FIRST_BIAS:_SECOND],
        own[_SECOND:_SECOND_BIAS].reshape(FIRST, SECOND),
        own[_SECOND_BIAS:],
    )


@compiled
def tower_buffers(rows: int) -> TowerBuffers:
    """Allocate buffers for up to this many inputs."""
    return TowerBuffers(
        np.empty((rows, WIDTH), np.float32),
        np.empty((rows, FIRST), np.float32),
        np.empty((rows, FIRST), np.float32),
        np.empty((rows, SECOND), np.float32),
        np.empty((rows, SECOND), np.float32),
        np.empty(rows, np.float32),
        np.empty((FIRST, WIDTH), np.float32),
        np.empty((SECOND, FIRST), np.float32),
    )


@compiled
def dmf_gradient(
    network: Floats, users: Floats, items: Floats, tile: Tile, buffers: tuple[TowerBuffers, TowerBuffers]
) -> None:
    """Write the gradients of a tile's summed loss: for each unit's user, each sample's item, and the network."""
    user_tower, item_tower = tower_of(network, 0), tower_of(network, 1)
    user_buffers, item_buffers = _shortened(buffers[0], len(tile.users)), _shortened(buffers[1], len(tile.items))
    tile.network_gradients[:] = 0
    _forward(user_tower, users, tile.users, user_buffers)
    _forward(item_tower, items, tile.items, item_buffers)
    _pass_errors(tile, user_buffers, item_buffers)
    _backward(user_tower, tower_of(tile.network_gradients, 0), tile.user_gradients, user_buffers)
    _backward(item_tower, tower_of(tile.network_gradients, 1), tile.item_gradients, item_buffers)


@compiled
def _shortened(buffers: TowerBuffers, rows: int) -> TowerBuffers:
    return TowerBuffers(
        buffers.inputs[:rows],
        buffers.first[:rows],
        buffers.first_gradients[:rows],
        buffers.output[:rows],
        buffers.output_gradients[:rows],
        buffers.norms[:rows],
        buffers.first_transposed,
        buffers.second_transposed,
    )


@compiled
def _summed(lanes: Floats) -> np.float32:
    """Add up sixteen lanes in a fixed order, overwriting them."""
    for place in range(8):
        lanes[place] += lanes[place + 8]
    for place in range(4):
        lanes[place] += lanes[place + 4]
    return (lanes[0] + lanes[2]) + (lanes[1] + lanes[3])


@compiled
def _forward(tower: Tower, table: Floats, index: NDArray[np.int32], buffers: TowerBuffers) -> None:
    zero = np.float32(0)
    lanes = np.empty(16, np.float32)
    for row in range(len(index)):
        for place in range(WIDTH):
            buffers.inputs[row, place] = table[index[row], place]
    np.dot(buffers.inputs, tower.first, buffers.first)
    for row in range(len(index)):
        for place in range(FIRST):
            buffers.first[row, place] = max(buffers.first[row, place] + tower.first_bias[place], zero)
    np.dot(buffers.first, tower.second, buffers.output)
    for row in range(len(index)):
        output = buffers.output[row]
        for place in range(SECOND):
            output[place] = max(output[place] + tower.second_bias[place], zero)
        for place in range(16):
            lanes[place] = output[place] * output[place] + output[place + 16] * output[place + 16]
        buffers.norms[row] = max(np.sqrt(_summed(lanes)), np.float32(SMALLEST_NORM))


@compiled
def _pass_errors(tile: Tile, user_buffers: TowerBuffers, item_buffers: TowerBuffers) -> None:
    """Score each sample and backpropagate its error to the outputs of both towers, through their second relu."""
    each = len(tile.items) // len(tile.users)
    zero = np.float32(0)
    lanes = np.empty(16, np.float32)
    for unit in range(len(tile.users)):
        user, user_gradients, user_norm = (
            user_buffers.output[unit],
            user_buffers.output_gradients[unit],
            user_buffers.norms[unit],
        )
        for place in range(SECOND):
            user_gradients[place] = 0
        for sample in range(unit * each, (unit + 1) * each):
            item, item_gradients = item_buffers.output[sample], item_buffers.output_gradients[sample]
            item_norm = item_buffers.norms[sample]
            for place in range(16):
                lanes[place] = user[place] * item[place] + user[place + 16] * item[place + 16]
            both = user_norm * item_norm
            cosine = _summed(lanes) / both
            gradient = zero
            if np.float32(CLAMP) < cosine < np.float32(1 - CLAMP):
                gradient = tile.weights[sample] * (cosine - tile.targets[sample]) / (cosine * (np.float32(1) - cosine))
            across = gradient / both
            user_along = gradient * cosine / (user_norm * user_norm)
            item_along = gradient * cosine / (item_norm * item_norm)
            for place in range(SECOND):
                user_gradients[place] += across * item[place] - user_along * user[place]
                passed = across * user[place] - item_along * item[place]
                item_gradients[place] = passed if item[place] > zero else zero
        for place in range(SECOND):
            user_gradients[place] = user_gradients[place] if user[place] > zero else zero


@compiled
def _backward(tower: Tower, gradients: Tower, row_gradients: Floats, buffers: TowerBuffers) -> None:
    transpose(tower.second, buffers.second_transposed)
    transpose(tower.first, buffers.first_transposed)
    np.dot(buffers.first.T, buffers.output_gradients, gradients.second)
    np.dot(buffers.output_gradients, buffers.second_transposed, buffers.first_gradients)
    for row in range(len(row_gradients)):
        for place in range(SECOND):
            gradients.second_bias[place] += buffers.output_gradients[row, place]
        for place in range(FIRST):
            passed = buffers.first_gradients[row, place] if buffers.first[row, place] > 0 else np.float32(0)
            buffers.first_gradients[row, place] = passed
            gradients.first_bias[place] += passed
    np.dot(buffers.inputs.T, buffers.first_gradients, gradients.first)
    np.dot(buffers.first_gradients, buffers.first_transposed, row_gradients)


@compiled(nogil=True)
def dmf_batches(
    control: NDArray[np.int64],
    counts: TaskCounts,
    order: NDArray[np.int32],
    positives: Positives,
    sizes: Sizes,
    key: np.uint64,
    tables: tuple[ParameterTable, ParameterTable, ParameterTable],
    batch: Batch,
    rates: Rates,
) -> None:
    """Work through the tasks of a run of batches, as one of several threads."""
    users, items, network = tables
    buffers = (tower_buffers(sizes.tile_units), tower_buffers(sizes.tile_units * (1 + sizes.negatives)))
    number, task = take_task(control, counts)
    while number >= 0:
        units = units_in_batch(order, sizes, number)
        low = task * sizes.tile_units
        high = min(units, low + sizes.tile_units)
        if task >= counts.tiles:
            update_lane(task - counts.tiles, tables, batch, units, sizes, (rates.step[number], rates.root[number]))
        elif low < high:
            sample_units(batch, order, positives, sizes, key, (number, low, high))
            dmf_gradient(network.rows[0], users.rows, items.rows, tile_of(batch, task, low, high), buffers)
        finish_task(control)
        number, task = take_task(control, counts)
