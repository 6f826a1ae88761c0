import numba
import numpy as np
import pytest

from erasable.models.crew import Schedule, finish_task, run_crew, take_task


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
def recording_shift(control, schedule, runs, early, results):
    """Count each task's runs, and whether it began before a task that it needs was done."""
    batch, task = take_task(control, schedule)
    while batch >= 0:
        if task >= schedule.tiles:
            early[batch, task] = (runs[batch, : schedule.tiles] == 0).any()
        elif batch > 0:
            early[batch, task] = (runs[batch - 1] == 0).any()
        results[batch, task] = work(batch * runs.shape[1] + task)
        runs[batch, task] += 1
        finish_task(control)
        batch, task = take_task(control, schedule)


def run(threads, schedule):
    shape = (schedule.batches, schedule.tiles + schedule.lanes)
    runs, early = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.bool_)
    results = np.zeros(shape, dtype=np.uint64)
    run_crew(threads, recording_shift, schedule, runs, early, results)
    return runs, early, results


threads = pytest.mark.parametrize("threads", [1, 2, 3, 4])
schedules = pytest.mark.parametrize(
    "schedule",
    [
        Schedule(200, 5, 9),
        Schedule(200, 1, 1),
        Schedule(50, 17, 2),
        Schedule(1, 3, 9),
        Schedule(100, 0, 3),
        Schedule(100, 3, 0),
    ],
    ids=str,
)


@threads
@schedules
def test_every_task_is_run_exactly_once(threads, schedule):
    runs, _, _ = run(threads, schedule)
    assert (runs == 1).all()


@threads
@schedules
def test_updates_begin_after_all_gradients_of_their_batch_and_gradients_after_all_updates_before(threads, schedule):
    _, early, _ = run(threads, schedule)
    assert not early.any()


@schedules
def test_what_tasks_leave_behind_does_not_depend_on_the_number_of_threads(schedule):
    alone = run(1, schedule)[2]
    for threads in (2, 3, 4):
        assert np.array_equal(run(threads, schedule)[2], alone)


@threads
def test_a_schedule_without_batches_ends_at_once(threads):
    runs, _, _ = run(threads, Schedule(0, 3, 9))
    assert runs.size == 0


@numba.njit(nogil=True)
def failing_shift(control):
    raise ValueError("the shift failed")


@threads
def test_what_goes_wrong_in_a_thread_is_raised(threads):
    with pytest.raises(ValueError, match="the shift failed"):
        run_crew(threads, failing_shift)
