import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from erasable.models.machine import top_items

NOTHING = np.empty(0, dtype=np.int64)
FEW_SCORES = st.sampled_from([-np.inf, -1.0, -0.0, 0.0, 0.5, 2.0])  # so that ties abound


def full_sort(scores, k, excluded):
    items = [item for item in range(len(scores)) if item not in set(excluded)]
    return sorted(items, key=lambda item: (-scores[item], item))[:k]


@given(st.data())
def test_equals_a_full_sort(data):
    scores = data.draw(st.lists(st.one_of(FEW_SCORES, st.floats(width=32, allow_nan=False)), max_size=60))
    excluded = data.draw(st.sets(st.integers(0, len(scores) - 1))) if scores else set()
    k = data.draw(st.integers(0, len(scores) + 2))
    found = top_items(np.array(scores, np.float32), k, np.array(sorted(excluded), np.int64))
    assert found.tolist() == full_sort(scores, k, excluded)


def test_ties_at_the_border_go_to_the_lowest_numbers():
    assert top_items(np.zeros(1000, np.float32), 3, NOTHING).tolist() == [0, 1, 2]


def test_an_excluded_item_never_appears_even_if_nothing_else_is_left():
    assert top_items(np.array([3.0, 2.0, 1.0]), 2, np.array([0, 1])).tolist() == [2]
    assert top_items(np.array([3.0]), 2, np.array([0])).tolist() == []


@pytest.mark.parametrize("k", [0, -1])
def test_no_items_wanted_gives_none(k):
    assert top_items(np.array([3.0, 2.0]), k, NOTHING).tolist() == []


def test_the_scores_stay_as_they_are():
    scores = np.array([3.0, 1.0, 2.0])
    scores.setflags(write=False)
    top_items(scores, 2, np.array([0]))
    assert scores.tolist() == [3.0, 1.0, 2.0]
