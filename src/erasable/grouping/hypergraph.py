"""The paper's hypergraph (Appendix A): every user is a vertex and has a hyperedge of users around them.

Built whole here; `unbuilt_walks` walks the same hypergraph where it is too large to be built.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from erasable.errors import Refused, option
from erasable.grouping.bipartite import BipartiteGraph, starts_of
from erasable.grouping.hypergraph_kernel import Hyperedges, collect_hyperedges, measure_hyperedges
from erasable.grouping.nearest_kernel import Nearest, collect_nearest
from erasable.grouping.parallel import Advance, ignore, over_ranges

NEAREST = 50
MOST_PAIRS = 200_000_000
"""How many (hyperedge, member) pairs are built, of 20 bytes each; a larger hypergraph is walked without building it."""


MOST_STEPS = 10**11
"""How many steps looking further than order 4 may take; each user's search goes through all interactions."""


class Hypergraph(NamedTuple):
    """Hyperedges with their members, and the other way round: vertices with the hyperedges that hold them.

    Hyperedge e has the members `members[starts[e]:starts[e + 1]]`; `weight_sums` is the running sum of their weights.
    Vertex v is held by `holders[holder_starts[v]:holder_starts[v + 1]]`; `size_sums` is the running sum of their sizes.
    """

    starts: NDArray[np.int64]
    members: NDArray[np.int32]
    weight_sums: NDArray[np.float64]
    holder_starts: NDArray[np.int64]
    holders: NDArray[np.int32]
    size_sums: NDArray[np.int64]


def most_pairs(graph: BipartiteGraph) -> int:
    """Return a bound on the pairs of the hypergraph of order 4, without looking at who meets whom."""
    encounters = np.add.reduceat(np.diff(graph.user_starts)[graph.items], graph.item_starts[:-1])
    return int(np.minimum(encounters, graph.user_count).sum())


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
    # Reaching someone is mutual, so the hyperedges that hold a user are those of the members of the user's own.
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
    """Return the running sum of hyperedge sizes that begins anew for each vertex."""
    running = np.cumsum(sizes[holders])
    before = np.concatenate([[0], running])[starts[:-1]]
    running -= np.repeat(before, np.diff(starts))
    return running
