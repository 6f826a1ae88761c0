"""How an operation works: threads, and who hears about it."""

import os

import pytest

from erasable.errors import WrongUse
from erasable.operations.work import Work, available_cores


def test_all_cores_that_this_process_may_use_are_used():
    assert Work().threads == available_cores() == len(os.sched_getaffinity(0))


@pytest.mark.parametrize("threads", [0, -1])
def test_no_threads_make_no_sense(threads):
    with pytest.raises(WrongUse, match=f"{threads} threads make no sense: give 1 or more"):
        Work(threads)


def test_training_hands_on_the_threads_and_reports_what_is_done(reporter):
    with Work(3, reporter).training("learning", 10) as effort:
        effort.advance(4)
        effort.advance(6)
    assert effort.threads == 3
    assert (reporter.work, reporter.done) == ([("learning", 10)], 10)
