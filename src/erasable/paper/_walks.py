"""The paper's random walk (Algorithm 3) with or without building the hypergraph, and users as points by their walks.

Without building it, rejection sampling gives exactly the same distribution on the hypergraph of order 4.
From a vertex v the walker goes over an item of v to a user i, and over an item of i to a user j, each chosen so that
(v, i, j) is proposed once for every pair of items that joins them. Accepting with 1 / (items v and i share × items i
and j share) leaves each (v, i, j) with equal chance, so hyperedge i is chosen in proportion to its number of members.
From hyperedge i a member j is proposed once for each shared item, in proportion to j's weight of that item; accepting
with 1 / (items i and j share) leaves the mean of those weights, which is w(i, j).
"""

import time
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from erasable.errors import option, said
from erasable.grouping.points import (
    MOST_PAIRS,
    BipartiteGraph,
    GroupingEffort,
    Points,
    most_pairs,
    over_ranges,
    vector_points,
)
from erasable.grouping.registry import GroupingSettings
from erasable.paper._hypergraph import Hypergraph, nearest_hypergraph, reachable_hypergraph
from erasable.paper._skip_gram import EPOCHS, GENSIM_READINGS, Walks, gensim_vectors, user_vectors
from erasable.progress import Advance, ignore
from erasable.seeding import id_keys, mix
from erasable.seeding.compiled import compiled, draw
from erasable.wording import duration

REPETITIONS = 4
DEPTH = 8
_TRIED_USERS = 32


@compiled(nogil=True)
def fraction(key: np.uint64, counter: int) -> float:
    """Return draw number `counter` under a key as a fraction in [0, 1)."""
    return np.float64(draw(key, np.uint64(counter)) >> np.uint64(11)) * 2.0**-53


@compiled(nogil=True)
def first_above(sums: NDArray[Any], target: float) -> int:
    """Return the first place where an ascending running sum exceeds a target; the last one if none does."""
    low, high = 0, len(sums) - 1
    while low < high:
        middle = (low + high) >> 1
        if sums[middle] > target:
            high = middle
        else:
            low = middle + 1
    return low


def walk_keys(seed: int, users: Iterable[str]) -> NDArray[np.uint64]:
    """Return the key of each (user, repetition); it does not depend on other users."""
    own = id_keys(seed, "walk", users)
    return mix(own[:, None], np.arange(REPETITIONS, dtype=np.uint64)[None, :])


def walk_hypergraph(hypergraph: Hypergraph, keys: NDArray[np.uint64], threads: int) -> Walks:
    """Walk from each user, once for each of the user's keys."""
    users, repetitions = keys.shape
    walks = np.empty((users * repetitions, DEPTH + 1), np.int32)
    over_ranges(lambda begin, end: _walk_built(begin, end, hypergraph, keys, walks), users, threads)
    return walks


@compiled(nogil=True)
def _walk_built(begin: int, end: int, hypergraph: Hypergraph, keys: NDArray[np.uint64], walks: Walks) -> None:
    for user in range(begin, end):
        for repetition in range(keys.shape[1]):
            walk = walks[user * keys.shape[1] + repetition]
            walk[0] = user
            for step in range(len(walk) - 1):
                edge_draw = fraction(keys[user, repetition], 2 * step)
                vertex_draw = fraction(keys[user, repetition], 2 * step + 1)
                walk[step + 1] = _next_vertex(hypergraph, walk[step], edge_draw, vertex_draw)


@compiled(nogil=True)
def _next_vertex(hypergraph: Hypergraph, vertex: int, edge_draw: float, vertex_draw: float) -> int:
    """Choose a hyperedge of the vertex in proportion to its size, then a member in proportion to its weight."""
    begin, end = hypergraph.holder_starts[vertex], hypergraph.holder_starts[vertex + 1]
    sizes = hypergraph.size_sums[begin:end]
    edge = hypergraph.holders[begin + first_above(sizes, edge_draw * sizes[-1])]
    begin, end = hypergraph.starts[edge], hypergraph.starts[edge + 1]
    weights = hypergraph.weight_sums[begin:end]
    return hypergraph.members[begin + first_above(weights, vertex_draw * weights[-1])]


class _Ways(NamedTuple):
    """Running sums along the rows of the graph, by which items and users are proposed."""

    items_onward: NDArray[np.float64]  # along a user's items: ways over the item and on to anyone
    users_onward: NDArray[np.float64]  # along an item's users: ways from that user on to anyone
    items_direct: NDArray[np.float64]  # along a user's items: users of the item
    items_weighted: NDArray[np.float64]  # along a user's items: summed weight of the item's users
    users_weighted: NDArray[np.float64]  # along an item's users: their weight


def walk_unbuilt(graph: BipartiteGraph, keys: NDArray[np.uint64], threads: int, advance: Advance = ignore) -> Walks:
    """Walk from each user, once for each of the user's keys."""
    users, repetitions = keys.shape
    walks = np.empty((users * repetitions, DEPTH + 1), np.int32)
    ways = _count_ways(graph)
    over_ranges(lambda begin, end: _walk_exactly(begin, end, graph, ways, keys, walks), users, threads, advance)
    return walks


def hours_of_walking(graph: BipartiteGraph, keys: NDArray[np.uint64]) -> float:
    """Estimate the hours on one thread from a few users: rejections grow with the items that two users share."""
    users, repetitions = keys.shape
    walks = np.empty((users * repetitions, DEPTH + 1), np.int32)
    ways = _count_ways(graph)
    tried = np.linspace(0, users - 1, min(users, _TRIED_USERS), dtype=np.int64)
    _walk_exactly(0, 0, graph, ways, keys, walks)  # compiles it, if necessary
    began = time.perf_counter()
    for user in tried.tolist():
        _walk_exactly(user, user + 1, graph, ways, keys, walks)
    return (time.perf_counter() - began) / len(tried) * users / 3600


def _count_ways(graph: BipartiteGraph) -> _Ways:
    users_of_item = np.diff(graph.user_starts).astype(np.float64)
    weight_of_item = _row_sums(graph.user_weights, graph.user_starts)
    from_user = _row_sums(users_of_item[graph.items], graph.item_starts)
    over_item = _row_sums(from_user[graph.users], graph.user_starts)
    return _Ways(
        items_onward=_running(over_item[graph.items], graph.item_starts),
        users_onward=_running(from_user[graph.users], graph.user_starts),
        items_direct=_running(users_of_item[graph.items], graph.item_starts),
        items_weighted=_running(weight_of_item[graph.items], graph.item_starts),
        users_weighted=_running(graph.user_weights, graph.user_starts),
    )


@compiled(nogil=True)
def _running(values: NDArray[np.float64], starts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the running sum, restarted in each row."""
    sums = np.empty(len(values))
    for row in range(len(starts) - 1):
        total = 0.0
        for place in range(starts[row], starts[row + 1]):
            total += values[place]
            sums[place] = total
    return sums


@compiled(nogil=True)
def _row_sums(values: NDArray[np.float64], starts: NDArray[np.int64]) -> NDArray[np.float64]:
    sums = np.zeros(len(starts) - 1)
    for row in range(len(starts) - 1):
        for place in range(starts[row], starts[row + 1]):
            sums[row] += values[place]
    return sums


@compiled(nogil=True)
def _walk_exactly(
    begin: int, end: int, graph: BipartiteGraph, ways: _Ways, keys: NDArray[np.uint64], walks: Walks
) -> None:
    for user in range(begin, end):
        for repetition in range(keys.shape[1]):
            key, counter = keys[user, repetition], 0
            walk = walks[user * keys.shape[1] + repetition]
            walk[0] = user
            for step in range(len(walk) - 1):
                edge, counter = _choose_edge(walk[step], graph, ways, key, counter)
                walk[step + 1], counter = _choose_member(edge, graph, ways, key, counter)


@compiled(nogil=True)
def _choose_edge(vertex: int, graph: BipartiteGraph, ways: _Ways, key: np.uint64, counter: int) -> tuple[int, int]:
    """Return a hyperedge of the vertex, in proportion to its size, and the number of the next draw."""
    while True:
        item = graph.items[_pick(vertex, graph.item_starts, ways.items_onward, fraction(key, counter))]
        edge = graph.users[_pick(item, graph.user_starts, ways.users_onward, fraction(key, counter + 1))]
        item = graph.items[_pick(edge, graph.item_starts, ways.items_direct, fraction(key, counter + 2))]
        begin, end = graph.user_starts[item], graph.user_starts[item + 1]
        member = graph.users[begin + int(fraction(key, counter + 3) * (end - begin))]
        joined = _shared_items(vertex, edge, graph) * _shared_items(edge, member, graph)
        counter += 5
        if fraction(key, counter - 1) * joined < 1.0:
            return edge, counter


@compiled(nogil=True)
def _choose_member(edge: int, graph: BipartiteGraph, ways: _Ways, key: np.uint64, counter: int) -> tuple[int, int]:
    """Return a member of a hyperedge, in proportion to its weight there, and the number of the next draw."""
    while True:
        item = graph.items[_pick(edge, graph.item_starts, ways.items_weighted, fraction(key, counter))]
        member = graph.users[_pick(item, graph.user_starts, ways.users_weighted, fraction(key, counter + 1))]
        counter += 3
        if fraction(key, counter - 1) * _shared_items(edge, member, graph) < 1.0:
            return member, counter


@compiled(nogil=True)
def _pick(row: int, starts: NDArray[np.int64], sums: NDArray[np.float64], drawn: float) -> int:
    """Return a place in a row, in proportion to what it adds to the running sum."""
    begin, end = starts[row], starts[row + 1]
    return begin + first_above(sums[begin:end], drawn * sums[end - 1])


@compiled(nogil=True)
def _shared_items(one: int, other: int, graph: BipartiteGraph) -> int:
    left, right, count = graph.item_starts[one], graph.item_starts[other], 0
    while left < graph.item_starts[one + 1] and right < graph.item_starts[other + 1]:
        if graph.items[left] == graph.items[right]:
            count += 1
            left += 1
            right += 1
        elif graph.items[left] < graph.items[right]:
            left += 1
        else:
            right += 1
    return count


SMALLEST_REACH = 4
_LONG = 0.5
"""Above so many hours of walking a note is shown."""


def vector_space(
    graph: BipartiteGraph, users: Iterable[str], settings: GroupingSettings, seed: int, effort: GroupingEffort
) -> Points:
    """Return users as points whose vectors are learned from walks; neither is stored."""
    walks = _walks(graph, users, settings, seed, effort)
    by_gensim = settings.vectors == "gensim"
    readings = GENSIM_READINGS if by_gensim else EPOCHS
    with effort.reporter.track("user vectors", len(walks) * readings) as advance:
        if by_gensim:
            return vector_points(gensim_vectors(walks, graph.user_count, seed, advance))
        return vector_points(user_vectors(walks, users, seed, advance))


def _walks(
    graph: BipartiteGraph, users: Iterable[str], settings: GroupingSettings, seed: int, effort: GroupingEffort
) -> Walks:
    keys = walk_keys(seed, users)
    if settings.grouping == "cbkm-near":
        with effort.reporter.track("hypergraph of the nearest", graph.user_count) as advance:
            hypergraph = nearest_hypergraph(graph, effort.threads, advance)
        return walk_hypergraph(hypergraph, keys, effort.threads)
    if settings.reach == SMALLEST_REACH and most_pairs(graph) > MOST_PAIRS:
        hours = hours_of_walking(graph, keys) / effort.threads
        if hours > _LONG:
            quicker = option("grouping", "cbkm-near")
            takes = f"walking takes about {duration(3600 * hours)} here: "
            effort.reporter.note(said(takes, quicker, " or random is quicker"))
        with effort.reporter.track("walks", graph.user_count) as advance:
            return walk_unbuilt(graph, keys, effort.threads, advance)
    with effort.reporter.track("hypergraph", 2 * graph.user_count) as advance:
        hypergraph = reachable_hypergraph(graph, settings.reach, effort.threads, advance)
    return walk_hypergraph(hypergraph, keys, effort.threads)
