import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from erasable.data import RatingScale
from erasable.grouping.points import bipartite_graph
from erasable.paper import _hypergraph as hypergraph_module
from erasable.paper._hypergraph import Nearest, collect_nearest, nearest_hypergraph

NOBODY = -1

tastes = st.lists(st.sets(st.integers(0, 9), min_size=1, max_size=5), min_size=1, max_size=14)


@pytest.fixture(scope="module")
def graph_of(tables):
    def build(likings):
        rows = {f"u{user:02d}": [f"i{item}" for item in items] for user, items in enumerate(likings)}
        return bipartite_graph(tables.table(rows), RatingScale(1, 1))

    return build


@pytest.fixture(scope="module")
def nearest_by_shared_items(graph_of):
    """Rank by the number of shared items: every item adds 1, every row has length 1, so ties are many and exact."""

    def collect(likings, room):
        graph = graph_of(likings)
        shares = np.ones(graph.item_count), np.ones(graph.user_count)
        shape = graph.user_count, room + 1
        # Filled with rubbish: room is handed over as it comes.
        out = Nearest(np.full(shape, 77, np.int32), np.full(shape, 99.0), np.zeros(shape))
        collect_nearest(0, graph.user_count, graph, shares, out)
        return out

    return collect


def cosines_of(likings):
    """Return the cosine of each pair of users, by their items' ln(1 + users / users of the item)."""
    has = np.array([[item in items for item in range(10)] for items in likings], dtype=np.float64)
    weighted = has * np.log(1 + len(likings) / np.maximum(has.sum(axis=0), 1))
    lengths = np.sqrt((weighted**2).sum(axis=1))
    return weighted @ weighted.T / np.outer(lengths, lengths)


def hyperedges(graph, nearest):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hypergraph_module, "NEAREST", nearest)
        hypergraph = nearest_hypergraph(graph, threads=1)
    return [members.tolist() for members in np.split(hypergraph.members, hypergraph.starts[1:-1])]


def test_the_nearest_come_in_order_after_the_user(nearest_by_shared_items):
    likings = [{1, 2, 3}, {1}, {1, 2, 3}, {4}, {2, 3}]
    nearest = nearest_by_shared_items(likings, room=3)
    assert nearest.users[0].tolist() == [0, 2, 4, 1]
    assert nearest.cosines[0, 1:].tolist() == [3, 2, 1]


def test_of_equally_near_users_the_lower_numbers_are_kept(nearest_by_shared_items):
    likings = [{1}, {1, 2}, {1}, {2}, {2}, {1}]
    nearest = nearest_by_shared_items(likings, room=2)
    assert nearest.users.tolist() == [[0, 1, 2], [1, 0, 2], [2, 0, 1], [3, 1, 4], [4, 1, 3], [5, 0, 1]]


def test_whoever_comes_late_but_nearer_pushes_the_last_one_out(nearest_by_shared_items):
    # User 0 meets 1 and 2 over item 1 before 3, who shares all three items.
    nearest = nearest_by_shared_items([{1, 2, 3}, {1}, {1}, {2, 3}], room=2)
    assert nearest.users[0].tolist() == [0, 3, 1]


def test_where_fewer_are_met_the_rest_is_nobody(nearest_by_shared_items):
    nearest = nearest_by_shared_items([{1}, {1}, {2}], room=4)
    assert nearest.users[0].tolist() == [0, 1, NOBODY, NOBODY, NOBODY]
    assert nearest.users[2].tolist() == [2, NOBODY, NOBODY, NOBODY, NOBODY]
    assert nearest.weights.tolist() == [[1, 1, 0, 0, 0], [1, 1, 0, 0, 0], [1, 0, 0, 0, 0]]


def test_with_no_room_for_others_only_the_user_is_there(nearest_by_shared_items):
    assert nearest_by_shared_items([{1}, {1}], room=0).users.tolist() == [[0], [1]]


@given(likings=tastes, room=st.integers(1, 15))
@settings(deadline=None, max_examples=100)
def test_ranks_are_those_of_sorting_everyone(nearest_by_shared_items, likings, room):
    found = nearest_by_shared_items(likings, room)
    for user, items in enumerate(likings):
        met = [other for other, others in enumerate(likings) if items & others and other != user]
        ranked = sorted(met, key=lambda other: (-len(items & likings[other]), other))[:room]
        assert found.users[user].tolist() == [user, *ranked, *[NOBODY] * (room - len(ranked))]


@given(likings=tastes, nearest=st.integers(1, 15))
@settings(deadline=None, max_examples=100)
def test_nobody_left_out_has_a_higher_cosine(graph_of, likings, nearest):
    cosines = cosines_of(likings)
    for user, (first, *others) in enumerate(hyperedges(graph_of(likings), nearest)):
        left_out = [other for other in np.flatnonzero(cosines[user]) if other not in (user, *others)]
        assert first == user
        assert len(others) == nearest or not left_out
        # Sums in another order differ in the last bits.
        ranked = [*cosines[user, others], max(cosines[user, left_out], default=0)]
        assert (np.diff(ranked) < 1e-12).all()
        assert (cosines[user, others] > 0).all()


def test_a_rare_item_joins_more_than_a_common_one(graph_of):
    # Users 1 and 2 share one item of two with user 0; item 9 is had by two users, item 1 by five.
    likings = [{1, 9}, {1, 2}, {9, 8}, {1}, {1}, {1}]
    assert hyperedges(graph_of(likings), 1)[0] == [0, 2]


def test_sharing_much_counts_less_for_those_who_have_everything(graph_of):
    likings = [{1, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9}, {1, 2, 3}]
    assert hyperedges(graph_of(likings), 2)[0] == [0, 2, 1]


def test_users_with_the_same_items_rank_by_number(graph_of):
    likings = [{1, 2}, {1, 2, 3}, {1, 2}, {1, 2}, {1, 2}]
    assert hyperedges(graph_of(likings), 2) == [[0, 2, 3], [1, 0, 2], [2, 0, 3], [3, 0, 2], [4, 0, 2]]


def test_a_part_of_the_users_leaves_the_rows_of_others_alone(graph_of):
    graph = graph_of([{1}, {1}, {1}, {1}])
    out = Nearest(np.full((4, 3), 77, np.int32), np.zeros((4, 3)), np.zeros((4, 3)))
    collect_nearest(1, 3, graph, (np.ones(graph.item_count), np.ones(4)), out)
    assert out.users.tolist() == [[77, 77, 77], [1, 0, 2], [2, 0, 1], [77, 77, 77]]
