import numpy as np
import pytest

from erasable.models._ease_columns import (
    NO_ROWS,
    add_pairs,
    by_item,
    count_pairs,
    joined,
    rounded_from_upper,
    rows_of_change,
    signed_rows,
)
from erasable.models.base import Change


@pytest.fixture
def rows(tables):
    return tables.table({"u": "ab", "v": "abc", "w": "c"}, catalogue="abcd")


def test_pairs_are_added_row_by_row(rows):
    signed = signed_rows(rows, 1)
    gram = np.zeros((4, 4), np.int32)
    assert add_pairs(gram, signed, by_item(signed, 4), 0, 2) == 10
    assert gram.tolist() == [[2, 2, 1, 0], [2, 2, 1, 0], [0, 0, 0, 0], [0, 0, 0, 0]]
    assert add_pairs(gram, signed, by_item(signed, 4), 2, 4) == 4
    assert gram.tolist() == [[2, 2, 1, 0], [2, 2, 1, 0], [1, 1, 2, 0], [0, 0, 0, 0]]
    assert count_pairs(signed.starts) == 14


def test_a_change_adds_what_is_given_then_takes_away_what_was(rows):
    signed = rows_of_change(Change(rows.of_users(["u", "v"]), rows.of_users(["w"])))
    assert signed.starts.tolist() == [0, 1, 3, 6]
    assert signed.items.tolist() == [2, 0, 1, 0, 1, 2]
    assert signed.signs.tolist() == [1, -1, -1]


def test_joining_nothing_changes_nothing(rows):
    signed = signed_rows(rows, -1)
    for found in (joined(NO_ROWS, signed), joined(signed, NO_ROWS)):
        assert all(np.array_equal(one, other) for one, other in zip(found, signed, strict=True))
        assert [column.dtype for column in found] == [column.dtype for column in signed]


def test_who_has_an_item_is_listed_in_order(rows):
    owners = by_item(signed_rows(rows, 1), 4)
    assert owners.starts.tolist() == [0, 2, 4, 6, 6]
    assert owners.users.tolist() == [0, 1, 0, 1, 1, 2]


@pytest.mark.parametrize("size", [0, 1, 63, 64, 65, 150])
def test_the_upper_triangle_makes_the_whole_matrix(size):
    matrix = np.random.default_rng(size).normal(size=(size, size))
    upper = np.triu(matrix).astype(np.float32)
    assert np.array_equal(rounded_from_upper(matrix), upper + np.triu(upper, 1).T)
