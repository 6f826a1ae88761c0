import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from erasable.data import RatingScale
from erasable.grouping.points import bipartite_graph, starts_of

FIVE = RatingScale(1, 5)

tastes = st.lists(st.dictionaries(st.integers(0, 9), st.integers(1, 5), min_size=1), min_size=1, max_size=10)


def rows_of(likings):
    return {f"u{user}": {f"i{item}": rating for item, rating in has.items()} for user, has in enumerate(likings)}


def test_items_of_users_and_users_of_items_are_the_same_cells(tables):
    rows = tables.table({"ann": {"x": 5, "y": 1}, "bob": {"y": 3}, "cat": {"x": 2, "z": 4}})
    graph = bipartite_graph(rows, FIVE)
    assert graph.item_starts.tolist() == [0, 2, 3, 5]
    assert graph.items.tolist() == [0, 1, 1, 0, 2]
    assert graph.item_weights.tolist() == [5, 1, 3, 2, 4]
    assert graph.user_starts.tolist() == [0, 2, 4, 5]
    assert graph.users.tolist() == [0, 2, 0, 1, 2]
    assert graph.user_weights.tolist() == [5, 2, 1, 3, 4]
    assert (graph.user_count, graph.item_count) == (3, 3)


@pytest.mark.parametrize(
    ("scale", "ratings", "weights"),
    [
        (RatingScale(1, 1), [1, 1], [1, 1]),
        (RatingScale(0, 1), [0, 1], [1, 2]),
        (RatingScale(0.5, 5), [0.5, 5], [1, 5.5]),
        (RatingScale(3, 7), [3, 7], [1, 5]),
    ],
    ids=str,
)
def test_the_lowest_rating_of_the_scale_weighs_1(tables, scale, ratings, weights):
    graph = bipartite_graph(tables.table({"u": dict(zip("ab", ratings, strict=True))}), scale)
    assert graph.item_weights.tolist() == weights
    assert graph.user_weights.tolist() == weights


def test_weights_follow_the_scale_and_not_the_ratings_that_are_there(tables):
    assert bipartite_graph(tables.table({"u": {"a": 4}}), FIVE).item_weights.tolist() == [4]


def test_an_item_that_nobody_has_has_an_empty_row(tables):
    graph = bipartite_graph(tables.table({"u": "b", "v": "d"}, catalogue="abcde"), RatingScale(1, 1))
    assert graph.item_count == 5
    assert graph.user_starts.tolist() == [0, 0, 1, 1, 2, 2]


def test_nobody_makes_an_empty_graph(tables):
    graph = bipartite_graph(tables.table({}, catalogue="ab"), FIVE)
    assert (graph.user_count, graph.item_count) == (0, 2)
    assert graph.user_starts.tolist() == [0, 0, 0]


@given(likings=tastes)
@settings(deadline=None, max_examples=60)
def test_both_sides_hold_every_weight_once_in_ascending_order(tables, likings):
    graph = bipartite_graph(tables.table(rows_of(likings), catalogue=[f"i{item}" for item in range(10)]), FIVE)
    expected = {(user, item): rating for user, has in enumerate(likings) for item, rating in has.items()}
    owners = np.repeat(np.arange(graph.user_count), np.diff(graph.item_starts))
    owned = np.repeat(np.arange(graph.item_count), np.diff(graph.user_starts))
    from_users = list(zip(owners.tolist(), graph.items.tolist(), strict=True))
    from_items = list(zip(graph.users.tolist(), owned.tolist(), strict=True))
    assert dict(zip(from_users, graph.item_weights.tolist(), strict=True)) == expected
    assert dict(zip(from_items, graph.user_weights.tolist(), strict=True)) == expected
    assert from_users == sorted(expected)
    assert from_items == sorted(expected, key=lambda cell: (cell[1], cell[0]))


@pytest.mark.parametrize(
    ("counts", "starts"), [([], [0]), ([0], [0, 0]), ([3, 0, 2], [0, 3, 3, 5])], ids=["none", "empty row", "three rows"]
)
def test_rows_begin_where_the_ones_before_end(counts, starts):
    found = starts_of(np.array(counts, dtype=np.int64))
    assert found.tolist() == starts
    assert found.dtype == np.int64
