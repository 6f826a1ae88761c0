"""Compiled code that finds the members of hyperedges; `hypergraph` says what they mean.

Hyperedges are found one at a time with scratch arrays that are clean before and after, so users may be shared out to
threads in any way.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from erasable.grouping.bipartite import BipartiteGraph
from erasable.seeding.compiled import compiled


class Hyperedges(NamedTuple):
    """Room for hyperedges, one for each user: where each begins, its members, and running sums over them."""

    starts: NDArray[np.int64]
    members: NDArray[np.int32]
    weight_sums: NDArray[np.float64]  # of the members' weights
    size_sums: NDArray[np.int64]  # of the sizes of the members' own hyperedges


class _Scratch(NamedTuple):
    """What is known of everyone while one hyperedge is looked for."""

    met: NDArray[np.int32]  # those found so far
    listed: NDArray[np.bool_]  # whether someone is among them
    shared: NDArray[np.float64]  # how many items someone shares with the user, and the sum of their weights
    opened: NDArray[np.int32]  # the last user whose hyperedge an item's users were listed for


@compiled(nogil=True)
def _make_scratch(graph: BipartiteGraph) -> _Scratch:
    users, items = len(graph.item_starts) - 1, len(graph.user_starts) - 1
    return _Scratch(
        np.empty(users, np.int32), np.zeros(users, np.bool_), np.zeros((users, 2)), np.full(items, -1, np.int32)
    )


@compiled(nogil=True)
def _meet(user: int, graph: BipartiteGraph, scratch: _Scratch) -> int:
    """List everyone who shares an item with a user, the user among them."""
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
