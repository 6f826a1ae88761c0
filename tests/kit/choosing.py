"""Which cases of a test belong to the quick suite; all others are marked `full` and run with `scripts/test --all`."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from typing import Any

import pytest

quick_only = False
"""Whether only quick tests were chosen; tests/conftest.py says so before any test is read."""


def examples(quick: int, full: int) -> int:
    """Return how many random examples a test draws: few where only quick tests were chosen."""
    return quick if quick_only else full


def cases(named: Mapping[str, Any], quick: Collection[str]) -> list[Any]:
    """Return cases by name as parameters, each id its name; those that are not quick are full."""
    assert {*quick} <= named.keys(), f"there is no case {[*{*quick} - named.keys()]}"
    return [pytest.param(value, id=name, marks=_marks(name in quick)) for name, value in named.items()]


def numbers(every: Collection[int], quick: Collection[int]) -> list[Any]:
    """Return the same for cases that have a number and no name."""
    return cases({str(number): number for number in every}, [str(number) for number in quick])


def some(values: Collection[Any], quick: int) -> list[Any]:
    """Return cases without names as parameters, so many of them quick, as far apart as can be; a tuple is several."""
    taken = {round(step * (len(values) - 1) / max(1, quick - 1)) for step in range(quick)}
    return [
        pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=_marks(place in taken))
        for place, value in enumerate(values)
    ]


def pairs(
    first: Mapping[str, Any],
    second: Mapping[str, Any],
    each_first: int,
    each_second: int,
    fits: Callable[[str, str], bool] = lambda one, other: True,
) -> list[Any]:
    """Return the product of two lists as parameters, quick so many times each of the first and of the second.

    Which pairs are quick follows from the order alone: the diagonals of the product, one after the other, as long as
    they bring something that is still wanted.
    """
    found = _diagonals([*first], [*second], each_first, each_second, fits)
    return [
        pytest.param(one, other, id=f"{name}-{beside}", marks=_marks((name, beside) in found))
        for name, one in first.items()
        for beside, other in second.items()
        if fits(name, beside)
    ]


def _diagonals(
    first: list[str], second: list[str], each_first: int, each_second: int, fits: Callable[[str, str], bool]
) -> set[tuple[str, str]]:
    found, ones, others = set[tuple[str, str]](), Counter[str](), Counter[str]()
    for shift in range(max(len(first), len(second))):
        for step in range(max(len(first), len(second))):
            one, other = first[step % len(first)], second[(step + shift) % len(second)]
            wanted = ones[one] < each_first or others[other] < each_second
            if wanted and fits(one, other) and (one, other) not in found:
                found.add((one, other))
                ones[one] += 1
                others[other] += 1
    return found


def _marks(quick: bool) -> tuple[pytest.MarkDecorator, ...]:
    return () if quick else (pytest.mark.full,)
