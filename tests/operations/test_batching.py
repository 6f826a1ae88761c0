"""Who is carried out together with those who are due."""

from itertools import permutations

import pytest

from erasable.chain import Config, Erasure, chain, plan_change
from erasable.operations import DiskStorage, Work, learn
from erasable.operations.claims import joined_cheaply
from erasable.requests import Request


@pytest.fixture
def state(storage):
    with storage.reading() as session:
        found = session.state()
        list(found.dataset.groups)
        yield found


@pytest.fixture
def by_position(state):
    """The users in the order of the chain."""
    return [user for group in state.dataset.groups for user in group.users]


def users(requests) -> list[str]:
    return [request.user for request in requests]


def test_who_comes_later_in_the_chain_joins_for_nothing(state, by_position):
    joined = joined_cheaply(state, [Request(by_position[0])], [Request(by_position[-1])])
    assert users(joined) == [by_position[-1]]


def test_who_comes_earlier_waits_for_the_own_day(state, by_position):
    assert joined_cheaply(state, [Request(by_position[-1])], [Request(by_position[0])]) == []


def test_those_of_one_group_join_together(state, by_position):
    joined = joined_cheaply(state, [Request(by_position[0])], [Request(user) for user in by_position[1:]])
    assert sorted(users(joined)) == sorted(by_position[1:])


def test_who_is_not_held_any_more_joins_nobody(state, by_position):
    assert joined_cheaply(state, [Request(by_position[0])], [Request("lost")]) == []


def test_nothing_is_planned_for_it(state, by_position, monkeypatch):
    monkeypatch.setattr(chain, "stages_of", lambda *_: pytest.fail("it was planned"))
    assert joined_cheaply(state, [Request(by_position[0])], [Request(by_position[-1])])


WAYS = {
    "laser": {"model": "nmf", "groups": 3, "epochs": 3, "batch": 16},
    "sisa": {"model": "nmf", "strategy": "sisa", "groups": 3, "epochs": 3},
    "anchors": {"model": "als", "epochs": 2, "factors": 4, "anchors": 0.5},
    "ease": {"model": "ease"},
}


@pytest.mark.parametrize("way", WAYS)
def test_who_joins_is_who_costs_hardly_anything_by_the_plan_of_both(way, table, tmp_path):
    """The rule adds up stages without planning; the plans of one, of the other and of both say the same."""
    learn(table, tmp_path / "shop", Config(**WAYS[way]), work=Work(1))
    with DiskStorage(tmp_path / "shop").reading() as session:
        state = session.state()

        def stages_of(*people) -> set[int]:
            after = Erasure.of([Request(user) for user in people]).apply(state.dataset)
            return {*plan_change(state, after).rerun}

        def cost(stages) -> int:
            return sum(state.chain[place].samples for place in stages)

        for due, waits in permutations([user for group in state.dataset.groups for user in group.users], 2):
            more = stages_of(due, waits) - stages_of(due)
            cheap = cost(more) <= 0.1 * cost(stages_of(waits))
            assert bool(joined_cheaply(state, [Request(due)], [Request(waits)])) == cheap, (due, waits)
