"""User vectors (Algorithm 1, Appendix A): random walks as sentences, embedded by gensim's skip-gram."""

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from erasable.errors import option, said
from erasable.grouping.points import MOST_PAIRS, BipartiteGraph, GroupingEffort, Points, most_pairs, vector_points
from erasable.grouping.registry import GroupingSettings
from erasable.paper._hypergraph import nearest_hypergraph, reachable_hypergraph
from erasable.paper._walks import Walks, hours_of_walking, walk_hypergraph, walk_keys, walk_unbuilt
from erasable.progress import Advance, ignore
from erasable.seeding import child_key
from erasable.wording import duration

SIZE = 32
WINDOW = 5
EPOCHS = 5
NEGATIVES = 5
SENTENCE_READINGS = EPOCHS + 1
"""How often gensim reads the walks: once for the vocabulary, then once for each epoch."""
_WALKS_AT_ONCE = 10_000
SMALLEST_REACH = 4
_LONG = 0.5
"""Above so many hours of walking a note is shown."""


def user_vectors(walks: Walks, users: int, seed: int, advance: Advance = ignore) -> NDArray[np.float32]:
    """Return a vector for each user; with one worker, so that the bytes repeat."""
    from gensim.models import Word2Vec

    model = Word2Vec(
        sentences=_Sentences(walks, advance),
        vector_size=SIZE,
        window=WINDOW,
        epochs=EPOCHS,
        negative=NEGATIVES,
        sg=1,
        min_count=1,
        sample=0,
        workers=1,
        seed=child_key(seed, "user vectors") % 2**31,
    )
    places = [model.wv.key_to_index[user] for user in range(users)]
    return np.ascontiguousarray(model.wv.vectors[places])


class _Sentences:
    """Walks as lists of user numbers; can be iterated several times."""

    def __init__(self, walks: Walks, advance: Advance) -> None:
        self._walks = walks
        self._advance = advance

    def __iter__(self) -> Iterator[list[int]]:
        for begin in range(0, len(self._walks), _WALKS_AT_ONCE):
            part = self._walks[begin : begin + _WALKS_AT_ONCE]
            yield from part.tolist()
            self._advance(len(part))


def vector_space(
    graph: BipartiteGraph, users: Iterable[str], settings: GroupingSettings, seed: int, effort: GroupingEffort
) -> Points:
    """Return users as points whose vectors are learned from walks; neither is stored."""
    walks = _walks(graph, users, settings, seed, effort)
    with effort.reporter.track("user vectors", len(walks) * SENTENCE_READINGS) as advance:
        return vector_points(user_vectors(walks, graph.user_count, seed, advance))


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
