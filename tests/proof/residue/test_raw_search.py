"""Finding many byte strings at once finds what looking for each of them finds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from erasable.proof.residue import raw_search
from erasable.proof.residue.raw_search import RawSearch

FEW_LETTERS = st.binary(min_size=8, max_size=14).map(lambda data: bytes(letter % 2 + 97 for letter in data))


def one_by_one(needles: list[bytes], content: bytes) -> set[tuple[int, int]]:
    found = set()
    for number, needle in enumerate(needles):
        start = content.find(needle)
        while start >= 0:
            found.add((start, number))
            start = content.find(needle, start + 1)
    return found


@given(st.lists(FEW_LETTERS, unique=True, max_size=12), st.lists(FEW_LETTERS, max_size=12).map(b"".join))
def test_it_finds_what_looking_for_each_finds(needles, content):
    assert set(RawSearch.of(needles).find(content)) == one_by_one(needles, content)


@given(st.lists(st.binary(min_size=8, max_size=20), unique=True, min_size=1), st.binary(max_size=9), st.data())
def test_what_was_put_there_is_found(needles, between, data):
    order = data.draw(st.permutations(needles))
    content = between + between.join(order)
    assert set(RawSearch.of(needles).find(content)) == one_by_one(needles, content)


@pytest.mark.parametrize("block", [1, 7, 64])
def test_hits_over_the_edge_of_a_block_are_found(monkeypatch, block):
    monkeypatch.setattr(raw_search, "_BLOCK", block)
    needles = [b"customer-1", b"customer-12"]
    content = b"xx" + b"customer-12" * 3 + b"customer-"
    assert set(RawSearch.of(needles).find(content)) == one_by_one(needles, content)


def test_very_many_needles_are_found_too(monkeypatch):
    monkeypatch.setattr(raw_search, "_VERY_MANY", 3)
    needles = [f"person-{number:04d}".encode() for number in range(50)]
    assert sorted(RawSearch.of(needles).find(b",".join(needles))) == [(12 * n, n) for n in range(50)]


def test_nothing_is_found_in_nothing():
    assert list(RawSearch.of([]).find(b"customer-1")) == []
    assert list(RawSearch.of([b"customer-1"]).find(b"custom")) == []
