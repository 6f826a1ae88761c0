"""Many byte strings are found at once; which runs of interactions tell a person, and which do not."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from erasable.scan import Rows, _search
from erasable.scan._search import Cells, RawSearch, Values
from erasable.scan._wanted import Runs, row_spellings

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


@pytest.mark.parametrize("room", [1, 2, 3])
def test_more_hits_than_there_is_room_for_are_found(monkeypatch, room):
    monkeypatch.setattr(_search, "_ROOM", room)
    needles = [b"customer-1", b"customer-12", b"customer-123"]
    content = b"xx" + b"customer-123" * 5 + b"customer-"
    assert set(RawSearch.of(needles).find(content)) == one_by_one(needles, content)


def test_very_many_needles_that_begin_alike_are_found():
    needles = [f"person-{number:05d}".encode() for number in range(20_000)]
    assert sorted(RawSearch.of(needles).find(b",".join(needles))) == [(13 * n, n) for n in range(20_000)]


@given(st.lists(st.text("ab1é", max_size=12), unique=True), st.lists(st.text("ab1é", max_size=12)))
def test_values_are_found_where_they_are_a_whole_cell(tried, cells):
    values = Values.of(tried)
    found = values.in_cells(Cells.of(cells)).tolist()
    assert [values.texts[place] if place >= 0 else None for place in found] == [
        cell if cell in tried else None for cell in cells
    ]


@given(st.lists(FEW_LETTERS, unique=True, min_size=1, max_size=5), st.lists(FEW_LETTERS, max_size=12))
def test_needles_are_found_inside_one_cell_only(needles, cells):
    found = zip(*(one.tolist() for one in Cells.of(cells).found(RawSearch.of(needles))), strict=True)
    assert {*found} == {(cell, *hit) for cell, text in enumerate(cells) for hit in one_by_one(needles, text)}


def test_nothing_is_found_in_nothing():
    assert list(RawSearch.of([]).find(b"customer-1")) == []
    assert list(RawSearch.of([b"customer-1"]).find(b"custom")) == []


def held(ratings: list[float], times: list[float] | None = None) -> Runs:
    return Runs((Rows([f"i{number}" for number in range(len(ratings))], ratings, times),))


def in_ratings(runs: Runs, items: list[str], ratings: np.ndarray) -> bool:
    return runs.in_ratings(runs.item_values.in_cells(Cells.of(items)), ratings)


class TestRatings:
    RUNS = held([1, 2, 3, 4, 4, 4, 4])

    @pytest.mark.parametrize(
        ("items", "ratings", "found"),
        [
            (["i0", "i1", "i2"], [1, 2, 3], True),
            (["x", "i1", "i2", "i3", "y"], [9, 2, 3, 4, 9], True),
            (["i0", "i1"], [1, 2], False),
            (["i0", "i1", "i2"], [1, 2, 4], False),
            (["i0", "x", "i1", "i2"], [1, 9, 2, 3], False),
            (["i2", "i1", "i0"], [3, 2, 1], False),
            (["i3", "i4", "i5"], [4, 4, 4], False),
        ],
    )
    def test_three_in_a_row_with_their_ratings_tell_a_person(self, items, ratings, found):
        assert in_ratings(self.RUNS, items, np.array(ratings, dtype=float)) is found

    def test_equal_ratings_tell_a_person_by_all_of_their_items(self):
        runs = held([1, 1, 1, 1])
        assert not in_ratings(runs, ["i0", "i1", "i2"], np.ones(3))
        assert in_ratings(runs, ["x", "i0", "i1", "i2", "i3"], np.ones(5))

    def test_two_interactions_tell_nobody(self):
        assert held([1, 2]).by_rating == {}
        assert not in_ratings(held([1, 2]), ["i0", "i1"], np.array([1.0, 2.0]))

    def test_the_order_of_time_counts_too(self):
        runs = held([1, 2, 3], [2e9, 1e9, 3e9])
        assert in_ratings(runs, ["i1", "i0", "i2"], np.array([2.0, 1.0, 3.0]))


class TestTimes:
    def test_three_different_times_in_a_row_tell_a_person(self):
        runs = held([1, 1, 1, 1], [1e9 + 1, 1e9 + 5, 1e9 + 3, np.nan])
        assert runs.in_times(np.array([7.0, 1e9 + 1, 1e9 + 5, 1e9 + 3]))
        assert runs.in_times(np.array([1e9 + 1, 1e9 + 3, 1e9 + 5]))
        assert not runs.in_times(np.array([1e9 + 5, 1e9 + 3, 1e9 + 1]))
        assert not runs.in_times(np.array([1e9 + 1, 1e9 + 5]))

    @pytest.mark.parametrize(
        "times",
        [
            [1e9 + 1, 1e9 + 1, 1e9 + 1],
            [86_400 * 11_000, 86_400 * 11_001, 86_400 * 11_002],
            [1, 2, 3],
            [np.nan, 1e9 + 1, 1e9 + 5],
        ],
    )
    def test_equal_times_dates_and_small_numbers_tell_nobody(self, times):
        runs = held([1, 1, 1], times)
        assert not runs.in_times(np.array(times, dtype=float))
        assert list(runs.time_spellings()) == []

    def test_they_are_written_as_numbers_of_both_kinds(self):
        runs = held([1, 1, 1], [1e9 + 1, 1e9 + 5, 1e9 + 7])
        expected = np.array([1e9 + 1, 1e9 + 5, 1e9 + 7])
        assert dict(runs.time_spellings()) == {
            expected.astype("<f8").tobytes(): "float64",
            expected.astype("<i8").tobytes(): "int64",
        }

    def test_parts_of_a_second_are_no_integers(self):
        assert {name for _, name in held([1, 1, 1], [1e9 + 0.5, 1e9 + 5, 1e9 + 7]).time_spellings()} == {"float64"}


def test_a_row_is_written_in_every_format():
    row = np.array([0.1, -0.2, 0.3, 0.4], dtype=np.float32)
    found = row_spellings(row)
    for kind in ("<f2", ">f2", "<f4", ">f4", "<f8", ">f8"):
        assert row.astype(kind).tobytes() in found
    cut_off = (row.view("<u4") >> 16).astype("<u2")
    assert cut_off.tobytes() in found
    # 0.1 is 0x3dcccccd, which is nearer to 0x3dcd than to 0x3dcc.
    rounded = cut_off.copy()
    rounded[0] = 0x3DCD
    assert any(content[:2] == rounded[:1].tobytes() for content in found if len(content) == 8)
