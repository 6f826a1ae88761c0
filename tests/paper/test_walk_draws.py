import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from erasable.paper._walks import first_above, fraction
from erasable.seeding import mix


@given(key=st.integers(0, 2**64 - 1), counter=st.integers(0, 2**40))
@settings(deadline=None, max_examples=60)
def test_a_fraction_is_the_upper_53_bits_of_the_draw(key, counter):
    bits = mix(np.array([key], dtype=np.uint64), np.array([counter], dtype=np.uint64))[0]
    drawn = fraction(np.uint64(key), counter)
    assert drawn == (int(bits) >> 11) / 2**53
    assert 0 <= drawn < 1


def test_fractions_are_spread_evenly():
    drawn = [fraction(np.uint64(7), counter) for counter in range(10_000)]
    counts = np.histogram(drawn, bins=20, range=(0, 1))[0]
    assert chisquare(counts).pvalue > 1e-3


@pytest.mark.parametrize(
    ("target", "place"), [(0, 0), (1.9, 0), (2, 1), (2.9, 1), (3, 3), (6.9, 3), (7, 3), (100, 3)], ids=str
)
def test_the_first_place_above_a_target_is_found(target, place):
    # Place 2 adds nothing, so no target falls on it; a target that nothing exceeds falls on the last place.
    assert first_above(np.array([2.0, 3.0, 3.0, 7.0]), float(target)) == place
    assert first_above(np.array([2, 3, 3, 7]), float(target)) == place


@given(steps=st.lists(st.integers(0, 5), min_size=1, max_size=40), target=st.floats(0, 210))
@settings(deadline=None, max_examples=100)
def test_the_search_agrees_with_looking_at_every_place(steps, target):
    sums = np.cumsum(steps)
    above = [place for place, total in enumerate(sums) if total > target]
    place = first_above(sums, target)
    assert place == (above[0] if above else len(sums) - 1)
    assert place == first_above(sums.astype(np.float64), target)


def test_a_place_is_chosen_in_proportion_to_what_it_adds():
    weights = np.array([1.0, 4.0, 0.5, 2.5, 2.0])
    sums = np.cumsum(weights)
    places = [first_above(sums, fraction(np.uint64(11), counter) * sums[-1]) for counter in range(10_000)]
    counts = np.bincount(places, minlength=len(weights))
    assert chisquare(counts, weights / weights.sum() * counts.sum()).pvalue > 1e-3
    assert chisquare(counts).pvalue < 1e-9
