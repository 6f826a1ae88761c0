"""Compare methods case by case and seed by seed: a difference counts if the spread over seeds does not explain it."""

from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from erasable.paper._experiment import Row, Summary, Table, Verdict, labels, paired, pick, share_verdict, summary
from erasable.paper._settings import RequestName

METRICS = ("ndcg@10", "hr@10")
REQUESTS: tuple[RequestName, ...] = ("learn", "rand@5", "top@5")
"""The paper's requests; those with 2.5 per cent are in its appendix."""
COUNTS = (
    "Methods are compared seed by seed, since all share a seed's holdout; one is higher, or lower, if the 95 per cent "
    "interval of the mean difference (Student's t) excludes 0, else, and always with one seed, it is a tie."
)
SIMILAR = 0.05
STRONG, WEAK = 0.9, 0.5


class MethodComparison(NamedTuple):
    """One method against another in one case."""

    labels: Row
    one: Summary
    other: Summary
    differences: Summary
    """One minus other, seed by seed."""

    @property
    def outcome(self) -> Literal["higher", "tie", "lower"]:
        """Whether the mean difference is significant over the seeds (Student's t)."""
        gap, deviation, seeds = self.differences
        if seeds < 2 or abs(gap) <= float(special.stdtrit(seeds - 1, 0.975)) * deviation / seeds**0.5:
            return "tie"
        return "higher" if gap > 0 else "lower"

    @property
    def difference(self) -> float:
        """The difference as a share of the larger mean."""
        larger = max(self.one.mean, self.other.mean)
        return abs(self.one.mean - self.other.mean) / larger if larger else 0.0

    @property
    def similar(self) -> bool:
        """Whether the means differ by at most 5 %."""
        return self.difference <= SIMILAR


class Tally(NamedTuple):
    """How often the first method was higher, tied and lower."""

    higher: int
    ties: int
    lower: int

    def verdict(self, whole: float = 0.95, part: float = 0.5) -> Verdict:
        """Return whether the first is higher in nearly all cases, or in most; ties may leave that undecided."""
        least = share_verdict(self.higher / max(1, sum(self)), whole, part)
        most = share_verdict((self.higher + self.ties) / max(1, sum(self)), whole, part)
        return "not decided" if least == "does not hold" != most else least

    def reversed(self) -> "Tally":
        """Return the tally with the two methods exchanged."""
        return Tally(self.lower, self.ties, self.higher)

    def __str__(self) -> str:
        return f"higher in {self.higher} of {sum(self)} cases, tied in {self.ties}, lower in {self.lower}"


def judged(table: Table) -> list[Row]:
    """Return the rows that verdicts use: the first protocol and the paper's metrics."""
    protocols = labels(table, "protocol")
    return [row for row in pick(table, protocol=protocols[0]) if row["metric"] in METRICS] if protocols else []


def grouped(table: Table, requests: Iterable[str] = REQUESTS) -> list[Row]:
    """Return the rows of some requests, without those with one group, where all methods are the same."""
    wanted = set(requests)
    return [row for row in table if row["groups"] > 1 and row["request"] in wanted]


def compare(table: Table, one: str, other: str) -> list[MethodComparison]:
    """Compare two methods in each case and with each seed that both have."""
    pairs: dict[tuple[Any, ...], list[tuple[Row, Row]]] = {}
    for pair in paired(table, "method", one, other):
        pairs.setdefault(_case(pair[0]), []).append(pair)
    return [_comparison(found) for found in pairs.values()]


def _comparison(pairs: Sequence[tuple[Row, Row]]) -> MethodComparison:
    ones, others = zip(*pairs, strict=True)
    differences = [{"value": row["value"] - rival["value"]} for row, rival in pairs]
    return MethodComparison(dict(_case(ones[0])), summary(ones), summary(others), summary(differences))


def _case(row: Row) -> tuple[tuple[str, Any], ...]:
    return tuple(sorted((name, value) for name, value in row.items() if name not in ("method", "seed", "value")))


def tally(comparisons: Iterable[MethodComparison]) -> Tally:
    """Count the outcomes."""
    outcomes = [comparison.outcome for comparison in comparisons]
    return Tally(outcomes.count("higher"), outcomes.count("tie"), outcomes.count("lower"))


def mean_difference(comparisons: Sequence[MethodComparison]) -> str:
    """Say by how many per cent the first method's mean over all cases is above or below the other's."""
    one = sum(comparison.one.mean for comparison in comparisons)
    other = sum(comparison.other.mean for comparison in comparisons)
    share = 100 * (one / other - 1) if other else 0.0
    return f"{abs(share):.1f} per cent {'higher' if share >= 0 else 'lower'} on average"


def rank_correlation(one: Sequence[float], other: Sequence[float]) -> float:
    """Return Spearman's rank correlation; 0 if all values are the same.

    >>> rank_correlation([1, 2, 3], [10, 20, 15])
    0.5
    """
    ranks = np.array([_ranks(one), _ranks(other)])
    if not np.ptp(ranks, axis=1).all():
        return 0.0
    return round(float(np.corrcoef(ranks)[0, 1]), 6)


def _ranks(values: Sequence[float]) -> NDArray[np.float64]:
    """Return the rank of each value; equal values get their mean rank.

    SciPy has this too, in a module that takes as long to import as all the rest of a command.
    """
    _, inverse, counts = np.unique(np.asarray(values, np.float64), return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[inverse]


def correlation_verdict(correlations: Iterable[float]) -> Verdict:
    """Judge the smallest correlation: strong, weak or neither."""
    least = min(correlations)
    return "holds" if least >= STRONG else "holds in part" if least >= WEAK else "does not hold"
