"""Quality for some of the people or items: by activity, by popularity, or by an attribute of items."""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from erasable.chain.dataset import Dataset
from erasable.errors import WrongUse, option, said
from erasable.evaluation.utility import Measured, Metric, Ranking, Slice, Utility, measured

ACTIVITY, POPULARITY = "activity", "popularity"
_ACTIVITY_FROM = (1, 5, 20, 100)  # everyone has one interaction in training
_POPULARITY_FROM = (0, 10, 100, 1000)
FEWEST = 10
"""How many people a slice must have to be shown."""
MOST_VALUES = 20
"""How many values of an attribute have a slice of their own: those of the most people."""
OTHERS = "all others"
UNKNOWN = "unknown"

_Mask = NDArray[np.bool_]


def band_of(number: int, beginnings: Sequence[int]) -> str:
    """Return the band that a number is in, given where each begins.

    >>> band_of(3, (0, 5, 20)), band_of(5, (0, 5, 20)), band_of(1200, (0, 1000))
    ('0–4', '5–19', '1,000 and more')
    """
    place = int(np.searchsorted(beginnings, number, side="right")) - 1
    if place + 1 == len(beginnings):
        return f"{beginnings[place]:,} and more"
    return f"{beginnings[place]:,}–{beginnings[place + 1] - 1:,}"


def assess(
    dataset: Dataset,
    rankings: Sequence[Ranking],
    protocol: str,
    metrics: Sequence[Metric],
    by: str | None = None,
    attributes: Mapping[int, str] | None = None,
) -> Utility:
    """Return the quality of what was ranked, with intervals, and slices by activity, popularity or an attribute.

    `attributes` gives the value of each item that has the attribute. It changes and stores nothing.
    """
    found, seed = measured(dataset, rankings, metrics), dataset.config.seed
    slices: tuple[Slice, ...] = ()
    if by == ACTIVITY:
        names = [band_of(one.learned, _ACTIVITY_FROM) for one in rankings]
        order = [band_of(begin, _ACTIVITY_FROM) for begin in _ACTIVITY_FROM]
        parts = {name: (found, np.array([own == name for own in names])) for name in order}
        slices = _slices(parts, seed)
    elif by is not None:
        if protocol == "held-out-only":
            raise WrongUse(
                "held-out-only ranks the test items among themselves, so slices of items say nothing: give ",
                option("by", ACTIVITY),
                ", or another ",
                option("protocol"),
            )
        slices = _slices(_by_item(dataset, rankings, metrics, by, attributes or {}), seed)
    return Utility(protocol, len(rankings), found.means(), found.intervals(seed), slices)


def newcomers_note(rankings: Sequence[Ranking]) -> tuple[str, ...]:
    """Say so if more than half of the people are in the first slice by activity, as after a split by time."""
    first = band_of(_ACTIVITY_FROM[0], _ACTIVITY_FROM)
    if 2 * sum(one.learned < _ACTIVITY_FROM[1] for one in rankings) <= len(rankings):
        return ()
    return (
        said(
            f"more than half of the people measured have {first} interactions in training, since newcomers keep one: "
            "the figures are mostly theirs; tell them apart with ",
            option("by", ACTIVITY),
        ),
    )


def _by_item(
    dataset: Dataset, rankings: Sequence[Ranking], metrics: Sequence[Metric], by: str, attributes: Mapping[int, str]
) -> dict[str, tuple[Measured, _Mask]]:
    """Return, for each slice of the test items, the metrics with only those to be found, and who has any."""
    if by == POPULARITY:
        had = dataset.counts.trained
        label = {item: band_of(int(had[item]), _POPULARITY_FROM) for item in range(len(had))}
        nobody, order = band_of(0, _POPULARITY_FROM), [band_of(begin, _POPULARITY_FROM) for begin in _POPULARITY_FROM]
    else:
        label, nobody = dict(attributes), UNKNOWN
        people = Counter(name for one in rankings for name in {label.get(item, nobody) for item in one.items})
        order = [name for name, _ in sorted(people.items(), key=lambda one: (-one[1], one[0]))]
        label |= {item: OTHERS for item, name in attributes.items() if name in order[MOST_VALUES:]}
        nobody = OTHERS if UNKNOWN in order[MOST_VALUES:] else UNKNOWN
        order = [*order[:MOST_VALUES], *([OTHERS] if order[MOST_VALUES:] else [])]
    finding = [metric for metric in metrics if metric.finds]
    parts = dict[str, tuple[Measured, _Mask]]()
    for name in order:
        own = [[item for item in one.items if label.get(item, nobody) == name] for one in rankings]
        there = np.array([bool(items) for items in own])
        narrowed = [one._replace(items=items) for one, items in zip(rankings, own, strict=True)]
        parts[name] = measured(dataset, narrowed, finding), there
    return parts


def _slices(parts: Mapping[str, tuple[Measured, _Mask]], seed: int) -> tuple[Slice, ...]:
    """Return the slices that have people; those of too few are not shown.

    If those have too few people together, the next smallest is not shown either: else what is left of the
    whole when the others are taken away would show them.
    """
    sizes = {name: int(rows.sum()) for name, (_, rows) in parts.items() if rows.any()}
    by_size = sorted(sizes, key=lambda name: sizes[name])
    left_out = [name for name in by_size if sizes[name] < FEWEST]
    while left_out and len(left_out) < len(by_size):
        together = np.logical_or.reduce([parts[name][1] for name in left_out])
        if together.sum() >= FEWEST:
            break
        left_out.append(by_size[len(left_out)])
    shown = {name: parts[name] for name in sizes if name not in left_out}
    return tuple(
        Slice(name, sizes[name], shown[name][0].means(shown[name][1]), shown[name][0].intervals(seed, shown[name][1]))
        if name in shown
        else Slice(name, None)
        for name in sizes
    )
