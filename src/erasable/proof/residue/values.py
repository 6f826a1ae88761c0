"""A person's values rather than their name: personal rows as bytes, and runs of their interactions."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from erasable.data import Interactions
from erasable.proof.residue.columns import Floats

RUN = 3
"""How many interactions in a row tell whose they are."""
_DISTINCT = 3
_DAY = 86_400
_SMALLEST_TIME = 1_000_000

ROW_FORMATS = ("float32", "float64", "float16", "bfloat16")
TIME_FORMATS = ("float64", "int64")

Pair = tuple[str, float]


def row_spellings(row: NDArray[Any]) -> dict[bytes, str]:
    """Return a personal row in every format of numbers, in both byte orders; none if it tells nobody apart."""
    numbers = np.asarray(row, dtype=np.float64).ravel()
    if not tells_apart(numbers):
        return {}
    found: dict[bytes, str] = {}
    for name, array in _formats(row, numbers):
        if len(array.tobytes()) >= 8:
            found.setdefault(array.tobytes(), name)
            found.setdefault(array.byteswap().tobytes(), name)
    return found


def tells_apart(numbers: Floats) -> bool:
    """Whether a row holds at least three different numbers that are not zero."""
    return bool(np.all(np.isfinite(numbers))) and len(np.unique(numbers[numbers != 0])) >= _DISTINCT


def single(numbers: NDArray[Any]) -> NDArray[np.float32]:
    """Return numbers in single precision, in which decoded ones are compared."""
    with np.errstate(over="ignore", invalid="ignore"):
        return numbers.astype("<f4")


def _formats(row: NDArray[Any], numbers: Floats) -> Iterator[tuple[str, NDArray[Any]]]:
    with np.errstate(over="ignore"):
        yield "float32", numbers.astype("<f4")
        yield "float64", numbers.astype("<f8")
        half = numbers.astype("<f2")
    if tells_apart(half.astype(np.float64)):
        yield "float16", half
    bits = numbers.astype("<f4").view("<u4")
    # Rounded to even, as most do, and cut off.
    rounded = (bits.astype(np.uint64) + 0x7FFF + ((bits >> 16) & 1)) >> 16
    yield "bfloat16", rounded.astype("<u2")
    yield "bfloat16", (bits >> 16).astype("<u2")


@dataclass(frozen=True, eq=False)
class Runs:
    """Runs of three of a person's interactions, in the order of items and of times."""

    parts: tuple[Interactions, ...]

    @cached_property
    def items(self) -> frozenset[str]:
        """The items of all of them."""
        return frozenset(item for part in self.parts for item, _ in _pairs(part))

    @cached_property
    def by_rating(self) -> dict[tuple[Pair, ...], tuple[Pair, ...]]:
        """Items with their ratings: the first three of each run, and the run.

        Three equal ratings say little, so that all of the person's interactions must follow then.
        """
        found = {}
        for pairs in (order for part in self.parts for order in _orders(part)):
            if len({rating for _, rating in pairs}) == 1:
                found[tuple(pairs[:RUN])] = tuple(pairs)
                continue
            runs = (tuple(pairs[start : start + RUN]) for start in range(len(pairs) - RUN + 1))
            found |= {run: run for run in runs if len({rating for _, rating in run}) > 1}
        return {first: run for first, run in found.items() if len(first) == RUN}

    @cached_property
    def times(self) -> Floats:
        """Three different times in a row, a run a line.

        Dates without a time of day tell nobody apart, and numbers below a million may count anything.
        """
        known = [part.time[~np.isnan(part.time)] for part in self.parts if part.time is not None]
        orders = [order for one in known for order in (one, np.sort(one)) if len(order) >= RUN]
        windows = [np.lib.stride_tricks.sliding_window_view(order, RUN) for order in orders]
        runs = np.concatenate([np.empty((0, RUN)), *windows])
        different = (runs[:, 0] != runs[:, 1]) & (runs[:, 1] != runs[:, 2]) & (runs[:, 0] != runs[:, 2])
        fine = np.any(runs % _DAY != 0, axis=1) & np.all(runs >= _SMALLEST_TIME, axis=1)
        return np.unique(runs[different & fine], axis=0)

    def time_spellings(self) -> Iterator[tuple[bytes, str]]:
        """Yield the runs of times as bytes, with their format."""
        whole = self.times[np.all(self.times == np.trunc(self.times), axis=1) & np.all(self.times < 2**62, axis=1)]
        for name, runs in (("float64", self.times.astype("<f8")), ("int64", whole.astype("<i8"))):
            size = RUN * runs.itemsize
            content = runs.tobytes()
            yield from ((content[place : place + size], name) for place in range(0, len(content), size))

    def in_ratings(self, items: Sequence[str | None], ratings: Floats) -> bool:
        """Whether a run of items with their ratings is one of these."""
        pairs = [*zip(items, single(ratings).tolist(), strict=True)]
        known = self.by_rating
        return any(
            run is not None and tuple(pairs[start : start + len(run)]) == run
            for start in _starts(items, self.items)
            if (run := known.get(tuple(pairs[start : start + RUN]))) is not None  # type: ignore[arg-type]
        )

    def in_times(self, times: Floats) -> bool:
        """Whether a run of times is one of these."""
        return not self._time_runs.isdisjoint(zip(*(times[step:].tolist() for step in range(RUN)), strict=False))

    @cached_property
    def _time_runs(self) -> frozenset[tuple[float, ...]]:
        return frozenset(map(tuple, self.times.tolist()))


def _pairs(part: Interactions) -> list[Pair]:
    texts = part.items.array.take(part.item_index).to_pylist()
    return list(zip(texts, part.rating.tolist(), strict=True))


def _orders(part: Interactions) -> Iterator[list[Pair]]:
    pairs = _pairs(part)
    yield pairs
    if part.time is not None:
        yield [pairs[place] for place in np.argsort(part.time, kind="stable").tolist()]


def _starts(items: Sequence[str | None], known: frozenset[str]) -> Iterator[int]:
    places = [place for place, item in enumerate(items) if item in known]
    follows = [after - before == 1 for before, after in pairwise(places)]
    return (place for place, one, two in zip(places, follows, follows[1:], strict=False) if one and two)
