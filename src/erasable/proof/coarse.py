"""Figures for certificates, so coarse that neither one nor two in a row reveal one person's data."""

from bisect import bisect_right
from collections.abc import Mapping

SHARES = {0.01: "< 1 %", 0.05: "< 5 %", 0.2: "< 20 %", 0.5: "< 50 %"}
DURATIONS = {600.0: "< 10 minutes", 3600.0: "< 1 hour", 86_400.0: "< 1 day"}
NONE, MORE, NOT_SAID = "none", "more", "not said"
_MORE_THAN_ANY_SHARE, _MORE_THAN_ANY_DURATION = "50 % or more", "1 day or more"
_GRAINS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
_PEOPLE_HIDDEN = 10


def share(ratio: float) -> str:
    """Return a share of the work as a range.

    >>> [share(ratio) for ratio in (0, 0.0001, 0.01, 0.199, 0.49, 1.04)]
    ['none', '< 1 %', '< 5 %', '< 20 %', '< 50 %', 'more']
    """
    return NONE if ratio == 0 else _below(ratio, SHARES)


def duration(seconds: float) -> str:
    """Return a duration as a range.

    >>> [duration(seconds) for seconds in (0.1, 600, 7200, 100_000)]
    ['< 10 minutes', '< 1 hour', '< 1 day', 'more']
    """
    return _below(seconds, DURATIONS)


def share_in_words(said: str) -> str:
    """Return a share from a certificate in words.

    >>> share_in_words("< 20 %"), share_in_words(MORE)
    ('< 20 %', '50 % or more')
    """
    return _MORE_THAN_ANY_SHARE if said == MORE else said


def duration_in_words(said: str) -> str:
    """Return a duration from a certificate in words.

    >>> duration_in_words("< 1 hour"), duration_in_words(MORE)
    ('< 1 hour', '1 day or more')
    """
    return _MORE_THAN_ANY_DURATION if said == MORE else said


def count(number: int) -> str:
    """Return a count as "below the next power of ten", at least ten.

    >>> [count(number) for number in (0, 9, 10, 1682)]
    ['< 10', '< 10', '< 100', '< 10,000']
    """
    return f"< {10 ** max(1, len(str(number))):,}"


def size(number: int) -> str:
    """Return a number of bytes as "below a power of ten" in megabytes.

    >>> size(1), size(48_300_000)
    ('< 1 MB', '< 100 MB')
    """
    return f"< {10 ** len(str(number // 1_000_000)):,} MB" if number >= 1_000_000 else "< 1 MB"


def grain_for(people: int) -> float:
    """Return the step for rounding measures over some people, wide enough to hide the scores of ten people.

    Two certificates in a row measure the same model with and without one person: subtracting finer figures would give
    that person's score. There are few steps, so that a step does not reveal the number of people.

    >>> [grain_for(people) for people in (3, 19, 943, 6040)]
    [1.0, 1.0, 0.02, 0.002]
    """
    return next(grain for grain in _GRAINS if grain >= _PEOPLE_HIDDEN / max(people, _PEOPLE_HIDDEN))


def rounded(value: float, grain: float) -> float:
    """Return a measure between 0 and 1, rounded to a step."""
    return min(1.0, round(round(value / grain) * grain, 4))


def _below(value: float, bounds: Mapping[float, str]) -> str:
    return [*bounds.values(), MORE][bisect_right([*bounds], value)]
