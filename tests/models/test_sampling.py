import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from erasable.models._batches import missing_item, shuffled


@given(st.integers(0, 300), st.integers(0, 2**64 - 1))
@settings(deadline=None, max_examples=60)
def test_a_shuffle_holds_every_number_once(count, key):
    assert sorted(shuffled(count, np.uint64(key)).tolist()) == list(range(count))


def test_a_shuffle_is_a_function_of_its_key():
    first, again, other = (shuffled(50, np.uint64(key)).tolist() for key in (1, 1, 2))
    assert first == again != other


def test_every_number_is_as_likely_in_every_place():
    count, repeats = 6, 12_000
    orders = np.array([shuffled(count, np.uint64(key)) for key in range(repeats)])
    counts = np.array([np.bincount(orders[:, place], minlength=count) for place in range(count)])
    expected = repeats / count
    # Chi-square with (6 − 1)² = 25 degrees of freedom: above 52.6 once in a thousand; the keys are fixed.
    assert ((counts - expected) ** 2 / expected).sum() < 52.6


def test_every_order_of_four_is_as_likely():
    repeats = 24_000
    orders = np.array([shuffled(4, np.uint64(key)) for key in range(repeats)])
    counts = np.unique(orders @ [64, 16, 4, 1], return_counts=True)[1]
    # Chi-square with 4! − 1 = 23 degrees of freedom: above 49.7 once in a thousand.
    assert len(counts) == 24
    assert ((counts - 1000) ** 2 / 1000).sum() < 49.7


@given(st.integers(1, 40), st.data())
@settings(deadline=None, max_examples=100)
def test_the_missing_items_are_counted_off_in_order(catalogue, data):
    owned = data.draw(st.sets(st.integers(0, catalogue - 1), max_size=catalogue - 1))
    missing = [item for item in range(catalogue) if item not in owned]
    column = np.array(sorted(owned), dtype=np.int32)
    assert [missing_item(column, rank) for rank in range(len(missing))] == missing


@pytest.mark.parametrize(
    ("owned", "missing"),
    [
        ([], [0, 1, 2, 3]),
        ([0, 1], [2, 3]),
        ([2, 3], [0, 1]),
        ([0, 3], [1, 2]),
        ([1, 2, 3], [0]),
        ([0, 1, 2], [3]),
    ],
)
def test_missing_items_of_a_catalogue_of_four(owned, missing):
    found = [missing_item(np.array(owned, dtype=np.int32), rank) for rank in range(len(missing))]
    assert found == missing
