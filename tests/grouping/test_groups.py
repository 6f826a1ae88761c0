import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from erasable.errors import Refused
from erasable.grouping import GroupingSettings, assign_positions, independent_labels, random_labels

names = st.sets(st.text(min_size=1, max_size=4), min_size=1, max_size=30)


def labels_by_user(interactions, labels):
    return dict(zip(interactions.users.texts(), labels.tolist(), strict=True))


@given(users=names, groups=st.integers(1, 9), seed=st.integers(0, 9))
@settings(deadline=None, max_examples=60)
def test_random_groups_differ_in_size_by_at_most_one(tables, users, groups, seed):
    rows = tables.table(dict.fromkeys(users, "a"))
    sizes = np.bincount(random_labels(rows, groups, seed), minlength=groups)
    assert len(sizes) == groups
    assert sizes.sum() == len(users)
    assert sizes.max() - sizes.min() <= 1


def test_random_groups_follow_the_seed_and_nothing_else(tables):
    few, many = (tables.table(dict.fromkeys(map(str, range(50)), items)) for items in ("a", "abc"))
    assert np.array_equal(random_labels(few, 4, seed=1), random_labels(many, 4, seed=1))
    assert not np.array_equal(random_labels(few, 4, seed=1), random_labels(few, 4, seed=2))


@given(users=names, groups=st.integers(1, 9), seed=st.integers(0, 9), data=st.data())
@settings(deadline=None, max_examples=60)
def test_an_independent_group_depends_on_the_user_s_own_id_alone(tables, users, groups, seed, data):
    some = data.draw(st.sets(st.sampled_from(sorted(users)), min_size=1))
    everyone = tables.table(dict.fromkeys(users, "ab"))
    left = tables.table(dict.fromkeys(some, "b"))
    labels = labels_by_user(everyone, independent_labels(everyone, groups, seed))
    assert labels_by_user(left, independent_labels(left, groups, seed)) == {user: labels[user] for user in some}
    assert all(0 <= label < groups for label in labels.values())


def test_independent_groups_are_filled_evenly_and_follow_the_seed(tables):
    rows = tables.table(dict.fromkeys(map(str, range(4000)), "a"))
    labels = independent_labels(rows, 8, seed=0)
    counts = np.bincount(labels, minlength=8)
    # Chi-square with 7 degrees of freedom: above 24.3 once in a thousand; the seed is fixed.
    assert ((counts - 500) ** 2 / 500).sum() < 24.3
    assert (labels != independent_labels(rows, 8, seed=1)).any()


def test_by_count_the_group_with_most_interactions_comes_first(tables):
    rows = tables.table({"a": "w", "b": "wx", "c": "wxyz", "d": "wxyz", "e": "w", "f": "wxy"})
    labels = random_labels(rows, 3, seed=0)
    interactions = np.bincount(labels, weights=np.diff(rows.user_starts))
    positions = assign_positions(rows, GroupingSettings(groups=3, order="count"), seed=0)
    in_order = np.bincount(positions, weights=np.diff(rows.user_starts))
    assert in_order.tolist() == sorted(interactions.tolist(), reverse=True)
    # Whoever was together stays together.
    assert len(set(zip(labels.tolist(), positions.tolist(), strict=True))) == 3


def test_by_number_groups_keep_their_numbers(tables):
    rows = tables.table(dict.fromkeys("abcdefgh", "x"))
    positions = assign_positions(rows, GroupingSettings(grouping="independent", groups=3), seed=5)
    assert np.array_equal(positions, independent_labels(rows, 3, seed=5))


def test_more_groups_than_users_are_refused_unless_groups_may_be_empty(tables):
    rows = tables.table({"a": "x", "b": "x"})
    with pytest.raises(Refused, match="3 groups for 2 users: give --groups"):
        assign_positions(rows, GroupingSettings(grouping="random", groups=3), seed=0)
    assert len(assign_positions(rows, GroupingSettings(grouping="independent", groups=3), seed=0)) == 2


def test_as_many_groups_as_users_give_each_a_group(tables):
    rows = tables.table(dict.fromkeys("abc", "x"))
    assert sorted(assign_positions(rows, GroupingSettings(grouping="random", groups=3), seed=0).tolist()) == [0, 1, 2]
