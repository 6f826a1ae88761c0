"""The paper's random walk (Algorithm 3) on a hypergraph that is built: from vertex to hyperedge to vertex."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from erasable.grouping.hypergraph import Hypergraph
from erasable.grouping.parallel import over_ranges
from erasable.grouping.walk_draws import first_above, fraction
from erasable.seeding import id_keys, mix
from erasable.seeding.compiled import compiled

REPETITIONS = 4
DEPTH = 8

Walks = NDArray[np.int32]
"""A row for each walk: the user it starts from, then one user for each step; the walks of a user lie together."""


def walk_keys(seed: int, users: Iterable[str]) -> NDArray[np.uint64]:
    """Return the key of each (user, repetition), which nobody else's presence changes."""
    own = id_keys(seed, "walk", users)
    return mix(own[:, None], np.arange(REPETITIONS, dtype=np.uint64)[None, :])


def walk_hypergraph(hypergraph: Hypergraph, keys: NDArray[np.uint64], threads: int) -> Walks:
    """Walk from each user, once for each of the user's keys."""
    users, repetitions = keys.shape
    walks = np.empty((users * repetitions, DEPTH + 1), np.int32)
    over_ranges(lambda begin, end: _walk(begin, end, hypergraph, keys, walks), users, threads)
    return walks


@compiled(nogil=True)
def _walk(begin: int, end: int, hypergraph: Hypergraph, keys: NDArray[np.uint64], walks: Walks) -> None:
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
    """Choose a hyperedge that holds the vertex in proportion to its size, then a member in proportion to its weight."""
    begin, end = hypergraph.holder_starts[vertex], hypergraph.holder_starts[vertex + 1]
    sizes = hypergraph.size_sums[begin:end]
    edge = hypergraph.holders[begin + first_above(sizes, edge_draw * sizes[-1])]
    begin, end = hypergraph.starts[edge], hypergraph.starts[edge + 1]
    weights = hypergraph.weight_sums[begin:end]
    return hypergraph.members[begin + first_above(weights, vertex_draw * weights[-1])]
