from contextlib import contextmanager

import numpy as np
import pytest

from erasable.data import RatingScale
from erasable.errors import Refused
from erasable.grouping import GroupingEffort, GroupingSettings
from erasable.grouping.groups import user_space
from erasable.grouping.points import ALONE, bipartite_graph, most_pairs, vector_points
from erasable.paper import _hypergraph as hypergraph_module
from erasable.paper import _walks as module
from erasable.paper._hypergraph import nearest_hypergraph, reachable_hypergraph
from erasable.paper._skip_gram import SIZE, gensim_vectors, user_vectors
from erasable.paper._walks import walk_hypergraph, walk_keys, walk_unbuilt
from erasable.progress import Silent

SEED = 5


@pytest.fixture(scope="module")
def rows(tables):
    """Users along a chain of items, so that order 4, order 6 and the nearest give three different hypergraphs."""
    likings = {
        f"u{user:02d}": {f"i{user + near:02d}": 1 + (user + near) % 5 for near in range(3)} for user in range(20)
    }
    return tables.table(likings)


@pytest.fixture(scope="module")
def graph(rows):
    return bipartite_graph(rows, RatingScale(1, 5))


@pytest.fixture(scope="module")
def keys(rows):
    return walk_keys(SEED, rows.users)


def space_of(rows, graph, effort=ALONE, **settings):
    return user_space(graph, rows.users, GroupingSettings(**settings), SEED, effort)


def points_of(rows, walks):
    return vector_points(user_vectors(walks, rows.users, SEED))


def same(one, other):
    return one.width == other.width and all(
        np.array_equal(left, right) for left, right in zip(one[:4], other[:4], strict=True)
    )


class Listener(Silent):
    """Writes down notes, and what is followed: its label, the size announced, and what was then done of it."""

    def __init__(self):
        self.parts, self.notes = [], []

    def note(self, text):
        self.notes.append(text)

    @contextmanager
    def track(self, label, total=None):
        told = []
        yield told.append
        self.parts.append((label, total, sum(told)))


@pytest.mark.parametrize("grouping", ["cbkm", "clpa", "cgmm"])
def test_vectors_come_from_walks_on_the_paper_s_hypergraph(rows, graph, keys, grouping):
    space = space_of(rows, graph, grouping=grouping)
    assert same(space, points_of(rows, walk_hypergraph(reachable_hypergraph(graph, 4, 1), keys, 1)))
    assert (space.size, space.width) == (graph.user_count, SIZE)


def test_gensim_learns_from_the_same_walks(rows, graph, keys):
    walks = walk_hypergraph(reachable_hypergraph(graph, 4, 1), keys, 1)
    expected = vector_points(gensim_vectors(walks, graph.user_count, SEED))
    assert same(space_of(rows, graph, grouping="cbkm", vectors="gensim"), expected)


@pytest.mark.parametrize("reach", [6, 8])
def test_a_longer_reach_walks_on_a_larger_hypergraph(rows, graph, keys, reach):
    expected = points_of(rows, walk_hypergraph(reachable_hypergraph(graph, reach, 1), keys, 1))
    assert same(space_of(rows, graph, grouping="cbkm", reach=reach), expected)
    assert not same(expected, space_of(rows, graph, grouping="cbkm"))


def test_cbkm_near_walks_among_the_nearest(rows, graph, keys, monkeypatch):
    monkeypatch.setattr(hypergraph_module, "NEAREST", 2)
    space = space_of(rows, graph, grouping="cbkm-near")
    assert same(space, points_of(rows, walk_hypergraph(nearest_hypergraph(graph, 1), keys, 1)))
    assert not same(space, space_of(rows, graph, grouping="cbkm"))


@pytest.mark.parametrize("grouping", ["cbkm", "clpa", "cgmm"])
def test_a_hypergraph_too_large_to_build_is_walked_unbuilt(rows, graph, keys, monkeypatch, grouping):
    unbuilt = points_of(rows, walk_unbuilt(graph, keys, 1))
    assert not same(space_of(rows, graph, grouping=grouping), unbuilt)
    monkeypatch.setattr(module, "MOST_PAIRS", most_pairs(graph) - 1)
    assert same(space_of(rows, graph, grouping=grouping), unbuilt)


def test_a_hypergraph_that_just_fits_is_built(rows, graph, keys, monkeypatch):
    monkeypatch.setattr(module, "MOST_PAIRS", most_pairs(graph))
    built = points_of(rows, walk_hypergraph(reachable_hypergraph(graph, 4, 1), keys, 1))
    assert same(space_of(rows, graph, grouping="cbkm"), built)


@pytest.mark.parametrize("reach", [6, 8])
def test_a_longer_reach_is_refused_where_the_hypergraph_is_too_large(rows, graph, monkeypatch, reach):
    for holder in (module, hypergraph_module):
        monkeypatch.setattr(holder, "MOST_PAIRS", 30)
    with pytest.raises(Refused, match=f"reach={reach} joins .* give reach=4, or another grouping"):
        space_of(rows, graph, grouping="cbkm", reach=reach)
    # The remedies that the message names.
    assert space_of(rows, graph, grouping="cbkm", reach=4).size == 20
    assert space_of(rows, graph, grouping="cbkm-near", reach=reach).size == 20


@pytest.mark.parametrize("grouping", ["cbkm", "cbkm-near", "unbuilt"])
def test_threads_change_no_byte(rows, graph, monkeypatch, grouping):
    if grouping == "unbuilt":
        monkeypatch.setattr(module, "MOST_PAIRS", 0)
        grouping = "cbkm"
    alone, two, five = (space_of(rows, graph, GroupingEffort(threads), grouping=grouping) for threads in (1, 2, 5))
    assert alone.values.tobytes() == two.values.tobytes() == five.values.tobytes()


def test_the_space_follows_the_seed(rows, graph):
    spaces = [user_space(graph, rows.users, GroupingSettings(grouping="cbkm"), seed, ALONE) for seed in (1, 1, 2)]
    assert same(spaces[0], spaces[1])
    assert not same(spaces[0], spaces[2])


@pytest.mark.parametrize(
    ("grouping", "most", "labels"),
    [
        ("cbkm", 10**6, ["hypergraph", "user vectors"]),
        ("cbkm", 0, ["walks", "user vectors"]),
        ("cbkm-near", 10**6, ["hypergraph of the nearest", "user vectors"]),
        ("bkm", 10**6, []),
    ],
    ids=["built", "unbuilt", "nearest", "rating rows"],
)
def test_all_of_the_work_announced_is_done(rows, graph, monkeypatch, grouping, most, labels):
    monkeypatch.setattr(module, "MOST_PAIRS", most)
    listener = Listener()
    space_of(rows, graph, GroupingEffort(2, listener), grouping=grouping)
    assert [label for label, _, _ in listener.parts] == labels
    assert all(done == announced for _, announced, done in listener.parts)


@pytest.mark.parametrize(("long", "notes"), [(-1.0, 1), (10.0, 0)])
def test_walking_for_hours_is_said_beforehand(rows, graph, monkeypatch, long, notes):
    monkeypatch.setattr(module, "MOST_PAIRS", 0)
    monkeypatch.setattr(module, "_LONG", long)
    listener = Listener()
    space_of(rows, graph, GroupingEffort(1, listener), grouping="cbkm")
    assert len(listener.notes) == notes
    assert all("grouping='cbkm-near' or random is quicker" in text for text in listener.notes)
