"""Each point's nearest points, found in blocks, and what their labels say about the point's own."""

import numpy as np
from numpy.typing import NDArray

from erasable.grouping.capacity_fill import Costs
from erasable.grouping.parallel import over_ranges
from erasable.grouping.points import Blocks, Labels, Points
from erasable.seeding.compiled import compiled

NEIGHBOURS = 10


def nearest_points(points: Points, threads: int) -> NDArray[np.int64]:
    """Return the numbers of the nearest other points of each point, nearest first, ties by number."""
    kept = min(NEIGHBOURS, points.size - 1)
    nearest = np.empty((points.size, kept), np.int64)
    if not kept:
        return nearest

    def find(begin: int, end: int) -> None:
        blocks = Blocks(points)
        for block in range(begin, end):
            distances = blocks.squared_distances(block)
            own = np.arange(distances.shape[1])
            distances[block * Blocks.WIDTH + own, own] = np.inf
            _keep_nearest(distances, nearest[block * Blocks.WIDTH :])

    over_ranges(find, Blocks.count(points), threads)
    return nearest


def neighbour_costs(neighbours: NDArray[np.int64], labels: Labels, groups: int) -> Costs:
    """Return minus the share of each point's neighbours that have each label."""
    points, kept = neighbours.shape
    places = np.arange(points)[:, None] * groups + labels[neighbours]
    counts = np.bincount(places.ravel(), minlength=points * groups).reshape(points, groups)
    return -counts / max(kept, 1)


@compiled(nogil=True)
def _keep_nearest(distances: NDArray[np.float64], nearest: NDArray[np.int64]) -> None:
    """Write for each column the rows of its smallest distances in their order."""
    kept = nearest.shape[1]
    closest = np.empty(kept)
    for column in range(distances.shape[1]):
        count = 0
        for row in range(distances.shape[0]):
            distance = distances[row, column]
            if count == kept and distance >= closest[count - 1]:
                continue
            count = min(count + 1, kept)
            place = count - 1
            while place > 0 and closest[place - 1] > distance:
                closest[place] = closest[place - 1]
                nearest[column, place] = nearest[column, place - 1]
                place -= 1
            closest[place] = distance
            nearest[column, place] = row
