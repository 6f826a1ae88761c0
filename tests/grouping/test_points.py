import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from erasable.data import RatingScale
from erasable.grouping.points import (
    bipartite_graph,
    rating_rows,
    squared_distances,
    take_points,
    vector_points,
    written_out,
)

numbers = st.floats(-100, 100, width=32)
few_numbers = st.sampled_from([-2.0, 0.0, 1.0, 3.0])


@st.composite
def two_tables(draw, elements=numbers):
    width = draw(st.integers(1, 40))
    sizes = draw(st.tuples(st.integers(1, 8), st.integers(1, 8)))
    return [draw(arrays(np.float32, (size, width), elements=elements)) for size in sizes]


@pytest.fixture(scope="module")
def ratings(tables):
    return rating_rows(bipartite_graph(tables.random_table(0, users=70, items=30, ratings=True), RatingScale(1, 5)))


def all_of(points):
    return written_out(points, range(points.size))


def by_numpy(rows, others):
    differences = rows.astype(np.float64)[:, None, :] - others.astype(np.float64)[None, :, :]
    return np.square(differences).sum(axis=2)


def test_a_rating_row_holds_the_rating_above_the_scale_s_lowest_and_one(tables):
    rows = tables.table({"anna": {"x": 3.0, "z": 1.0}, "ben": {"y": 5.0}})
    points = rating_rows(bipartite_graph(rows, RatingScale(0.5, 5)))
    assert all_of(points).tolist() == [[3.5, 0.0, 1.5], [0.0, 5.5, 0.0]]
    assert points.squares.tolist() == [3.5**2 + 1.5**2, 5.5**2]


def test_an_item_that_nobody_has_is_a_column_of_zeros(tables):
    points = rating_rows(bipartite_graph(tables.table({"u": "b", "v": "b"}, catalogue="abc"), RatingScale(1, 1)))
    assert (points.size, points.width) == (2, 3)
    assert all_of(points).tolist() == [[0.0, 1.0, 0.0]] * 2


def test_vectors_are_points_as_they_are():
    vectors = np.array([[1.0, 0.0, -2.0], [0.0, 0.0, 0.0]], np.float32)
    points = vector_points(vectors)
    assert (points.size, points.width) == (2, 3)
    assert all_of(points).tolist() == vectors.tolist()
    assert points.squares.tolist() == [5.0, 0.0]


@given(two_tables())
@settings(deadline=None, max_examples=60)
def test_distances_are_those_of_numpy_and_never_negative(both):
    rows, others = both
    distances = squared_distances(vector_points(rows), others.astype(np.float64), threads=1)
    # Two squared lengths of up to 40 · 100² nearly cancel: ten digits are left of sixteen.
    assert np.allclose(distances, by_numpy(rows, others), rtol=1e-9, atol=1e-8)
    assert distances.min() >= 0


@given(two_tables(few_numbers))
@settings(deadline=None, max_examples=60)
def test_distances_of_whole_numbers_are_exact(both):
    rows, others = both
    distances = squared_distances(vector_points(rows), others.astype(np.float64), threads=1)
    assert np.array_equal(distances, by_numpy(rows, others))


@given(arrays(np.float32, st.tuples(st.integers(1, 6), st.integers(1, 40)), elements=numbers))
@settings(deadline=None, max_examples=60)
def test_the_same_row_is_at_distance_0_up_to_rounding(rows):
    distances = np.diag(squared_distances(vector_points(rows), rows.astype(np.float64), threads=1))
    assert (distances >= 0).all()
    assert (distances <= 1e-13 * np.square(rows.astype(np.float64)).sum(axis=1)).all()


def test_rows_with_and_without_their_zeros_are_equally_far(ratings):
    dense, others = vector_points(all_of(ratings)), all_of(ratings)[:20] / 2
    assert len(dense.values) > len(ratings.values)
    assert np.array_equal(dense.squares, ratings.squares)
    assert np.array_equal(squared_distances(dense, others, 1), squared_distances(ratings, others, 1))


@pytest.mark.parametrize("threads", [2, 3, 200])
def test_threads_change_no_byte_of_the_distances(threads):
    generator = np.random.default_rng(0)
    points, others = vector_points(generator.normal(size=(131, 33))), generator.normal(size=(7, 33))
    alone = squared_distances(points, others, 1)
    assert squared_distances(points, others, threads).tobytes() == alone.tobytes()


@given(st.lists(st.integers(0, 69), max_size=20))
@settings(deadline=None, max_examples=40)
def test_points_are_taken_in_the_order_asked_for_as_often_as_asked(ratings, chosen):
    taken = take_points(ratings, np.array(chosen, np.int64))
    assert (taken.size, taken.width) == (len(chosen), ratings.width)
    assert np.array_equal(all_of(taken), all_of(ratings)[chosen])
    assert np.array_equal(taken.squares, ratings.squares[chosen])


def test_points_that_were_taken_are_as_far_as_before(ratings):
    chosen, others = np.array([5, 1, 60]), all_of(ratings)[10:14]
    taken = squared_distances(take_points(ratings, chosen), others, 1)
    assert np.array_equal(taken, squared_distances(ratings, others, 1)[chosen])


def test_no_points_have_no_distances(ratings):
    nobody = take_points(ratings, np.array([], np.int64))
    assert squared_distances(nobody, all_of(ratings)[:3], 2).shape == (0, 3)
    assert squared_distances(ratings, np.empty((0, ratings.width)), 1).shape == (70, 0)
