import threading

import pytest

from erasable.models import Effort
from erasable.training.side_by_side import side_by_side


def test_every_stage_gives_its_outcome_in_order():
    assert list(side_by_side(lambda position, effort: position * 10, (3, 1, 2), Effort(2))) == [
        (3, 30),
        (1, 10),
        (2, 20),
    ]


def test_no_stage_gives_nothing():
    assert list(side_by_side(lambda position, effort: position, (), Effort(4))) == []


def test_as_many_are_trained_at_once_as_there_are_threads():
    meeting = threading.Barrier(3, timeout=10)
    list(side_by_side(lambda position, effort: meeting.wait(), (0, 1, 2), Effort(3)))  # breaks unless all three meet


@pytest.mark.parametrize(("threads", "stages", "each"), [(1, 4, 1), (2, 4, 1), (4, 2, 2), (5, 2, 2), (3, 1, 3)])
def test_threads_are_shared_out_to_the_stages(threads, stages, each):
    found = side_by_side(lambda position, effort: effort.threads, range(stages), Effort(threads))
    assert {given for _, given in found} == {each}


def test_progress_is_told_by_one_at_a_time():
    inside, seen = [], []

    def advance(samples):
        inside.append(samples)
        seen.append(len(inside))
        inside.pop()

    def train(position, effort):
        for _ in range(200):
            effort.advance(1)

    list(side_by_side(train, range(8), Effort(4, advance)))
    assert seen == [1] * 1600


def test_a_fault_is_raised_and_what_has_not_begun_is_dropped():
    begun = []

    def train(position, effort):
        begun.append(position)
        if position == 0:
            raise ValueError("diverged")
        return position

    with pytest.raises(ValueError, match="diverged"):
        list(side_by_side(train, range(500), Effort(1)))
    assert len(begun) < 500
