"""The paper's collaborative cohesion ρ of a group: how close its users are to each other, the more the easier."""

from queue import SimpleQueue
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from erasable.grouping.parallel import over_ranges
from erasable.grouping.points import Blocks, Labels, Points, narrowed, take_points
from erasable.seeding import child_key
from erasable.seeding.compiled import below, compiled, draw

MOST_EXACT = 20_000
SAMPLED_PAIRS = 2_000_000
_CLOSEST = 1e-3
"""Users closer than this share of the space's spread count as that far apart, else 1 / distance has no bound."""


class Cohesion(NamedTuple):
    """ρ = Σ over ordered pairs x ≠ y of 1 / distance(x, y), divided by the number of users; and its standard error."""

    value: float
    error: float
    """0 where all pairs were counted."""
    clamped: float = 0.0
    """The share of pairs so close that they were counted as further apart; said at learning, and not kept."""


def cohesion_of_groups(points: Points, labels: Labels, groups: int, seed: int, threads: int) -> list[Cohesion]:
    """Return the cohesion of each group; groups of more than `MOST_EXACT` users are measured on sampled pairs."""
    closest = _CLOSEST * _spread(points)
    found = []
    for group in range(groups):
        members = narrowed(take_points(points, np.flatnonzero(labels == group)))
        if members.size < 2 or closest == 0.0:  # nobody to be close to, or everyone at one place
            found.append(Cohesion(0.0, 0.0, float(members.size > 1)))
        elif members.size <= MOST_EXACT:
            found.append(_exact(members, closest, threads))
        else:
            found.append(_sampled(members, closest, child_key(seed, "cohesion", group), threads))
    return found


def _spread(points: Points) -> float:
    """Return the root mean square distance of all points to their mean."""
    mean = np.bincount(points.columns, weights=points.values, minlength=points.width) / points.size
    return float(np.sqrt(max(0.0, points.squares.mean() - np.square(mean).sum())))


def _exact(members: Points, closest: float, threads: int) -> Cohesion:
    # One sum for each block, added up in order afterwards: how blocks are shared out changes nothing.
    sums = np.empty((Blocks.count(members), 2))
    rooms: SimpleQueue[Blocks] = SimpleQueue()
    for _ in range(threads):
        rooms.put(Blocks(members))

    def measure(begin: int, end: int) -> None:
        blocks = rooms.get()
        for block in range(begin, end):
            first = block * Blocks.WIDTH
            sums[block] = _add_inverses(blocks.squared_distances(block, first), first, closest)
        rooms.put(blocks)

    over_ranges(measure, len(sums), threads)
    total, clamped = sums.sum(axis=0).tolist()
    return Cohesion(2 * total / members.size, 0.0, 2 * clamped / (members.size * (members.size - 1)))


def _sampled(members: Points, closest: float, key: int, threads: int) -> Cohesion:
    inverses = np.empty(SAMPLED_PAIRS)
    over_ranges(
        lambda begin, end: _sample_inverses(begin, end, members, closest, np.uint64(key), inverses),
        SAMPLED_PAIRS,
        threads,
    )
    others = members.size - 1
    error = float(inverses.std()) / SAMPLED_PAIRS**0.5
    return Cohesion(float(inverses.mean()) * others, error * others, float(np.mean(inverses >= 1 / closest)))


@compiled(nogil=True)
def _add_inverses(distances: NDArray[np.float64], first: int, closest: float) -> tuple[float, int]:
    """Add up 1 / distance of the points from `first` on (rows) to a block of them (columns), each pair once.

    Also return how many pairs are no further apart than `closest`.
    """
    total, clamped = 0.0, 0
    for row in range(first, distances.shape[0]):
        for column in range(min(distances.shape[1], row - first)):
            distance = np.sqrt(distances[row, column])
            total += 1.0 / max(distance, closest)
            clamped += distance <= closest
    return total, clamped


@compiled(nogil=True)
def _sample_inverses(
    begin: int, end: int, members: Points, closest: float, key: np.uint64, inverses: NDArray[np.float64]
) -> None:
    """Write 1 / distance of random pairs of different points, drawn with replacement."""
    count = len(members.squares)
    for pair in range(begin, end):
        one = below(draw(key, np.uint64(2 * pair)), count)
        other = below(draw(key, np.uint64(2 * pair + 1)), count - 1)
        other += other >= one
        inverses[pair] = 1.0 / max(np.sqrt(_squared_distance(members, one, other)), closest)


@compiled(nogil=True)
def _squared_distance(points: Points, one: int, other: int) -> float:
    left, right = points.starts[one], points.starts[other]
    product = 0.0
    while left < points.starts[one + 1] and right < points.starts[other + 1]:
        if points.columns[left] == points.columns[right]:
            product += points.values[left] * points.values[right]
            left += 1
            right += 1
        elif points.columns[left] < points.columns[right]:
            left += 1
        else:
            right += 1
    return max(0.0, points.squares[one] + points.squares[other] - 2.0 * product)
