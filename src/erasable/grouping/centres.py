"""Centres of groups of points: where to begin, the means of labelled points, and the inertia around them."""

import numpy as np
from numpy.typing import NDArray

from erasable.grouping.points import Labels, Points, squared_distances, written_out
from erasable.seeding import mix
from erasable.seeding.compiled import compiled

Centres = NDArray[np.float64]


def first_centres(points: Points, groups: int, key: int, threads: int) -> Centres:
    """Choose points as centres (k-means++), each by chance in proportion to its squared distance to those before."""
    draws = mix(np.array([key], np.uint64), np.arange(groups, dtype=np.uint64))
    fractions = (draws >> np.uint64(11)).astype(np.float64) * 2.0**-53
    chosen = [int(fractions[0] * points.size)]
    nearest = np.full(points.size, np.inf)
    for fraction in fractions[1:]:
        last = written_out(points, chosen[-1:])
        nearest = np.minimum(nearest, squared_distances(points, last, threads)[:, 0])
        running = np.cumsum(nearest)
        place = np.searchsorted(running, fraction * running[-1], side="right")
        chosen.append(min(int(place), points.size - 1))
    return written_out(points, chosen)


def centres_of(points: Points, labels: Labels, groups: int) -> Centres:
    """Return the mean of each group's points; the origin for a group without any."""
    sums = np.zeros((groups, points.width))
    _add_up(points, labels, sums)
    return sums / np.maximum(np.bincount(labels, minlength=groups), 1)[:, None]


def inertia(points: Points, labels: Labels, groups: int) -> float:
    """Return the sum of squared distances to the own group's centre."""
    centres, sizes = centres_of(points, labels, groups), np.bincount(labels, minlength=groups)
    return float(points.squares.sum() - np.square(centres).sum(axis=1) @ sizes)


@compiled(nogil=True)
def _add_up(points: Points, labels: Labels, sums: Centres) -> None:
    for point in range(len(labels)):
        row = sums[labels[point]]
        for place in range(points.starts[point], points.starts[point + 1]):
            row[points.columns[place]] += points.values[place]
