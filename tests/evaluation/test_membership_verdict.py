"""What follows from an attack's success: areas, intervals and verdicts."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from erasable.evaluation.attack import (
    LOOKS,
    AttackMeasurements,
    AttackResult,
    Interval,
    area_under_curve,
    interval,
    judge,
    overall,
    verdict_of,
)

PEOPLE = 60
ERASED = np.arange(PEOPLE) < PEOPLE // 2


def chains(generator, count: int, known: float = 0.0) -> list[np.ndarray]:
    """Make up chains: every person has an own level, every chain a level, a scale and heavy-tailed noise of its own."""
    people = np.random.default_rng(7).normal(0, 3, (len(LOOKS), PEOPLE))
    return [
        people
        + generator.normal(0, 5)
        + generator.uniform(0.5, 1.5) * generator.standard_t(4, (len(LOOKS), PEOPLE))
        + known * ERASED
        for _ in range(count)
    ]


class TestArea:
    def test_counts_pairs_and_halves_of_equal_ones(self):
        values, erased = np.array([2.0, 1.0, 1.0, 0.0]), np.array([True, False, True, False])
        # 2 beats both; 1 equals one and beats the other.
        assert area_under_curve(values, erased) == (2 + 0.5 + 1) / 4

    @given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=2))
    def test_is_the_share_of_pairs(self, rows):
        values, erased = np.array([float(value) for value, _ in rows]), np.array([flag for _, flag in rows])
        if erased.all() or not erased.any():
            return
        pairs = [(a > b) + 0.5 * (a == b) for a in values[erased] for b in values[~erased]]
        assert area_under_curve(values, erased) == pytest.approx(np.mean(pairs))
        assert area_under_curve(values, ~erased) == pytest.approx(1 - np.mean(pairs))


def test_an_interval_is_students_for_four_looks_together():
    # Deviation √2.5; the 0.99375 quantile of t with 4 degrees of freedom is 4.3147.
    found = interval(np.array([1.0, 2, 3, 4, 5]), 1 / math.sqrt(5))
    assert found.mean == 3
    assert (found.high - 3, 3 - found.low) == pytest.approx((4.3147 * math.sqrt(0.5),) * 2, rel=1e-4)


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [
        ((0.4, 0.3, 0.5), (0.0, -0.1, 0.1), "forgotten"),
        ((0.4, 0.3, 0.5), (-0.3, -0.4, -0.2), "forgotten"),
        ((0.4, 0.3, 0.5), (0.1, 0.01, 0.2), "remembers"),
        ((0.4, 0.3, 0.5), (0.4, 0.3, 0.5), "remembers"),
        # It does not succeed before, whatever it does after.
        ((0.2, 0.0, 0.4), (0.0, -0.1, 0.1), "worthless here"),
        ((0.1, -0.1, 0.3), (0.4, 0.3, 0.5), "worthless here"),
        # After forgetting anything may be, from nothing to all that was there before.
        ((0.4, 0.1, 0.7), (0.2, -0.1, 0.5), "worthless here"),
    ],
)
def test_an_attack_must_succeed_before_and_fail_after(before, after, verdict):
    assert verdict_of(Interval(*before), Interval(*after)) == verdict


@pytest.mark.parametrize(
    ("verdicts", "verdict"),
    [
        (("forgotten", "remembers", "worthless here"), "remembers"),
        (("worthless here", "forgotten"), "forgotten"),
        (("worthless here", "worthless here"), "worthless here"),
    ],
)
def test_one_attack_that_still_succeeds_is_enough(verdicts, verdict):
    nothing = Interval(0.5, 0.5, 0.5)
    findings = [AttackResult("loss", "as served", nothing, nothing, nothing, nothing, one) for one in verdicts]
    assert overall(findings) == verdict


class TestJudge:
    def probe(self, before=4.0, after=0.0, seeds=5, seed=0):
        generator = np.random.default_rng(seed)
        return AttackMeasurements(
            chains(generator, seeds, before), chains(generator, seeds, after), chains(generator, seeds), ERASED
        )

    def test_every_look_has_a_finding_of_its_own(self):
        found = judge(self.probe())
        assert [(one.attack, one.view) for one in found] == list(LOOKS)
        assert len({one.before for one in found}) == len(LOOKS)

    @pytest.mark.parametrize(
        ("before", "after", "verdict"),
        [(4.0, 0.0, "forgotten"), (4.0, 4.0, "remembers"), (4.0, 2.0, "remembers"), (0.0, 0.0, "worthless here")],
    )
    def test_says_what_was_planted(self, before, after, verdict):
        assert {one.verdict for one in judge(self.probe(before, after))} == {verdict}

    def test_people_are_compared_with_what_references_say_of_them(self):
        """Without that, the people's own levels would hide the difference."""
        measured = self.probe(before=2.0)
        raw = [area_under_curve(chain[0], ERASED) for chain in measured.before]
        assert judge(measured)[0].before.mean > np.mean(raw) + 0.1

    def test_never_is_a_guess_on_average(self):
        assert [one.never.mean for one in judge(self.probe())] == pytest.approx([0.5] * len(LOOKS), abs=0.05)

    def test_the_difference_is_that_of_forgotten_and_never_and_has_their_interval(self):
        for one in judge(self.probe(after=1.0)):
            assert one.difference.mean == pytest.approx(one.forgotten.mean - one.never.mean)
            assert one.forgotten.low == pytest.approx(one.never.mean + one.difference.low)

    def test_areas_lie_between_0_and_1(self):
        for one in judge(self.probe(before=100.0, seeds=3)):
            assert (one.before.mean, one.before.high) == (1, 1)
            assert 0 <= one.never.low <= one.never.high <= 1

    def test_a_single_chain_must_lie_where_one_more_would(self):
        measured = self.probe()
        same = [measured.forgotten[0]] * 5
        several = judge(AttackMeasurements(measured.before, same, measured.never, ERASED))
        single = judge(AttackMeasurements(measured.before, same[:1], measured.never, ERASED))
        for one, other in zip(several, single, strict=True):
            widths = [found.difference.high - found.difference.low for found in (one, other)]
            assert widths[1] == pytest.approx(widths[0] * math.sqrt(6))
            assert other.difference.mean == one.difference.mean


@pytest.mark.full
@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("seeds", [3, 5])
def test_a_model_that_has_forgotten_is_hardly_ever_accused(seeds, single):
    generator = np.random.default_rng(seeds)
    accused = 0
    for _ in range(300):
        forgotten = chains(generator, 1 if single else seeds)
        measured = AttackMeasurements(chains(generator, seeds, 6.0), forgotten, chains(generator, seeds), ERASED)
        accused += overall(judge(measured)) == "remembers"
    # 2.5 % is what the intervals promise at most; 5 % of 300 with two deviations.
    assert accused <= 15
