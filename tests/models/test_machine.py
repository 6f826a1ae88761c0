import numba
import numpy as np
import pytest

from erasable.models._threads import TaskCounts, finish_task, run_on_threads, take_task


@numba.njit(nogil=True)
def work(number):
    """Take a while, some tasks longer than others."""
    value = np.uint64(number + 1)
    for _ in range(2_000 * (1 + number % 7)):
        value ^= value << np.uint64(13)
        value ^= value >> np.uint64(7)
        value ^= value << np.uint64(17)
    return value


@numba.njit(nogil=True)
def recording_kernel(control, counts, runs, early, results):
    """Count each task's runs, and whether it began before a task that it needs was done."""
    batch, task = take_task(control, counts)
    while batch >= 0:
        if task >= counts.tiles:
            early[batch, task] = (runs[batch, : counts.tiles] == 0).any()
        elif batch > 0:
            early[batch, task] = (runs[batch - 1] == 0).any()
        results[batch, task] = work(batch * runs.shape[1] + task)
        runs[batch, task] += 1
        finish_task(control)
        batch, task = take_task(control, counts)


def run(threads, counts):
    shape = (counts.batches, counts.tiles + counts.lanes)
    runs, early = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.bool_)
    results = np.zeros(shape, dtype=np.uint64)
    run_on_threads(threads, recording_kernel, counts, runs, early, results)
    return runs, early, results


threads = pytest.mark.parametrize("threads", [1, 2, 3, 4])
all_counts = pytest.mark.parametrize(
    "counts",
    [
        TaskCounts(200, 5, 9),
        TaskCounts(200, 1, 1),
        TaskCounts(50, 17, 2),
        TaskCounts(1, 3, 9),
        TaskCounts(100, 0, 3),
        TaskCounts(100, 3, 0),
    ],
    ids=str,
)


@threads
@all_counts
def test_every_task_is_run_exactly_once(threads, counts):
    runs, _, _ = run(threads, counts)
    assert (runs == 1).all()


@threads
@all_counts
def test_updates_begin_after_all_gradients_of_their_batch_and_gradients_after_all_updates_before(threads, counts):
    _, early, _ = run(threads, counts)
    assert not early.any()


@all_counts
def test_what_tasks_leave_behind_does_not_depend_on_the_number_of_threads(counts):
    alone = run(1, counts)[2]
    for threads in (2, 3, 4):
        assert np.array_equal(run(threads, counts)[2], alone)


@threads
def test_a_run_without_batches_ends_at_once(threads):
    runs, _, _ = run(threads, TaskCounts(0, 3, 9))
    assert runs.size == 0


@numba.njit(nogil=True)
def failing_shift(control):
    raise ValueError("the shift failed")


@threads
def test_what_goes_wrong_in_a_thread_is_raised(threads):
    with pytest.raises(ValueError, match="the shift failed"):
        run_on_threads(threads, failing_shift)
