import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from erasable.data import RatingScale
from erasable.grouping.balanced_clustering import centres_of, first_centres, inertia
from erasable.grouping.points import bipartite_graph, rating_rows, squared_distances, vector_points, written_out


def points_at(*rows):
    return vector_points(np.array(rows, np.float64))


def test_a_centre_is_the_mean_of_its_group():
    points = points_at([0, 0], [2, 4], [10, 10], [1, 5])
    labels = np.array([0, 0, 1, 0])
    assert centres_of(points, labels, 2).tolist() == [[1.0, 3.0], [10.0, 10.0]]


def test_the_centre_of_nobody_is_the_origin():
    assert centres_of(points_at([3, 4], [5, 6]), np.array([2, 2]), 4).tolist() == [[0, 0], [0, 0], [4, 5], [0, 0]]


def test_zeros_that_are_not_written_count_in_the_mean(tables):
    rows = tables.table({"anna": {"x": 3.0, "z": 1.0}, "ben": {"y": 5.0}}, catalogue="wxyz")
    points = rating_rows(bipartite_graph(rows, RatingScale(1, 5)))
    assert centres_of(points, np.array([0, 0]), 1).tolist() == [[0.0, 1.5, 2.5, 0.5]]


def test_inertia_adds_up_squared_distances_to_the_own_centre():
    # Around 1: 1 + 1; around (10, 0): 0.
    assert inertia(points_at([0, 0], [2, 0], [10, 0]), np.array([0, 0, 1]), 3) == 2.0


def test_inertia_is_that_of_the_distances():
    generator = np.random.default_rng(0)
    points, labels = vector_points(generator.normal(size=(50, 6))), generator.integers(0, 4, 50)
    distances = squared_distances(points, centres_of(points, labels, 4), 1)
    assert inertia(points, labels, 4) == pytest.approx(distances[np.arange(50), labels].sum(), rel=1e-12)


@given(st.sets(st.tuples(*[st.integers(-3, 3)] * 2), min_size=1, max_size=8), st.integers(0, 99), st.data())
@settings(deadline=None, max_examples=40)
def test_no_place_is_chosen_twice_while_another_is_left(places, key, data):
    repeats = data.draw(st.lists(st.sampled_from(sorted(places)), max_size=6))
    points = points_at(*sorted(places), *repeats)
    chosen = first_centres(points, len(places), key, threads=1)
    assert {tuple(row) for row in chosen.tolist()} == places


def test_beyond_the_last_new_place_old_ones_are_chosen_again():
    assert set(map(tuple, first_centres(points_at([1, 2], [3, 4], [1, 2]), 6, 0, threads=1).tolist())) == {
        (1.0, 2.0),
        (3.0, 4.0),
    }
    assert first_centres(points_at([7, 7], [7, 7]), 3, 0, threads=1).tolist() == [[7, 7]] * 3


def test_the_second_centre_is_drawn_in_proportion_to_the_squared_distance():
    points, repeats = points_at([0], [1], [3]), 900
    pairs = [tuple(first_centres(points, 2, key, threads=1)[:, 0].astype(int)) for key in range(repeats)]
    shares = {(0, 1): 1 / 10, (0, 3): 9 / 10, (1, 0): 1 / 5, (1, 3): 4 / 5, (3, 0): 9 / 13, (3, 1): 4 / 13}
    expected = {pair: repeats * share / 3 for pair, share in shares.items()}
    assert set(pairs) <= set(expected)
    # Chi-square with 5 degrees of freedom: above 20.5 once in a thousand; the keys are fixed.
    assert sum((pairs.count(pair) - count) ** 2 / count for pair, count in expected.items()) < 20.5


def test_first_centres_are_points_that_follow_the_key_and_not_the_threads():
    points = vector_points(np.random.default_rng(1).normal(size=(90, 5)))
    chosen, other = first_centres(points, 6, 3, threads=1), first_centres(points, 6, 4, threads=1)
    rows = set(map(tuple, written_out(points, range(90)).tolist()))
    assert set(map(tuple, chosen.tolist())) <= rows
    assert first_centres(points, 6, 3, threads=3).tobytes() == chosen.tobytes() != other.tobytes()
