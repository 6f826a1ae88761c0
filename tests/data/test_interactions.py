import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from erasable.data import Ids, Interactions
from erasable.errors import DataRefused, WrongUse

rows = st.dictionaries(
    st.tuples(st.sampled_from("abcé7"), st.sampled_from("xyz12")), st.integers(1, 5), min_size=1, max_size=20
)


def table(ratings):
    users, items = zip(*ratings, strict=True)
    return Interactions.from_columns(pa.array(users), pa.array(items), list(ratings.values()))[0]


def as_dict(interactions):
    users, items = interactions.users.texts(), interactions.items.texts()
    columns = zip(interactions.user_index, interactions.item_index, interactions.rating, strict=True)
    return {(users[user], items[item]): rating for user, item, rating in columns}


def parts_of(interactions):
    return interactions.users, interactions.items, interactions.user_index, interactions.item_index


@given(rows)
def test_every_row_is_kept_in_user_and_item_order(ratings):
    interactions = table(ratings)
    assert as_dict(interactions) == ratings
    assert list(as_dict(interactions)) == sorted(ratings)


@given(rows, st.randoms())
def test_the_order_of_the_input_does_not_matter(ratings, random):
    shuffled = list(ratings.items())
    random.shuffle(shuffled)
    assert table(dict(shuffled)).digest() == table(ratings).digest()


@given(rows, st.data())
def test_removing_a_user_equals_never_having_known_them(ratings, data):
    gone = data.draw(st.sampled_from([user for user, _ in ratings]))
    interactions = table(ratings)
    left = {pair: rating for pair, rating in ratings.items() if pair[0] != gone}
    without = interactions.without(users=[gone, "nobody"])
    assert as_dict(without) == left
    assert without.items == interactions.items
    if left:
        assert table(left).with_items(interactions.items).digest() == without.digest()


@given(rows, st.data())
def test_removing_a_pair_equals_never_having_known_it(ratings, data):
    gone = data.draw(st.sampled_from(list(ratings)))
    interactions = table(ratings)
    left = {pair: rating for pair, rating in ratings.items() if pair != gone}
    without = interactions.without(pairs=[gone, ("nobody", "x"), (gone[0], "nothing")])
    assert as_dict(without) == left
    if left:
        assert table(left).with_items(interactions.items).digest() == without.digest()


@given(rows, st.sets(st.sampled_from("abcé7")))
def test_parts_of_the_users_merge_to_the_whole(ratings, some):
    interactions = table(ratings)
    merged = Interactions.merge([interactions.of_users(some), interactions.without(some)])
    assert merged.digest() == interactions.digest()
    assert merged.items == interactions.items


@given(rows)
def test_another_item_list_keeps_the_rows(ratings):
    interactions = table(ratings)
    moved = interactions.with_items(Ids.of("2z1yxw"))
    assert as_dict(moved) == ratings
    assert moved.with_items(interactions.items).digest() == interactions.digest()


@given(rows)
def test_the_sparse_matrix_holds_the_ratings(ratings):
    interactions = table(ratings)
    dense = interactions.csr().toarray()
    assert dense.shape == (len(interactions.users), len(interactions.items))
    assert dense.sum() == sum(ratings.values())
    assert dense[interactions.user_index, interactions.item_index].tolist() == interactions.rating.tolist()


def test_user_starts_point_at_each_users_rows():
    assert table({("a", "x"): 1, ("a", "y"): 1, ("b", "x"): 1}).user_starts.tolist() == [0, 2, 3]


def test_repeated_pairs_keep_the_latest_and_are_counted():
    interactions, dropped = Interactions.from_columns(
        pa.array(["a", "a", "a", "b"]), pa.array(["x", "x", "x", "x"]), [1, 2, 3, 4], [5, 9, np.nan, np.nan]
    )
    assert dropped == 2
    assert interactions.rating.tolist() == [2, 4]
    assert interactions.time is not None
    assert interactions.time[0] == 9
    assert np.isnan(interactions.time[1])


def test_no_rating_means_one():
    interactions, dropped = Interactions.from_columns(pa.array(["a", "b"]), pa.array(["x", "x"]))
    assert (interactions.rating.tolist(), interactions.time, dropped) == ([1, 1], None, 0)


def test_the_digest_ignores_time_and_unused_items():
    users, items = pa.array(["a", "b"]), pa.array(["x", "y"])
    plain, _ = Interactions.from_columns(users, items, [1, 2])
    timed, _ = Interactions.from_columns(users, items, [1, 2], [3, 4])
    assert plain.digest() == timed.digest() == plain.with_items(Ids.of("xyz")).digest()
    assert plain.digest() != Interactions.from_columns(users, items, [1, 3])[0].digest()


def test_merging_fills_unknown_times():
    timed, _ = Interactions.from_columns(pa.array(["b"]), pa.array(["x"]), None, [4])
    plain, _ = Interactions.from_columns(pa.array(["a"]), pa.array(["x"]))
    merged = Interactions.merge([timed, plain])
    assert merged.users.texts() == ["a", "b"]
    np.testing.assert_array_equal(merged.time, [np.nan, 4])


def test_what_can_not_be_merged_is_refused():
    one, other = table({("a", "x"): 1}), table({("b", "y"): 1})
    for parts, reason in [([], "nothing"), ([one, other], "item lists")]:
        with pytest.raises(WrongUse, match=reason):
            Interactions.merge(parts)
    with pytest.raises(DataRefused, match="ascend"):
        Interactions.merge([one, one])


def test_rows_of_one_user_in_two_parts_merge_in_order():
    whole = table({("a", "x"): 1, ("a", "y"): 2, ("b", "x"): 3, ("a", "z"): 4})
    first = np.array([True, False, True, False])
    assert Interactions.merge([whole.select(first), whole.select(~first)]).digest() == whole.digest()


def test_an_item_outside_the_catalogue_is_named():
    with pytest.raises(DataRefused, match="'y' is not in the catalogue"):
        table({("a", "x"): 1, ("b", "y"): 1}).with_items(Ids.of("x"))


def test_arrays_can_not_be_changed_but_the_callers_own_can():
    own = np.array([1.0], dtype=np.float32)
    interactions = Interactions(Ids.of("a"), Ids.of("x"), np.array([0]), np.array([0]), own)
    with pytest.raises(ValueError, match="read-only"):
        interactions.rating[0] = 2
    own[0] = 1


def test_nothing_can_be_left():
    nothing = table({("a", "x"): 1}).without(["a"])
    assert (len(nothing), len(nothing.users), nothing.user_starts.tolist()) == (0, 0, [0])
    assert len(nothing.without(["a"], [("a", "x")])) == 0
    assert nothing.csr().shape == (0, 1)


def test_a_single_text_is_no_list_of_users():
    with pytest.raises(WrongUse, match="list of users"):
        table({("a", "x"): 1}).without("a")


@pytest.mark.parametrize(
    ("users", "user_index", "item_index", "rating", "reason"),
    [
        ("ab", [0, 1], [0], [1, 1], "length"),
        ("ba", [0, 1], [0, 0], [1, 1], "UTF-8"),
        ("ab", [0, 0], [0, 1], [1, 1], "needs a row"),
        ("ab", [1, 0], [0, 1], [1, 1], "needs a row"),
        ("ab", [0, 1], [0, 2], [1, 1], "outside the item list"),
        ("a", [0, 0], [1, 0], [1, 1], "ascend by"),
        ("a", [0, 0], [1, 1], [1, 1], "ascend by"),
        ("ab", [0, 1], [0, 1], [1, np.nan], "finite"),
    ],
)
def test_the_object_checks_itself(users, user_index, item_index, rating, reason):
    with pytest.raises(DataRefused, match=reason):
        Interactions(Ids.of(users), Ids.of("xy"), np.array(user_index), np.array(item_index), np.array(rating))


def test_a_mask_of_the_wrong_kind_is_refused():
    with pytest.raises(WrongUse, match="mask"):
        table({("a", "x"): 1}).select(np.array([0]))


@given(rows, st.data())
def test_the_users_at_some_rows_are_those_users_only(ratings, data):
    interactions = table(ratings)
    chosen = sorted(data.draw(st.sets(st.integers(0, len(interactions.users) - 1))))
    found = interactions.at(np.array(chosen, dtype=np.int64))
    expected = interactions.of_users([interactions.users[row] for row in chosen])
    assert (found.users, found.items) == (expected.users, expected.items)
    assert found.digest() == expected.digest()
