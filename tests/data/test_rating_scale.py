import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from erasable.data import RatingScale, recognise_scale
from erasable.data.interactions import KNOWN_SCALES
from erasable.errors import DataRefused, WrongUse


@pytest.mark.parametrize(
    ("ratings", "name"),
    [
        ([1, 1], "1"),
        ([0, 1], "0–1"),
        ([0.2], "0–1"),
        ([1, 4], "1–5"),
        ([2, 3.5], "1–5"),
        ([0.5, 5], "0.5–5"),
        ([0, 5], "0–5"),
        ([1, 7], "1–10"),
        ([0, 10], "0–10"),
    ],
)
def test_the_first_scale_that_contains_the_ratings_is_recognised(ratings, name):
    assert str(recognise_scale(ratings)) == name


@pytest.mark.parametrize("ratings", [[11], [1, 100], [np.nan], []])
def test_anything_else_is_refused_with_the_remedy(ratings):
    with pytest.raises(DataRefused, match=r"rating_scale=\(LOW, HIGH\)"):
        recognise_scale(ratings)


def test_no_scale_goes_below_0_so_that_ratings_have_to_be_shifted():
    with pytest.raises(DataRefused, match="ratings from -1 to 1 go below 0: shift them"):
        recognise_scale([-1, 1])


@pytest.mark.parametrize(("low", "high"), [(5, 1), (-1, 0), (0, np.inf), (np.nan, 1), (0, 1e20)])
def test_a_scale_that_makes_no_sense_is_refused(low, high):
    with pytest.raises(WrongUse, match="rating_scale needs"):
        RatingScale(low, high)


def test_the_first_rating_outside_is_refused_and_its_row_is_named():
    RatingScale(1, 6).check([1, 6, 7 - 1])
    with pytest.raises(DataRefused, match=r"^row 2: rating 6 lies outside the scale 1–5: correct it"):
        RatingScale(1, 5).check([1, 6, 7])


def test_single_precision_does_not_push_a_rating_off_the_scale():
    assert RatingScale(0.7, 0.9).contains(np.array([0.7, 0.9], dtype=np.float32))


@given(st.sampled_from(KNOWN_SCALES), st.data())
def test_removing_ratings_never_takes_the_others_off_a_frozen_scale(scale, data):
    ratings = data.draw(st.lists(st.floats(scale.low, scale.high, width=32), min_size=1))
    frozen = recognise_scale(ratings)
    gone = data.draw(st.integers(0, len(ratings) - 1))
    assert frozen.contains(np.delete(ratings, gone))


def test_a_scale_that_was_recognised_equals_one_that_was_given_to_the_byte():
    recognised = recognise_scale(np.array([1, 5], dtype=np.float32))
    assert repr(recognised) == repr(RatingScale(1.0, 5.0)) == repr(RatingScale(1, 5))
