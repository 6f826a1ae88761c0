"""Users as points: the user-item graph, rows of ratings or vectors, distances between them; threads and progress."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from erasable.data.interactions import Interactions, RatingScale
from erasable.progress import SILENT, Advance, Reporter, ignore
from erasable.seeding.compiled import compiled
from erasable.threads import pool_of

_PIECES_PER_THREAD = 32


@dataclass(frozen=True)
class GroupingEffort:
    """What changes no group: threads, and who is told of progress.

    Parameters
    ----------
    threads : int, default 1
        How many threads to use at most.
    reporter : Reporter, optional
        Receives progress and notes; by default nobody does.

    Examples
    --------
    >>> GroupingEffort(threads=2).threads
    2
    """

    threads: int = 1
    reporter: Reporter = SILENT


ALONE = GroupingEffort()


def over_ranges(work: Callable[[int, int], None], count: int, threads: int, advance: Advance = ignore) -> None:
    """Call `work(begin, end)` on ranges that cover 0 … count; threads help if it releases the GIL."""
    pieces = min(count, threads * _PIECES_PER_THREAD)
    bounds = [count * piece // pieces for piece in range(pieces + 1)] if pieces else []

    def do(begin: int, end: int) -> None:
        work(begin, end)
        advance(end - begin)

    with pool_of(threads) as pool:
        for finished in [pool.submit(do, begin, end) for begin, end in pairwise(bounds)]:
            finished.result()


MOST_PAIRS = 200_000_000
"""The most pairs of users held in memory, of 20 bytes each; where there may be more, they are not all built."""


class BipartiteGraph(NamedTuple):
    """The user-item graph with positive weights, as two CSR tables; numbers ascend in both."""

    item_starts: NDArray[np.int64]
    """Where each user's items begin."""
    items: NDArray[np.int32]
    item_weights: NDArray[np.float64]
    user_starts: NDArray[np.int64]
    """Where each item's users begin."""
    users: NDArray[np.int32]
    user_weights: NDArray[np.float64]

    @property
    def user_count(self) -> int:
        """How many users there are."""
        return len(self.item_starts) - 1

    @property
    def item_count(self) -> int:
        """How many items there are, including those without a user."""
        return len(self.user_starts) - 1


def bipartite_graph(interactions: Interactions, scale: RatingScale) -> BipartiteGraph:
    """Build the graph; a weight is rating − scale minimum + 1, so that the lowest rating still counts."""
    weights = interactions.rating.astype(np.float64) - scale.low + 1
    by_item = np.argsort(interactions.item_index, kind="stable")
    counts = np.bincount(interactions.item_index, minlength=len(interactions.items))
    return BipartiteGraph(
        item_starts=interactions.user_starts,
        items=interactions.item_index,
        item_weights=weights,
        user_starts=starts_of(counts),
        users=interactions.user_index[by_item],
        user_weights=weights[by_item],
    )


def starts_of(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the row pointer of a table whose rows have these lengths."""
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def most_pairs(graph: BipartiteGraph) -> int:
    """Return an upper bound on the ordered pairs of users who share an item, without building them."""
    encounters = np.add.reduceat(np.diff(graph.user_starts)[graph.items], graph.item_starts[:-1])
    return int(np.minimum(encounters, graph.user_count).sum())


Labels = NDArray[np.int64]
Distances = NDArray[np.float64]


class Points(NamedTuple):
    """Sparse rows of numbers: where each row begins, its nonzero columns, and their values."""

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
    """Return each user's row of weights, 0 for items that they do not have."""
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
    """Return some points as dense rows."""
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
    """Drop the columns that are 0 in all points; distances stay the same."""
    present, columns = np.unique(points.columns, return_inverse=True)
    return points._replace(columns=columns.astype(np.int32), width=len(present))


def squared_distances(points: Points, others: NDArray[np.float64], threads: int) -> Distances:
    """Return the squared Euclidean distance of each point to each of some dense rows."""
    distances = np.empty((points.size, len(others)))
    transposed, squares = np.ascontiguousarray(others.T), np.square(others).sum(axis=1)
    over_ranges(
        lambda begin, end: write_squared_distances(begin, end, points, transposed, squares, distances),
        points.size,
        threads,
    )
    return distances


@compiled(nogil=True)
def write_squared_distances(
    begin: int,
    end: int,
    points: Points,
    transposed: NDArray[np.float64],
    squares: NDArray[np.float64],
    distances: Distances,
) -> None:
    """Write the squared distances of a range of points to the columns of `transposed`."""
    products = np.empty(len(squares))
    for point in range(begin, end):
        products[:] = 0.0
        for place in range(points.starts[point], points.starts[point + 1]):
            value = points.values[place]
            row = transposed[points.columns[place]]
            for other in range(len(squares)):  # vectorises over the others, so that no sum is reordered
                products[other] += value * row[other]
        for other in range(len(squares)):
            distances[point, other] = max(0.0, points.squares[point] + squares[other] - 2.0 * products[other])


class Blocks:
    """Distances of all points to one block of them at a time, in buffers that one thread reuses."""

    WIDTH = 64

    def __init__(self, points: Points) -> None:
        self._points = points
        self._transposed = np.zeros((points.width, self.WIDTH))
        self._distances = np.empty((points.size, self.WIDTH))

    @classmethod
    def count(cls, points: Points) -> int:
        """Return how many blocks the points make."""
        return -(-points.size // cls.WIDTH)

    def squared_distances(self, block: int, begin: int = 0) -> Distances:
        """Return the squared distances of the points from `begin` on to a block; earlier rows are undefined."""
        points, first = self._points, block * self.WIDTH
        last = min(first + self.WIDTH, points.size)
        _put_columns(points, first, last, self._transposed, 1.0)
        transposed, squares = self._transposed[:, : last - first], points.squares[first:last]
        write_squared_distances(begin, points.size, points, transposed, squares, self._distances)
        _put_columns(points, first, last, self._transposed, 0.0)
        return self._distances[:, : last - first]


@compiled(nogil=True)
def _put_columns(points: Points, first: int, last: int, transposed: NDArray[np.float64], times: float) -> None:
    """Write some points into the columns of a table, times 1, or times 0 to clear them."""
    for point in range(first, last):
        for place in range(points.starts[point], points.starts[point + 1]):
            transposed[points.columns[place], point - first] = times * points.values[place]
