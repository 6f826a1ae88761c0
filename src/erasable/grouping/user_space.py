"""The space in which users are compared: vectors from walks on a hypergraph (Algorithm 1), or their rating rows."""

from collections.abc import Iterable

from erasable.errors import option, said
from erasable.grouping.bipartite import BipartiteGraph
from erasable.grouping.hypergraph import MOST_PAIRS, most_pairs, nearest_hypergraph, reachable_hypergraph
from erasable.grouping.parallel import GroupingEffort
from erasable.grouping.points import Points, rating_rows, vector_points
from erasable.grouping.settings import BY_VECTORS, GroupingSettings
from erasable.grouping.unbuilt_walks import hours_of_walking, walk_unbuilt
from erasable.grouping.user_vectors import SENTENCE_READINGS, user_vectors
from erasable.grouping.walks import Walks, walk_hypergraph, walk_keys

SMALLEST_REACH = 4
_LONG = 0.5
"""Hours of walking that are worth a word."""


def user_space(
    graph: BipartiteGraph, users: Iterable[str], settings: GroupingSettings, seed: int, effort: GroupingEffort
) -> Points:
    """Return users as points of the space that a grouping compares them in; walks and vectors are kept nowhere."""
    if settings.grouping not in BY_VECTORS:
        return rating_rows(graph)
    walks = _walks(graph, users, settings, seed, effort)
    with effort.track("user vectors", len(walks) * SENTENCE_READINGS) as advance:
        return vector_points(user_vectors(walks, graph.user_count, seed, advance))


def _walks(
    graph: BipartiteGraph, users: Iterable[str], settings: GroupingSettings, seed: int, effort: GroupingEffort
) -> Walks:
    keys = walk_keys(seed, users)
    if settings.grouping == "cbkm-near":
        with effort.track("hypergraph of the nearest", graph.user_count) as advance:
            hypergraph = nearest_hypergraph(graph, effort.threads, advance)
        return walk_hypergraph(hypergraph, keys, effort.threads)
    if settings.reach == SMALLEST_REACH and most_pairs(graph) > MOST_PAIRS:
        hours = hours_of_walking(graph, keys) / effort.threads
        if hours > _LONG:
            quicker = option("grouping", "cbkm-near")
            effort.note(said(f"walking takes about {hours:.1f} hours here: ", quicker, " or random is quicker"))
        with effort.track("walks", graph.user_count) as advance:
            return walk_unbuilt(graph, keys, effort.threads, advance)
    with effort.track("hypergraph", 2 * graph.user_count) as advance:
        hypergraph = reachable_hypergraph(graph, settings.reach, effort.threads, advance)
    return walk_hypergraph(hypergraph, keys, effort.threads)
