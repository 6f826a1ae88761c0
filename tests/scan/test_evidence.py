"""Longer texts: one of them stands where an id was found, with the id at its place in it, or none does."""

import pytest

from erasable.scan._evidence import Longer, held_around, texts_around
from erasable.scan._wanted import RawSearch

SEARCH = RawSearch.of([b"customer"])


def longer(*ids: str) -> Longer:
    found = Longer()
    for needle, around in held_around(SEARCH, ids):
        found.add(around, needle.decode())
    return found


@pytest.mark.parametrize(
    ("around", "covered"),
    [
        (("the ", "-12 said"), True),
        (("the ", "-1 said"), False),
        (("", "-12"), True),
        (("x", "-1"), False),
        (("xø", ""), True),
        (("x", ""), False),
        (("", ""), False),
    ],
)
def test_a_hit_is_covered_where_a_whole_longer_id_stands(around, covered):
    assert longer("customer-12", "xøcustomer", "customer").covers(around, "customer") is covered


def test_what_two_ids_make_together_is_none():
    assert list(held_around(SEARCH, ["cust", "omer", "a", "customers"])) == [(b"customer", ("", "s"))]


def test_every_place_in_an_id_counts():
    assert longer("customer-customer").ends == {(0, 9), (9, 0)}


def test_what_is_no_text_is_left_out():
    assert list(texts_around(SEARCH, ["\ud800customer", 7, None, "customer's"])) == [(b"customer", ("", "'s"))]
