"""Compiled code is loaded when it is first needed; until then NumPy computes the same bytes."""

import subprocess
import sys

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from erasable.models import _columns_kernel, _item_knn
from erasable.seeding.compiled import Kernel


def columns(seed: int, items: int, number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return ascending neighbours of each item, some lists not full, with counts, owners and weights."""
    draws = np.random.default_rng(seed)
    neighbours = np.full((items, number), -1, np.int32)
    for row in neighbours:
        near = np.sort(draws.choice(items, size=min(items, int(draws.integers(0, number + 1))), replace=False))
        row[: len(near)] = near
    together = np.where(neighbours >= 0, draws.integers(1, 900, neighbours.shape), 0).astype(np.int32)
    weights = np.where(neighbours >= 0, draws.standard_normal(neighbours.shape), 0).astype(np.float32)
    return neighbours, together, draws.integers(1, 5000, items).astype(np.int32), weights


def both_ways(kernel: Kernel, *arguments):
    """Return what a kernel gives without compiled code and with it, as bytes and types."""
    for array in arguments:
        if isinstance(array, np.ndarray):
            array.setflags(write=False)
    found = [kernel.plain(*arguments), kernel.code(*arguments)]
    arrays = [one if isinstance(one, tuple) else (one,) for one in found]
    return [[(array.dtype.str, array.shape, array.tobytes()) for array in one] for one in arrays]


@given(st.integers(0, 10**6), st.integers(1, 60), st.integers(1, 12))
@settings(deadline=None, max_examples=60)
def test_without_compiled_code_the_bytes_are_the_same(seed, items, number):
    neighbours, together, owners, weights = columns(seed, items, number)
    plain, compiled = both_ways(_columns_kernel.by_source, neighbours, weights)
    assert plain == compiled
    starts, places, spoken = _columns_kernel.by_source.code(neighbours, weights)
    owned = np.flatnonzero(np.random.default_rng(seed).random(items) < 0.5).astype(np.int32)
    plain, compiled = both_ways(_columns_kernel.summed, starts, places, spoken, owned)
    assert plain == compiled
    for shrinkage in (0.0, 50.0):
        plain, compiled = both_ways(_item_knn.weights_of, np.arange(items), neighbours, together, owners, shrinkage)
        assert plain == compiled


def test_every_kernel_with_a_twin_is_compared():
    files = (_columns_kernel, _item_knn)
    kernels = {one.__name__ for file in files for one in vars(file).values() if isinstance(one, Kernel) and one.plain}
    assert kernels == {"by_source", "summed", "weights_of"}


def test_too_many_items_are_left_to_compiled_code():
    neighbours = np.zeros((2**16 + 1, 1), np.int32)
    assert _columns_kernel.by_source.plain(neighbours, neighbours.astype(np.float32)) is None


CALLS = """
import sys
from erasable.seeding import compiled
double = compiled.compiled(lambda number: 2 * number, plain=lambda number: None if number < 0 else 2 * number)
found = [double(number) for number in range({calls})] + [double(number) for number in {last}]
print(found[-1], "numba" in sys.modules)
"""


def test_the_first_calls_load_no_compiler_and_many_do():
    def after(calls: int, last: list[int]) -> str:
        code = CALLS.format(calls=calls, last=last)
        return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout

    assert after(100, []) == "198 False\n"
    assert after(101, []) == "200 True\n"
    assert after(1, [-3]) == "-6 True\n"  # which the twin leaves to compiled code


LATE = """
from erasable.models.machine import one_blas_thread
from threadpoolctl import threadpool_info
with one_blas_thread():
    before = len([one for one in threadpool_info() if one["user_api"] == "blas"])
    {load}
    after = sorted(one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas")
print(before, after, {{one["num_threads"] > 1 for one in threadpool_info() if one["user_api"] == "blas"}})
"""


def test_a_blas_that_is_loaded_inside_is_limited_at_once():
    def heard(load: str) -> str:
        environment = {"OPENBLAS_NUM_THREADS": "2", "PATH": ""}
        command = [sys.executable, "-c", LATE.format(load=load)]
        return subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout

    assert heard("from erasable.seeding.compiled import load_compiler; load_compiler()") == "1 [1, 1] {True}\n"
    assert heard("import scipy.linalg.cython_blas\n    with one_blas_thread(): pass") == "1 [1, 1] {True}\n"
    assert heard("import scipy.linalg.cython_blas") == "1 [1, 2] {True}\n"  # nobody said so: it is found
