import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from erasable.data import Ids, Interactions, SyntheticSettings, split_holdout, synthesise
from erasable.data.catalogue import kept_rows
from erasable.errors import WrongUse

pairs = st.sets(st.tuples(st.sampled_from("abcdef"), st.sampled_from("uvwxyz")), min_size=2, max_size=30)
rates = st.sampled_from([0.0, 0.3, 0.6, 0.99])


def table(some):
    users, items = zip(*sorted(some), strict=True)
    return Interactions.from_columns(pa.array(users), pa.array(items))[0]


def as_pairs(interactions):
    users, items = interactions.users.texts(), interactions.items.texts()
    return {(users[u], items[i]) for u, i in zip(interactions.user_index, interactions.item_index, strict=True)}


@given(pairs, rates, st.integers(0, 9))
def test_every_interaction_falls_on_one_side_and_every_user_keeps_one(some, rate, seed):
    train, held = split_holdout(table(some), rate, seed)
    assert as_pairs(train) | as_pairs(held) == some
    assert not as_pairs(train) & as_pairs(held)
    assert set(train.users) == {user for user, _ in some}


@given(pairs, rates, st.integers(0, 9), st.sampled_from("abcdef"))
def test_removing_a_user_changes_nothing_about_the_others(some, rate, seed, gone):
    left = {pair for pair in some if pair[0] != gone}
    train, held = split_holdout(table(some), rate, seed)
    if left:
        train_left, held_left = split_holdout(table(left), rate, seed)
        assert as_pairs(train_left) == as_pairs(train.without([gone]))
        assert as_pairs(held_left) == as_pairs(held.without([gone]))


@given(pairs, rates, st.integers(0, 9), st.data())
def test_removing_an_interaction_changes_nothing_about_other_users(some, rate, seed, data):
    gone = data.draw(st.sampled_from(sorted(some)))
    _, held = split_holdout(table(some), rate, seed)
    _, held_left = split_holdout(table(some - {gone}), rate, seed)
    assert as_pairs(held_left.without([gone[0]])) == as_pairs(held.without([gone[0]]))


@given(pairs, rates, st.integers(0, 9), st.data())
def test_removing_a_held_out_interaction_leaves_training_as_it_is(some, rate, seed, data):
    train, held = split_holdout(table(some), rate, seed)
    if len(held):
        gone = data.draw(st.sampled_from(sorted(as_pairs(held))))
        train_left, _ = split_holdout(table(some - {gone}), rate, seed)
        assert as_pairs(train_left) == as_pairs(train)


def test_the_item_numbers_do_not_matter():
    interactions = synthesise(SyntheticSettings(users=50)).interactions
    shuffled = interactions.with_items(interactions.items.take(np.arange(len(interactions.items))[::-1]))
    assert as_pairs(split_holdout(shuffled, 0.5, 3)[1]) == as_pairs(split_holdout(interactions, 0.5, 3)[1])


def test_the_share_is_about_the_rate_and_depends_on_the_seed():
    interactions = synthesise(SyntheticSettings(users=500)).interactions
    held = split_holdout(interactions, 0.2, 0)[1]
    assert 0.18 < len(held) / len(interactions) < 0.22
    assert held.digest() != split_holdout(interactions, 0.2, 1)[1].digest()


def test_no_rate_holds_nothing_out():
    interactions = table({("a", "x"), ("b", "x")})
    train, held = split_holdout(interactions, 0, 0)
    assert (train.digest(), len(held)) == (interactions.digest(), 0)
    assert held.items == interactions.items


def test_equal_hashes_keep_the_first_item_by_its_id():
    interactions = table({("a", "x"), ("a", "y"), ("b", "x"), ("b", "y")}).with_items(Ids.of("yx"))
    hashes = np.array([7, 7, 3, 8], dtype=np.uint64)
    # In the order of the numbers: (a, y), (a, x), (b, y), (b, x).
    assert kept_rows(interactions, hashes).tolist() == [1, 3]


@pytest.mark.parametrize("rate", [-0.1, 1, 20, np.nan])
def test_a_rate_that_makes_no_sense_is_refused(rate):
    with pytest.raises(WrongUse, match="holdout="):
        split_holdout(table({("a", "x")}), rate, 0)
