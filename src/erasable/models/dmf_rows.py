"""Solving rows of DMF: the slopes of one user's samples by that user's row alone, written out by hand.

The formulas stand in `dmf_kernel`. With the shared parameters fixed, the items' outputs are computed once, scaled to
length 1; the user's tower is gone through once for each step, forwards and back, whatever the number of samples.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from erasable.models.batches import Floats
from erasable.models.dmf_kernel import CLAMP, FIRST, SECOND, SMALLEST_NORM, WIDTH
from erasable.models.parameters import Arrays
from erasable.models.row_solver import (
    Course,
    OwnData,
    StepRoom,
    begin_row,
    sample_step,
    step_room,
    step_row,
    steps_of_user,
)
from erasable.seeding.compiled import compiled

_HALF = SECOND // 2


class FixedDmf(NamedTuple):
    """The shared parameters as a row sees them: each item's direction, and the users' tower."""

    directions: Floats
    first: Floats
    first_turned: Floats
    first_bias: Floats
    second: Floats
    second_turned: Floats
    second_bias: Floats


class UserRoom(NamedTuple):
    """Room for one user's tower: its layers, and their slopes."""

    first: Floats
    output: Floats
    first_slopes: Floats
    output_slopes: Floats
    lanes: Floats


def fixed_dmf(shared: Arrays, directions: Floats) -> FixedDmf:
    """Return the shared parameters as a row sees them; all copies, since numba compiles anew for read-only arrays."""
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
def user_room() -> UserRoom:
    """Return room for one user's tower."""
    return UserRoom(
        np.empty(FIRST, np.float32),
        np.empty(SECOND, np.float32),
        np.empty(FIRST, np.float32),
        np.empty(SECOND, np.float32),
        np.empty(_HALF, np.float32),
    )


@compiled
def dmf_row_slopes(
    fixed: FixedDmf, row: Floats, samples: tuple[NDArray[np.int32], Floats], room: UserRoom, slopes: Floats
) -> None:
    """Write the slopes of the summed loss over one user's samples by that user's row."""
    _layer(row, fixed.first, fixed.first_bias, room.first)
    _layer(room.first, fixed.second, fixed.second_bias, room.output)
    _pass_errors(fixed, samples, room)
    _times(room.output_slopes, fixed.second_turned, room.first_slopes)
    for unit in range(FIRST):
        room.first_slopes[unit] = room.first_slopes[unit] if room.first[unit] > 0 else np.float32(0)
    _times(room.first_slopes, fixed.first_turned, slopes)


@compiled
def _layer(inputs: Floats, weights: Floats, bias: Floats, outputs: Floats) -> None:
    _times(inputs, weights, outputs)
    for unit in range(len(outputs)):
        outputs[unit] = max(outputs[unit] + bias[unit], np.float32(0))


@compiled
def _times(inputs: Floats, weights: Floats, outputs: Floats) -> None:
    """Write inputs · weights, in a fixed order of sums."""
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
def _pass_errors(fixed: FixedDmf, samples: tuple[NDArray[np.int32], Floats], room: UserRoom) -> None:
    """Score each sample and pass its error back to the tower's output, through its second relu."""
    items, targets = samples
    zero, one = np.float32(0), np.float32(1)
    norm = max(np.sqrt(_dot(room.output, room.output, room.lanes)), np.float32(SMALLEST_NORM))
    along = zero
    room.output_slopes[:] = 0
    for sample in range(len(items)):
        direction = fixed.directions[items[sample]]
        cosine = _dot(room.output, direction, room.lanes) / norm
        if np.float32(CLAMP) < cosine < np.float32(1 - CLAMP):
            slope = (cosine - targets[sample]) / (cosine * (one - cosine)) / norm
            along += slope * cosine / norm
            for unit in range(SECOND):
                room.output_slopes[unit] += slope * direction[unit]
    for unit in range(SECOND):
        passed = room.output_slopes[unit] - along * room.output[unit]
        room.output_slopes[unit] = passed if room.output[unit] > zero else zero


@compiled(nogil=True)
def dmf_rows(run: tuple[int, int], data: OwnData, course: Course, fixed: FixedDmf, rows: Floats) -> None:
    """Solve the rows of a run of users, one after another, in place."""
    room: StepRoom = step_room(run, data, course, WIDTH)
    tower = user_room()
    for user in range(run[0], run[1]):
        begin_row(room, rows[user])
        steps = steps_of_user(data, user, course)
        for step in range(steps):
            count, share = sample_step(room, data, user, step, course)
            samples = (room.items[:count], room.targets[:count])
            dmf_row_slopes(fixed, room.table.rows[0], samples, tower, room.slopes)
            step_row(room, count, share, (step, steps), course)
        rows[user] = room.table.rows[0]
