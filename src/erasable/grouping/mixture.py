"""A mixture of Gaussians with one variance for each column, fitted to labelled points."""

import numpy as np

from erasable.grouping.capacity_fill import Costs
from erasable.grouping.points import Labels, Points

_SMALLEST_VARIANCE = 1e-6
"""A share of the variance of all numbers, so that a group of equal points has a density."""


def mixture_costs(points: Points, labels: Labels, groups: int) -> Costs:
    """Return minus the log responsibility of each group's Gaussian for each point."""
    rows = points.values.reshape(points.size, points.width)
    floor = _SMALLEST_VARIANCE * max(float(rows.var()), np.finfo(np.float64).tiny)
    densities = np.empty((points.size, groups))
    for group in range(groups):
        members = rows[labels == group]
        known = members if len(members) else rows  # an empty group stays open to anyone
        variance = known.var(axis=0) + floor
        deviations = np.square(rows - known.mean(axis=0)) / variance
        densities[:, group] = np.log(max(len(members), 1)) - 0.5 * (deviations.sum(axis=1) + np.log(variance).sum())
    highest = densities.max(axis=1, keepdims=True)
    total = highest + np.log(np.exp(densities - highest).sum(axis=1, keepdims=True))
    return total - densities
