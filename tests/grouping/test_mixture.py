import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp
from scipy.stats import norm

from erasable.grouping.balanced_clustering import mixture_costs
from erasable.grouping.points import vector_points


def minus_log_responsibilities(rows, labels, groups):
    """Compute them from the densities of scipy.stats; an empty group counts as one user, spread like everyone."""
    floor = 1e-6 * rows.var()
    logs = np.empty((len(rows), groups))
    for group in range(groups):
        members = rows[labels == group]
        known = members if len(members) else rows
        weight = max(len(members), 1) / len(rows)
        densities = norm.logpdf(rows, known.mean(axis=0), np.sqrt(known.var(axis=0) + floor))
        logs[:, group] = np.log(weight) + densities.sum(axis=1)
    return logsumexp(logs, axis=1, keepdims=True) - logs


@given(st.integers(1, 30), st.integers(1, 6), st.integers(1, 5), st.integers(0, 99))
@settings(deadline=None, max_examples=60)
def test_costs_are_minus_the_log_responsibilities(users, width, groups, seed):
    generator = np.random.default_rng(seed)
    rows = generator.normal(size=(users, width)) * generator.uniform(0.1, 5, width)
    labels = generator.integers(0, groups, users)
    costs = mixture_costs(vector_points(rows), labels, groups)
    if users * width > 1:
        assert np.allclose(costs, minus_log_responsibilities(rows, labels, groups), rtol=1e-9, atol=1e-7)
    assert np.allclose(np.exp(-costs).sum(axis=1), 1.0)


def test_between_two_like_gaussians_everyone_belongs_to_the_near_one():
    points = vector_points(np.array([[-11.0], [-9.0], [9.0], [11.0]]))
    costs = mixture_costs(points, np.array([0, 0, 1, 1]), 2)
    # Variance 1 around -10 and 10, and a millionth of that of all: at 9 the log densities are -½ and -19² / 2.
    assert costs[2].tolist() == pytest.approx([180.0, 0.0], rel=1e-3)
    assert costs.argmin(axis=1).tolist() == [0, 0, 1, 1]


def test_a_wide_group_claims_a_far_point_though_the_narrow_one_s_centre_is_nearer():
    rows = np.array([[-0.1], [0.1], [-60.0], [100.0], [9.0]])
    costs = mixture_costs(vector_points(rows), np.array([0, 0, 1, 1, 1]), 2)
    assert costs[4].argmin() == 1
    assert costs[:2].argmin(axis=1).tolist() == [0, 0]


def test_of_equal_points_only_the_sizes_of_the_groups_tell_a_difference():
    costs = mixture_costs(vector_points(np.full((4, 3), 2.5)), np.array([0, 0, 0, 1]), 2)
    assert np.allclose(costs, [[np.log(4 / 3), np.log(4)]] * 4)


def test_points_at_the_origin_are_no_trouble():
    costs = mixture_costs(vector_points(np.zeros((3, 2))), np.array([0, 1, 1]), 3)
    assert np.allclose(np.exp(-costs), [[1 / 4, 2 / 4, 1 / 4]] * 3)


def test_an_empty_group_is_there_for_whoever_fits_nowhere_else():
    rows = np.array([[0.0], [0.2], [0.1], [50.0], [50.2], [50.1], [25.0]])
    costs = mixture_costs(vector_points(rows), np.array([0, 0, 0, 1, 1, 1, 3]), 4)
    assert np.isfinite(costs).all()
    assert costs[:, [0, 1, 2]].argmin(axis=1).tolist() == [0, 0, 0, 1, 1, 1, 2]


def test_a_group_of_one_is_sure_of_its_own_point():
    costs = mixture_costs(vector_points(np.array([[0.0, 0.0], [1.0, 0.0], [5.0, 5.0]])), np.array([0, 0, 1]), 2)
    assert np.isfinite(costs).all()
    assert costs[2, 1] == pytest.approx(0.0, abs=1e-12)
    assert costs[2, 0] > 1e5
