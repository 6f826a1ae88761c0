import numpy as np
import pytest

from erasable.models import _ease_columns as correction_module
from erasable.models._ease_columns import Correction, signed_rows


@pytest.fixture
def inverse():
    return np.eye(9, dtype=np.float32) / 4


@pytest.fixture
def further(tables):
    return signed_rows(tables.random_table(2, users=3, items=9), 1)


def test_without_a_change_nothing_is_corrected(inverse):
    found = Correction.of({"inverse": inverse})
    assert found.vectors.shape == (0, 9)
    assert found.diagonal.tolist() == [0.25] * 9


def test_a_correction_comes_back_from_its_arrays(inverse, further):
    enlarged = Correction.of({"inverse": inverse}).enlarged(inverse, further)
    found = Correction.of({"inverse": inverse, **enlarged.arrays()})
    assert found.arrays().keys() == enlarged.arrays().keys()
    assert all(found.arrays()[name] is array for name, array in enlarged.arrays().items())


def test_the_diagonal_is_that_of_the_corrected_inverse(inverse, further):
    first = Correction.of({"inverse": inverse}).enlarged(inverse, further)
    found = first.enlarged(inverse, further)
    whole = inverse - (found.vectors.T / found.pivots) @ found.vectors
    assert found.diagonal == pytest.approx(whole.diagonal(), rel=1e-12)


def test_more_rows_than_items_or_than_the_limit_call_for_a_new_inverse(inverse, further, monkeypatch):
    found = Correction.of({"inverse": inverse})
    for _ in range(3):
        found = found.enlarged(inverse, further)
    assert found.enlarged(inverse, further) is None
    monkeypatch.setattr(correction_module, "MOST_ROWS", 2)
    assert Correction.of({"inverse": inverse}).enlarged(inverse, further) is None


@pytest.mark.parametrize(("size", "settles"), [(0.9, False), (0.995, True), (1.5, True)])
def test_rows_that_take_nearly_all_away_call_for_a_new_inverse(tables, size, settles):
    rows = tables.table({"u": "a"}, catalogue="ab")
    inverse = np.array([[size, 0], [0, 1]], np.float32)
    found = Correction.of({"inverse": inverse}).enlarged(inverse, signed_rows(rows, -1))
    assert (found is None) == settles


def test_an_inverse_that_has_grown_a_hundredfold_is_due_for_a_new_one(tables):
    rows = tables.table({"u": "a"}, catalogue="abcdefgh")
    inverse = np.eye(8, dtype=np.float32) / 5.01
    found = Correction.of({"inverse": inverse})
    for _ in range(4):
        found = found.enlarged(inverse, signed_rows(rows, -1))
    assert found.diagonal[0] == pytest.approx(1 / 1.01, rel=1e-4)
    assert found.enlarged(inverse, signed_rows(rows, -1)) is None
