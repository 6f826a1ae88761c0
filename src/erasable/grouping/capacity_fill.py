"""Algorithm 2's allocation: user-group pairs by priority, each group up to its capacity, each user once.

Taking the pairs by plain priority leaves the last users with whatever group has room, however far. So groups are let by
auction: a full group has a price, the least that someone in it would still bid, and the priority of a pair is what it
costs with that price. Nobody then gains by changing places, up to the last increment for each user (Bertsekas and
Castañon, "The auction algorithm for the transportation problem", 1989).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from erasable.grouping.points import Labels
from erasable.seeding.compiled import compiled

LAST_INCREMENT = 0.001
"""By how much a bid exceeds the last one in the end, as a share of how much a user's choices differ in cost."""
REFINEMENT = 5.0
"""How much finer each auction is than the one before."""

_NO_SPREAD = 1e-12

Costs = NDArray[np.float64]
"""How little each user (row) belongs to each group (column): a low cost is a high priority."""


class Allocation(NamedTuple):
    """The group of each user, and the price of each group."""

    labels: Labels
    prices: NDArray[np.float64]


def fill_groups(costs: Costs, prices: NDArray[np.float64]) -> Allocation:
    """Give each user a group, none more than the ceiling of users over groups; bidding begins at these prices."""
    users, groups = costs.shape
    capacity = -(-users // groups)
    if not np.isfinite(costs).all():
        raise ValueError("a cost is not finite")
    # A free place would keep the price of a coarser auction, unless someone takes it to whom all groups are equal.
    free = np.zeros((capacity * groups - users, groups))
    bidders = np.concatenate([costs, free]) if len(free) else costs
    prices = np.minimum(prices - prices.min(), np.ptp(costs, axis=1).max())  # nobody pays more than that
    for increment in _increments(costs):
        prices = prices - prices.min()
        labels = _hold_auction(bidders, prices, capacity, increment)
    return Allocation(labels[:users], prices)


def _increments(costs: Costs) -> list[float]:
    """Return by how much a bid exceeds the last one, coarse to fine: from how much two groups may differ for anyone."""
    spread = float(np.mean(costs.mean(axis=1) - costs.min(axis=1)))
    scale = max(1.0, float(np.abs(costs).max()))
    if spread <= _NO_SPREAD * scale:  # nobody prefers anything; a price must still rise
        return [scale]
    increments = [LAST_INCREMENT * spread]
    while increments[-1] * REFINEMENT < np.ptp(costs, axis=1).max() / REFINEMENT:
        increments.append(increments[-1] * REFINEMENT)
    return increments[::-1]


@compiled(nogil=True)
def _hold_auction(costs: Costs, prices: NDArray[np.float64], capacity: int, increment: float) -> Labels:
    """Let users bid for places, one after the other; prices change in place.

    A user bids for the cheapest group what makes it as dear as the second cheapest, and the increment. A full group
    drops whoever bid least, the last user first, who then bids again.
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
    """Return the cheapest group, prices included, ties by number, and how much dearer the second cheapest is."""
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
    """Put a user at the end of a heap and let them rise past every higher bid."""
    while place > 0 and _lower(user, heap[(place - 1) // 2], bids):
        heap[place] = heap[(place - 1) // 2]
        place = (place - 1) // 2
    heap[place] = user


@compiled(nogil=True)
def _sink(heap: NDArray[np.int64], user: int, bids: NDArray[np.float64]) -> None:
    """Replace the lowest bid of a full heap by a user, who sinks below every lower bid."""
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
