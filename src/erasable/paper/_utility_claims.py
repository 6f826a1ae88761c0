"""The paper's claims about utility and groupings, judged; claims that were not measured are left out.

Methods are compared case by case and seed by seed: a difference counts if the spread over seeds does not explain it.
"""

import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations, pairwise, product
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from erasable.paper._cells import RequestName
from erasable.paper._workbench import (
    PaperClaim,
    Row,
    Summary,
    Table,
    Verdict,
    labels,
    over_seeds,
    paired,
    pick,
    share_verdict,
    summary,
)

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


_FEWER = {"rand@2.5": "rand@5", "top@2.5": "top@5"}
_LASER = ("L-Rand", "L-BKM", "L-CBKM")
_LARGEST = 16
_DEVIATION = 1e-3
_MOST = 0.501
_NEARLY_ALL = "It holds if that is so in at least 95 per cent of the cases, in part if in at least half."
_TIES = "It is not decided if the ties could change that."
_RANKS = (
    f"It holds if the smallest of these correlations is at least {STRONG}, in part if it is at least {WEAK}. Retrain "
    "and a single group are left out."
)
_SIMILAR = f"Similar means that the means over the seeds differ by at most {SIMILAR:.0%} of the larger."


def claims(table: Table) -> list[PaperClaim]:
    """Judge the paper's claims; verdicts are about the first protocol and the metrics NDCG@10 and HR@10."""
    rows = judged(table)
    makers: Sequence[Callable[[Table], PaperClaim | None]] = (
        _better_than_sisa,
        _falls,
        _settles,
        _lasts,
        _cohesive_groups_help_dmf,
        _cohesive_groups_help_nmf,
        _groupings_meet,
        _sparse_groups_are_random,
        _fewer_agree,
        _little_deviation,
    )
    return [claim for make in makers if (claim := make(rows)) is not None]


def _better_than_sisa(rows: Table) -> PaperClaim | None:
    mean, own = (compare(grouped(rows), "L-Rand", rival) for rival in ("C-SISA", "C-SISA own"))
    if not mean:
        return None
    measured = f"Against C-SISA's mean of all models, L-Rand is {tally(mean)}; {mean_difference(mean)}."
    if own:
        measured += (
            f" Against the model of the user's own group (C-SISA own) it is {tally(own)}; {mean_difference(own)}."
        )
    return PaperClaim(
        "L-Rand outperforms C-SISA in all testing cases.",
        f"A case is a model, a request, a number of groups above 1 and a metric. {COUNTS} {_NEARLY_ALL} {_TIES} The "
        "verdict is about C-SISA as the paper has it, which scores with the mean of all models.",
        measured,
        tally(mean).verdict(),
    )


def _falls(rows: Table) -> PaperClaim | None:
    pairs = [pair for one in _LASER for pair in compare(grouped(rows), one, "Retrain")]
    if not pairs:
        return None
    found = tally(pairs)
    return PaperClaim(
        "More groups usually come with a loss of utility.",
        f"A case is a way of grouping, a model, a request, a number of groups above 1 and a metric. {COUNTS} It holds "
        f"if LASER is lower than Retrain in at least 95 per cent of the cases, in part if in at least half. {_TIES}",
        f"LASER is {found}. {_losses(rows)}",
        found.reversed().verdict(),
    )


def _settles(rows: Table) -> PaperClaim | None:
    courses = [course for course in _courses(rows) if len(course) > 2]
    if not courses:
        return None
    stable = sum(map(_is_stable, courses))
    return PaperClaim(
        "The difference between Retrain and the other methods becomes stable as the number of groups grows.",
        "A case is a method of the paper, a model, a request and a metric. The difference is stable if it changes over "
        "the last step between numbers of groups by at most half of its largest change before, counted from one group, "
        f"or by no more than the two standard deviations together. {_NEARLY_ALL}",
        f"Stable in {stable} of {len(courses)} cases. {_losses(rows)}",
        share_verdict(stable / len(courses)),
    )


def _courses(rows: Table) -> Iterator[list[Summary]]:
    """Yield each case's means by number of groups; Retrain's mean is constant, so the gap to it changes as they do."""
    for method in ("C-SISA", *_LASER):
        found: dict[tuple[str, ...], dict[int, Summary]] = {}
        for row, mean in over_seeds([row for row in pick(rows, method=method) if row["request"] in REQUESTS]):
            found.setdefault((row["model"], row["request"], row["metric"]), {})[row["groups"]] = mean
        yield from ([means[groups] for groups in sorted(means)] for means in found.values())


def _is_stable(course: Sequence[Summary]) -> bool:
    *before, last = (abs(later.mean - earlier.mean) for earlier, later in pairwise(course))
    return last <= max(before) / 2 or last <= course[-1].deviation + course[-2].deviation


def _losses(rows: Table) -> str:
    lost = {}
    for groups in sorted(labels(grouped(rows), "groups")):
        pairs = [pair for one in _LASER for pair in compare(pick(grouped(rows), groups=groups), one, "Retrain")]
        shares = [1 - pair.one.mean / pair.other.mean for pair in pairs if pair.other.mean]
        if shares:
            lost[groups] = 100 * statistics.mean(shares)
    said = ", ".join(f"{loss:.1f} with {groups} groups" for groups, loss in lost.items())
    return f"LASER loses, in per cent of Retrain's value, on average {said}." if said else ""


def _lasts(rows: Table) -> PaperClaim | None:
    after = [request for request in ("rand@5", "top@5", *_FEWER) if request in labels(rows, "request")]
    found = _correlations(pick(rows, metric=METRICS[0]), ((request, "learn") for request in after))
    if not found:
        return None
    return PaperClaim(
        "Good performance in learning leads to good performance in unlearning.",
        "For each model and request: the rank correlation, over methods and numbers of groups, of NDCG@10 after "
        f"learning and after forgetting. {_RANKS}",
        _told(found),
        correlation_verdict(found.values()),
    )


def _correlations(rows: Table, requests: Iterable[tuple[str, str]]) -> dict[str, float]:
    """Return the rank correlation of two requests over methods and numbers of groups, for each model and metric."""
    found = {}
    for (one, other), model, metric in product(requests, labels(rows, "model"), labels(rows, "metric")):
        first, second = (_means(pick(rows, model=model, metric=metric), request) for request in (one, other))
        both = [place for place in first if place in second]
        if len(both) > 2:
            values = ([means[place] for place in both] for means in (first, second))
            found[f"{model.upper()} {one} {metric.upper()}"] = rank_correlation(*values)
    return found


def _means(rows: Table, request: str) -> dict[tuple[str, int], float]:
    points = over_seeds([row for row in grouped(rows, [request]) if row["method"] != "Retrain"])
    return {(row["method"], row["groups"]): mean.mean for row, mean in points}


def _told(correlations: dict[str, float]) -> str:
    return "Correlations: " + ", ".join(f"{name} {value:.2f}" for name, value in correlations.items()) + "."


def _cohesive_groups_help_dmf(rows: Table) -> PaperClaim | None:
    found = _cbkm_against_others(pick(grouped(rows), model="dmf"))
    return _cohesive_groups_help("DMF: L-CBKM outperforms the other groupings in most testing cases.", found)


def _cohesive_groups_help_nmf(rows: Table) -> PaperClaim | None:
    fewer = [row for row in pick(grouped(rows), model="nmf") if row["groups"] != _LARGEST]
    said = "NMF: as for DMF, L-CBKM outperforms the other groupings in most testing cases, except with 16 groups."
    return _cohesive_groups_help(said, _cbkm_against_others(fewer))


def _cbkm_against_others(rows: Table) -> dict[str, list[MethodComparison]]:
    found = {rival: compare(rows, "L-CBKM", rival) for rival in ("L-Rand", "L-BKM")}
    return {rival: pairs for rival, pairs in found.items() if pairs}


def _cohesive_groups_help(said: str, found: dict[str, list[MethodComparison]]) -> PaperClaim | None:
    if not found:
        return None
    each = (f"Against {rival}, L-CBKM is {tally(pairs)}; {mean_difference(pairs)}." for rival, pairs in found.items())
    return PaperClaim(
        said,
        f"A case is a request, a number of groups and a metric. {COUNTS} It holds if L-CBKM is higher in more "
        "than half of the cases against each of L-Rand and L-BKM, in part if against one of them; it is not decided "
        "if the ties could change that.",
        " ".join(each),
        _against_each([tally(pairs).verdict(whole=_MOST, part=_MOST) for pairs in found.values()]),
    )


def _against_each(verdicts: Sequence[Verdict]) -> Verdict:
    if all(verdict == "holds" for verdict in verdicts):
        return "holds"
    if "holds" in verdicts:
        return "holds in part"
    return "not decided" if "not decided" in verdicts else "does not hold"


def _groupings_meet(rows: Table) -> PaperClaim | None:
    largest = pick(grouped(rows), model="nmf", groups=_LARGEST)
    pairs = [pair for one, other in combinations(_LASER, 2) for pair in compare(largest, one, other)]
    return _similar("NMF with 16 groups: all groupings achieve similar performance.", "two groupings", pairs)


def _sparse_groups_are_random(rows: Table) -> PaperClaim | None:
    pairs = compare(grouped(rows), "L-BKM", "L-Rand")
    what = "L-BKM and L-Rand with a model, a number of groups above 1"
    claim = _similar("L-BKM achieves similar performance to L-Rand.", what, pairs)
    return claim and PaperClaim(claim.said, claim.rule, f"{claim.measured} L-BKM is {tally(pairs)}.", claim.verdict)


def _similar(said: str, what: str, pairs: Sequence[MethodComparison]) -> PaperClaim | None:
    if not pairs:
        return None
    alike = sum(pair.similar for pair in pairs)
    middle, most = (100 * find(pair.difference for pair in pairs) for find in (statistics.median, max))
    return PaperClaim(
        said,
        f"A case is {what}, a request and a metric. {_SIMILAR} {_NEARLY_ALL}",
        f"Similar in {alike} of {len(pairs)} cases; the means differ by {middle:.1f} per cent (median), at most by "
        f"{most:.1f}.",
        share_verdict(alike / len(pairs)),
    )


def _fewer_agree(rows: Table) -> PaperClaim | None:
    found = _correlations(rows, _FEWER.items())
    if not found:
        return None
    less, more = (compare(grouped(rows, requests), "L-Rand", "C-SISA") for requests in (_FEWER, _FEWER.values()))
    against = f" L-Rand against C-SISA: {tally(less)} with 2.5; {tally(more)} with 5." if less and more else ""
    return PaperClaim(
        "The results for K = 2.5 are consistent with those for K = 5.",
        "For each model, kind of request and metric: the rank correlation, over methods and numbers of groups, of "
        f"what is left after forgetting 2.5 and 5 per cent. {_RANKS}",
        _told(found) + against,
        correlation_verdict(found.values()),
    )


def _little_deviation(rows: Table) -> PaperClaim | None:
    deviations = [found.deviation for _, found in over_seeds(_distinct(rows)) if found.seeds > 1]
    if not deviations:
        return None
    small = sum(deviation < _DEVIATION for deviation in deviations)
    middle, most = statistics.median(deviations), max(deviations)
    return PaperClaim(
        "Standard deviations are under 0.001.",
        "A case is a model, a method, a number of groups, a request and a metric; its standard deviation is taken over "
        f"the seeds, which change groups, holdout and training alike. {_NEARLY_ALL}",
        f"Under 0.001 in {small} of {len(deviations)} cases; the median is {middle:.4f}, the largest {most:.4f}.",
        share_verdict(small / len(deviations)),
    )


def _distinct(rows: Table) -> list[Row]:
    """Return each cell's rows once: Retrain, and every method with one group, occur several times."""
    once = pick(rows, method="Retrain", groups=min(labels(rows, "groups"), default=1))
    return once + [row for row in grouped(rows, labels(rows, "request")) if row["method"] != "Retrain"]
