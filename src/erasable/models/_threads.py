"""Compiled code on several threads: they take the tasks of a run in order."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from erasable.seeding.compiled import after_loading, compiled
from erasable.threads import pool_of

if TYPE_CHECKING:
    from erasable.seeding.atomics import atomic_add, atomic_load, atomic_swap, yield_processor

NEXT, DONE = 0, 8  # a cache line apart
_SPINS_BEFORE_YIELD = 200
_NO_TASK = np.iinfo(np.int64).max


def _name_atomics() -> None:
    """Give their names to what the kernels below use and only numba can make, when that is loaded."""
    from erasable.seeding import atomics

    names = ("atomic_add", "atomic_load", "atomic_swap", "yield_processor")
    globals().update({name: getattr(atomics, name) for name in names})


after_loading(_name_atomics)


class TaskCounts(NamedTuple):
    """The number of tasks in a run: `batches` times (`tiles` gradient tasks, then `lanes` update tasks)."""

    batches: int
    tiles: int
    lanes: int


def run_on_threads(threads: int, kernel: Callable[..., None], *arguments: Any) -> None:  # noqa: ANN401 - passed through
    """Run a compiled `kernel(control, *arguments)` on several threads until all its tasks are done."""
    control = np.zeros(16, dtype=np.int64)
    with pool_of(threads) as pool:
        try:
            for finished in [pool.submit(kernel, control, *arguments) for _ in range(threads)]:
                finished.result()
        finally:
            control[NEXT] = _NO_TASK  # after an interrupt the threads must not start the remaining tasks


@compiled
def take_task(control: NDArray[np.int64], counts: TaskCounts) -> tuple[int, int]:
    """Return (batch, task) of the next task that may begin, or (−1, −1) if none is left."""
    in_batch = counts.tiles + counts.lanes
    spins = 0
    while True:
        number = atomic_load(control, NEXT)
        if number >= counts.batches * in_batch:
            return -1, -1
        batch, task = number // in_batch, number % in_batch
        needed = batch * in_batch + (0 if task < counts.tiles else counts.tiles)
        if atomic_load(control, DONE) >= needed:
            if atomic_swap(control, NEXT, number, number + 1):
                return batch, task
        else:
            spins += 1
            if spins > _SPINS_BEFORE_YIELD:
                yield_processor()


@compiled
def finish_task(control: NDArray[np.int64]) -> None:
    """Mark a task as done, and publish what it wrote."""
    atomic_add(control, DONE, 1)
