"""Salted digests: equal for equal things under one salt, and worth nothing to whoever does not have it."""

import re
from dataclasses import replace
from hashlib import blake2b
from itertools import combinations

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from erasable.data import Interactions
from erasable.proof.certificate import commitment, data_digest, new_salt, salted_digest, state_digest
from kit.handmade import handmade
from kit.tables import table

SALT, OTHER_SALT = "ab" * 32, "cd" * 32
ids = st.text(min_size=1, max_size=20)
some_items = st.none() | st.lists(ids, min_size=1, max_size=4, unique=True).map(tuple)


def test_a_new_salt_is_32_random_bytes():
    salts = {new_salt() for _ in range(5)}
    assert len(salts) == 5
    assert all(re.fullmatch("[0-9a-f]{64}", salt) for salt in salts)


def test_a_salted_digest_is_keyed_blake2b():
    expected = "3a203738434b9f02fd32efeb5d4cac4f49b403086897f8dc04bb9dfe19c6676b"
    assert salted_digest(SALT, "abc") == expected
    assert salted_digest(SALT, "abd") != expected
    assert salted_digest(OTHER_SALT, "abc") != expected


class TestCommitment:
    @given(st.text(), some_items)
    def test_an_outsider_with_the_salt_computes_the_same(self, user, items):
        asked = rfc8785.dumps({"items": None if items is None else sorted(items), "user_id": user})
        assert commitment(SALT, user, items) == blake2b(asked, key=bytes.fromhex(SALT), digest_size=32).hexdigest()

    def test_it_binds_to_salt_user_and_items(self):
        asked = [("u", None), ("v", None), ("u", ("a",)), ("u", ("b",)), ("u", ("a", "b")), ("u", ("ab",)), ("u", ())]
        found = [commitment(salt, *one) for salt in (SALT, OTHER_SALT) for one in asked]
        assert len({*found}) == 2 * len(asked)

    @given(ids, some_items, ids, some_items)
    def test_two_that_are_asked_for_different_things_differ(self, user, items, other, other_items):
        same = (user, items and sorted(items)) == (other, other_items and sorted(other_items))
        assert (commitment(SALT, user, items) == commitment(SALT, other, other_items)) is same

    def test_the_order_of_items_does_not_matter(self):
        assert commitment(SALT, "u", ("b", "a")) == commitment(SALT, "u", ["a", "b"])


class TestDigestOfTheData:
    @pytest.fixture
    def dataset(self):
        return handmade().state.dataset

    def variants(self, dataset) -> list:
        """Return what differs by one row, one rating, one group or one held-out row."""
        ann_and_bob, cat = dataset.groups
        rated = replace(ann_and_bob, rating=ann_and_bob.rating * 2)
        moved = Interactions.merge([ann_and_bob, cat])
        items = dataset.items
        return [
            dataset.with_groups(groups=(ann_and_bob.without(users=["bob"]), cat)),
            dataset.with_groups(groups=(rated, cat)),
            dataset.with_groups(groups=(cat, ann_and_bob)),
            dataset.with_groups(groups=(moved, cat.without(users=["cat"]))),
            dataset.with_groups(groups=(ann_and_bob,)),
            dataset.with_groups(held_out=dataset.held_out.without(pairs=[("ann", "e")])),
            dataset.with_groups(held_out=table({"ann": ["b", "d"], "cat": ["e"]}, items)),
        ]

    def test_it_covers_every_group_and_the_holdout(self, dataset):
        found = [data_digest(SALT, one) for one in [dataset, *self.variants(dataset)]]
        for (here, one), (there, other) in combinations(enumerate(found), 2):
            assert one != other, (here, there)

    def test_it_is_the_same_for_the_same_data_under_the_same_salt_alone(self, dataset):
        assert data_digest(SALT, dataset) == data_digest(SALT, handmade().state.dataset)
        assert data_digest(SALT, dataset) != data_digest(OTHER_SALT, dataset)

    def test_no_digest_of_the_data_is_in_it(self, dataset):
        plain = [*(group.digest() for group in dataset.groups), dataset.held_out.digest()]
        assert data_digest(SALT, dataset) not in plain


def test_the_digest_of_a_state_covers_the_name_of_each_checkpoint_and_their_order():
    state = handmade().state
    one, two = state.chain
    chains = [(one, two), (two, one), (one,), (two,), (), (one, replace(two, fingerprint="other"))]
    found = [state_digest(SALT, replace(state, chain=chain)) for chain in chains]
    assert len({*found}) == len(chains)
    assert state_digest(OTHER_SALT, state) not in found
    assert state_digest(SALT, replace(state, chain=(replace(one, seconds=9.0), two))) == found[0]
