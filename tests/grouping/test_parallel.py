import threading
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from erasable.grouping.points import ALONE, GroupingEffort, over_ranges
from erasable.progress import SILENT, ignore

LONG = 10  # seconds, after which a test has failed


@given(count=st.integers(0, 500), threads=st.integers(1, 5))
@settings(deadline=None, max_examples=40)
def test_the_ranges_cover_every_number_once_and_none_is_empty(count, threads):
    ranges = []
    over_ranges(lambda begin, end: ranges.append((begin, end)), count, threads)
    assert all(begin < end for begin, end in ranges)
    assert sorted(number for begin, end in ranges for number in range(begin, end)) == list(range(count))


@given(count=st.integers(0, 500), threads=st.integers(1, 5))
@settings(deadline=None, max_examples=40)
def test_each_portion_is_told_once_it_is_done(count, threads):
    done, told = [], []
    over_ranges(lambda begin, end: done.append(end - begin), count, threads, told.append)
    assert sorted(told) == sorted(done)
    assert sum(told) == count


def test_ranges_differ_in_length_by_at_most_one():
    lengths = []
    over_ranges(lambda begin, end: lengths.append(end - begin), 1000, threads=2)
    assert max(lengths) - min(lengths) <= 1


def test_there_are_more_ranges_than_threads_so_that_nobody_waits_for_the_slowest():
    ranges = []
    over_ranges(lambda begin, end: ranges.append(begin), 1000, threads=2)
    assert len(ranges) > 2 * 10


def test_as_many_threads_as_asked_for_work_at_once():
    meeting = threading.Barrier(3)
    # A thread that works alone would wait in vain, and the barrier would break.
    over_ranges(lambda begin, end: meeting.wait(LONG), 3, threads=3)


def test_one_thread_works_from_the_first_range_to_the_last():
    ranges = []
    over_ranges(lambda begin, end: ranges.append((begin, end)), 100, threads=1)
    assert ranges == sorted(ranges)


@pytest.mark.parametrize("fault", [ValueError, KeyboardInterrupt])
@pytest.mark.parametrize("threads", [1, 3])
def test_what_goes_wrong_in_one_range_is_raised(threads, fault):
    def work(begin, end):
        if begin <= 40 < end:
            raise fault("no more")

    with pytest.raises(fault, match="no more"):
        over_ranges(work, 100, threads)


def test_after_a_fault_the_rest_is_not_begun():
    begun = []

    def work(begin, end):
        begun.append(begin)
        if begin == 0:
            raise ValueError("no more")
        time.sleep(0.1)

    with pytest.raises(ValueError, match="no more"):
        over_ranges(work, 1000, threads=1)
    assert 1 <= len(begun) < 10


def test_a_range_that_failed_is_not_told_as_done():
    def work(begin, end):
        if end == 2:
            raise ValueError("no more")

    told = []
    with pytest.raises(ValueError, match="no more"):
        over_ranges(work, 2, 1, told.append)
    assert told == [1]


def test_grouping_alone_uses_one_thread_and_tells_nobody():
    assert GroupingEffort(threads=1, reporter=SILENT) == ALONE
    with ALONE.reporter.track("hypergraph", 10) as advance:
        assert advance is ignore
        advance(3)
    with ALONE.reporter.track("work of unknown size") as advance:
        advance(1)
