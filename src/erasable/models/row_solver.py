"""Solving personal rows with the shared parameters fixed: what NMF and DMF share; their slopes live in `…_rows`.

A row depends on the shared parameters, its user's id and seed, and the user's own interactions: every draw is under the
user's own key, and nothing of two users is ever computed in one matrix product. A pass goes through the user's
interactions in random order, each with fresh negatives, in about 32 steps however many there are. A step is Adam's on
the mean cross entropy of its samples plus a pull towards 0, which decides where there is little data; step sizes fall
to 0 (measured: docs/decisions).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from erasable.models.batches import FIRST_DECAY, SECOND_DECAY, Floats, Table, adam_row
from erasable.models.model import Effort
from erasable.models.sampling import missing_item, shuffled
from erasable.seeding.compiled import below, compiled, draw
from erasable.threads import pool_of

STEPS = 32
LARGEST_STEP = 128  # units, so that room stays small beside someone with very many interactions
_SAMPLES_PER_CALL = 300_000  # compiled code returns this often, so that Ctrl-C and progress bars work


class Course(NamedTuple):
    """How rows are solved: passes over the own data, negatives out of the catalogue, first step size, pull to 0."""

    passes: int
    catalogue: int
    negatives: int
    rate: float
    pull: float


class OwnData(NamedTuple):
    """The key of each user's draws, the row pointer by user, and item and target of each interaction."""

    keys: NDArray[np.uint64]
    starts: NDArray[np.int64]
    items: NDArray[np.int32]
    targets: Floats


class StepRoom(NamedTuple):
    """Room for one user: the order of a pass, the samples of a step, their slopes, and the row with its moments."""

    order: NDArray[np.int32]
    items: NDArray[np.int32]
    targets: Floats
    slopes: Floats
    table: Table


def solve_rows(
    kernel: Callable[..., None],
    data: OwnData,
    course: Course,
    fixed: Any,  # noqa: ANN401 - a tuple of arrays that only the kernel knows
    start: Floats,
    effort: Effort,
) -> Floats:
    """Return rows solved from their start; users are shared out over threads, which changes no byte."""
    rows = start.copy()
    samples = course.passes * _samples(data, course)
    if effort.threads == 1:  # starting a thread would take longer than one row
        for run in _runs(samples):
            kernel(run, data, course, fixed, rows)
            effort.advance(int(samples[slice(*run)].sum()))
        return rows
    with pool_of(effort.threads) as pool:
        runs = [(run, pool.submit(kernel, run, data, course, fixed, rows)) for run in _runs(samples)]
        for (low, high), done in runs:
            done.result()
            effort.advance(int(samples[low:high].sum()))
    return rows


def _samples(data: OwnData, course: Course) -> NDArray[np.int64]:
    """Return how many samples each user has in a pass."""
    owned = np.diff(data.starts)
    return owned * np.where(owned < course.catalogue, 1 + course.negatives, 1)


def _runs(samples: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Cut the users into runs of about as many samples as one call takes; every run holds somebody."""
    calls = np.cumsum(samples) // _SAMPLES_PER_CALL
    ends = [*(np.flatnonzero(np.diff(calls)) + 1).tolist(), len(samples)]
    return [run for run in zip([0, *ends[:-1]], ends, strict=True) if run[0] < run[1]]


@compiled
def steps_of_user(data: OwnData, user: int, course: Course) -> int:
    """Return how many steps solve a user's row."""
    return course.passes * steps_in_pass(data.starts[user + 1] - data.starts[user])


@compiled
def steps_in_pass(interactions: int) -> int:
    """Return into how many steps a pass over this many interactions is cut."""
    return max(min(interactions, STEPS), -(-interactions // LARGEST_STEP))


@compiled
def step_room(run: tuple[int, int], data: OwnData, course: Course, width: int) -> StepRoom:
    """Return room for the largest pass and the largest step of a run of users."""
    most = units = 1
    for user in range(run[0], run[1]):
        owned = data.starts[user + 1] - data.starts[user]
        most = max(most, owned)
        units = max(units, -(-owned // max(1, steps_in_pass(owned))))
    samples = units * (1 + course.negatives)
    table = Table(np.empty((1, width), np.float32), np.empty((1, 2, width), np.float32), np.empty(1, np.int32))
    return StepRoom(
        np.empty(most, np.int32),
        np.empty(samples, np.int32),
        np.empty(samples, np.float32),
        np.empty(width, np.float32),
        table,
    )


@compiled
def begin_row(room: StepRoom, row: Floats) -> None:
    """Start a row, without moments."""
    room.table.rows[0, :] = row
    room.table.moments[:] = 0


@compiled
def sample_step(room: StepRoom, data: OwnData, user: int, step: int, course: Course) -> tuple[int, float]:
    """Write the samples of a user's step; return how many they are, and which share of the own data they stand for."""
    own = slice(data.starts[user], data.starts[user + 1])
    items, targets = data.items[own], data.targets[own]
    steps = steps_in_pass(len(items))
    number, step = step // steps, step % steps
    order = room.order[: len(items)]
    if step == 0:
        order[:] = shuffled(len(items), draw(data.keys[user], np.uint64(2 * number)))
    units = order[len(items) * step // steps : len(items) * (step + 1) // steps]
    key = draw(data.keys[user], np.uint64(2 * number + 1))
    return _write_samples(room, (items, targets), units, key, course), len(units) / len(items)


@compiled
def _write_samples(
    room: StepRoom,
    owned: tuple[NDArray[np.int32], Floats],
    units: NDArray[np.int32],
    key: np.uint64,
    course: Course,
) -> int:
    """Write some of the own interactions, each followed by items that the user has not; return how many samples."""
    items, targets = owned
    missing = course.catalogue - len(items)
    count = 0
    for unit in units:
        room.items[count] = items[unit]
        room.targets[count] = targets[unit]
        count += 1
        for negative in range(course.negatives if missing > 0 else 0):
            number = np.uint64(unit) * np.uint64(course.negatives) + np.uint64(negative)
            room.items[count] = missing_item(items, below(draw(key, number), missing))
            room.targets[count] = 0
            count += 1
    return count


@compiled
def step_row(room: StepRoom, samples: int, share: float, step: tuple[int, int], course: Course) -> None:
    """Take step number (n of all) on the row, from slopes summed over samples that are a share of the own data."""
    number, total = step
    row = room.table.rows[0]
    pull = np.float32(course.pull * share)
    for place in range(len(row)):
        room.slopes[place] += pull * row[place]
    rate = course.rate * (1 - number / total) / (1 - FIRST_DECAY ** (number + 1))
    root = 1 / np.sqrt(1 - SECOND_DECAY ** (number + 1))
    adam_row(room.table, 0, room.slopes, (np.float32(1) / np.float32(samples), np.float32(rate), np.float32(root)))
