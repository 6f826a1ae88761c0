import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from erasable.data import RatingScale
from erasable.grouping.balanced_clustering import NEIGHBOURS, nearest_points, neighbour_costs
from erasable.grouping.points import bipartite_graph, rating_rows, vector_points, written_out


def sorted_by_distance(rows):
    """Sort all others of each row by distance, then by number."""
    distances = np.square(rows[:, None, :] - rows[None, :, :]).sum(axis=2)
    others = [sorted((distance, other) for other, distance in enumerate(row)) for row in distances]
    return [[other for _, other in row if other != number][:NEIGHBOURS] for number, row in enumerate(others)]


def test_neighbours_are_named_from_the_nearest():
    points = vector_points(np.array([[0.0], [10.0], [1.0], [4.0]]))
    assert nearest_points(points, 1).tolist() == [[2, 3, 1], [3, 2, 0], [0, 3, 1], [2, 0, 1]]


# A grid of few places: most distances tie, and many points are the same.
@given(arrays(np.int64, st.tuples(st.integers(2, 40), st.integers(1, 3)), elements=st.integers(0, 3)))
@settings(deadline=None, max_examples=80)
def test_the_nearest_are_those_of_a_full_sort_ties_by_number(rows):
    assert nearest_points(vector_points(rows), 1).tolist() == sorted_by_distance(rows)


@pytest.mark.parametrize("count", [2, 3, 10, 11, 12])
def test_with_few_others_all_of_them_are_neighbours(count):
    nearest = nearest_points(vector_points(np.random.default_rng(0).normal(size=(count, 4))), 1)
    assert nearest.shape == (count, min(count - 1, NEIGHBOURS))
    assert all(number not in row and len(set(row)) == len(row) for number, row in enumerate(nearest.tolist()))


def test_a_point_alone_has_no_neighbours():
    nearest = nearest_points(vector_points(np.ones((1, 3))), 1)
    assert nearest.shape == (1, 0)
    assert neighbour_costs(nearest, np.array([1]), 2).tolist() == [[0.0, 0.0]]


def test_points_of_several_blocks_find_each_other_with_any_number_of_threads():
    rows = np.random.default_rng(0).integers(0, 6, size=(300, 3))
    expected = sorted_by_distance(rows)
    assert all(nearest_points(vector_points(rows), threads).tolist() == expected for threads in (1, 2, 3))


def test_rating_rows_have_the_neighbours_of_their_full_rows(tables):
    rows = tables.random_table(3, users=90, items=12, ratings=True)
    points = rating_rows(bipartite_graph(rows, RatingScale(1, 5)))
    expected = sorted_by_distance(written_out(points, range(points.size)))
    assert nearest_points(points, 2).tolist() == expected


def test_a_cost_is_minus_the_share_of_neighbours_with_that_label():
    neighbours = np.array([[1, 2, 3, 4], [0, 2, 3, 4], [0, 1, 3, 4], [4, 0, 1, 2], [3, 2, 1, 0]])
    costs = neighbour_costs(neighbours, np.array([0, 0, 0, 2, 2]), 3)
    one_of_each = [[-0.5, 0.0, -0.5]] * 3 + [[-0.75, 0.0, -0.25]] * 2
    assert costs.tolist() == one_of_each


@given(st.integers(2, 20), st.integers(1, 5), st.integers(0, 9))
@settings(deadline=None, max_examples=30)
def test_the_shares_of_all_labels_add_up_to_one(count, groups, seed):
    generator = np.random.default_rng(seed)
    nearest = nearest_points(vector_points(generator.normal(size=(count, 2))), 1)
    costs = neighbour_costs(nearest, generator.integers(0, groups, count), groups)
    assert costs.shape == (count, groups)
    assert np.allclose(costs.sum(axis=1), -1.0)
