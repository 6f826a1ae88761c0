"""DMF (Xue et al., "Deep Matrix Factorization Models", 2017) in the paper's sizes: its gradient, how a row is solved.

The gradient over one tile of a batch is written out by hand. With α a user's row and β an item's (the paper's "Choice
of Recommendation Models"), and a tower of two layers for each:

    tower(row) = relu(relu(row·first + first_bias)·second + second_bias)        score = cos(tower(α), tower(β))

The second relu keeps the cosine in [0, 1]; it is clamped away from both ends, where the cross entropy has no gradient.
The user's tower is computed once for each unit. On BLAS, fused loops and sums in lanes see `_nmf`.
"""

import math
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

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
from erasable.models._embedding_model import (
    ITEM_ROWS,
    USER_ROWS,
    Course,
    EmbeddingModel,
    OwnData,
    StepBuffers,
    StepSettings,
    begin_row,
    blocks,
    sample_step,
    step_buffers,
    step_row,
    steps_of_user,
)
from erasable.models._threads import TaskCounts, finish_task, take_task
from erasable.models.base import Arrays, Scores
from erasable.models.machine import cosines
from erasable.models.settings import Settings
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


_HALF = SECOND // 2


class FixedDmf(NamedTuple):
    """The shared parameters that solving a row reads: each item's direction, and the users' tower."""

    directions: Floats
    first: Floats
    first_transposed: Floats
    first_bias: Floats
    second: Floats
    second_transposed: Floats
    second_bias: Floats


class UserTowerBuffers(NamedTuple):
    """Buffers for one user's tower: its layers, and their gradients."""

    first: Floats
    output: Floats
    first_gradients: Floats
    output_gradients: Floats
    lanes: Floats


def fixed_dmf(shared: Arrays, directions: Floats) -> FixedDmf:
    """Return the parameters that solving a row reads; copies, since numba would compile again for read-only arrays."""
    first, second = shared["user_first"], shared["user_second"]
    return FixedDmf(
        directions,
        first.copy(),
        first.T.copy(),
        shared["user_first_bias"].copy(),
        second.copy(),
        second.T.copy(),
        shared["user_second_bias"].copy(),
    )


@compiled
def user_buffers() -> UserTowerBuffers:
    """Allocate the buffers of one user's tower."""
    return UserTowerBuffers(
        np.empty(FIRST, np.float32),
        np.empty(SECOND, np.float32),
        np.empty(FIRST, np.float32),
        np.empty(SECOND, np.float32),
        np.empty(_HALF, np.float32),
    )


@compiled
def dmf_row_gradients(
    fixed: FixedDmf,
    row: Floats,
    samples: tuple[NDArray[np.int32], Floats],
    buffers: UserTowerBuffers,
    gradients: Floats,
) -> None:
    """Write the gradient of the summed loss over one user's samples with respect to that user's row."""
    _layer(row, fixed.first, fixed.first_bias, buffers.first)
    _layer(buffers.first, fixed.second, fixed.second_bias, buffers.output)
    _pass_item_errors(fixed, samples, buffers)
    _times(buffers.output_gradients, fixed.second_transposed, buffers.first_gradients)
    for unit in range(FIRST):
        buffers.first_gradients[unit] = buffers.first_gradients[unit] if buffers.first[unit] > 0 else np.float32(0)
    _times(buffers.first_gradients, fixed.first_transposed, gradients)


@compiled
def _layer(inputs: Floats, weights: Floats, bias: Floats, outputs: Floats) -> None:
    _times(inputs, weights, outputs)
    for unit in range(len(outputs)):
        outputs[unit] = max(outputs[unit] + bias[unit], np.float32(0))


@compiled
def _times(inputs: Floats, weights: Floats, outputs: Floats) -> None:
    """Write inputs · weights, summed in a fixed order."""
    outputs[:] = 0
    for place in range(len(inputs)):
        for unit in range(len(outputs)):
            outputs[unit] += inputs[place] * weights[place, unit]


@compiled
def _dot(left: Floats, right: Floats, lanes: Floats) -> np.float32:
    for place in range(_HALF):
        lanes[place] = left[place] * right[place] + left[place + _HALF] * right[place + _HALF]
    for place in range(8):
        lanes[place] += lanes[place + 8]
    for place in range(4):
        lanes[place] += lanes[place + 4]
    return (lanes[0] + lanes[2]) + (lanes[1] + lanes[3])


@compiled
def _pass_item_errors(fixed: FixedDmf, samples: tuple[NDArray[np.int32], Floats], buffers: UserTowerBuffers) -> None:
    """Score each sample and backpropagate its error to the tower's output, through its second relu."""
    items, targets = samples
    zero, one = np.float32(0), np.float32(1)
    norm = max(np.sqrt(_dot(buffers.output, buffers.output, buffers.lanes)), np.float32(SMALLEST_NORM))
    along = zero
    buffers.output_gradients[:] = 0
    for sample in range(len(items)):
        direction = fixed.directions[items[sample]]
        cosine = _dot(buffers.output, direction, buffers.lanes) / norm
        if np.float32(CLAMP) < cosine < np.float32(1 - CLAMP):
            gradient = (cosine - targets[sample]) / (cosine * (one - cosine)) / norm
            along += gradient * cosine / norm
            for unit in range(SECOND):
                buffers.output_gradients[unit] += gradient * direction[unit]
    for unit in range(SECOND):
        passed = buffers.output_gradients[unit] - along * buffers.output[unit]
        buffers.output_gradients[unit] = passed if buffers.output[unit] > zero else zero


@compiled(nogil=True)
def dmf_rows(run: tuple[int, int], data: OwnData, course: Course, fixed: FixedDmf, rows: Floats) -> None:
    """Solve the rows of a run of users, one after another, in place."""
    buffers: StepBuffers = step_buffers(run, data, course, WIDTH)
    tower = user_buffers()
    for user in range(run[0], run[1]):
        begin_row(buffers, rows[user])
        steps = steps_of_user(data, user, course)
        for step in range(steps):
            count, share = sample_step(buffers, data, user, step, course)
            samples = (buffers.items[:count], buffers.targets[:count])
            dmf_row_gradients(fixed, buffers.table.rows[0], samples, tower, buffers.gradients)
            step_row(buffers, count, share, (step, steps), course)
        rows[user] = buffers.table.rows[0]


_BLOCK = 4096
_ROW_DEVIATION = 0.1
_FAN_IN = {"user_first": WIDTH, "item_first": WIDTH, "user_second": FIRST, "item_second": FIRST}


class PreparedDmf:
    """The items' directions, computed once, and the parameters for solving rows, when the first row is solved."""

    def __init__(self, shared: Arrays) -> None:
        self.shared = shared
        self.directions = _item_directions(shared)

    @cached_property
    def fixed(self) -> FixedDmf:
        """The shared parameters that solving a row reads."""
        return fixed_dmf(self.shared, self.directions)


class DMFSettings(StepSettings):
    """The settings of DMF."""

    learning_rate: float = Field(0.005, gt=0, le=1)  # with the paper's 0.001 dmf scores far lower (docs/decisions)
    """Adam's step size."""


class DMF(EmbeddingModel):
    """A tower of two layers for users and one for items; the score is the cosine of their outputs.

    Parameters
    ----------
    **settings
        Those of `DMFSettings`: `epochs`, `batch`, `negatives`, `learning_rate`, `row_epochs`.

    Examples
    --------
    >>> DMF().settings.learning_rate
    0.005
    """

    name: ClassVar[str] = "dmf"
    settings_class: ClassVar[type[Settings]] = DMFSettings
    width = WIDTH
    shapes = SHAPES
    batch_kernel = dmf_batches
    row_kernel = dmf_rows
    row_rate = 0.02
    row_pull = 10.0

    def deviation(self, name: str) -> float:
        """Return 0.1 for rows and He et al.'s (2015) for layers: with the paper's N(0, 0.01²) nothing is learned."""
        if name in self.shapes:
            return math.sqrt(2 / _FAN_IN[name]) if name in _FAN_IN else 0.0
        return _ROW_DEVIATION

    def prepare(self, shared: Arrays) -> PreparedDmf:
        """Compute the items' tower."""
        return PreparedDmf(shared)

    def score(self, prepared: PreparedDmf, row: Arrays, owned: NDArray[np.int32]) -> Scores:
        """Score by the cosine."""
        scores: Scores = prepared.directions @ _direction(prepared.shared, "user", row[USER_ROWS][None, :])[0]
        return scores

    def similar(self, shared: Arrays, number: int) -> Scores:
        """Return the cosine between the outputs of the items' tower for this item and for each."""
        return cosines(_item_directions(shared), number)

    def probability(self, scores: Scores) -> NDArray[np.float64]:
        """Return the cosines, clamped away from 0 and 1 as in training."""
        return np.clip(scores.astype(np.float64), CLAMP, 1 - CLAMP)


def _item_directions(shared: Arrays) -> NDArray[np.float32]:
    rows = shared[ITEM_ROWS]
    if not len(rows):
        return _direction(shared, "item", rows)
    return np.concatenate([_direction(shared, "item", rows[part]) for part in blocks(len(rows), _BLOCK)])


def _direction(shared: Arrays, side: str, rows: NDArray[np.float32]) -> NDArray[np.float32]:
    first = np.maximum(rows @ shared[f"{side}_first"] + shared[f"{side}_first_bias"], 0)
    output = np.maximum(first @ shared[f"{side}_second"] + shared[f"{side}_second_bias"], 0)
    norms = np.maximum(np.sqrt((output * output).sum(axis=1, keepdims=True)), SMALLEST_NORM)
    return (output / norms).astype(np.float32, copy=False)
