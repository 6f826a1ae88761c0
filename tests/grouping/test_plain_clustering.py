import numpy as np

from erasable.grouping.balanced_clustering import plain_k_means
from erasable.grouping.points import vector_points


def blobs(*sizes):
    centres = np.arange(len(sizes))[:, None] * 100.0
    places = np.repeat(centres, sizes, axis=0)
    return vector_points((places + np.random.default_rng(0).normal(size=(sum(sizes), 2))).astype(np.float32))


def test_sizes_are_those_of_the_blobs_however_unequal():
    assert sorted(np.bincount(plain_k_means(blobs(50, 3, 10), 3, seed=1, threads=1))) == [3, 10, 50]


def test_threads_change_nothing():
    points = blobs(20, 30)
    assert np.array_equal(plain_k_means(points, 4, 0, threads=1), plain_k_means(points, 4, 0, threads=3))


def test_users_at_one_place_are_one_group():
    assert set(plain_k_means(vector_points(np.ones((5, 2), np.float32)), 2, 0, 1)) == {0}
