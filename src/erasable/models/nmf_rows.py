"""Solving rows of NMF: the slopes of one user's samples by that user's row alone, written out by hand.

The formulas stand in `nmf_kernel`. With the shared parameters fixed, the items' half of the first layer is computed
once for the whole catalogue, and no slopes of items or of the network are needed.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from erasable.models.batches import Floats
from erasable.models.nmf_kernel import FIRST, ROW, SECOND, WIDTH
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


class FixedNmf(NamedTuple):
    """The shared parameters as a row sees them; each item's part of the logit's product and of the first layer."""

    products: Floats
    firsts: Floats
    user_in: Floats
    user_in_turned: Floats
    hidden: Floats
    hidden_turned: Floats
    second_bias: Floats
    hidden_out: Floats
    bias_out: Floats


class LayerRoom(NamedTuple):
    """Room for the layers, a row for each sample of a step, and for the user's half of the first one."""

    first: Floats
    first_slopes: Floats
    second: Floats
    user_first: Floats
    lanes: Floats


def fixed_nmf(shared: Arrays) -> FixedNmf:
    """Return the shared parameters as a row sees them; all copies, since numba compiles anew for read-only arrays."""
    items = shared["item"]
    return FixedNmf(
        items[:, :WIDTH] * shared["product_out"],
        items[:, WIDTH:] @ shared["item_in"] + shared["first_bias"],
        shared["user_in"].copy(),
        shared["user_in"].T.copy(),
        shared["hidden"].copy(),
        shared["hidden"].T.copy(),
        shared["second_bias"].copy(),
        shared["hidden_out"].copy(),
        shared["bias_out"].copy(),
    )


@compiled
def layer_room(samples: int) -> LayerRoom:
    """Return room for steps of up to this many samples."""
    return LayerRoom(
        np.empty((samples, FIRST), np.float32),
        np.empty((samples, FIRST), np.float32),
        np.empty((samples, SECOND), np.float32),
        np.empty(FIRST, np.float32),
        np.empty(WIDTH, np.float32),
    )


@compiled
def nmf_row_slopes(
    fixed: FixedNmf, row: Floats, samples: tuple[NDArray[np.int32], Floats], room: LayerRoom, slopes: Floats
) -> None:
    """Write the slopes of the summed loss over one user's samples by that user's row."""
    items, targets = samples
    first, first_slopes = room.first[: len(items)], room.first_slopes[: len(items)]
    second = room.second[: len(items)]
    _forward(fixed, row, items, first, room.user_first)
    np.dot(first, fixed.hidden, second)
    _pass_errors(fixed, row, (items, targets), second, room.lanes, slopes)
    np.dot(second, fixed.hidden_turned, first_slopes)
    _backward(fixed, first, first_slopes, room.user_first, slopes)


@compiled
def _forward(fixed: FixedNmf, row: Floats, items: NDArray[np.int32], first: Floats, user_first: Floats) -> None:
    user_first[:] = 0
    for place in range(WIDTH):
        for unit in range(FIRST):
            user_first[unit] += row[WIDTH + place] * fixed.user_in[place, unit]
    for sample in range(len(items)):
        item = fixed.firsts[items[sample]]
        for unit in range(FIRST):
            first[sample, unit] = max(item[unit] + user_first[unit], np.float32(0))


@compiled
def _pass_errors(
    fixed: FixedNmf,
    row: Floats,
    samples: tuple[NDArray[np.int32], Floats],
    second: Floats,
    lanes: Floats,
    slopes: Floats,
) -> None:
    """Score each sample and pass its error back to the row's product and the second layer, which then holds slopes."""
    items, targets = samples
    zero = np.float32(0)
    slopes[:] = 0
    for sample in range(len(items)):
        product = fixed.products[items[sample]]
        for unit in range(SECOND):
            second[sample, unit] = max(second[sample, unit] + fixed.second_bias[unit], zero)
        for place in range(WIDTH):
            lanes[place] = (
                product[place] * row[place]
                + fixed.hidden_out[place] * second[sample, place]
                + fixed.hidden_out[WIDTH + place] * second[sample, WIDTH + place]
            )
        for place in range(8):
            lanes[place] += lanes[place + 8]
        for place in range(4):
            lanes[place] += lanes[place + 4]
        logit = ((lanes[0] + lanes[2]) + (lanes[1] + lanes[3])) + fixed.bias_out[0]
        error = np.float32(1) / (np.float32(1) + np.exp(-logit)) - targets[sample]
        for place in range(WIDTH):
            slopes[place] += error * product[place]
        for unit in range(SECOND):
            second[sample, unit] = error * fixed.hidden_out[unit] if second[sample, unit] > zero else zero


@compiled
def _backward(fixed: FixedNmf, first: Floats, first_slopes: Floats, user_first: Floats, slopes: Floats) -> None:
    user_first[:] = 0
    for sample in range(len(first)):
        for unit in range(FIRST):
            user_first[unit] += first_slopes[sample, unit] if first[sample, unit] > 0 else np.float32(0)
    for unit in range(FIRST):
        for place in range(WIDTH):
            slopes[WIDTH + place] += user_first[unit] * fixed.user_in_turned[unit, place]


@compiled(nogil=True)
def nmf_rows(run: tuple[int, int], data: OwnData, course: Course, fixed: FixedNmf, rows: Floats) -> None:
    """Solve the rows of a run of users, one after another, in place."""
    room: StepRoom = step_room(run, data, course, ROW)
    layers = layer_room(len(room.items))
    for user in range(run[0], run[1]):
        begin_row(room, rows[user])
        steps = steps_of_user(data, user, course)
        for step in range(steps):
            count, share = sample_step(room, data, user, step, course)
            samples = (room.items[:count], room.targets[:count])
            nmf_row_slopes(fixed, room.table.rows[0], samples, layers, room.slopes)
            step_row(room, count, share, (step, steps), course)
        rows[user] = room.table.rows[0]
