import threading
import time

import pytest

from erasable.chain import LOCAL, Config, stages_of
from erasable.chain.tasks import in_dependency_order
from erasable.data import RatingScale
from erasable.models import Effort


def test_every_stage_gives_its_outcome_in_order():
    assert list(LOCAL.map(lambda position, effort: position * 10, (3, 1, 2), Effort(2))) == [
        (3, 30),
        (1, 10),
        (2, 20),
    ]


def test_no_stage_gives_nothing():
    assert list(LOCAL.map(lambda position, effort: position, (), Effort(4))) == []


def test_as_many_are_trained_at_once_as_there_are_threads():
    meeting = threading.Barrier(3, timeout=10)
    list(LOCAL.map(lambda position, effort: meeting.wait(), (0, 1, 2), Effort(3)))  # breaks unless all three meet


@pytest.mark.parametrize(("threads", "stages", "each"), [(1, 4, 1), (2, 4, 1), (4, 2, 2), (5, 2, 2), (3, 1, 3)])
def test_threads_are_shared_out_to_the_stages(threads, stages, each):
    found = LOCAL.map(lambda position, effort: effort.threads, range(stages), Effort(threads))
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

    list(LOCAL.map(train, range(8), Effort(4, advance)))
    assert seen == [1] * 1600


def test_a_fault_is_raised_and_what_has_not_begun_is_dropped():
    begun = []

    def train(position, effort):
        begun.append(position)
        if position == 0:
            raise ValueError("diverged")
        return position

    with pytest.raises(ValueError, match="diverged"):
        list(LOCAL.map(train, range(500), Effort(1)))
    assert len(begun) < 500


def test_what_has_begun_ends_at_its_next_step_once_another_has_failed():
    steps = []

    def train(position, effort):
        if position == 0:
            raise ValueError("diverged")
        for step in range(10_000):
            effort.advance(1)
            steps.append(step)
            time.sleep(0.001)

    with pytest.raises(ValueError, match="diverged"):
        list(LOCAL.map(train, range(2), Effort(2)))
    assert len(steps) < 10_000


def test_one_task_alone_is_carried_out_in_the_thread_of_who_asks():
    (outcome,) = LOCAL.map(lambda task, effort: (threading.get_ident(), effort.threads), ["task"], Effort(3))
    assert outcome == ("task", (threading.get_ident(), 3))


class TestInTurns:
    def asked(self, chains, tables, **settings):
        """What an executor is asked for at once, by the positions of the stages."""
        known = chains.dataset(tables.random_table(3, users=18, items=9), Config(**settings), None, RatingScale(1, 1))
        asked = []

        class Watched:
            def map(self, function, tasks, effort):
                asked.append([task.position for task in tasks])
                return LOCAL.map(function, tasks, effort)

        found = in_dependency_order(Watched(), lambda task, effort: task.name, stages_of(known), Effort())
        assert {task.name for task in stages_of(known)} == {name for _, name in found}
        return asked

    def test_a_stage_waits_for_the_one_that_it_follows_from(self, chains, tables):
        assert self.asked(chains, tables, model="nmf", groups=3, epochs=3) == [[0], [1], [2]]

    def test_stages_that_follow_from_none_are_carried_out_at_once(self, chains, tables):
        assert self.asked(chains, tables, model="nmf", strategy="sisa", groups=3, epochs=3) == [[0, 1, 2]]
