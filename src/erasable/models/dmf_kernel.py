"""The gradient of DMF over one tile of a batch, written out by hand; no chain, no files.

With α a user's row and β an item's (the paper's "Choice of Recommendation Models"), and a tower of two layers for each:

    tower(row) = relu(relu(row·first + first_bias)·second + second_bias)        score = cos(tower(α), tower(β))

The second relu keeps the cosine in [0, 1]; it is clamped away from both ends, where the cross entropy has no slope. The
user's tower is computed once for each unit. About BLAS, fused loops and sums in lanes see `nmf_kernel`.
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


class TowerRoom(NamedTuple):
    """Room for what one thread computes in one tower: a row for each input."""

    inputs: Floats
    first: Floats
    first_slopes: Floats
    output: Floats
    output_slopes: Floats
    norms: Floats
    first_turned: Floats
    second_turned: Floats


@compiled
def tower_of(flat: Floats, side: int) -> Tower:
    """Return the named views into a flat network vector: side 0 is the users' tower, 1 the items'."""
    own = flat[side * _TOWER : (side + 1) * _TOWER]
    return Tower(
        own[:_FIRST_BIAS].reshape(WIDTH, FIRST),
        own[_FIRST_BIAS:_SECOND],
        own[_SECOND:_SECOND_BIAS].reshape(FIRST, SECOND),
        own[_SECOND_BIAS:],
    )


@compiled
def tower_room(rows: int) -> TowerRoom:
    """Return room for up to this many inputs."""
    return TowerRoom(
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
def dmf_gradient(network: Floats, users: Floats, items: Floats, tile: Tile, rooms: tuple[TowerRoom, TowerRoom]) -> None:
    """Write the slopes of the summed loss over a tile: for each unit's user, each sample's item, and the network."""
    user_tower, item_tower = tower_of(network, 0), tower_of(network, 1)
    user_room, item_room = _shortened(rooms[0], len(tile.users)), _shortened(rooms[1], len(tile.items))
    tile.network_slopes[:] = 0
    _forward(user_tower, users, tile.users, user_room)
    _forward(item_tower, items, tile.items, item_room)
    _pass_errors(tile, user_room, item_room)
    _backward(user_tower, tower_of(tile.network_slopes, 0), tile.user_slopes, user_room)
    _backward(item_tower, tower_of(tile.network_slopes, 1), tile.item_slopes, item_room)


@compiled
def _shortened(room: TowerRoom, rows: int) -> TowerRoom:
    return TowerRoom(
        room.inputs[:rows],
        room.first[:rows],
        room.first_slopes[:rows],
        room.output[:rows],
        room.output_slopes[:rows],
        room.norms[:rows],
        room.first_turned,
        room.second_turned,
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
def _forward(tower: Tower, table: Floats, index: NDArray[np.int32], room: TowerRoom) -> None:
    zero = np.float32(0)
    lanes = np.empty(16, np.float32)
    for row in range(len(index)):
        for place in range(WIDTH):
            room.inputs[row, place] = table[index[row], place]
    np.dot(room.inputs, tower.first, room.first)
    for row in range(len(index)):
        for place in range(FIRST):
            room.first[row, place] = max(room.first[row, place] + tower.first_bias[place], zero)
    np.dot(room.first, tower.second, room.output)
    for row in range(len(index)):
        output = room.output[row]
        for place in range(SECOND):
            output[place] = max(output[place] + tower.second_bias[place], zero)
        for place in range(16):
            lanes[place] = output[place] * output[place] + output[place + 16] * output[place + 16]
        room.norms[row] = max(np.sqrt(_summed(lanes)), np.float32(SMALLEST_NORM))


@compiled
def _pass_errors(tile: Tile, user_room: TowerRoom, item_room: TowerRoom) -> None:
    """Score each sample and pass its error back to the outputs of both towers, through their second relu."""
    each = len(tile.items) // len(tile.users)
    zero = np.float32(0)
    lanes = np.empty(16, np.float32)
    for unit in range(len(tile.users)):
        user, user_slopes, user_norm = (
            user_room.output[unit],
            user_room.output_slopes[unit],
            user_room.norms[unit],
        )
        for place in range(SECOND):
            user_slopes[place] = 0
        for sample in range(unit * each, (unit + 1) * each):
            item, item_slopes = item_room.output[sample], item_room.output_slopes[sample]
            item_norm = item_room.norms[sample]
            for place in range(16):
                lanes[place] = user[place] * item[place] + user[place + 16] * item[place + 16]
            both = user_norm * item_norm
            cosine = _summed(lanes) / both
            slope = zero
            if np.float32(CLAMP) < cosine < np.float32(1 - CLAMP):
                slope = tile.weights[sample] * (cosine - tile.targets[sample]) / (cosine * (np.float32(1) - cosine))
            across = slope / both
            user_along = slope * cosine / (user_norm * user_norm)
            item_along = slope * cosine / (item_norm * item_norm)
            for place in range(SECOND):
                user_slopes[place] += across * item[place] - user_along * user[place]
                passed = across * user[place] - item_along * item[place]
                item_slopes[place] = passed if item[place] > zero else zero
        for place in range(SECOND):
            user_slopes[place] = user_slopes[place] if user[place] > zero else zero


@compiled
def _backward(tower: Tower, slopes: Tower, row_slopes: Floats, room: TowerRoom) -> None:
    turn(tower.second, room.second_turned)
    turn(tower.first, room.first_turned)
    np.dot(room.first.T, room.output_slopes, slopes.second)
    np.dot(room.output_slopes, room.second_turned, room.first_slopes)
    for row in range(len(row_slopes)):
        for place in range(SECOND):
            slopes.second_bias[place] += room.output_slopes[row, place]
        for place in range(FIRST):
            passed = room.first_slopes[row, place] if room.first[row, place] > 0 else np.float32(0)
            room.first_slopes[row, place] = passed
            slopes.first_bias[place] += passed
    np.dot(room.inputs.T, room.first_slopes, slopes.first)
    np.dot(room.first_slopes, room.first_turned, row_slopes)


@compiled(nogil=True)
def dmf_shift(
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
    rooms = (tower_room(sizes.tile_units), tower_room(sizes.tile_units * (1 + sizes.negatives)))
    number, task = take_task(control, schedule)
    while number >= 0:
        units = units_in_batch(order, sizes, number)
        low = task * sizes.tile_units
        high = min(units, low + sizes.tile_units)
        if task >= schedule.tiles:
            update_lane(task - schedule.tiles, tables, batch, units, sizes, (rates.step[number], rates.root[number]))
        elif low < high:
            sample_units(batch, order, positives, sizes, key, (number, low, high))
            dmf_gradient(network.rows[0], users.rows, items.rows, tile_of(batch, task, low, high), rooms)
        finish_task(control)
        number, task = take_task(control, schedule)
