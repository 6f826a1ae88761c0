"""DMF (Xue et al., "Deep Matrix Factorization Models", 2017) in the paper's sizes, and how it solves a user's row."""

import math
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from erasable.models._batches import Floats
from erasable.models._dmf_kernel import CLAMP, FIRST, SECOND, SHAPES, SMALLEST_NORM, WIDTH, dmf_batches
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
from erasable.models.base import Arrays, Scores, Settings
from erasable.seeding.compiled import compiled

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
    _pass_errors(fixed, samples, buffers)
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
def _pass_errors(fixed: FixedDmf, samples: tuple[NDArray[np.int32], Floats], buffers: UserTowerBuffers) -> None:
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
