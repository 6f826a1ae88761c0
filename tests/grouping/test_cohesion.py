from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from erasable.data import RatingScale
from erasable.grouping import groups as cohesion
from erasable.grouping.groups import Cohesion, cohesion_of_groups
from erasable.grouping.points import bipartite_graph, rating_rows, vector_points, written_out


def measured(rows, labels=None, groups=1, seed=0, threads=1):
    labels = np.zeros(len(rows), np.int64) if labels is None else np.asarray(labels)
    return cohesion_of_groups(vector_points(np.asarray(rows, np.float64)), labels, groups, seed, threads)


def spread_of(rows):
    return np.sqrt(np.square(rows - rows.mean(axis=0)).sum(axis=1).mean())


def counted(rows, members):
    """Count 1 / distance pair by pair, both ways, nobody closer than a thousandth of the spread of all."""
    closest = 1e-3 * spread_of(rows)
    distances = (np.linalg.norm(rows[one] - rows[other]) for one, other in combinations(members, 2))
    return sum(2.0 / max(distance, closest) for distance in distances) / max(len(members), 1)


@pytest.fixture
def sampled_beyond_50(monkeypatch):
    monkeypatch.setattr(cohesion, "MOST_EXACT", 50)
    monkeypatch.setattr(cohesion, "SAMPLED_PAIRS", 20_000)


def test_three_users_by_hand():
    # The sides of the triangle are 3, 4 and 5; each pair counts both ways, and there are three users.
    value = 2 * (1 / 3 + 1 / 4 + 1 / 5) / 3
    assert measured([[0, 0], [3, 0], [3, 4]]) == [Cohesion(pytest.approx(value, rel=1e-12), 0.0)]


def test_only_pairs_within_a_group_count():
    near, far = measured([[0], [1], [100], [110]], [0, 0, 1, 1], groups=2)
    assert (near.value, far.value) == pytest.approx((1.0, 0.1), rel=1e-9)


def test_a_group_of_nobody_or_of_one_has_no_cohesion():
    found = measured([[0, 0], [1, 0], [5, 5]], [1, 1, 3], groups=5)
    assert found[1].value == pytest.approx(1.0)
    assert [found[group] for group in (0, 2, 3, 4)] == [Cohesion(0.0, 0.0)] * 4


def test_two_users_at_one_place_count_as_a_thousandth_of_the_spread_apart():
    # Around the mean 2 lie 0, 0 and 6: the spread is √((4 + 4 + 16) / 3) = √8.
    together, alone = measured([[0], [0], [6]], [0, 0, 1], groups=2)
    assert together.value == pytest.approx(1000 / np.sqrt(8))
    assert alone.value == 0.0


def test_users_closer_than_that_count_as_that_far_and_others_as_they_are():
    rows = [[0.0], [0.001], [100.0], [100.2]]
    closest = 1e-3 * spread_of(np.array(rows))
    assert 0.001 < closest < 0.2
    nearer, farther = measured(rows, [0, 0, 1, 1], groups=2)
    assert (nearer.value, farther.value) == pytest.approx((1 / closest, 1 / 0.2), rel=1e-6)


def test_where_all_users_are_the_same_no_group_is_easier():
    assert measured(np.full((6, 3), 2.0), [0, 0, 0, 1, 1, 1], groups=2) == [Cohesion(0.0, 0.0, 1.0)] * 2


@given(
    arrays(np.float64, st.tuples(st.integers(1, 30), st.integers(1, 4)), elements=st.integers(-4, 4)),
    st.integers(1, 4),
    st.data(),
)
@settings(deadline=None, max_examples=60)
def test_cohesion_is_that_of_counting_every_pair(rows, groups, data):
    labels = data.draw(arrays(np.int64, len(rows), elements=st.integers(0, groups - 1)))
    found = measured(rows, labels, groups)
    assert len(found) == groups
    for group, cohesive in enumerate(found):
        expected = counted(rows, np.flatnonzero(labels == group)) if np.ptp(rows, axis=0).any() else 0.0
        assert cohesive.value == pytest.approx(expected, rel=1e-9)
        assert cohesive.error == 0.0


def test_groups_of_several_blocks_are_counted_in_full():
    rows = np.random.default_rng(0).normal(size=(300, 5))
    labels = np.repeat([0, 1, 2], [64, 65, 171])
    for group, cohesive in enumerate(measured(rows, labels, groups=3)):
        assert cohesive.value == pytest.approx(counted(rows, np.flatnonzero(labels == group)), rel=1e-9)


def test_rating_rows_are_as_cohesive_as_their_full_rows(tables, monkeypatch):
    table = tables.random_table(0, users=90, items=20, ratings=True)
    sparse = rating_rows(bipartite_graph(table, RatingScale(1, 5)))
    dense = vector_points(written_out(sparse, range(sparse.size)))
    labels = np.arange(90) % 2
    assert cohesion_of_groups(sparse, labels, 2, 0, 1) == cohesion_of_groups(dense, labels, 2, 0, 1)
    monkeypatch.setattr(cohesion, "MOST_EXACT", 10)
    monkeypatch.setattr(cohesion, "SAMPLED_PAIRS", 5000)
    assert cohesion_of_groups(sparse, labels, 2, 0, 1) == cohesion_of_groups(dense, labels, 2, 0, 1)


@pytest.mark.parametrize("threads", [2, 3])
def test_threads_change_no_byte_of_an_exact_value(threads):
    rows = np.random.default_rng(1).normal(size=(400, 7))
    assert measured(rows, threads=threads) == measured(rows, threads=1)


def test_a_sampled_value_is_within_its_stated_error(sampled_beyond_50):
    rows = np.random.default_rng(2).normal(size=(150, 4))
    exact = counted(rows, range(150))
    errors_away = []
    for seed in range(40):
        sampled = measured(rows, seed=seed)[0]
        assert sampled.error > 0
        errors_away.append((sampled.value - exact) / sampled.error)
    assert np.abs(errors_away).max() < 5
    # If the stated error is right, the mean square of forty such deviations is 1 ± √(2 / 40).
    assert np.square(errors_away).mean() == pytest.approx(1.0, abs=3 * (2 / 40) ** 0.5)


def test_four_times_the_pairs_halve_the_error(sampled_beyond_50, monkeypatch):
    rows = np.random.default_rng(2).normal(size=(150, 4))
    once = measured(rows)[0].error
    monkeypatch.setattr(cohesion, "SAMPLED_PAIRS", 80_000)
    assert measured(rows)[0].error == pytest.approx(once / 2, rel=0.1)


@pytest.mark.parametrize("threads", [2, 3])
def test_threads_change_no_byte_of_a_sampled_value(sampled_beyond_50, threads):
    rows = np.random.default_rng(3).normal(size=(120, 6))
    labels = np.arange(120) % 2
    assert measured(rows, labels, 2, threads=threads) == measured(rows, labels, 2, threads=1)


def test_a_sample_follows_the_seed(sampled_beyond_50):
    rows = np.random.default_rng(3).normal(size=(60, 6))
    assert measured(rows, seed=1) == measured(rows, seed=1) != measured(rows, seed=2)


def test_a_group_of_the_largest_exact_size_is_still_counted(sampled_beyond_50):
    rows = np.random.default_rng(4).normal(size=(101, 3))
    exact, sampled = measured(rows, np.arange(101) < 51, groups=2)
    assert exact == Cohesion(pytest.approx(counted(rows, range(51, 101)), rel=1e-9), 0.0)
    assert sampled.error > 0


def test_sampled_users_at_one_place_are_clamped_as_well(sampled_beyond_50):
    rows = np.repeat([[0.0], [1.0]], [60, 60], axis=0)
    # The spread is ½, so each of the 59 others of a user counts 1 / 0.0005.
    for sampled in measured(rows, np.repeat([0, 1], 60), groups=2):
        assert (sampled.value, sampled.error, sampled.clamped) == pytest.approx((59 * 2000, 0.0, 1.0))


def test_the_share_of_clamped_pairs_is_told_by_hand():
    # Of the six pairs of the first group three are at one place; nobody in the second is.
    first, second = measured([[0], [0], [0], [5], [9], [7]], [0, 0, 0, 0, 1, 1], groups=2)
    assert (first.clamped, second.clamped) == (0.5, 0.0)


def test_of_several_blocks_and_of_a_sample_the_share_of_clamped_pairs_is_told_as_well(sampled_beyond_50, monkeypatch):
    # Two places of 100 users each: 2 · 100 · 99 of 200 · 199 ordered pairs are at one place.
    rows, expected = np.repeat([[0.0], [1.0]], 100, axis=0), 99 / 199
    assert measured(rows)[0].clamped == pytest.approx(expected, abs=5 * (0.25 / 20_000) ** 0.5)
    monkeypatch.setattr(cohesion, "MOST_EXACT", 200)
    assert measured(rows)[0].clamped == pytest.approx(expected, rel=1e-12)
