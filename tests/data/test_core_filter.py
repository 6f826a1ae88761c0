import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from erasable.data import CoreFilter, Interactions, apply_frozen, k_core
from erasable.errors import DataRefused, WrongUse

pairs = st.sets(st.tuples(st.sampled_from("abcdef"), st.sampled_from("uvwxyz")), min_size=1)


def table(some):
    users, items = zip(*sorted(some), strict=True)
    return Interactions.from_columns(pa.array(users), pa.array(items))[0]


def as_pairs(interactions):
    users, items = interactions.users.texts(), interactions.items.texts()
    return {(users[u], items[i]) for u, i in zip(interactions.user_index, interactions.item_index, strict=True)}


def plain_core(some, minimum):
    """Filter in the plainest way, one user or item at a time."""
    while True:
        names = {(side, pair[side]) for pair in some for side in (0, 1)}
        rare = [(s, n) for s, n in names if sum(pair[s] == n for pair in some) < minimum]
        if not rare:
            return some
        side, name = min(rare)
        some = {pair for pair in some if pair[side] != name}


def core_or_none(interactions, minimum):
    try:
        return k_core(interactions, minimum)
    except DataRefused:
        return None


def test_dropping_goes_on_until_nothing_changes():
    # Dropping user c leaves item z with one row, which leaves user b with one.
    some = {("a", "x"), ("a", "y"), ("d", "x"), ("d", "y"), ("b", "x"), ("b", "z"), ("c", "z")}
    core = k_core(table(some), 2)
    assert core.users.texts() == ["a", "d"]
    assert core.items.texts() == ["x", "y"]


@given(pairs, st.integers(1, 4))
def test_the_core_is_that_of_the_plain_way(some, minimum):
    core = core_or_none(table(some), minimum)
    assert (as_pairs(core) if core else set()) == plain_core(some, minimum)


@given(pairs, st.integers(1, 3), st.sampled_from("abcdef"))
def test_with_the_frozen_lists_removing_a_user_changes_nothing_about_the_others(some, minimum, gone):
    interactions = table(some)
    core = core_or_none(interactions, minimum)
    if core and len(core.without([gone])):
        again = apply_frozen(interactions.without([gone]), core.users, core.items)
        assert again.digest() == core.without([gone]).digest()
        assert again.items == core.items


@given(pairs, st.integers(1, 3), st.data())
def test_with_the_frozen_lists_removing_a_pair_changes_nothing_about_the_others(some, minimum, data):
    gone = data.draw(st.sampled_from(sorted(some)))
    interactions = table(some)
    core = core_or_none(interactions, minimum)
    if core and len(core.without(pairs=[gone])):
        again = CoreFilter(core.users, core.items).apply(interactions.without(pairs=[gone]))
        assert again.digest() == core.without(pairs=[gone]).digest()


def test_the_frozen_filter_gives_its_core_again():
    interactions = table({("a", "x"), ("b", "x"), ("c", "y")})
    filtered = CoreFilter.of(interactions, 1).apply(interactions)
    assert filtered.digest() == interactions.digest()


def test_off_leaves_everything_as_it_is():
    interactions = table({("a", "x")})
    assert k_core(interactions, 0) is interactions


def test_an_empty_core_is_refused_with_the_remedy():
    with pytest.raises(DataRefused, match="lower min_interactions"):
        k_core(table({("a", "x"), ("b", "x")}), 5)


def test_a_negative_minimum_is_refused():
    with pytest.raises(WrongUse, match="min_interactions="):
        k_core(table({("a", "x")}), -1)
