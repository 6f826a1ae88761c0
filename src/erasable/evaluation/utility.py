"""How good recommendations are: metrics by name, over what was ranked for people, with intervals over people."""

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from erasable.chain.dataset import Dataset
from erasable.errors import WrongUse, option
from erasable.evaluation._lists import as_table, coverage, diversity, novelty
from erasable.evaluation.metrics import (
    LIKED,
    average_precision,
    hit_rate,
    liked_ndcg,
    liked_share,
    ndcg,
    precision,
    recall,
    reciprocal_rank,
)
from erasable.models.machine import one_blas_thread
from erasable.seeding import child_key
from erasable.wording import listed

CUTOFFS = (10, 20)
_LONGEST_OF_PAIRS = 100  # 4,950 pairs for each person
RESAMPLES = 1000
CONFIDENCE = 0.95

_Finds: TypeAlias = Callable[[Sequence[Hashable], Collection[Hashable], int], float]
_FINDING: Mapping[str, _Finds] = {
    "hr": hit_rate,
    "ndcg": ndcg,
    "recall": recall,
    "precision": precision,
    "map": average_precision,
    "mrr": reciprocal_rank,
}
"""Metrics of one person's list and what was to be found."""
_OF_LISTS = ("novelty", "diversity", "coverage")
"""Metrics of recommended lists, which need nothing to be found; coverage is one of all lists together."""
METRICS = (*_FINDING, *_OF_LISTS)
"""The names of all metrics, without a cutoff."""


class Metric(NamedTuple):
    """A metric and how many of the ranked items count, such as ndcg@10."""

    name: str
    k: int

    def __str__(self) -> str:
        return f"{self.name}@{self.k}"

    @property
    def finds(self) -> bool:
        """Whether it depends on what is to be found."""
        return self.name in _FINDING


def metric_named(text: str) -> Metric:
    """Return the metric that a text such as ndcg@10 names.

    >>> metric_named("map@5")
    Metric(name='map', k=5)
    """
    name, sign, cutoff = text.strip().lower().partition("@")
    if name in METRICS and sign and cutoff.isascii() and cutoff.isdigit() and int(cutoff) > 0:
        return Metric(name, int(cutoff))
    near = "".join(get_close_matches(name, METRICS, n=1))
    k = cutoff if cutoff.isascii() and cutoff.isdigit() and int(cutoff) > 0 else "10"
    meant = f"did you mean {near}@{k}? Else write" if near else "write"
    such = "" if near else ", such as ndcg@10"
    raise WrongUse(f"there is no metric {text!r}: {meant} {listed(METRICS)} with a cutoff{such}")


USUAL_METRICS = tuple(Metric(name, k) for k in CUTOFFS for name in ("hr", "ndcg", "recall"))
"""What certificates hold, and `measure` gives by default."""


def all_metrics(protocol: str) -> tuple[Metric, ...]:
    """Return all metrics that a protocol has, the usual ones first: only whole lists are what someone would see."""
    further = METRICS if protocol == "whole-catalogue" else tuple(_FINDING)
    others = (Metric(name, k) for k in CUTOFFS for name in further)
    return tuple(dict.fromkeys([*USUAL_METRICS, *others]))


def metrics_named(names: Sequence[str], protocol: str) -> tuple[Metric, ...]:
    """Return the metrics that texts name; those of lists are refused where no list is one that someone would see."""
    if isinstance(names, str):
        raise WrongUse(f"give a list of metrics, such as [{names!r}]")
    metrics = tuple(dict.fromkeys(map(metric_named, names)))
    if not metrics:
        raise WrongUse("no metric is named: name one, such as ndcg@10")
    for metric in metrics:
        if metric.name not in _FINDING and protocol != "whole-catalogue":
            raise WrongUse(f"{metric} is of lists from the whole catalogue: leave it out, or ", option("protocol"))
        if metric.name == "diversity" and metric.k > _LONGEST_OF_PAIRS:
            raise WrongUse(f"{metric} compares all pairs of a list: give a cutoff of {_LONGEST_OF_PAIRS} at most")
    return metrics


def longest(metrics: Sequence[Metric]) -> int:
    """Return how many items must be ranked."""
    return max(metric.k for metric in metrics)


class Ranking(NamedTuple):
    """What was ranked for one person, and what was to be found; items by their numbers."""

    ranked: Sequence[int]
    """Best first, as many as the largest cutoff."""
    items: Sequence[int]
    """The test items."""
    shares: Sequence[float]
    """Their ratings as shares of the highest where ratings count; else none, and every item is to be found."""
    learned: int
    """How many interactions the person has in training."""


@dataclass(frozen=True)
class Slice:
    """How good recommendations are for some of the people or items.

    Attributes
    ----------
    name : str
        Which ones.
    users : int or None
        How many people were measured; None if the slice is not shown, because it or the rest would be of too few.
    values, intervals : mapping of str to float, and to two
        As in `Utility`; empty if the slice is not shown.

    Examples
    --------
    >>> Slice("1–4", users=None).values
    {}
    """

    name: str
    users: int | None
    values: Mapping[str, float] = field(default_factory=dict)
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)


@dataclass(frozen=True)
class Utility:
    """How good recommendations are.

    Attributes
    ----------
    protocol : str
        What was ranked.
    users : int
        How many users were measured.
    values : mapping of str to float
        The mean over users of each metric, such as `ndcg@10`.
    intervals : mapping of str to two floats
        The 95 per cent interval of each mean: the bootstrap over users. Coverage has none.
    slices : tuple of Slice
        The same for some of the people or items, if that was asked for.
    doubts, notes : tuple of str
        What makes the figures other than they seem, such as test rows that are also learned from; and what else is
        worth knowing about the test set.

    Examples
    --------
    >>> Utility("whole-catalogue", users=2, values={"ndcg@10": 0.25}).values["ndcg@10"]
    0.25
    """

    protocol: str
    users: int
    values: Mapping[str, float]
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    slices: tuple[Slice, ...] = ()
    doubts: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Measured:
    """The value of each metric for each person, and of those that only all people together have."""

    metrics: tuple[Metric, ...]
    """The columns of the table."""
    table: NDArray[np.float64]
    """A row for each person."""
    together: Mapping[Metric, float] = field(default_factory=dict)

    def means(self, rows: NDArray[np.bool_] | None = None) -> dict[str, float]:
        """Return the mean of each metric over all people, with those of all together; or over some."""
        chosen = self.table if rows is None else self.table[rows]
        values = dict(zip(map(str, self.metrics), np.mean(chosen, axis=0).tolist(), strict=True))
        return values if rows is not None else {**values, **{str(metric): it for metric, it in self.together.items()}}

    def intervals(self, seed: int, rows: NDArray[np.bool_] | None = None) -> dict[str, tuple[float, float]]:
        """Return the interval of each mean, by the bootstrap over people."""
        chosen = self.table if rows is None else self.table[rows]
        low, high = bootstrap(chosen, child_key(seed, "bootstrap"))
        return {
            str(metric): (float(one), float(other)) for metric, one, other in zip(self.metrics, low, high, strict=True)
        }


def bootstrap(values: NDArray[np.float64], key: int) -> NDArray[np.float64]:
    """Return the two ends of the 95 per cent percentile interval of each column's mean, over 1,000 resamples of rows.

    >>> bootstrap(np.array([[1.0, 0.0], [1.0, 1.0]]), key=3)
    array([[1., 0.],
           [1., 1.]])
    """
    people, draws = len(values), np.random.Generator(np.random.Philox(key))
    means = np.empty((RESAMPLES, values.shape[1]))
    with one_blas_thread():
        for one in range(RESAMPLES):
            times = np.bincount(draws.integers(0, people, people), minlength=people)
            means[one] = times.astype(np.float64) @ values / people
    return np.quantile(means, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2], axis=0)


def measured(dataset: Dataset, rankings: Sequence[Ranking], metrics: Sequence[Metric]) -> Measured:
    """Work out metrics from what was ranked for each person."""
    columns = {metric: _found(rankings, metric) for metric in metrics if metric.finds}
    cutoffs = sorted({metric.k for metric in metrics if not metric.finds})
    lists = as_table([one.ranked[: max(cutoffs)] for one in rankings] if cutoffs else [])
    spread = [metric.k for metric in metrics if metric.name == "diversity"]
    apart = diversity(dataset, lists, spread) if spread else {}
    together = dict[Metric, float]()
    for metric in metrics:
        first = lists[:, : metric.k]
        match metric.name:
            case "novelty":
                columns[metric] = novelty(first, dataset.counts.trained, dataset.users)
            case "diversity":
                columns[metric] = apart[metric.k]
            case "coverage":
                together[metric] = coverage(first, len(dataset.items))
    named = tuple(metric for metric in metrics if metric in columns)
    table = np.stack([columns[metric] for metric in named], axis=1) if named else np.empty((len(rankings), 0))
    return Measured(named, np.ascontiguousarray(table), together)


def _found(rankings: Sequence[Ranking], metric: Metric) -> NDArray[np.float64]:
    return np.array([_value(one, metric) for one in rankings], np.float64)


def _value(ranking: Ranking, metric: Metric) -> float:
    ranked, k = ranking.ranked, metric.k
    if not ranking.shares:
        return _FINDING[metric.name](ranked, frozenset(ranking.items), k)
    ratings = dict(zip(ranking.items, ranking.shares, strict=True))
    match metric.name:
        case "hr":
            return liked_share(ranked, ratings, k)
        case "ndcg":
            return liked_ndcg(ranked, ratings, k)
        case _:
            liked = frozenset(item for item, share in ratings.items() if share >= LIKED)
            return _FINDING[metric.name](ranked, liked, k)
