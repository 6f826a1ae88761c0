"""How what scale.py measured grows, and what follows for other sizes; extrapolation.py and year_of_requests.py use it.

A part's seconds and memory grow with one amount, which is declared below. The line through the two largest sizes that
were measured says what a unit of it costs. Where all sizes have about the same amount, as rows of a bucket, the cost is
in proportion to it. The exponent between these sizes says whether a line is the right curve: well above 1 it is not.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import log, log10
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from scipy.optimize import nnls

from erasable.chain.buckets import cuts
from reporting import RESULTS
from scale import KEPT, MANY, SIZES, Size

TARGET = Size(users=100_000_000, items=200_000, interactions=10_000_000_000)
"""The issue's size; items as they grew from 0.1 to 10 million people."""
PROCESS_GB = 0.28
"""The memory of a process that has only imported what it needs (results/scan_speed.json, peak_mb_of_imports)."""
SERVER_START = 3.4
"""Seconds in which server and worker import what they need: `erasable serve --help` takes 1.7, twice."""
_APART = 3  # times as large: below that, two amounts say nothing about growth

Facts = Mapping[str, Any]
Measured = Mapping[str, Mapping[str, Facts]]
"""What was measured: by part, then by size."""

# Used for a part of which results/scale/ has no file: what scale.py measured of 0.3.0 in the making, on two busy cores.
PRELIMINARY: Measured = {
    "make": {"10M": {"cpu": 22.25, "memory_gb": 0.33, "made": {"bytes": 413_534_848}}},
    "learn-als": {
        "0.1M": {"cpu": 12.99, "memory_gb": 0.69, "disk_gb": 0.007},
        "1M": {"cpu": 37.25, "memory_gb": 1.17, "disk_gb": 0.045},
        "10M": {"cpu": 599.29, "memory_gb": 2.51, "disk_gb": 0.359},
    },
    "learn-ease": {
        "0.1M": {"cpu": 7.73, "memory_gb": 0.86, "disk_gb": 0.02},
        "1M": {"cpu": 39.34, "memory_gb": 1.83, "disk_gb": 0.073},
    },
    "scan-als": {
        "0.1M": {"cpu": 2.58, "start": 1.71, "memory_gb": 0.38},
        "1M": {"cpu": 5.03, "start": 1.81, "memory_gb": 0.39},
    },
    "recommend-als": {
        "0.1M": {"cpu_beyond_start": 0.52, "memory_gb": 0.35},
        "1M": {"cpu_beyond_start": 0.91, "memory_gb": 0.39},
    },
    "forget-one-als": {
        "0.1M": {"cpu_beyond_start": 1.35, "start": 1.68, "memory_gb": 0.37},
        "1M": {"cpu_beyond_start": 2.53, "start": 2.22, "memory_gb": 0.4},
    },
    "forget-1000-als": {"0.1M": {"cpu": 18.12, "memory_gb": 0.42}, "1M": {"cpu": 31.78, "memory_gb": 0.72}},
    "forget-anchor-als": {
        "0.1M": {"cpu_beyond_start": 2.72, "memory_gb": 0.46},
        "1M": {"cpu_beyond_start": 8.9, "memory_gb": 0.97},
    },
    "forget-one-ease": {
        "0.1M": {"cpu_beyond_start": 1.7, "memory_gb": 0.47},
        "1M": {"cpu_beyond_start": 7.92, "memory_gb": 0.99},
    },
    "serve-als": {
        "0.1M": {"cpu_until_first_answer": 4.05, "memory_gb": 0.4},
        "1M": {"cpu_until_first_answer": 4.49, "memory_gb": 0.57},
    },
}


def measured_in(folder: Path = KEPT) -> Measured:
    """Return what was measured; parts that are not there at any size are preliminary."""
    found: dict[str, dict[str, Facts]] = {}
    for file in sorted(folder.glob("*.json")):
        facts = json.loads(file.read_text())
        if facts["size"] in SIZES and facts["size"] != "trial":
            found.setdefault(facts["part"], {})[facts["size"]] = facts
    return {**PRELIMINARY, **found}


def is_preliminary(measured: Measured, part: str) -> bool:
    """Whether a part comes from this file and not from results/scale/."""
    return measured.get(part) is PRELIMINARY.get(part)


def buckets_of(size: Size) -> int:
    """Return how many buckets there are.

    >>> [buckets_of(Size(people, 1, 1)) for people in (100_000, 1_000_000, 10_000_000, 100_000_000)]
    [2, 16, 256, 2048]
    """
    return len(cuts(size.users)) - 1


def touched(buckets: int, people: int) -> float:
    """Return in how many buckets so many people lie, on average: a hash deals them out.

    >>> touched(2, 1), touched(2, 2), round(touched(2048, 274))
    (1.0, 1.5, 257)
    """
    return buckets * (1 - (1 - 1 / buckets) ** people)


def rows(size: Size) -> float:
    """Return the number of rows."""
    return size.interactions


def pairs(size: Size) -> float:
    """Return about how many pairs of items the people have: rows, times the rows of one person."""
    return size.interactions * size.interactions / size.users


def rows_of_a_bucket(size: Size) -> float:
    """Return how many rows a bucket has."""
    return size.interactions / buckets_of(size)


def rows_of_many(size: Size) -> float:
    """Return how many rows the buckets of 1,000 people have."""
    return rows_of_a_bucket(size) * touched(buckets_of(size), MANY)


AMOUNTS: Mapping[str, Callable[[Size], float]] = {
    "rows": rows,
    "pairs of items": pairs,
    "rows of a bucket": rows_of_a_bucket,
    "rows of their buckets": rows_of_many,
}


@dataclass(frozen=True)
class Line:
    """A cost that grows in a line with an amount."""

    fixed: float
    rate: float
    exponent: float | None
    """How it grew between the two largest sizes; None if only one was measured, or they have the same amount."""
    largest: tuple[float, float]
    """The largest amount that was measured, and what it cost."""

    def at(self, amount: float) -> float:
        """Return the cost of an amount."""
        return self.fixed + self.rate * amount

    def at_most(self, amount: float) -> float:
        """Return the cost of an amount if it goes on to grow faster than in a line, as it was measured to."""
        known, cost = self.largest
        return max(self.at(amount), cost * (amount / known) ** max(1.0, self.exponent or 1.0))


def line_through(points: Sequence[tuple[float, float]], base: float = 0.0) -> Line:
    """Return the line through the two largest of (amount, cost); one alone is in proportion, above a base.

    >>> line = line_through([(10, 3.0), (100, 12.0)])
    >>> line.fixed, line.rate, line.at(1000)
    (2.0, 0.1, 102.0)
    >>> line_through([(10, 3.0)], base=1.0).at(100)
    21.0
    """
    *others, (amount, cost) = sorted(points)
    before = [point for point in others if point[0] * _APART <= amount]
    if not before:
        amount, cost = fmean(point[0] for point in points), fmean(point[1] for point in points)
    if not before or before[-1][1] >= cost:
        above = max(0.0, cost - base)
        return Line(min(base, cost), above / amount, None, (amount, cost))
    known, earlier = before[-1]
    rate = (cost - earlier) / (amount - known)
    exponent = log(cost / earlier) / log(amount / known) if earlier > 0 else None
    return Line(max(0.0, cost - rate * amount), rate, exponent, (amount, cost))


def beyond_start(facts: Facts) -> float:
    """Return the processor's seconds of a part, without the start of a process where that was measured.

    Forgetting keeps its search. The search that scale.py leaves out of it is for somebody who is there, and to explain
    what it finds takes longer than to find nothing.
    """
    for name in ("cpu_beyond_start", "cpu_until_first_answer"):
        if name in facts:
            return float(facts[name])
    return float(facts["cpu"] - facts.get("start", 0.0))


def seconds_line(measured: Measured, part: str, amount: str) -> Line:
    """Return how the seconds of a part grow with an amount; those of a server are above the start of its processes."""
    points = [(AMOUNTS[amount](SIZES[size]), beyond_start(one)) for size, one in measured[part].items()]
    return line_through(points, base=SERVER_START if part.startswith("serve") else 0.0)


def memory_line(measured: Measured, part: str, amount: str) -> Line:
    """Return how the memory of a part in GB grows with an amount."""
    points = [(AMOUNTS[amount](SIZES[size]), one["memory_gb"]) for size, one in measured[part].items()]
    return line_through(points, base=PROCESS_GB)


def disk_line(measured: Measured, part: str) -> Line:
    """Return how a workspace grows with rows, in GB."""
    return line_through([(SIZES[size].interactions, one["disk_gb"]) for size, one in measured[part].items()])


@dataclass(frozen=True)
class BatchCosts:
    """What a batch of requests costs, in seconds of one core."""

    start: float
    """Starting a worker."""
    fixed: float
    """What is done once for each batch: plan, counts, commit."""
    bucket: float
    """Reading, writing and hashing a bucket."""
    person: float
    """Taking a request, certifying, and the like."""
    anchors: float
    """Training again, once if there is an anchor."""
    scan: float
    """Searching all files for one person."""
    scan_of_many: float
    """How many times as long searching for 1,000 takes."""
    buckets: int

    def erasing(self, people: int, with_anchors: bool) -> float:
        """Return the seconds until the version without them is there."""
        rewritten = self.bucket * touched(self.buckets, people)
        return self.fixed + rewritten + self.person * people + with_anchors * self.anchors

    def searching(self, people: int) -> float:
        """Return the seconds of the search: more people take longer, by the logarithm of their number."""
        return self.scan * searched_for(people, self.scan_of_many)

    def slower(self, times: float) -> "BatchCosts":
        """Return the costs on a slower machine."""
        seconds = ("start", "fixed", "bucket", "person", "anchors", "scan")
        return replace(self, **{name: times * getattr(self, name) for name in seconds})


def searched_for(people: int, of_many: float) -> float:
    """Return how many times as long as for one it takes to search for so many.

    >>> [round(searched_for(people, 1.6), 1) for people in (1, 10, 1000)]
    [1.0, 1.2, 1.6]
    """
    return 1 + (of_many - 1) * log10(people) / log10(MANY)


def scan_of_many() -> float:
    """Return how many times as long a search for 1,000 people takes as for one, as scan_speed.py measured it."""
    found = json.loads((RESULTS / "scan_speed.json").read_text())
    return found["people_1000"]["whole_folder_cpu_seconds"] / found["people_1"]["whole_folder_cpu_seconds"]


def batch_costs(measured: Measured, size: Size = TARGET) -> BatchCosts:
    """Return what a batch costs at a size: ALS with 5 % anchors."""
    many = scan_of_many()
    fixed, searched, rewritten, person = _parts_of_forgetting(measured, many)
    costs = BatchCosts(
        start=fmean(facts["start"] for facts in measured["forget-one-als"].values()),
        fixed=fixed,
        bucket=rewritten * rows_of_a_bucket(size),
        person=person,
        anchors=0.0,
        scan=searched * rows(size),
        scan_of_many=many,
        buckets=buckets_of(size),
    )
    with_training = seconds_line(measured, "forget-anchor-als", "rows").at(rows(size))
    return replace(costs, anchors=max(0.0, with_training - costs.erasing(1, False) - costs.searching(1)))


def _parts_of_forgetting(measured: Measured, of_many: float) -> tuple[float, ...]:
    """Return the seconds of a batch, of a searched row, of a rewritten row, and of a person.

    They are the best fit to one and to 1,000 forgotten at each size; none is below 0, and each measurement counts by
    how many per cent it is missed.
    """
    amounts, seconds = [], []
    one, many = measured["forget-one-als"], measured["forget-1000-als"]
    for name, facts in one.items():
        amounts.append((1.0, rows(SIZES[name]), rows_of_a_bucket(SIZES[name]), 1.0))
        seconds.append(beyond_start(facts))
    start = fmean(facts["start"] for facts in one.values())
    for name, facts in many.items():
        amounts.append((1.0, rows(SIZES[name]) * of_many, rows_of_many(SIZES[name]), float(MANY)))
        seconds.append(facts["cpu"] - one.get(name, {"start": start})["start"])
    units = np.array([1.0, 1e7, 1e6, 1e3])  # so that all columns have about the same size
    # Buckets of all sizes are alike: only many at once tell a batch from a bucket. Till then buckets bear both.
    share = np.array([len(many) > 1, True, True, True]) / units
    fitted, _ = nnls(np.array(amounts) * share / np.array(seconds)[:, None], np.ones(len(seconds)))
    return tuple((fitted * share).tolist())


def largest_of(measured: Measured, part: str) -> str:
    """Return the largest size at which a part was measured.

    >>> largest_of({"scan-als": {"1M": {}, "10M": {}, "0.1M": {}}}, "scan-als")
    '10M'
    """
    return max(measured[part], key=lambda name: SIZES[name].users)


def smallest_that(too_much: Callable[[float], bool], low: float = 1e5, high: float = 1e12) -> float | None:
    """Return the smallest number of people at which something holds, to a per cent; None if it never does."""
    if not too_much(high):
        return None
    steps = np.geomspace(low, high, 1 + int(log(high / low) / log(1.01)))
    return next((float(after) for _, after in pairwise(steps) if too_much(after)), None)
