"""A crew of threads that shares out numbered tasks inside compiled code; what a task does is not known here.

The tasks of a run are numbered: batch after batch, in each batch first the gradient tasks, then the update tasks.
A thread takes the next number only when every task of the steps before is done, so a thread that the system has put to
sleep holds nothing up: the others take its share. Which thread runs a task never changes the result. (numba's own
`parallel=True` waits for every thread at every step; beside a busy process that was measured 50 times slower.)
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from erasable.seeding.compiled import compiled
from erasable.threads import pool_of

NEXT, DONE = 0, 8  # a cache line apart
_SPINS_BEFORE_YIELD = 200
_NO_TASK = np.iinfo(np.int64).max
_yield_processor = types.ExternalFunction("sched_yield", types.int32())


class Schedule(NamedTuple):
    """How many tasks a run has: `batches` times (`tiles` gradient tasks, then `lanes` update tasks)."""

    batches: int
    tiles: int
    lanes: int


def run_crew(threads: int, shift: Callable[..., None], *arguments: Any) -> None:  # noqa: ANN401 - passed through
    """Run a compiled `shift(control, *arguments)` on some threads until its schedule is worked off."""
    control = np.zeros(16, dtype=np.int64)
    with pool_of(threads) as pool:
        try:
            for finished in [pool.submit(shift, control, *arguments) for _ in range(threads)]:
                finished.result()
        finally:
            control[NEXT] = _NO_TASK  # after an interrupt the threads must not go on with the rest of the schedule


def _element(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ANN401 - numba's own types
    array = context.make_array(signature.args[0])(context, builder, arguments[0])
    item_pointer: Any = cgutils.get_item_pointer
    return item_pointer(context, builder, signature.args[0], array, [arguments[1]])


@intrinsic
def _atomic_load(typing: Any, array: Any, index: Any) -> Any:  # noqa: ANN401 - numba's own types
    """Read an element atomically."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ANN401
        return builder.load_atomic(_element(context, builder, signature, arguments), "seq_cst", 8)

    return types.int64(array, index), generate


@intrinsic
def _atomic_add(typing: Any, array: Any, index: Any, value: Any) -> Any:  # noqa: ANN401 - numba's own types
    """Add to an element atomically; returns what it was."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ANN401
        amount = context.cast(builder, arguments[2], signature.args[2], types.int64)
        return builder.atomic_rmw("add", _element(context, builder, signature, arguments), amount, "seq_cst")

    return types.int64(array, index, value), generate


@intrinsic
def _atomic_swap(typing: Any, array: Any, index: Any, expected: Any, value: Any) -> Any:  # noqa: ANN401 - numba's own types
    """Replace an element if it is still as expected; returns whether it was."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ANN401
        place = _element(context, builder, signature, arguments)
        pair = builder.cmpxchg(place, arguments[2], arguments[3], "seq_cst", "seq_cst")
        return builder.zext(builder.extract_value(pair, 1), ir.IntType(1))

    return types.boolean(array, index, expected, value), generate


# numba passes an intrinsic its first argument, which mypy can't know.
_load: Any = _atomic_load
_add: Any = _atomic_add
_swap: Any = _atomic_swap


@compiled
def take_task(control: NDArray[np.int64], schedule: Schedule) -> tuple[int, int]:
    """Return (batch, task) of the next task that may begin, or (−1, −1) when there is none left."""
    in_batch = schedule.tiles + schedule.lanes
    spins = 0
    while True:
        number = _load(control, NEXT)
        if number >= schedule.batches * in_batch:
            return -1, -1
        batch, task = number // in_batch, number % in_batch
        needed = batch * in_batch + (0 if task < schedule.tiles else schedule.tiles)
        if _load(control, DONE) >= needed:
            if _swap(control, NEXT, number, number + 1):
                return batch, task
        else:
            spins += 1
            if spins > _SPINS_BEFORE_YIELD:
                _yield_processor()


@compiled
def finish_task(control: NDArray[np.int64]) -> None:
    """Say that a task taken earlier is done, and publish what it wrote."""
    _add(control, DONE, 1)
