import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from erasable.data import RatingScale, SyntheticSettings, synthesise
from erasable.errors import Refused
from erasable.evaluation import adjusted_rand_index
from erasable.grouping import Cohesion, GroupingEffort, GroupingSettings, assign_groups, groups
from erasable.grouping.groups import cohesion_between_rows, cohesion_of_groups, independent_labels, random_labels
from erasable.grouping.points import bipartite_graph, rating_rows
from erasable.progress import Silent

BALANCED = ["cbkm", "cbkm-near", "bkm", "clpa", "cgmm", "random"]
ONES = RatingScale(1, 1)

names = st.sets(st.text(min_size=1, max_size=4), min_size=1, max_size=30)


@pytest.fixture(scope="module")
def small():
    return synthesise(SyntheticSettings(users=101, items=60, groups=4, per_user=8)).interactions


@pytest.fixture(scope="module")
def planted():
    return synthesise(
        SyntheticSettings(users=2000, items=800, groups=8, per_user=20, in_group=0.8, popularity_exponent=0.5)
    )


def labels_by_user(interactions, labels):
    return dict(zip(interactions.users.texts(), labels.tolist(), strict=True))


def grouped(interactions, seed=0, threads=1, **chosen):
    return assign_groups(interactions, ONES, GroupingSettings(**chosen), seed, GroupingEffort(threads))


def same_groups(labels, others):
    """Tell whether two ways of grouping are one, whatever the groups are called."""
    pairs = set(zip(labels.tolist(), others.tolist(), strict=True))
    return len(pairs) == len(set(labels.tolist())) == len(set(others.tolist()))


@pytest.mark.parametrize("grouping", BALANCED)
def test_everyone_has_a_group_and_none_is_above_the_ceiling(small, grouping):
    found = grouped(small, grouping=grouping, groups=8)
    sizes = np.bincount(found.positions, minlength=8)
    assert found.positions.shape == (101,)
    assert len(sizes) == len(found.cohesion) == 8
    assert sizes.max() <= 13


@pytest.mark.parametrize("grouping", BALANCED)
def test_neither_threads_nor_a_second_run_change_a_group(small, grouping):
    alone, again, two = (grouped(small, 3, threads, grouping=grouping, groups=5) for threads in (1, 1, 2))
    assert alone.positions.tobytes() == again.positions.tobytes() == two.positions.tobytes()
    assert alone.cohesion == again.cohesion == two.cohesion


@pytest.mark.parametrize("grouping", ["cbkm-near", "bkm", "random"])
def test_groups_follow_the_seed(small, grouping):
    one, other = (grouped(small, seed, grouping=grouping, groups=5, order="number") for seed in (0, 1))
    assert not same_groups(one.positions, other.positions)


@pytest.mark.parametrize("grouping", BALANCED)
def test_easy_begins_with_the_most_cohesive_group_and_hard_ends_with_it(small, grouping):
    easy, hard = (grouped(small, grouping=grouping, groups=4, order=order) for order in ("easy", "hard"))
    values = [group.value for group in easy.cohesion]
    assert values == sorted(values, reverse=True)
    assert hard.cohesion == easy.cohesion[::-1]
    assert len(set(values)) == 4
    assert np.array_equal(hard.positions, 3 - easy.positions)


def test_an_order_moves_groups_and_not_users(small):
    found = [grouped(small, grouping="bkm", groups=5, order=order) for order in ("number", "easy", "hard", "count")]
    assert all(same_groups(found[0].positions, other.positions) for other in found)
    assert all(sorted(found[0].cohesion) == sorted(other.cohesion) for other in found)


@pytest.mark.parametrize("order", ["number", "count"])
def test_the_likeness_of_random_groups_is_not_looked_at_unless_the_order_needs_it(small, order):
    assert grouped(small, grouping="random", groups=5, order=order).cohesion == (None,) * 5


def test_cohesion_between_rows_is_that_of_the_groups_as_they_are(small):
    positions = grouped(small, grouping="random", groups=3).positions
    groups = [small.select(positions[small.user_index] == place) for place in range(3)]
    rows = rating_rows(bipartite_graph(small, ONES))
    assert cohesion_between_rows(groups, ONES, 0, 1) == cohesion_of_groups(rows, positions, 3, seed=0, threads=1)
    assert (
        cohesion_between_rows([group.select(np.zeros(len(group), bool)) for group in groups], ONES, 0, 1)
        == [Cohesion(0.0, 0.0)] * 3
    )


@pytest.mark.parametrize(
    ("grouping", "order"),
    [*(("bkm", order) for order in ("number", "easy", "hard", "count")), ("random", "easy"), ("random", "hard")],
)
def test_the_cohesion_at_a_position_is_that_of_the_group_there(small, grouping, order):
    found = grouped(small, grouping=grouping, groups=5, order=order)
    rows = rating_rows(bipartite_graph(small, ONES))
    assert found.cohesion == tuple(cohesion_of_groups(rows, found.positions, 5, seed=0, threads=1))


def test_by_count_the_group_with_most_interactions_comes_first(tables):
    rows = tables.table({"a": "w", "b": "wx", "c": "wxyz", "d": "wxyz", "e": "w", "f": "wxy"})
    labels = random_labels(rows, 3, seed=0)
    interactions = np.bincount(labels, weights=np.diff(rows.user_starts))
    positions = grouped(rows, grouping="random", groups=3, order="count").positions
    in_order = np.bincount(positions, weights=np.diff(rows.user_starts))
    assert in_order.tolist() == sorted(interactions.tolist(), reverse=True)
    assert same_groups(labels, positions)


def test_by_number_groups_keep_their_numbers(small):
    found = grouped(small, 5, grouping="random", groups=3, order="number")
    assert np.array_equal(found.positions, random_labels(small, 3, seed=5))


@given(users=names, count=st.integers(1, 9), seed=st.integers(0, 9))
@settings(deadline=None, max_examples=60)
def test_random_groups_differ_in_size_by_at_most_one(tables, users, count, seed):
    rows = tables.table(dict.fromkeys(users, "a"))
    sizes = np.bincount(random_labels(rows, count, seed), minlength=count)
    assert len(sizes) == count
    assert sizes.sum() == len(users)
    assert sizes.max() - sizes.min() <= 1


def test_random_groups_follow_the_seed_and_nothing_else(tables):
    few, many = (tables.table(dict.fromkeys(map(str, range(50)), items)) for items in ("a", "abc"))
    assert np.array_equal(random_labels(few, 4, seed=1), random_labels(many, 4, seed=1))
    assert not np.array_equal(random_labels(few, 4, seed=1), random_labels(few, 4, seed=2))


@given(users=names, count=st.integers(1, 9), seed=st.integers(0, 9), data=st.data())
@settings(deadline=None, max_examples=60)
def test_an_independent_group_depends_on_the_user_s_own_id_alone(tables, users, count, seed, data):
    some = data.draw(st.sets(st.sampled_from(sorted(users)), min_size=1))
    everyone = tables.table(dict.fromkeys(users, "ab"))
    left = tables.table(dict.fromkeys(some, "b"))
    before, after = (grouped(rows, seed, grouping="independent", groups=count) for rows in (everyone, left))
    labels = labels_by_user(everyone, before.positions)
    assert labels_by_user(left, after.positions) == {user: labels[user] for user in some}
    assert all(0 <= label < count for label in labels.values())
    assert before.cohesion == after.cohesion == (None,) * count


def test_independent_groups_stand_by_number_whatever_the_order(small):
    labels = independent_labels(small, 3, seed=5)
    for order in ("number", "easy", "hard", "count"):
        assert np.array_equal(grouped(small, 5, grouping="independent", groups=3, order=order).positions, labels)


def test_independent_groups_are_filled_evenly_and_follow_the_seed(tables):
    rows = tables.table(dict.fromkeys(map(str, range(4000)), "a"))
    labels = independent_labels(rows, 8, seed=0)
    counts = np.bincount(labels, minlength=8)
    # Chi-square with 7 degrees of freedom: above 24.3 once in a thousand; the seed is fixed.
    assert ((counts - 500) ** 2 / 500).sum() < 24.3
    assert (labels != independent_labels(rows, 8, seed=1)).any()


@pytest.mark.parametrize("grouping", ["bkm", "cbkm-near"])
def test_planted_groups_are_found(planted, grouping):
    found = grouped(planted.interactions, grouping=grouping, groups=8, threads=2)
    assert adjusted_rand_index(found.positions, planted.labels) >= 0.9
    assert np.bincount(found.positions).tolist() == [250] * 8


def test_planted_groups_are_more_cohesive_than_random_ones(planted):
    by_ratings, at_random = (
        grouped(planted.interactions, grouping=grouping, order="easy") for grouping in ("bkm", "random")
    )
    assert min(group.value for group in by_ratings.cohesion) > max(group.value for group in at_random.cohesion)


@pytest.mark.parametrize("grouping", [*BALANCED, "independent"])
def test_a_single_group_holds_everyone_and_needs_no_cohesion(small, grouping):
    found = grouped(small, grouping=grouping, groups=1)
    assert found.positions.tolist() == [0] * 101
    assert found.cohesion == (None,)


@pytest.mark.parametrize("grouping", [*BALANCED, "independent"])
def test_nobody_is_in_no_group(tables, grouping):
    found = grouped(tables.table({}, catalogue="ab"), grouping=grouping, groups=3)
    assert found.positions.shape == (0,)
    assert found.cohesion == (None,) * 3


@pytest.mark.parametrize("grouping", BALANCED)
def test_more_groups_than_users_leave_some_empty_and_without_cohesion(tables, grouping):
    rows = tables.table({"anna": "xy", "ben": "yz", "cleo": "xyzw"})
    found = grouped(rows, grouping=grouping, groups=5, order="easy")
    assert len(set(found.positions.tolist())) == 3
    assert set(found.positions.tolist()) <= set(range(5))
    assert found.cohesion == (Cohesion(0.0, 0.0),) * 5


@pytest.mark.parametrize("grouping", BALANCED)
def test_a_single_user_has_one_of_several_groups(tables, grouping):
    found = grouped(tables.table({"anna": "xy"}), grouping=grouping, groups=3, order="easy")
    assert found.positions.shape == (1,)
    assert found.cohesion == (Cohesion(0.0, 0.0),) * 3


def test_users_with_the_same_ratings_are_divided_evenly(tables):
    found = grouped(tables.table(dict.fromkeys("abcdefg", "xyz")), grouping="bkm", groups=3)
    assert np.bincount(found.positions, minlength=3).max() <= 3


@pytest.mark.parametrize("grouping", [name for name in BALANCED if name != "random"])
def test_too_many_groups_for_the_memory_are_refused_with_the_remedy(small, grouping, monkeypatch):
    monkeypatch.setattr(groups, "MOST_CELLS", 8 * 101 - 1)
    remedy = f"8 groups are too many for grouping='{grouping}' of 101 users and 60 items: give fewer groups, or"
    with pytest.raises(Refused, match=remedy):
        grouped(small, grouping=grouping, groups=8)
    assert len(grouped(small, grouping=grouping, groups=7).positions) == 101


def test_random_and_independent_groups_are_never_too_many(small, monkeypatch):
    monkeypatch.setattr(groups, "MOST_CELLS", 1)
    assert all(len(grouped(small, grouping=name, groups=8).positions) == 101 for name in ("random", "independent"))


def test_the_columns_of_rating_rows_count_as_well_as_the_users(tables, monkeypatch):
    monkeypatch.setattr(groups, "MOST_CELLS", 50)
    rows = tables.table({"anna": "ab", "ben": "bc", "cleo": "cd"}, catalogue=map(str, range(30)))
    with pytest.raises(Refused, match="2 groups are too many for grouping='bkm' of 3 users and 34 items"):
        grouped(rows, grouping="bkm", groups=2)
    assert len(grouped(rows, grouping="cbkm-near", groups=2).positions) == 3


@pytest.mark.parametrize(("grouping", "usual"), [("bkm", "easy"), ("cbkm-near", "easy"), ("random", "number")])
def test_groups_stand_in_the_usual_order_of_their_grouping_unless_told(small, grouping, usual):
    untold, told = (grouped(small, grouping=grouping, groups=4, **order) for order in ({}, {"order": usual}))
    assert np.array_equal(untold.positions, told.positions)
    assert GroupingSettings(grouping=grouping, order="hard").order == "hard"


@pytest.mark.parametrize("grouping", [*BALANCED, "independent"])
def test_who_follows_the_work_hears_of_groups_and_cohesion(small, grouping):
    heard = []

    class Listener(Silent):
        def track(self, label, total=None):
            heard.append(label)
            return super().track(label, total)

    assign_groups(small, ONES, GroupingSettings(grouping=grouping, groups=2), 0, GroupingEffort(1, Listener()))
    assert heard[-2:] == ([] if grouping in ("random", "independent") else ["groups", "cohesion"])


def test_users_who_are_alike_are_said_and_others_not(tables, small):
    heard = []

    class Listener(Silent):
        def note(self, text):
            heard.append(text)

    alike = tables.table({"a": "xy", "b": "xy", "c": "yz", "d": "zw"})
    for rows in (small, alike):
        chosen = GroupingSettings(grouping="random", groups=2, order="easy")
        assign_groups(rows, ONES, chosen, 2, GroupingEffort(reporter=Listener()))
    assert random_labels(alike, 2, seed=2).tolist() == [1, 1, 0, 0]
    assert len(heard) == 1
    assert heard[0].startswith("up to 100 % of the pairs of users in a group are alike")
