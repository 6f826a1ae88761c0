import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from erasable.grouping.groups import Cohesion, positions_of_groups

NAMES = ("number", "easy", "hard", "count")


def positions(order, cohesion, interactions):
    return positions_of_groups(order, [Cohesion(value, 0.0) for value in cohesion], np.array(interactions)).tolist()


@pytest.mark.parametrize(
    ("order", "expected"),
    [("easy", [2, 0, 1]), ("hard", [0, 2, 1]), ("count", [1, 2, 0]), ("number", [0, 1, 2])],
)
def test_three_groups_in_each_order(order, expected):
    # The position of each group: the second is the most cohesive, the third has most interactions.
    assert positions(order, [1.5, 9.0, 2.0], [20, 10, 30]) == expected


@pytest.mark.parametrize(
    ("order", "expected"),
    [("easy", [2, 0, 3, 1]), ("hard", [0, 2, 1, 3]), ("count", [3, 0, 1, 2]), ("number", [0, 1, 2, 3])],
)
def test_groups_that_tie_stand_by_number(order, expected):
    assert positions(order, [1.0, 5.0, 1.0, 5.0], [3, 7, 7, 7]) == expected


def test_the_error_of_a_cohesion_does_not_matter():
    sampled = [Cohesion(1.0, 100.0), Cohesion(2.0, 0.0), Cohesion(3.0, 50.0)]
    assert positions_of_groups("easy", sampled, np.array([1, 1, 1])).tolist() == [2, 1, 0]


def test_a_group_of_nobody_comes_last_by_easy_and_by_count_and_first_by_hard():
    assert [positions(order, [3.0, 0.0, 1.0], [5, 0, 9])[1] for order in ("easy", "count", "hard")] == [2, 2, 0]


groups = st.tuples(st.sampled_from([0.0, 1.0, 2.5, 1e9]), st.integers(0, 3))


@given(st.sampled_from(NAMES), st.lists(groups, min_size=1, max_size=9))
def test_every_position_is_taken_once(order, drawn):
    cohesion, interactions = zip(*drawn, strict=True)
    assert sorted(positions(order, cohesion, interactions)) == list(range(len(drawn)))


@given(st.lists(groups, min_size=1, max_size=9))
def test_along_the_chain_what_it_is_ordered_by_never_turns_back(drawn):
    cohesion, interactions = zip(*drawn, strict=True)
    chains = {order: np.argsort(positions(order, cohesion, interactions)) for order in NAMES}
    assert (np.diff(np.array(cohesion)[chains["easy"]]) <= 0).all()
    assert (np.diff(np.array(cohesion)[chains["hard"]]) >= 0).all()
    assert (np.diff(np.array(interactions)[chains["count"]]) <= 0).all()
