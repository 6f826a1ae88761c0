"""Who is an anchor depends on seed and own id alone."""

import numpy as np
import pytest

from erasable.data import Ids
from erasable.grouping.registry import anchors_among

EVERYONE = Ids.of(f"user {number}" for number in range(4000))


@pytest.mark.parametrize("share", [0.05, 0.3, 0.9])
def test_about_as_many_are_anchors_as_the_share_says(share):
    assert np.mean(anchors_among(EVERYONE, share, seed=0)) == pytest.approx(share, abs=0.03)


def test_of_everyone_all_are():
    assert anchors_among(EVERYONE, 1.0, seed=0).all()


def test_who_is_one_stays_one_whoever_leaves():
    everyone = anchors_among(EVERYONE, 0.3, seed=3)
    some = np.arange(0, len(EVERYONE), 7)
    assert (anchors_among(EVERYONE.take(some), 0.3, seed=3) == everyone[some]).all()


def test_a_larger_share_adds_anchors_and_takes_none():
    fewer, more = (anchors_among(EVERYONE, share, seed=0) for share in (0.2, 0.4))
    assert (more >= fewer).all()


def test_another_seed_chooses_others():
    assert (anchors_among(EVERYONE, 0.5, seed=0) != anchors_among(EVERYONE, 0.5, seed=1)).any()
