"""Users as points of a space, rating rows or vectors alike, and how far they are from other points."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from erasable.grouping.bipartite import BipartiteGraph, starts_of
from erasable.grouping.parallel import over_ranges
from erasable.seeding.compiled import compiled

Labels = NDArray[np.int64]
Distances = NDArray[np.float64]


class Points(NamedTuple):
    """Rows of numbers, most of which may be 0: where each begins, the columns that are not, and their values."""

    starts: NDArray[np.int64]
    columns: NDArray[np.int32]
    values: NDArray[np.float64]
    squares: NDArray[np.float64]
    """The squared length of each row."""
    width: int
    """How many columns there are."""

    @property
    def size(self) -> int:
        """How many points there are."""
        return len(self.squares)


def rating_rows(graph: BipartiteGraph) -> Points:
    """Return each user's row of weights, 0 for what they do not have."""
    squares = np.add.reduceat(np.square(graph.item_weights), graph.item_starts[:-1])
    return Points(graph.item_starts, graph.items, graph.item_weights, squares, graph.item_count)


def vector_points(vectors: NDArray[np.float32]) -> Points:
    """Return vectors as points."""
    count, width = vectors.shape
    values = vectors.astype(np.float64)
    return Points(
        starts=np.arange(count + 1, dtype=np.int64) * width,
        columns=np.tile(np.arange(width, dtype=np.int32), count),
        values=values.ravel(),
        squares=np.square(values).sum(axis=1),
        width=width,
    )


def written_out(points: Points, numbers: Sequence[int]) -> NDArray[np.float64]:
    """Return some points as full rows."""
    rows = np.zeros((len(numbers), points.width))
    for row, number in zip(rows, numbers, strict=True):
        begin, end = points.starts[number], points.starts[number + 1]
        row[points.columns[begin:end]] = points.values[begin:end]
    return rows


def take_points(points: Points, numbers: NDArray[np.int64]) -> Points:
    """Return some of the points."""
    sizes = np.diff(points.starts)[numbers]
    starts = starts_of(sizes)
    places = np.arange(starts[-1]) + np.repeat(points.starts[numbers] - starts[:-1], sizes)
    return Points(starts, points.columns[places], points.values[places], points.squares[numbers], points.width)


def narrowed(points: Points) -> Points:
    """Return the same points without the columns that are 0 in all of them, between which nothing changes."""
    present, columns = np.unique(points.columns, return_inverse=True)
    return points._replace(columns=columns.astype(np.int32), width=len(present))


def squared_distances(points: Points, others: NDArray[np.float64], threads: int) -> Distances:
    """Return the squared Euclidean distance of each point to each of some others, which are written out."""
    distances = np.empty((points.size, len(others)))
    turned, squares = np.ascontiguousarray(others.T), np.square(others).sum(axis=1)
    over_ranges(
        lambda begin, end: write_squared_distances(begin, end, points, turned, squares, distances),
        points.size,
        threads,
    )
    return distances


@compiled(nogil=True)
def write_squared_distances(
    begin: int,
    end: int,
    points: Points,
    turned: NDArray[np.float64],
    squares: NDArray[np.float64],
    distances: Distances,
) -> None:
    """Write the squared distances of a range of points to others that stand in the columns of `turned`."""
    products = np.empty(len(squares))
    for point in range(begin, end):
        products[:] = 0.0
        for place in range(points.starts[point], points.starts[point + 1]):
            value = points.values[place]
            row = turned[points.columns[place]]
            for other in range(len(squares)):  # over the others, so that no sum is reordered to be fast
                products[other] += value * row[other]
        for other in range(len(squares)):
            distances[point, other] = max(0.0, points.squares[point] + squares[other] - 2.0 * products[other])


class Blocks:
    """Distances of points to a block of them at a time, with room that is used again and again by one thread."""

    WIDTH = 64

    def __init__(self, points: Points) -> None:
        self._points = points
        self._turned = np.zeros((points.width, self.WIDTH))
        self._distances = np.empty((points.size, self.WIDTH))

    @classmethod
    def count(cls, points: Points) -> int:
        """Return how many blocks the points make."""
        return -(-points.size // cls.WIDTH)

    def squared_distances(self, block: int, begin: int = 0) -> Distances:
        """Return the squared distances of the points from `begin` on to a block's; rows before hold anything."""
        points, first = self._points, block * self.WIDTH
        last = min(first + self.WIDTH, points.size)
        _put_columns(points, first, last, self._turned, 1.0)
        turned, squares = self._turned[:, : last - first], points.squares[first:last]
        write_squared_distances(begin, points.size, points, turned, squares, self._distances)
        _put_columns(points, first, last, self._turned, 0.0)
        return self._distances[:, : last - first]


@compiled(nogil=True)
def _put_columns(points: Points, first: int, last: int, turned: NDArray[np.float64], times: float) -> None:
    """Write some points into the columns of a table, times 1 or, to clean up, times 0."""
    for point in range(first, last):
        for place in range(points.starts[point], points.starts[point + 1]):
            turned[points.columns[place], point - first] = times * points.values[place]
