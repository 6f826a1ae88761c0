import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from erasable.data import RatingScale
from erasable.grouping import balanced_clustering
from erasable.grouping.balanced_clustering import (
    balanced_k_means,
    balanced_label_propagation,
    balanced_mixture,
    inertia,
    nearest_points,
)
from erasable.grouping.points import bipartite_graph, rating_rows, vector_points, written_out

CLUSTERINGS = {
    "k-means": balanced_k_means,
    "label propagation": balanced_label_propagation,
    "mixture": balanced_mixture,
}
every_clustering = pytest.mark.parametrize("cluster", CLUSTERINGS.values(), ids=CLUSTERINGS)


def planted_blobs(groups, size, seed=0, width=6):
    """Scatter points around places far from each other; return them in random order with their blob."""
    generator = np.random.default_rng(seed)
    labels = generator.permutation(np.repeat(np.arange(groups), size))
    places = 20 * np.eye(groups, width) + generator.normal(size=width)
    return vector_points(places[labels] + generator.normal(size=(len(labels), width))), labels


def same_groups(labels, others):
    """Tell whether two ways of grouping are one, whatever the groups are called."""
    pairs = set(zip(labels.tolist(), others.tolist(), strict=True))
    return len(pairs) == len(set(labels.tolist())) == len(set(others.tolist()))


def assert_balanced(labels, points, groups):
    sizes = np.bincount(labels, minlength=groups)
    assert len(labels) == points.size
    assert len(sizes) == groups
    assert sizes.max() <= -(-points.size // groups)


def random_balanced_labels(count, groups, generator):
    return generator.permutation(np.arange(count) % groups)


@pytest.mark.parametrize(
    "cluster",
    [balanced_k_means, balanced_label_propagation, balanced_mixture],
    ids=CLUSTERINGS,
)
@given(count=st.integers(2, 40), groups=st.integers(2, 6), width=st.integers(1, 3), seed=st.integers(0, 99))
@settings(deadline=None, max_examples=25)
def test_everyone_has_a_group_and_none_is_above_the_ceiling(cluster, count, groups, width, seed):
    points = vector_points(np.random.default_rng(seed).normal(size=(count, width)))
    assert_balanced(cluster(points, groups, seed, 1), points, groups)


@every_clustering
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_blobs_of_one_size_are_found_exactly(cluster, seed):
    points, planted = planted_blobs(groups=5, size=30, seed=seed)
    assert same_groups(cluster(points, 5, seed, 1), planted)


@every_clustering
def test_blobs_are_found_beginning_with_a_sample(cluster, monkeypatch):
    points, planted = planted_blobs(groups=4, size=50)
    begun_with = []
    choose = balanced_clustering.first_centres
    monkeypatch.setattr(balanced_clustering, "SAMPLE", 40)
    monkeypatch.setattr(
        balanced_clustering,
        "first_centres",
        lambda points, *others: begun_with.append(points.size) or choose(points, *others),
    )
    assert same_groups(cluster(points, 4, 0, 1), planted)
    assert begun_with == [40] * balanced_clustering.RESTARTS


@every_clustering
def test_groups_that_begin_with_a_sample_are_balanced_and_repeat(cluster, monkeypatch):
    monkeypatch.setattr(balanced_clustering, "SAMPLE", 30)
    points = vector_points(np.random.default_rng(0).normal(size=(101, 4)))
    labels = cluster(points, 7, 5, 1)
    assert_balanced(labels, points, 7)
    assert cluster(points, 7, 5, 2).tobytes() == labels.tobytes()


@every_clustering
def test_neither_threads_nor_a_second_run_change_a_label(cluster):
    points = vector_points(np.random.default_rng(1).normal(size=(150, 5)))
    alone, again, two, three = (cluster(points, 6, 3, threads).tobytes() for threads in (1, 1, 2, 3))
    assert alone == again == two == three


def test_other_seeds_begin_elsewhere():
    points = vector_points(np.random.default_rng(1).normal(size=(150, 5)))
    assert len({balanced_k_means(points, 6, seed, 1).tobytes() for seed in range(4)}) > 1


def test_a_blob_above_the_ceiling_gives_away_whoever_is_nearest_to_the_others():
    points = vector_points(np.array([[0.0], [1.0], [2.0], [3.0], [4.0], [100.0]]))
    assert same_groups(balanced_k_means(points, 2, 0, 1), np.array([0, 0, 0, 1, 1, 1]))


@pytest.mark.parametrize("seed", range(3))
def test_after_propagation_more_neighbours_share_a_label_than_around_centres(seed):
    points = vector_points(np.random.default_rng(seed).normal(size=(150, 5)))
    neighbours = nearest_points(points, 1)
    labels = [cluster(points, 4, seed, 1) for cluster in (balanced_k_means, balanced_label_propagation)]
    before, after = ((own[neighbours] == own[:, None]).mean() for own in labels)
    assert after > before


def test_neighbours_who_are_of_two_minds_leave_the_groups_even():
    # Each of these twelve has as many neighbours in either group.
    points = vector_points(np.random.default_rng(4).normal(size=(12, 1)))
    assert np.bincount(balanced_label_propagation(points, 2, 4, 1)).tolist() == [6, 6]


def test_a_mixture_tells_a_wide_group_from_a_narrow_one_inside_it():
    generator = np.random.default_rng(0)
    narrow, wide = generator.normal(scale=0.1, size=(60, 8)), generator.normal(scale=8, size=(60, 8))
    labels = balanced_mixture(vector_points(np.concatenate([narrow, wide])), 2, 0, 1)
    assert same_groups(labels, np.repeat([0, 1], 60))


def test_rating_rows_are_grouped_as_their_full_rows(tables):
    rows = {f"u{user:03d}": {f"{user % 3}{item}": 5.0 for item in range(8) if item != user % 8} for user in range(48)}
    points = rating_rows(bipartite_graph(tables.table(rows), RatingScale(1, 5)))
    labels = balanced_k_means(points, 3, 0, 1)
    assert same_groups(labels, np.arange(48) % 3)
    dense = vector_points(written_out(points, range(points.size)))
    assert np.array_equal(balanced_k_means(dense, 3, 0, 1), labels)


@given(seed=st.integers(0, 9), groups=st.integers(2, 5))
@settings(deadline=None, max_examples=15)
def test_inertia_is_no_worse_than_that_of_balanced_groups_at_random(seed, groups):
    generator = np.random.default_rng(seed)
    points = vector_points(generator.uniform(size=(60, 3)))
    found = inertia(points, balanced_k_means(points, groups, seed, 1), groups)
    at_random = (inertia(points, random_balanced_labels(60, groups, generator), groups) for _ in range(20))
    assert found <= min(at_random)


@pytest.mark.parametrize("seed", range(5))
def test_more_beginnings_never_make_it_worse(seed, monkeypatch):
    points = vector_points(np.random.default_rng(seed).uniform(size=(80, 2)))
    found = []
    for restarts in (1, 2, 8):
        monkeypatch.setattr(balanced_clustering, "RESTARTS", restarts)
        found.append(inertia(points, balanced_k_means(points, 6, seed, 1), 6))
    assert found == sorted(found, reverse=True)


@every_clustering
def test_more_groups_than_points_give_each_a_group_of_its_own(cluster):
    points = vector_points(np.random.default_rng(0).normal(size=(4, 3)))
    assert len(set(cluster(points, 7, 0, 1).tolist())) == 4


@every_clustering
def test_as_many_groups_as_points_give_each_a_group_of_its_own(cluster):
    points = vector_points(np.random.default_rng(0).normal(size=(5, 3)))
    assert sorted(cluster(points, 5, 0, 1).tolist()) == [0, 1, 2, 3, 4]


@every_clustering
def test_a_single_group_holds_everyone(cluster):
    assert cluster(vector_points(np.random.default_rng(0).normal(size=(9, 3))), 1, 0, 1).tolist() == [0] * 9


@every_clustering
@pytest.mark.parametrize("value", [0.0, 0.1, 2.0])
def test_points_at_one_place_are_divided_evenly(cluster, value):
    points = vector_points(np.full((23, 4), value))
    assert_balanced(cluster(points, 5, 0, 1), points, 5)


@every_clustering
def test_points_at_two_places_are_divided_evenly_among_more_groups(cluster):
    points = vector_points(np.repeat([[0.0, 1.0], [5.0, 0.0]], [12, 12], axis=0))
    labels = cluster(points, 4, 0, 1)
    assert np.bincount(labels).tolist() == [6, 6, 6, 6]
    assert not set(labels[:12].tolist()) & set(labels[12:].tolist())
