"""A year of erasure requests and one worker, simulated; year_of_requests.py runs it and says what came out.

Times are hours from the start of the year. A batch has two steps, as in the service: erasing, then searching and
certifying. A crash or an outage in a step loses what that step did; what came before is kept.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scale_growth import BatchCosts

Floats = NDArray[np.float64]
HOURS_OF_A_YEAR = 365 * 24.0
_GRID = 0.1  # hours between which the rate of arrivals is taken to be constant


@dataclass(frozen=True)
class Arrivals:
    """How requests arrive: at a constant rate, with bursts that jump up and fade away."""

    a_year: float = 100_000
    """How many on average: 1 in 1,000 of 100 million people."""
    bursts: int = 4
    """How often something in the news makes people ask; when is random."""
    height: float = 20
    """How many times the usual rate a burst begins with."""
    fading: float = 48
    """After how many hours what a burst adds is down to 1/e."""
    anchors: float = 0.05
    """The share of people who are anchors."""


@dataclass(frozen=True)
class Rule:
    """When a batch begins, and who is in it."""

    window: float
    """Within how many hours a request is to be carried out."""
    all_join: bool = False
    """Whether all that wait are part of a batch; else those that the service's rule lets join."""

    @property
    def begins_after(self) -> float:
        """How old a request is when it is due: a day before its window ends, or a quarter of the window."""
        return self.window - min(24.0, self.window / 4)

    @property
    def joins_after(self) -> float:
        """How old a request must be to join a batch before it is due: a day, or half of what it waits."""
        return 0.0 if self.all_join else min(24.0, self.begins_after / 2)


@dataclass(frozen=True)
class Failures:
    """What goes wrong."""

    crashes: float = 0.01
    """Crashes for each hour of work."""
    attempts: int = 6
    """How often a step is tried before it waits for somebody to look: the service's setting."""
    first_pause: float = 1 / 60
    """Hours until the second attempt; four times as long after each further one, at most six: the service's rule."""
    looked_at_after: float = 24.0
    """Hours until somebody looks; then it is tried again."""
    outages: float = 2.0
    """How many times a year, on average, nothing works for some days."""
    shortest: float = 24.0
    longest: float = 96.0
    """Hours of an outage: any number from the shortest to the longest."""


NONE_FAILS = Failures(crashes=0, outages=0)
Outages = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Requests:
    """When each was received, ascending, and whether it is an anchor's."""

    received: Floats
    anchor: NDArray[np.bool_]


@dataclass(frozen=True)
class Outcome:
    """What came of a year."""

    requests: Requests
    done: Floats
    """When each was certified."""
    began: Floats
    """When each batch began."""
    sizes: NDArray[np.int64]
    """How many requests each batch had."""
    working: float
    """Hours in which the worker worked, what was lost included."""
    crashes: int

    @property
    def waited(self) -> Floats:
        """How many hours each request waited for its certificate."""
        return self.done - self.requests.received

    def queue_at(self, times: Floats) -> NDArray[np.int64]:
        """Return how many requests are open at some times."""
        came = np.searchsorted(self.requests.received, times, side="right")
        return came - np.searchsorted(np.sort(self.done), times, side="right")


def arrivals_of(arrivals: Arrivals, chance: np.random.Generator, hours: float = HOURS_OF_A_YEAR) -> Requests:
    """Draw a year of requests: a Poisson process whose rate bursts, with the declared number on average."""
    middles = np.arange(_GRID / 2, hours, _GRID)
    rate = np.ones(len(middles))
    for begin in chance.uniform(0, hours, arrivals.bursts):
        since = middles - begin
        rate += (arrivals.height - 1) * np.where(since >= 0, np.exp(-np.maximum(since, 0) / arrivals.fading), 0)
    # Given how many there are, the times of a Poisson process are independent draws from its rate.
    count = chance.poisson(arrivals.a_year * hours / HOURS_OF_A_YEAR)
    cells = chance.choice(len(middles), size=count, p=rate / rate.sum())
    received = np.sort(_GRID * (cells + chance.random(count)))
    return Requests(received, chance.random(count) < arrivals.anchors)


def outages_of(failures: Failures, chance: np.random.Generator, hours: float = HOURS_OF_A_YEAR) -> Outages:
    """Draw when nothing works; outages do not overlap."""
    begins = np.sort(chance.uniform(0, hours, chance.poisson(failures.outages)))
    drawn: list[tuple[float, float]] = []
    for begin in begins.tolist():
        begin = max(begin, drawn[-1][1]) if drawn else begin
        drawn.append((begin, begin + chance.uniform(failures.shortest, failures.longest)))
    return drawn


class Machine:
    """One worker on some cores: how long work takes, with crashes and outages."""

    def __init__(self, failures: Failures, outages: Outages, chance: np.random.Generator) -> None:
        self._failures, self._outages, self._chance = failures, outages, chance
        self.working, self.crashes = 0.0, 0

    def up_at(self, time: float) -> float:
        """Return the first time from then on at which it works."""
        for begin, end in self._outages:
            if begin <= time < end:
                time = end
        return time

    def do(self, time: float, hours: float) -> float:
        """Do a step from a time on, as often as it takes, and return when it is done."""
        attempts = 0
        while True:
            time = self.up_at(time)
            crash = time + self._chance.exponential(1 / self._failures.crashes) if self._failures.crashes else np.inf
            outage = next((begin for begin, _ in self._outages if begin >= time), np.inf)
            end = min(time + hours, crash, outage)
            self.working += end - time
            if end == time + hours:
                return end
            time, attempts = end, attempts + (crash < outage)
            if crash < outage:
                self.crashes += 1
                time += self._pause(attempts)

    def _pause(self, attempts: int) -> float:
        failures = self._failures
        if attempts % failures.attempts == 0:
            return failures.looked_at_after
        return min(6.0, failures.first_pause * 4.0 ** (attempts % failures.attempts - 1))


def simulated(requests: Requests, rule: Rule, costs: BatchCosts, machine: Machine, cores: int = 1) -> Outcome:
    """Work off all requests, one batch after the other, and return what came of them."""
    received, anchor = requests.received, requests.anchor
    done = np.full(len(received), np.nan)
    begins = received + rule.begins_after
    first, now = 0, 0.0
    began, sizes = [], []
    while first < len(received):
        now = machine.up_at(max(now, begins[first]))
        batch = _batch(requests, done, rule, begins, first, now)
        people, with_anchors = len(batch), bool(anchor[batch].any())
        erasing = costs.start + costs.erasing(people, with_anchors) / cores
        began.append(now)
        sizes.append(people)
        now = machine.do(now, erasing / 3600)
        now = machine.do(now, costs.searching(people) / cores / 3600)
        done[batch] = now
        while first < len(received) and not np.isnan(done[first]):
            first += 1
    return Outcome(requests, done, np.array(began), np.array(sizes), machine.working, machine.crashes)


def _batch(requests: Requests, done: Floats, rule: Rule, begins: Floats, first: int, now: float) -> NDArray[np.int64]:
    """Return the requests that a batch takes: those that are due, and those that join as in the service.

    Whoever is no anchor costs nothing to train, and joins. An anchor joins if one is due, since training is done then.
    """
    due = np.searchsorted(begins, now, side="right")
    old = max(due, np.searchsorted(requests.received, now - rule.joins_after, side="right"))
    waiting = np.arange(first, old)
    waiting = waiting[np.isnan(done[first:old])]
    is_due, anchor = waiting < due, requests.anchor[waiting]
    joins = ~anchor if not rule.all_join and not anchor[is_due].any() else np.ones(len(waiting), bool)
    return waiting[is_due | joins]


def a_year(seed: int, rule: Rule, costs: BatchCosts, cores: int, arrivals: Arrivals, failures: Failures) -> Outcome:
    """Simulate a year; the same seed gives the same requests and outages, whatever the rule."""
    chances = [np.random.default_rng([seed, purpose]) for purpose in range(3)]
    requests = arrivals_of(arrivals, chances[0])
    return simulated(requests, rule, costs, Machine(failures, outages_of(failures, chances[1]), chances[2]), cores)
