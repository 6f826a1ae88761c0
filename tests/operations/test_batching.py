"""Who is carried out together with those who are due."""

import pytest

from erasable.operations import batch
from erasable.unlearning import Request


@pytest.fixture
def by_position(home):
    """The users in the order of the chain."""
    with home.reading() as session:
        return [user for group in session.state().knowledge.groups for user in group.users]


def test_those_who_are_due_are_in_it(home):
    found = batch(home, [Request("ann"), Request("bob")], [])
    assert found.users == {"ann", "bob"}
    assert found.plan.stages_rerun > 0


def test_who_comes_later_in_the_chain_joins_for_nothing(home, by_position):
    alone = batch(home, [Request(by_position[0])], []).plan
    found = batch(home, [Request(by_position[0])], [Request(by_position[-1])])
    assert found.users == {by_position[0], by_position[-1]}
    assert found.plan.rerun == alone.rerun


def test_who_comes_earlier_waits_for_the_own_day(home, by_position):
    assert batch(home, [Request(by_position[-1])], [Request(by_position[0])]).users == {by_position[-1]}


def test_who_is_not_held_any_more_is_in_it_if_due_and_joins_nobody(home):
    assert batch(home, [Request("gone")], [Request("lost")]).users == {"gone"}
