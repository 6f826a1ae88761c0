"""What an attack's success says: intervals over seeds and a verdict; what is measured lives in `membership`.

A chain that forgot someone exactly is a draw from the same distribution as a chain that never knew them: only the seed
differs. So chains, not people, are what is exchangeable, and the intervals are taken over seeds. Of each seed there are
three chains (before, forgotten, never), all compared with the same references, the never chains of the other seeds.
What these references have in common then cancels in the difference to never, up to the bend of the AUC, and the
differences of the seeds are as good as independent: Student's t-interval fits, few as they are. A bootstrap over five
seeds would be too narrow.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from erasable.evaluation.membership import LOOKS, Familiarity, Look, mid_ranks

Verdict = Literal["forgotten", "remembers", "worthless here"]
FEWEST_SEEDS = 3
CONFIDENCE = 0.95
"""How sure all looks are together: each interval is wider, as Bonferroni has it, so that a clean model stays clean."""


@dataclass(frozen=True)
class Interval:
    """A mean and the interval around it."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Finding:
    """How one attack did on the three kinds of chains, as the AUC of telling the erased people from others.

    The intervals of before and forgotten are those of their differences to never, moved up by the mean of never.
    """

    attack: str
    view: str
    before: Interval
    forgotten: Interval
    never: Interval
    difference: Interval
    """Forgotten less never: what the attack still gains from the people's having been there."""
    verdict: Verdict


@dataclass(frozen=True, eq=False)
class Measured:
    """How well the suspects are known, seed by seed, before forgetting, after it, and where they were never known."""

    before: Sequence[Familiarity]
    forgotten: Sequence[Familiarity]
    """For each seed, or of one chain only, if only one has forgotten."""
    never: Sequence[Familiarity]
    erased: NDArray[np.bool_]
    """Which of the suspects are those whom before knows and never does not."""

    @property
    def kinds(self) -> tuple[Sequence[Familiarity], ...]:
        """The three kinds of chains in their order."""
        return self.before, self.forgotten, self.never


def judge(measured: Measured) -> tuple[Finding, ...]:
    """Say of each look how its attack did and what follows."""
    return tuple(_finding(look, place, measured) for place, look in enumerate(LOOKS))


def overall(findings: Sequence[Finding]) -> Verdict:
    """Return `remembers` if any attack says so, `forgotten` if one that is worth something does, else neither."""
    verdicts: tuple[Verdict, ...] = ("remembers", "forgotten")
    return next((verdict for verdict in verdicts if any(one.verdict == verdict for one in findings)), "worthless here")


def area_under_curve(values: NDArray[np.float64], erased: NDArray[np.bool_]) -> float:
    """Return the chance that an erased person has the larger value than another one; equal values count half.

    >>> area_under_curve(np.array([3.0, 1.0, 2.0, 0.0]), np.array([True, True, False, False]))
    0.75
    """
    ours, others = int(erased.sum()), int((~erased).sum())
    return float((mid_ranks(values)[erased].sum() - ours * (ours + 1) / 2) / (ours * others))


def interval(values: NDArray[np.float64], spread: float) -> Interval:
    """Return the t-interval of a mean whose standard error is `spread` times the deviation of the values."""
    quantile = float(stdtrit(len(values) - 1, 1 - (1 - CONFIDENCE) / 2 / len(LOOKS)))
    mean, half = float(values.mean()), quantile * spread * float(values.std(ddof=1))
    return Interval(mean, mean - half, mean + half)


def verdict_of(gained_before: Interval, gained: Interval) -> Verdict:
    """Judge an attack by what it gains over never, on the chain before forgetting and on the one after.

    It must succeed before. If it can't even tell the chain that has forgotten from what it gains before, it is too
    coarse, and worth as little.
    """
    if gained_before.low <= 0:
        return "worthless here"
    if gained.low > 0:
        return "remembers"
    return "forgotten" if gained.high < gained_before.mean else "worthless here"


def _finding(look: Look, place: int, measured: Measured) -> Finding:
    before, forgotten, never = (_success(chains, place, measured) for chains in measured.kinds)
    seeds, middle = len(never), float(never.mean())
    mean_of_seeds = 1 / math.sqrt(seeds)
    # A single chain that claims to be one more of several lies in the interval of one more, not of their mean.
    one_more = math.sqrt(1 + 1 / seeds)
    gained_before = interval(before - never, mean_of_seeds)
    gained = interval(forgotten - never, one_more if len(measured.forgotten) == 1 else mean_of_seeds)
    return Finding(
        *look,
        before=_as_area(gained_before, middle),
        forgotten=_as_area(gained, middle),
        never=_as_area(interval(never, mean_of_seeds)),
        difference=gained,
        verdict=verdict_of(gained_before, gained),
    )


def _success(chains: Sequence[Familiarity], place: int, measured: Measured) -> NDArray[np.float64]:
    """Return the AUC on the chain of each seed, less what the never chains of the other seeds say of each person."""
    total = np.sum([never[place] for never in measured.never], axis=0)
    references = [(total - never[place]) / (len(measured.never) - 1) for never in measured.never]
    return np.array(
        [
            area_under_curve(chains[seed % len(chains)][place] - reference, measured.erased)
            for seed, reference in enumerate(references)
        ]
    )


def _as_area(found: Interval, middle: float = 0.0) -> Interval:
    """Return an interval around the middle as areas, which lie between 0 and 1."""
    return Interval(*(min(1.0, max(0.0, middle + value)) for value in (found.mean, found.low, found.high)))
