"""Algorithm 2: balanced k-means, label propagation and Gaussian mixtures; and plain k-means to compare with."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from erasable.grouping.points import Blocks, Labels, Points, over_ranges, squared_distances, take_points, written_out
from erasable.seeding import child_key, mix
from erasable.seeding.compiled import compiled

LAST_INCREMENT = 0.001
"""The bid increment of the last auction, as a share of how much a user's costs differ between groups."""
REFINEMENT = 5.0
"""By which factor the increment falls from one auction to the next."""

_NO_SPREAD = 1e-12

Costs = NDArray[np.float64]
"""The cost of putting each user (row) into each group (column)."""


class Allocation(NamedTuple):
    """The group of each user, and the price of each group."""

    labels: Labels
    prices: NDArray[np.float64]


def fill_groups(costs: Costs, prices: NDArray[np.float64]) -> Allocation:
    """Assign users to groups of at most ⌈users / groups⌉ by auction; bidding starts at these prices."""
    users, groups = costs.shape
    capacity = -(-users // groups)
    if not np.isfinite(costs).all():
        raise ValueError("a cost is not finite")
    # A free place would keep the price of a coarser auction, so bidders without a preference fill the free places.
    free = np.zeros((capacity * groups - users, groups))
    bidders = np.concatenate([costs, free]) if len(free) else costs
    prices = np.minimum(prices - prices.min(), np.ptp(costs, axis=1).max())  # nobody pays more than that
    for increment in _increments(costs):
        prices = prices - prices.min()
        labels = _hold_auction(bidders, prices, capacity, increment)
    return Allocation(labels[:users], prices)


def _increments(costs: Costs) -> list[float]:
    """Return the bid increments, coarse to fine, starting near the largest cost difference of any user."""
    spread = float(np.mean(costs.mean(axis=1) - costs.min(axis=1)))
    scale = max(1.0, float(np.abs(costs).max()))
    if spread <= _NO_SPREAD * scale:  # no user prefers any group; prices must still rise
        return [scale]
    increments = [LAST_INCREMENT * spread]
    while increments[-1] * REFINEMENT < np.ptp(costs, axis=1).max() / REFINEMENT:
        increments.append(increments[-1] * REFINEMENT)
    return increments[::-1]


@compiled(nogil=True)
def _hold_auction(costs: Costs, prices: NDArray[np.float64], capacity: int, increment: float) -> Labels:
    """Let users bid for places, one after the other; prices change in place.

    A user bids for the cheapest group: the amount that makes it cost as much as the second cheapest, plus the
    increment. A full group drops the lowest bidder (of equal ones the last user), who then bids again.
    """
    users, groups = costs.shape
    held = np.empty((groups, capacity), np.int64)  # the users of each group, lowest bid first (a heap)
    counts = np.zeros(groups, np.int64)
    bids = np.empty(users)
    labels = np.empty(users, np.int64)
    for user in range(users):
        bidding = user
        while bidding >= 0:
            group, margin = _cheapest(costs[bidding], prices)
            labels[bidding] = group
            bids[bidding] = prices[group] + margin + increment
            if counts[group] < capacity:
                counts[group] += 1
                _rise(held[group], counts[group] - 1, bidding, bids)
                bidding = -1
            else:
                lowest = held[group, 0]
                _sink(held[group], bidding, bids)
                bidding = lowest
            if counts[group] == capacity:
                prices[group] = bids[held[group, 0]]
    return labels


@compiled(nogil=True)
def _cheapest(costs: NDArray[np.float64], prices: NDArray[np.float64]) -> tuple[int, float]:
    """Return the cheapest group, prices included, ties by number, and how much more the second cheapest costs."""
    cheapest, lowest, second = 0, np.inf, np.inf
    for group in range(len(costs)):
        cost = costs[group] + prices[group]
        if cost < lowest:
            cheapest, lowest, second = group, cost, lowest
        elif cost < second:
            second = cost
    return cheapest, second - lowest if second < np.inf else 0.0


@compiled(inline="always")
def _lower(one: int, other: int, bids: NDArray[np.float64]) -> bool:
    return bids[one] < bids[other] or (bids[one] == bids[other] and one > other)


@compiled(nogil=True)
def _rise(heap: NDArray[np.int64], place: int, user: int, bids: NDArray[np.float64]) -> None:
    """Push a user onto a heap, moving up past every higher bid."""
    while place > 0 and _lower(user, heap[(place - 1) // 2], bids):
        heap[place] = heap[(place - 1) // 2]
        place = (place - 1) // 2
    heap[place] = user


@compiled(nogil=True)
def _sink(heap: NDArray[np.int64], user: int, bids: NDArray[np.float64]) -> None:
    """Replace the lowest bid of a full heap by a user's, moving down past every lower bid."""
    place = 0
    while 2 * place + 1 < len(heap):
        below = 2 * place + 1
        if below + 1 < len(heap) and _lower(heap[below + 1], heap[below], bids):
            below += 1
        if not _lower(heap[below], user, bids):
            break
        heap[place] = heap[below]
        place = below
    heap[place] = user


Centres = NDArray[np.float64]


def first_centres(points: Points, groups: int, key: int, threads: int) -> Centres:
    """Choose points as centres (k-means++), with probability proportional to the squared distance to those before."""
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
    """Return the sum of squared distances of points to their group's centre."""
    centres, sizes = centres_of(points, labels, groups), np.bincount(labels, minlength=groups)
    return float(points.squares.sum() - np.square(centres).sum(axis=1) @ sizes)


@compiled(nogil=True)
def _add_up(points: Points, labels: Labels, sums: Centres) -> None:
    for point in range(len(labels)):
        row = sums[labels[point]]
        for place in range(points.starts[point], points.starts[point + 1]):
            row[points.columns[place]] += points.values[place]


_SMALLEST_VARIANCE = 1e-6
"""A share of the variance of all values, added so that a group of equal points has a density."""


def mixture_costs(points: Points, labels: Labels, groups: int) -> Costs:
    """Return minus the log responsibility of each group's Gaussian for each point."""
    rows = points.values.reshape(points.size, points.width)
    floor = _SMALLEST_VARIANCE * max(float(rows.var()), np.finfo(np.float64).tiny)
    densities = np.empty((points.size, groups))
    for group in range(groups):
        members = rows[labels == group]
        known = members if len(members) else rows  # an empty group may attract any point
        variance = known.var(axis=0) + floor
        deviations = np.square(rows - known.mean(axis=0)) / variance
        densities[:, group] = np.log(max(len(members), 1)) - 0.5 * (deviations.sum(axis=1) + np.log(variance).sum())
    highest = densities.max(axis=1, keepdims=True)
    total = highest + np.log(np.exp(densities - highest).sum(axis=1, keepdims=True))
    return total - densities


NEIGHBOURS = 10


def nearest_points(points: Points, threads: int) -> NDArray[np.int64]:
    """Return the nearest other points of each point, nearest first, ties by number."""
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
    """Write for each column the rows of its smallest distances, in ascending order."""
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


MOST_ROUNDS = 100


def plain_k_means(points: Points, groups: int, seed: int, threads: int) -> Labels:
    """Assign each point to the nearest centre and move the centres, until labels repeat."""
    centres = first_centres(points, groups, child_key(seed, "first centres", 0), threads)
    labels = np.argmin(squared_distances(points, centres, threads), axis=1)
    for _ in range(MOST_ROUNDS):
        before, centres = labels, centres_of(points, labels, groups)
        labels = np.argmin(squared_distances(points, centres, threads), axis=1)
        if np.array_equal(labels, before):
            break
    return labels


RESTARTS = 4
SAMPLE = 50_000
"""With more points than this, restarts run on a sample, and all points only settle around the best result."""
ROUNDS_BEYOND_SAMPLE = 4


def balanced_k_means(points: Points, groups: int, seed: int, threads: int) -> Labels:
    """Balanced k-means: no group is above the ceiling; the best of a few restarts by inertia."""
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
    """Balanced label propagation: no group is above the ceiling; it starts from balanced k-means."""
    neighbours = nearest_points(points, threads)
    start = balanced_k_means(points, groups, seed, threads)
    return _settled(start, groups, lambda labels: neighbour_costs(neighbours, labels, groups))


def balanced_mixture(points: Points, groups: int, seed: int, threads: int) -> Labels:
    """Balanced Gaussian mixture: no group is above the ceiling; it starts from balanced k-means."""
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
    """Recompute costs from the last allocation and allocate again, until labels repeat."""
    seen = set()
    for _ in range(rounds):
        seen.add(allocation.labels.tobytes())
        allocation = fill_groups(costs_of(allocation.labels), allocation.prices)
        if allocation.labels.tobytes() in seen:
            break
    return allocation


def _sample(points: Points, key: int) -> Points:
    """Return all points, or a seeded sample if there are many."""
    if points.size <= SAMPLE:
        return points
    order = np.argsort(mix(np.array([key], np.uint64), np.arange(points.size, dtype=np.uint64)), kind="stable")
    return take_points(points, np.sort(order[:SAMPLE]))
