from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from erasable.data import RatingScale
from erasable.errors import Refused
from erasable.grouping.points import bipartite_graph, most_pairs
from erasable.paper import _hypergraph as module
from erasable.paper._hypergraph import nearest_hypergraph, reachable_hypergraph

# A chain of users, each joined to the next by one item, and one who meets nobody.
CHAIN = {"u0": {"a": 1}, "u1": {"a": 5, "b": 3}, "u2": {"b": 4, "c": 2}, "u3": {"c": 1}, "u4": {"z": 2}}

tastes = st.lists(
    st.dictionaries(st.integers(0, 9), st.integers(1, 5), min_size=1, max_size=3), min_size=1, max_size=12
)


@pytest.fixture(scope="module")
def graph_of(tables):
    def build(rows, low=1):
        return bipartite_graph(tables.table(rows), RatingScale(low, 5))

    return build


def rows_of(likings):
    return {f"u{user:02d}": {f"i{item}": rating for item, rating in has.items()} for user, has in enumerate(likings)}


def by_row(starts, *columns):
    """Read columns as one {first: rest} for each row; nobody may stand in a row twice."""
    rows = []
    for begin, end in pairwise(starts.tolist()):
        cells = list(zip(*(column[begin:end].tolist() for column in columns), strict=True))
        rows.append({first: rest for first, *rest in cells})
        assert len(rows[-1]) == end - begin
    return rows


def members_of(hypergraph):
    """Return who is in each hyperedge."""
    return [set(row) for row in by_row(hypergraph.starts, hypergraph.members)]


def weights_of(hypergraph):
    """Return each hyperedge as {member: weight}."""
    rows = by_row(hypergraph.starts, hypergraph.members, hypergraph.weight_sums)
    return [dict(zip(row, np.diff([0, *(total for (total,) in row.values())]).tolist(), strict=True)) for row in rows]


def reached(likings, user, hops):
    """Return who is joined to a user by this many shared items, one after another."""
    found = {user}
    for _ in range(hops):
        found = {other for other, has in enumerate(likings) if any(has.keys() & likings[one].keys() for one in found)}
    return found


def mean_weight(likings, user, other):
    """Return w on a scale from 1: the other's mean rating of the shared items, or of all if there are none."""
    items = likings[user].keys() & likings[other].keys() or likings[other].keys()
    return sum(likings[other][item] for item in items) / len(items)


def check_holders(hypergraph):
    """See that vertices know the hyperedges that hold them, and the running sum of their sizes."""
    members = members_of(hypergraph)
    holders = by_row(hypergraph.holder_starts, hypergraph.holders, hypergraph.size_sums)
    assert len(holders) == len(members)
    for vertex, held_by in enumerate(holders):
        assert set(held_by) == {edge for edge, inside in enumerate(members) if vertex in inside}
        assert [total for (total,) in held_by.values()] == np.cumsum([len(members[edge]) for edge in held_by]).tolist()


@pytest.mark.parametrize(
    ("reach", "members"),
    [
        (4, [{0, 1}, {0, 1, 2}, {1, 2, 3}, {2, 3}, {4}]),
        (6, [{0, 1, 2}, {0, 1, 2, 3}, {0, 1, 2, 3}, {1, 2, 3}, {4}]),
        (8, [{0, 1, 2, 3}] * 4 + [{4}]),
        (10, [{0, 1, 2, 3}] * 4 + [{4}]),
    ],
)
def test_a_hyperedge_holds_who_is_joined_by_a_path_of_fewer_vertices(graph_of, reach, members):
    assert members_of(reachable_hypergraph(graph_of(CHAIN), reach, threads=1)) == members


def test_a_weight_is_the_mean_over_the_shared_items(graph_of):
    weights = weights_of(reachable_hypergraph(graph_of(CHAIN), 4, threads=1))
    assert weights == [{0: 1, 1: 5}, {0: 1, 1: 4, 2: 4}, {1: 3, 2: 3, 3: 1}, {2: 2, 3: 1}, {4: 2}]


def test_without_a_shared_item_the_weight_is_the_mean_over_all_items_of_the_other(graph_of):
    weights = weights_of(reachable_hypergraph(graph_of(CHAIN), 6, threads=1))
    assert weights[0] == {0: 1, 1: 5, 2: 3}
    assert weights[3] == {1: 4, 2: 2, 3: 1}


def test_weights_count_from_the_lowest_rating_of_the_scale(graph_of):
    weights = weights_of(reachable_hypergraph(graph_of({"u0": {"a": 0}, "u1": {"a": 3, "b": 5}}, low=0), 4, threads=1))
    assert weights == [{0: 1, 1: 4}, {0: 1, 1: 5}]


@pytest.mark.parametrize("reach", [4, 6, 8])
@given(likings=tastes, threads=st.integers(1, 3))
@settings(deadline=None, max_examples=40)
def test_the_hypergraph_is_that_of_enumeration(graph_of, reach, likings, threads):
    hypergraph = reachable_hypergraph(graph_of(rows_of(likings)), reach, threads)
    hops = {4: 1, 6: 2, 8: 3}[reach]
    expected = [
        {other: mean_weight(likings, user, other) for other in reached(likings, user, hops)}
        for user in range(len(likings))
    ]
    found = weights_of(hypergraph)
    assert members_of(hypergraph) == [set(edge) for edge in expected]
    for edge, weights in zip(found, expected, strict=True):
        assert edge == pytest.approx(weights)
    check_holders(hypergraph)


@pytest.mark.parametrize("reach", [4, 6])
def test_threads_change_no_byte(tables, reach):
    graph = bipartite_graph(tables.random_table(3, users=150, items=60, ratings=True), RatingScale(1, 5))
    alone, two, five = (reachable_hypergraph(graph, reach, threads) for threads in (1, 2, 5))
    for column, of_two, of_five in zip(alone, two, five, strict=True):
        assert column.tobytes() == of_two.tobytes() == of_five.tobytes()


def test_every_user_is_told_twice_once_measured_and_once_collected(graph_of):
    told = []
    reachable_hypergraph(graph_of(CHAIN), 4, 2, told.append)
    assert sum(told) == 2 * len(CHAIN)


def test_the_bound_counts_encounters_over_items(graph_of):
    # u0 meets 2 over a; u1 meets 2 over a and 2 over b, and so on; the true number is 2 + 3 + 3 + 2 + 1.
    assert most_pairs(graph_of(CHAIN)) == 2 + 4 + 4 + 2 + 1
    assert len(reachable_hypergraph(graph_of(CHAIN), 4, threads=1).members) == 11


def test_the_bound_is_never_above_everyone_with_everyone(graph_of):
    assert most_pairs(graph_of({f"u{number}": "abcdef" for number in range(5)})) == 25


@given(likings=tastes)
@settings(deadline=None, max_examples=60)
def test_the_bound_is_never_below_the_true_number(graph_of, likings):
    graph = graph_of(rows_of(likings))
    assert len(reachable_hypergraph(graph, 4, threads=1).members) <= most_pairs(graph) <= len(likings) ** 2


def test_more_pairs_than_fit_are_refused_with_the_remedy(graph_of, monkeypatch):
    pairs = 3 + 4 + 4 + 3 + 1
    monkeypatch.setattr(module, "MOST_PAIRS", pairs)
    assert len(reachable_hypergraph(graph_of(CHAIN), 6, threads=1).members) == pairs
    monkeypatch.setattr(module, "MOST_PAIRS", pairs - 1)
    with pytest.raises(Refused, match="reach=6 joins 15 pairs of users, more than fit: give reach=4"):
        reachable_hypergraph(graph_of(CHAIN), 6, threads=1)


def test_the_nearest_are_50_besides_the_user(graph_of):
    hypergraph = nearest_hypergraph(graph_of({f"u{number:03d}": "a" for number in range(60)}), threads=1)
    # All are as near, so the first ones are kept.
    assert members_of(hypergraph)[0] == set(range(51))
    assert members_of(hypergraph)[59] == {*range(50), 59}
    check_holders(hypergraph)


def test_who_is_near_someone_need_not_have_them_near(graph_of, monkeypatch):
    monkeypatch.setattr(module, "NEAREST", 1)
    hypergraph = nearest_hypergraph(graph_of(CHAIN), threads=1)
    assert members_of(hypergraph) == [{0, 1}, {0, 1}, {2, 3}, {2, 3}, {4}]
    rows = {"u0": "ab", "u1": "ab", "u2": "a"}
    hypergraph = nearest_hypergraph(graph_of(rows), threads=1)
    assert members_of(hypergraph) == [{0, 1}, {0, 1}, {0, 2}]
    assert by_row(hypergraph.holder_starts, hypergraph.holders, hypergraph.size_sums) == [
        {0: [2], 1: [4], 2: [6]},
        {0: [2], 1: [4]},
        {2: [2]},
    ]


@given(likings=tastes, nearest=st.integers(1, 12), threads=st.integers(1, 3))
@settings(deadline=None, max_examples=60)
def test_hyperedges_of_the_nearest_have_the_weights_of_enumeration(graph_of, likings, nearest, threads):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "NEAREST", nearest)
        hypergraph = nearest_hypergraph(graph_of(rows_of(likings)), threads)
    for user, edge in enumerate(weights_of(hypergraph)):
        met = reached(likings, user, hops=1)
        assert user in edge
        assert edge.keys() <= met
        assert len(edge) == min(len(met), nearest + 1)
        assert edge == pytest.approx({other: mean_weight(likings, user, other) for other in edge})
    check_holders(hypergraph)


def test_threads_change_no_byte_of_the_nearest(tables):
    graph = bipartite_graph(tables.random_table(3, users=150, items=60, ratings=True), RatingScale(1, 5))
    told = []
    alone, two, five = (nearest_hypergraph(graph, threads, told.append) for threads in (1, 2, 5))
    for column, of_two, of_five in zip(alone, two, five, strict=True):
        assert column.tobytes() == of_two.tobytes() == of_five.tobytes()
    assert sum(told) == 3 * 150
