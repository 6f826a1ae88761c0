import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import linear_sum_assignment

from erasable.grouping.balanced_clustering import LAST_INCREMENT, fill_groups


@st.composite
def tables_of_costs(draw, full=False):
    """Draw costs that differ for someone, with many ties; if full, the users take every place."""
    groups = draw(st.integers(2, 5))
    users = groups * draw(st.integers(1, 4)) if full else draw(st.integers(1, 18))
    whole = draw(arrays(np.int64, (users, groups), elements=st.integers(0, 12)))
    whole[0, 0] += 13
    return whole * draw(st.sampled_from([1.0, 1 / 7, 1e-3])) - draw(st.sampled_from([0.0, 5.0]))


def filled(costs):
    return fill_groups(costs, np.zeros(costs.shape[1]))


def capacity_of(costs):
    return -(-costs.shape[0] // costs.shape[1])


def last_increment(costs):
    return LAST_INCREMENT * np.mean(costs.mean(axis=1) - costs.min(axis=1))


def total(costs, labels):
    return costs[np.arange(len(costs)), labels].sum()


def least_total(costs):
    places = np.repeat(costs, capacity_of(costs), axis=1)
    return places[linear_sum_assignment(places)].sum()


def assert_balanced(labels, costs):
    sizes = np.bincount(labels, minlength=costs.shape[1])
    assert labels.shape == (len(costs),)
    assert len(sizes) == costs.shape[1]
    assert sizes.max() <= capacity_of(costs)


def test_users_take_turns_where_a_list_by_priority_would_strand_one():
    # By plain priority the pair (0, 0) comes first and leaves the second user with 100; together 2 is possible.
    assert filled(np.array([[0.0, 1.0], [1.0, 100.0]])).labels.tolist() == [1, 0]


def test_a_whole_row_of_users_moves_up_for_the_one_who_has_nowhere_else_to_go():
    # A list by priority takes 0 + 0 + 0 and then 90: whoever is dropped needs the next user's place.
    costs = np.array([[0.0, 1.0, 90, 90], [90, 0.0, 1.0, 90], [90, 90, 0.0, 1.0], [0.5, 90, 90, 90]])
    assert filled(costs).labels.tolist() == [1, 2, 3, 0]


def test_without_a_rush_everyone_gets_the_cheapest_group():
    costs = np.array([[0.0, 9, 9], [9, 0.0, 9], [9, 9, 0.0], [1, 0.0, 1], [0.0, 1, 1], [2, 2, 0.0]])
    assert filled(costs).labels.tolist() == [0, 1, 2, 1, 0, 2]


@given(tables_of_costs())
@settings(deadline=None, max_examples=150)
def test_everyone_has_a_group_and_none_is_above_the_ceiling(costs):
    assert_balanced(filled(costs).labels, costs)


@given(tables_of_costs(full=True))
@settings(deadline=None, max_examples=150)
def test_the_total_is_the_least_up_to_the_last_increment_for_each_user(costs):
    allowed = len(costs) * last_increment(costs) + 1e-9
    assert total(costs, filled(costs).labels) <= least_total(costs) + allowed


@given(tables_of_costs())
@settings(deadline=None, max_examples=150)
def test_the_total_is_the_least_up_to_the_last_increment_for_each_place(costs):
    allowed = capacity_of(costs) * costs.shape[1] * last_increment(costs) + 1e-9
    assert total(costs, filled(costs).labels) <= least_total(costs) + allowed


def test_a_user_alone_gets_the_cheapest_group():
    assert filled(np.array([[0.34, 0.0, 0.32]])).labels.tolist() == [1]


@given(tables_of_costs())
@settings(deadline=None, max_examples=100)
def test_nobody_would_rather_pay_the_price_of_another_group(costs):
    labels, prices = filled(costs)
    paid = costs + prices
    assert (total(paid, labels) - paid.min(axis=1).sum()) <= len(costs) * last_increment(costs) + 1e-9
    own = paid[np.arange(len(costs)), labels]
    assert (own <= paid.min(axis=1) + last_increment(costs) + 1e-9).all()


@given(tables_of_costs())
@settings(deadline=None, max_examples=100)
def test_no_two_users_gain_by_changing_places(costs):
    labels = filled(costs).labels
    own = costs[np.arange(len(costs)), labels]
    each_in_the_place_of_the_other = costs[:, labels] + costs[:, labels].T
    together = own[:, None] + own[None, :]
    assert (together <= each_in_the_place_of_the_other + 2 * last_increment(costs) + 1e-9).all()


@given(tables_of_costs(full=True), st.data())
@settings(deadline=None, max_examples=100)
def test_prices_to_begin_with_break_neither_the_ceiling_nor_the_total(costs, data):
    shares = data.draw(arrays(np.float64, costs.shape[1], elements=st.floats(0, 3)))
    prices = shares * np.ptp(costs) - data.draw(st.sampled_from([0.0, 10.0]))
    before = prices.copy()
    labels = fill_groups(costs, prices).labels
    assert_balanced(labels, costs)
    assert total(costs, labels) <= least_total(costs) + len(costs) * last_increment(costs) + 1e-9
    assert np.array_equal(prices, before)


@given(tables_of_costs())
@settings(deadline=None, max_examples=30)
def test_the_same_costs_give_the_same_groups_and_prices(costs):
    first, again = filled(costs), filled(costs.copy())
    assert first.labels.tobytes() == again.labels.tobytes()
    assert first.prices.tobytes() == again.prices.tobytes()


def test_many_users_who_all_prefer_one_group_share_the_groups_evenly():
    costs = np.tile([0.0, 1.0, 2.0, 3.0], (200, 1))
    assert np.bincount(filled(costs).labels).tolist() == [50, 50, 50, 50]


def test_whoever_loses_least_gives_way():
    # All prefer group 0; the other group costs them 1, 2, … 10 more.
    costs = np.stack([np.zeros(10), np.arange(1.0, 11.0)], axis=1)
    assert filled(costs).labels.tolist() == [1] * 5 + [0] * 5


@pytest.mark.parametrize("cost", [0.0, 0.1, -3.0, 1e9])
@pytest.mark.parametrize(("users", "groups"), [(2, 2), (20, 10), (7, 3), (3, 5)])
def test_costs_that_do_not_differ_still_give_even_groups(users, groups, cost):
    costs = np.full((users, groups), cost)
    assert_balanced(filled(costs).labels, costs)
    assert_balanced(fill_groups(costs, np.arange(groups, dtype=np.float64)).labels, costs)


@given(st.integers(1, 8), st.integers(1, 4))
@settings(deadline=None, max_examples=30)
def test_more_groups_than_users_give_each_a_group_of_their_own(users, more):
    costs = np.random.default_rng(users).random((users, users + more))
    assert len(set(filled(costs).labels.tolist())) == users


def test_a_single_group_takes_everyone():
    assert filled(np.array([[3.0], [0.0], [7.0]])).labels.tolist() == [0, 0, 0]


def test_a_single_user_in_a_single_group_is_no_trouble():
    assert filled(np.array([[3.0]])).labels.tolist() == [0]


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_a_cost_that_is_no_number_is_refused(wrong):
    with pytest.raises(ValueError, match="not finite"):
        filled(np.array([[0.0, wrong], [1.0, 2.0]]))


def test_one_far_group_among_many_equal_ones_starts_no_price_war():
    costs = np.zeros((2_000, 40))
    costs[:, 0] = 1.0
    labels = filled(costs).labels
    assert np.bincount(labels, minlength=40).tolist() == [50] * 40
