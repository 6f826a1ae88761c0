"""Figures told so coarsely that neither one of them, nor two in a row, tell how much one person had."""

from bisect import bisect_right
from collections.abc import Mapping

SHARES = {0.01: "< 1 %", 0.05: "< 5 %", 0.2: "< 20 %", 0.5: "< 50 %"}
DURATIONS = {600.0: "< 10 minutes", 3600.0: "< 1 hour", 86_400.0: "< 1 day"}
NONE, MORE, NOT_SAID = "none", "more", "not said"
_GRAINS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
_PEOPLE_HIDDEN = 10


def share(ratio: float) -> str:
    """Return a share of some work.

    >>> [share(ratio) for ratio in (0, 0.0001, 0.01, 0.199, 0.49, 1.04)]
    ['none', '< 1 %', '< 5 %', '< 20 %', '< 50 %', 'more']
    """
    return NONE if ratio == 0 else _below(ratio, SHARES)


def duration(seconds: float) -> str:
    """Return how long something took.

    >>> [duration(seconds) for seconds in (0.1, 600, 7200, 100_000)]
    ['< 10 minutes', '< 1 hour', '< 1 day', 'more']
    """
    return _below(seconds, DURATIONS)


def count(number: int) -> str:
    """Return the next power of ten, beginning with ten.

    >>> [count(number) for number in (0, 9, 10, 1682)]
    ['< 10', '< 10', '< 100', '< 10,000']
    """
    return f"< {10 ** max(1, len(str(number))):,}"


def size(number: int) -> str:
    """Return a number of bytes in megabytes.

    >>> size(1), size(48_300_000)
    ('< 1 MB', '< 100 MB')
    """
    return f"< {10 ** len(str(number // 1_000_000)):,} MB" if number >= 1_000_000 else "< 1 MB"


def grain_for(people: int) -> float:
    """Return the step that measures over some people are rounded to: so wide that ten people's scores hide in it.

    Two certificates in a row are about the same model measured on one person more and less: finer figures could be
    subtracted to give that person's own score. There are few steps, so that a step does not tell how many people.

    >>> [grain_for(people) for people in (3, 19, 943, 6040)]
    [1.0, 1.0, 0.02, 0.002]
    """
    return next(grain for grain in _GRAINS if grain >= _PEOPLE_HIDDEN / max(people, _PEOPLE_HIDDEN))


def rounded(value: float, grain: float) -> float:
    """Return a measure between 0 and 1, rounded to a step."""
    return min(1.0, round(round(value / grain) * grain, 4))


def _below(value: float, bounds: Mapping[float, str]) -> str:
    return [*bounds.values(), MORE][bisect_right([*bounds], value)]
