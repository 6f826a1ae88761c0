"""The paper's hypergraph (Appendix A): every user is a vertex, and has a hyperedge of nearby users.

It is built here as a whole; `_walks` walks the same hypergraph without building it if it is too large.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from erasable.errors import Refused, option
from erasable.grouping.points import MOST_PAIRS, BipartiteGraph, over_ranges, starts_of
from erasable.progress import Advance, ignore
from erasable.seeding.compiled import compiled

NEAREST = 50
MOST_STEPS = 10**11
"""The limit of steps for orders above 4; each user's search goes through all interactions."""


class Hyperedges(NamedTuple):
    """Arrays for hyperedges, one for each user: where each begins, its members, and running sums over them."""

    starts: NDArray[np.int64]
    members: NDArray[np.int32]
    weight_sums: NDArray[np.float64]  # of the members' weights
    size_sums: NDArray[np.int64]  # of the sizes of the members' own hyperedges


class _Scratch(NamedTuple):
    """Scratch arrays for collecting one hyperedge."""

    met: NDArray[np.int32]  # the users found so far
    listed: NDArray[np.bool_]  # whether a user is among them
    shared: NDArray[np.float64]  # how many items another shares with the user, and the sum of their weights
    opened: NDArray[np.int32]  # the last user whose hyperedge an item's users were listed for


@compiled(nogil=True)
def _make_scratch(graph: BipartiteGraph) -> _Scratch:
    users, items = len(graph.item_starts) - 1, len(graph.user_starts) - 1
    return _Scratch(
        np.empty(users, np.int32), np.zeros(users, np.bool_), np.zeros((users, 2)), np.full(items, -1, np.int32)
    )


@compiled(nogil=True)
def _meet(user: int, graph: BipartiteGraph, scratch: _Scratch) -> int:
    """List everyone who shares an item with a user, including the user."""
    found = 0
    for place in range(graph.item_starts[user], graph.item_starts[user + 1]):
        item = graph.items[place]
        for position in range(graph.user_starts[item], graph.user_starts[item + 1]):
            other = graph.users[position]
            if not scratch.listed[other]:
                scratch.listed[other] = True
                scratch.met[found] = other
                found += 1
            scratch.shared[other, 0] += 1.0
            scratch.shared[other, 1] += graph.user_weights[position]
    return found


@compiled(nogil=True)
def _meet_further(user: int, found: int, hops: int, graph: BipartiteGraph, scratch: _Scratch) -> int:
    """List also those who share an item with someone listed, and so on, `hops` times; each item is opened once."""
    first = 0
    for _ in range(hops):
        last = found
        for number in range(first, last):
            between = scratch.met[number]
            for place in range(graph.item_starts[between], graph.item_starts[between + 1]):
                item = graph.items[place]
                if scratch.opened[item] == user:
                    continue
                scratch.opened[item] = user
                for position in range(graph.user_starts[item], graph.user_starts[item + 1]):
                    other = graph.users[position]
                    if not scratch.listed[other]:
                        scratch.listed[other] = True
                        scratch.met[found] = other
                        found += 1
        first = last
    return found


@compiled(nogil=True)
def _clean(found: int, scratch: _Scratch) -> None:
    for number in range(found):
        other = scratch.met[number]
        scratch.listed[other] = False
        scratch.shared[other] = 0.0


@compiled(inline="always")  # a call would count references to every array
def _mean_weight(other: int, graph: BipartiteGraph, shared: NDArray[np.float64]) -> float:
    """Return w: the mean weight over the shared items, or over all of the other's items if there are none."""
    if shared[other, 0] > 0.0:
        return shared[other, 1] / shared[other, 0]
    total = 0.0
    for place in range(graph.item_starts[other], graph.item_starts[other + 1]):
        total += graph.item_weights[place]
    return total / (graph.item_starts[other + 1] - graph.item_starts[other])


@compiled(nogil=True)
def measure_hyperedges(begin: int, end: int, graph: BipartiteGraph, hops: int, sizes: NDArray[np.int64]) -> None:
    """Write the size of each hyperedge in a range of users: everyone within `hops` shared items."""
    scratch = _make_scratch(graph)
    for user in range(begin, end):
        scratch.met[0] = user
        scratch.listed[user] = True
        sizes[user] = _meet_further(user, 1, hops, graph, scratch)
        _clean(sizes[user], scratch)


@compiled(nogil=True)
def collect_hyperedges(begin: int, end: int, graph: BipartiteGraph, hops: int, edges: Hyperedges) -> None:
    """Write members, running weights and running sizes of each hyperedge in a range of users."""
    scratch = _make_scratch(graph)
    for user in range(begin, end):
        found = _meet_further(user, _meet(user, graph, scratch), hops - 1, graph, scratch)
        weight, size = 0.0, 0
        for number in range(found):
            other = scratch.met[number]
            weight += _mean_weight(other, graph, scratch.shared)
            size += edges.starts[other + 1] - edges.starts[other]
            edges.members[edges.starts[user] + number] = other
            edges.weight_sums[edges.starts[user] + number] = weight
            edges.size_sums[edges.starts[user] + number] = size
        _clean(found, scratch)


class Nearest(NamedTuple):
    """Arrays for each user's nearest: the user, then others by descending cosine, ties by number; −1 is nobody."""

    users: NDArray[np.int32]
    cosines: NDArray[np.float64]
    weights: NDArray[np.float64]  # the paper's w of each in the user's hyperedge


@compiled(nogil=True)
def collect_nearest(
    begin: int, end: int, graph: BipartiteGraph, shares: tuple[NDArray[np.float64], NDArray[np.float64]], out: Nearest
) -> None:
    """Write the nearest neighbours of each user in a range; only users who share an item count.

    `shares` holds what sharing an item adds to the product of two users, and the length of each user's row.
    """
    of_item, lengths = shares
    users = len(graph.item_starts) - 1
    met = np.empty(users, np.int32)
    products = np.zeros(users)
    for user in range(begin, end):
        found = _meet_alike(user, graph, of_item, met, products)
        out.users[user, 0] = user
        kept = 1
        for number in range(found):
            other = met[number]
            cosine = products[other] / (lengths[user] * lengths[other])
            products[other] = 0.0
            if other != user and (kept < out.users.shape[1] or cosine >= out.cosines[user, kept - 1]):
                kept = _insert(other, cosine, out.users[user], out.cosines[user], kept)
        for place in range(kept):
            out.weights[user, place] = _shared_weight(user, out.users[user, place], graph)
        out.users[user, kept:] = -1


@compiled(nogil=True)
def _meet_alike(
    user: int,
    graph: BipartiteGraph,
    of_item: NDArray[np.float64],
    met: NDArray[np.int32],
    products: NDArray[np.float64],
) -> int:
    """List everyone who shares an item with a user, with their dot product; return how many they are."""
    found = 0
    for place in range(graph.item_starts[user], graph.item_starts[user + 1]):
        item = graph.items[place]
        for position in range(graph.user_starts[item], graph.user_starts[item + 1]):
            other = graph.users[position]
            if products[other] == 0.0:
                met[found] = other
                found += 1
            products[other] += of_item[item]
    return found


@compiled(nogil=True)
def _insert(other: int, cosine: float, users: NDArray[np.int32], cosines: NDArray[np.float64], kept: int) -> int:
    """Insert a user into a short sorted list, dropping the last if it is full; return its length."""
    place = kept
    while place > 1 and (cosines[place - 1] < cosine or (cosines[place - 1] == cosine and users[place - 1] > other)):
        place -= 1
    if place == len(users):
        return kept
    kept = min(kept + 1, len(users))
    for later in range(kept - 1, place, -1):
        users[later] = users[later - 1]
        cosines[later] = cosines[later - 1]
    users[place] = other
    cosines[place] = cosine
    return kept


@compiled(nogil=True)
def _shared_weight(user: int, other: int, graph: BipartiteGraph) -> float:
    """Return w: the other's mean weight over the items that both have (at least one)."""
    left, right = graph.item_starts[user], graph.item_starts[other]
    total, count = 0.0, 0
    while left < graph.item_starts[user + 1] and right < graph.item_starts[other + 1]:
        if graph.items[left] == graph.items[right]:
            total += graph.item_weights[right]
            count += 1
            left += 1
            right += 1
        elif graph.items[left] < graph.items[right]:
            left += 1
        else:
            right += 1
    return total / count


class Hypergraph(NamedTuple):
    """Hyperedges with their members, and vertices with the hyperedges that contain them.

    Hyperedge e has the members `members[starts[e]:starts[e + 1]]`; `weight_sums` is the running sum of their weights.
    Vertex v is in `holders[holder_starts[v]:holder_starts[v + 1]]`; `size_sums` is the running sum of their sizes.
    """

    starts: NDArray[np.int64]
    members: NDArray[np.int32]
    weight_sums: NDArray[np.float64]
    holder_starts: NDArray[np.int64]
    holders: NDArray[np.int32]
    size_sums: NDArray[np.int64]


def reachable_hypergraph(graph: BipartiteGraph, reach: int, threads: int, advance: Advance = ignore) -> Hypergraph:
    """Build the hypergraph whose hyperedges hold everyone joined to a user by a path of fewer than `reach` vertices.

    A path of 3 vertices is two users with an item between them, and each further user takes two vertices more.
    """
    users, hops = graph.user_count, reach // 2 - 1
    if hops > 1 and users * len(graph.items) > MOST_STEPS:
        small = f" is for small data, not for {users:,} users: give "
        raise Refused(option("reach", reach), small, option("reach", 4))
    sizes = np.empty(users, np.int64)
    over_ranges(lambda begin, end: measure_hyperedges(begin, end, graph, hops, sizes), users, threads, advance)
    pairs = int(sizes.sum())
    if pairs > MOST_PAIRS:
        raise Refused(
            option("reach", reach),
            f" joins {pairs:,} pairs of users, more than fit: give ",
            option("reach", 4),
            ", or another ",
            option("grouping"),
        )
    edges = Hyperedges(starts_of(sizes), np.empty(pairs, np.int32), np.empty(pairs), np.empty(pairs, np.int64))
    over_ranges(lambda begin, end: collect_hyperedges(begin, end, graph, hops, edges), users, threads, advance)
    # Reachability is symmetric, so the hyperedges that contain a user are those of the user's own members.
    return Hypergraph(
        starts=edges.starts,
        members=edges.members,
        weight_sums=edges.weight_sums,
        holder_starts=edges.starts,
        holders=edges.members,
        size_sums=edges.size_sums,
    )


def nearest_hypergraph(graph: BipartiteGraph, threads: int, advance: Advance = ignore) -> Hypergraph:
    """Build the hypergraph whose hyperedges hold a user and their nearest by idf-weighted cosine of item sets."""
    users = graph.user_count
    rarity = np.square(np.log1p(users / np.maximum(np.diff(graph.user_starts), 1)))
    shares = rarity, np.sqrt(np.add.reduceat(rarity[graph.items], graph.item_starts[:-1]))
    shape = users, NEAREST + 1
    nearest = Nearest(np.empty(shape, np.int32), np.empty(shape), np.zeros(shape))
    over_ranges(lambda begin, end: collect_nearest(begin, end, graph, shares, nearest), users, threads, advance)
    held = nearest.users >= 0
    sizes, members = held.sum(axis=1), nearest.users[held]
    holders = np.repeat(np.arange(users, dtype=np.int32), sizes)[np.argsort(members, kind="stable")]
    holder_starts = starts_of(np.bincount(members, minlength=users))
    return Hypergraph(
        starts=starts_of(sizes),
        members=members,
        weight_sums=np.cumsum(nearest.weights, axis=1)[held],
        holder_starts=holder_starts,
        holders=holders,
        size_sums=_running_sizes(holder_starts, holders, sizes),
    )


def _running_sizes(
    starts: NDArray[np.int64], holders: NDArray[np.int32], sizes: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the running sum of hyperedge sizes, restarted for each vertex."""
    running = np.cumsum(sizes[holders])
    before = np.concatenate([[0], running])[starts[:-1]]
    running -= np.repeat(before, np.diff(starts))
    return running
