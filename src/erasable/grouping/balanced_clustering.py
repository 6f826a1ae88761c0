"""Algorithm 2: balanced groups of points, around centres (k-means), by neighbours or by a mixture of Gaussians.

All three are one loop: what the labels say about costs, and an allocation by those costs that gives new labels.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from erasable.grouping.capacity_fill import Allocation, Costs, fill_groups
from erasable.grouping.centres import Centres, centres_of, first_centres, inertia
from erasable.grouping.mixture import mixture_costs
from erasable.grouping.neighbours import nearest_points, neighbour_costs
from erasable.grouping.points import Labels, Points, squared_distances, take_points
from erasable.seeding import child_key, mix

RESTARTS = 4
MOST_ROUNDS = 100
SAMPLE = 50_000
"""Beyond this many points the beginnings are tried on a sample, and all points only settle around the best one."""
ROUNDS_BEYOND_SAMPLE = 4


def balanced_k_means(points: Points, groups: int, seed: int, threads: int) -> Labels:
    """Group points around centres, no group above the ceiling; the best of a few beginnings by inertia."""
    sample = _sample(points, child_key(seed, "sample of points"))
    beginnings = (
        first_centres(sample, groups, child_key(seed, "first centres", number), threads) for number in range(RESTARTS)
    )
    runs = [_around_centres(sample, centres, np.zeros(groups), threads, MOST_ROUNDS) for centres in beginnings]
    best = min(runs, key=lambda run: inertia(sample, run.labels, groups))
    if sample is points:
        return best.labels
    centres = centres_of(sample, best.labels, groups)
    return _around_centres(points, centres, best.prices, threads, ROUNDS_BEYOND_SAMPLE).labels


def balanced_label_propagation(points: Points, groups: int, seed: int, threads: int) -> Labels:
    """Let points take the label of their neighbours, no group above the ceiling, beginning with balanced k-means."""
    neighbours = nearest_points(points, threads)
    start = balanced_k_means(points, groups, seed, threads)
    return _settled(start, groups, lambda labels: neighbour_costs(neighbours, labels, groups))


def balanced_mixture(points: Points, groups: int, seed: int, threads: int) -> Labels:
    """Group points by a mixture of Gaussians, no group above the ceiling, beginning with balanced k-means."""
    start = balanced_k_means(points, groups, seed, threads)
    return _settled(start, groups, lambda labels: mixture_costs(points, labels, groups))


def _settled(labels: Labels, groups: int, costs_of: Callable[[Labels], Costs]) -> Labels:
    return _settle(Allocation(labels, np.zeros(groups)), costs_of, MOST_ROUNDS).labels


def _around_centres(
    points: Points, centres: Centres, prices: NDArray[np.float64], threads: int, rounds: int
) -> Allocation:
    def costs_of(labels: Labels) -> Costs:
        return squared_distances(points, centres_of(points, labels, len(centres)), threads)

    first = fill_groups(squared_distances(points, centres, threads), prices)
    return _settle(first, costs_of, rounds)


def _settle(allocation: Allocation, costs_of: Callable[[Labels], Costs], rounds: int) -> Allocation:
    """Allocate again and again by what the last allocation says about costs, until labels repeat."""
    seen = set()
    for _ in range(rounds):
        seen.add(allocation.labels.tobytes())
        allocation = fill_groups(costs_of(allocation.labels), allocation.prices)
        if allocation.labels.tobytes() in seen:
            break
    return allocation


def _sample(points: Points, key: int) -> Points:
    """Return all points, or a seeded sample if they are many."""
    if points.size <= SAMPLE:
        return points
    order = np.argsort(mix(np.array([key], np.uint64), np.arange(points.size, dtype=np.uint64)), kind="stable")
    return take_points(points, np.sort(order[:SAMPLE]))
