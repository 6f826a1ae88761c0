"""Everything that is searched about some people, prepared for comparing values and for searching bytes."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from erasable.scan._search import Places, RawSearch, Values
from erasable.scan._target import SHORTEST, Encoding, Floats, Rows, Target, What, spellings

# A person's values instead of their id: personal rows as bytes, and runs of their interactions

RUN = 3
"""How many interactions in a row identify a person."""
_DISTINCT = 3
_DAY = 86_400
_SMALLEST_TIME = 1_000_000

ROW_FORMATS = ("float32", "float64", "float16", "bfloat16")
TIME_FORMATS = ("float64", "int64")

Pair = tuple[str, float]


def row_spellings(row: NDArray[Any]) -> dict[bytes, str]:
    """Return a personal row in every number format and both byte orders; none if it identifies nobody."""
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
    """Whether a row has at least three different numbers other than zero."""
    return bool(np.all(np.isfinite(numbers))) and len(np.unique(numbers[numbers != 0])) >= _DISTINCT


def single(numbers: NDArray[Any]) -> NDArray[np.float32]:
    """Return numbers in single precision, in which decoded numbers are compared."""
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
    # Rounded to even, as most libraries do, and truncated.
    rounded = (bits.astype(np.uint64) + 0x7FFF + ((bits >> 16) & 1)) >> 16
    yield "bfloat16", rounded.astype("<u2")
    yield "bfloat16", (bits >> 16).astype("<u2")


@dataclass(frozen=True, eq=False)
class Runs:
    """Runs of three interactions of a person, ordered by item and by time."""

    parts: tuple[Rows, ...]

    @cached_property
    def items(self) -> frozenset[str]:
        """All items."""
        return frozenset(item for part in self.parts for item in part.items)

    @cached_property
    def by_rating(self) -> dict[tuple[Pair, ...], tuple[Pair, ...]]:
        """Runs of items with ratings, by their first three.

        If a person's ratings are all equal, three say little, so all of the person's interactions must follow.
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
        """Runs of three different times, one in each row.

        Dates without a time of day identify nobody, and numbers below a million may be counts.
        """
        known = [times[~np.isnan(times)] for part in self.parts if (times := _by_item(part)[1]) is not None]
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

    @cached_property
    def item_values(self) -> Values:
        """All items, for comparing."""
        return Values.of(self.items)

    @cached_property
    def longest(self) -> int:
        """The most interactions in one run."""
        return max((len(run) for run in self.by_rating.values()), default=RUN)

    def in_ratings(self, items: Places, ratings: Floats) -> bool:
        """Whether rows contain one of these runs; items by their number in `item_values`, -1 for any other."""
        starts = np.flatnonzero((items[:-2] >= 0) & (items[1:-1] >= 0) & (items[2:] >= 0))
        if not len(starts):
            return False
        rated = single(ratings)
        codes = _pair_codes(items, rated)
        hashed = _hashed_runs(codes[starts], codes[starts + 1], codes[starts + 2])
        texts = self.item_values.texts
        for start in starts[np.isin(hashed, self._hashed)].tolist():
            stop = start + self.longest
            pairs = [
                *zip((texts[item] for item in items[start:stop].tolist()), rated[start:stop].tolist(), strict=True)
            ]
            run = self.by_rating.get(tuple(pairs[:RUN]))
            if run is not None and tuple(pairs[: len(run)]) == run and np.all(items[start : start + len(run)] >= 0):
                return True
        return False

    @cached_property
    def _hashed(self) -> NDArray[np.uint64]:
        """The first three pairs of each run, as one number."""
        places = {item: place for place, item in enumerate(self.item_values.texts)}
        firsts = [*self.by_rating]
        codes = [
            _pair_codes(
                np.array([places[run[step][0]] for run in firsts], dtype=np.int64),
                np.array([run[step][1] for run in firsts], dtype="<f4"),
            )
            for step in range(RUN)
        ]
        return _hashed_runs(*codes)

    def in_times(self, times: Floats) -> bool:
        """Whether the times contain one of these runs."""
        if len(times) < RUN or not len(self.times):
            return False
        firsts = pa.array(np.unique(self.times[:, 0]))
        starts = np.flatnonzero(np.asarray(pc.is_in(pa.array(times[: 1 - RUN]), value_set=firsts)))
        return any(tuple(times[start : start + RUN].tolist()) in self._time_runs for start in starts.tolist())

    @cached_property
    def _time_runs(self) -> frozenset[tuple[float, ...]]:
        return frozenset(map(tuple, self.times.tolist()))


def _pair_codes(items: Places, ratings: NDArray[np.float32]) -> NDArray[np.uint64]:
    bits = (ratings + np.float32(0)).view("<u4")  # -0 and 0 are equal
    return (items.astype(np.uint64) << np.uint64(32)) | bits.astype(np.uint64)


def _hashed_runs(one: NDArray[np.uint64], two: NDArray[np.uint64], three: NDArray[np.uint64]) -> NDArray[np.uint64]:
    factor = np.uint64(0x9E3779B97F4A7C15)
    return ((one * factor ^ two) * factor ^ three) * factor


def _by_item(part: Rows) -> tuple[list[Pair], Floats | None]:
    """Return items with ratings, and times, ordered by item id."""
    order = sorted(range(len(part.items)), key=part.items.__getitem__)
    ratings = np.asarray(part.ratings, dtype=np.float32)[order]
    pairs = [*zip([part.items[place] for place in order], ratings.tolist(), strict=True)]
    return pairs, None if part.times is None else np.asarray(part.times, dtype=np.float64)[order]


def _orders(part: Rows) -> Iterator[list[Pair]]:
    pairs, times = _by_item(part)
    yield pairs
    if times is not None:
        yield [pairs[place] for place in np.argsort(times, kind="stable").tolist()]


# What is searched


@dataclass(frozen=True, eq=False)
class Needle:
    """What the bytes of a needle mean."""

    what: What
    written: str
    """The encoding or the number format."""
    text: str = ""
    """The text, if it is one."""
    encoding: Encoding | None = None
    size: int = 0
    """How many bytes it has, if it is a text."""


_WHOLE_NUMBER, _SHORT_NUMBER = re.compile("-?[0-9]+"), re.compile(f"-?[0-9]{{1,{SHORTEST - 1}}}")
_LONGEST_ESCAPE = 12  # bytes for one letter, such as &#x1f600; or two JSON escapes
_ROWS = {name: Needle("personal row", name) for name in ROW_FORMATS}
_TIMES = {name: Needle("interactions", name) for name in TIME_FORMATS}


@dataclass(frozen=True, eq=False)
class Needles:
    """Bytes that are searched for together."""

    known: Mapping[bytes, Needle]

    @cached_property
    def search(self) -> RawSearch:
        """The bytes, prepared for searching."""
        return RawSearch.of(tuple(self.known))

    @cached_property
    def meanings(self) -> tuple[Needle, ...]:
        """What each of them means, in the same order."""
        return tuple(self.known.values())

    @cached_property
    def longest(self) -> int:
        """The length of the longest, as it is written or escaped."""
        escaped = (_LONGEST_ESCAPE * len(needle.text) for needle in self.known.values())
        return max((*map(len, self.known), *escaped), default=0)


@dataclass(frozen=True, eq=False)
class Wanted:
    """What must not be left after the erasure of some people."""

    targets: Sequence[Target]

    @cached_property
    def ids(self) -> frozenset[str]:
        """The ids of people who were erased completely."""
        return frozenset(target.user for target in self.targets if target.items is None)

    @cached_property
    def id_values(self) -> Values:
        """The same, for comparing."""
        return Values.of(self.ids)

    @cached_property
    def long_ids(self) -> frozenset[str]:
        """Those of 8 bytes or more, which are not found by chance."""
        return frozenset(user for user in self.ids if len(user.encode()) >= SHORTEST)

    @cached_property
    def long_numbers(self) -> frozenset[str]:
        """Those that are decimal numbers."""
        return frozenset(user for user in self.long_ids if re.fullmatch("[0-9]+", user))

    @cached_property
    def number_values(self) -> Values:
        """The same, for comparing."""
        return Values.of(self.long_numbers)

    @cached_property
    def telling_values(self) -> Values:
        """All ids but numbers of fewer than 8 digits, which may count or measure something, for comparing."""
        return Values.of(user for user in self.ids if not _SHORT_NUMBER.fullmatch(user))

    @cached_property
    def whole_numbers(self) -> Mapping[str, frozenset[str]]:
        """The ids that are whole numbers, by the number: 007 is 7 where a column holds numbers."""
        found: dict[str, frozenset[str]] = {}
        for user in filter(_WHOLE_NUMBER.fullmatch, self.ids):
            sign, digits = ("-" if user[0] == "-" else ""), user.lstrip("-").lstrip("0") or "0"
            found[sign + digits] = found.get(sign + digits, frozenset()) | {user}
        return found

    @cached_property
    def whole_values(self) -> Values:
        """The same numbers, for comparing."""
        return Values.of(self.whole_numbers)

    @cached_property
    def pairs(self) -> Mapping[str, frozenset[str]]:
        """The erased items of people who stay."""
        found: dict[str, frozenset[str]] = {}
        for target in self.targets:
            if target.items is not None and target.user not in self.ids:
                found[target.user] = found.get(target.user, frozenset()) | frozenset(target.items)
        return found

    @cached_property
    def pair_users(self) -> Values:
        """The people who stay."""
        return Values.of(self.pairs)

    @cached_property
    def pair_items(self) -> Values:
        """Their erased items."""
        return Values.of({item for items in self.pairs.values() for item in items})

    @cached_property
    def texts(self) -> frozenset[str]:
        """Other texts that must be gone."""
        return frozenset(text for target in self.targets for text in target.texts if text)

    @cached_property
    def text_values(self) -> Values:
        """The same, for comparing."""
        return Values.of(self.texts)

    @cached_property
    def own_items(self) -> frozenset[str]:
        """Items that are gone with them."""
        return frozenset(item for target in self.targets for item in target.own_items)

    @cached_property
    def item_values(self) -> Values:
        """The same, for comparing."""
        return Values.of(self.own_items)

    @cached_property
    def runs(self) -> Runs:
        """Their interactions as values."""
        return Runs(tuple(target.rows for target in self.targets if target.rows is not None))

    @cached_property
    def long_texts(self) -> Needles:
        """Long ids and texts, in every encoding."""
        return Needles(_text_needles(self.texts, "text") | _text_needles(self.long_ids, "id"))

    @cached_property
    def personal_rows(self) -> Needles:
        """Personal rows, in every format."""
        rows = (row_spellings(row) for target in self.targets for row in target.personal)
        return Needles({content: _ROWS[name] for one in rows for content, name in one.items()})

    @cached_property
    def single_rows(self) -> Needles:
        """Personal rows in single precision, in which decoded numbers are compared."""
        rows = (np.asarray(row, dtype=np.float64) for target in self.targets for row in target.personal)
        return Needles({single(row).tobytes(): _ROWS["float32"] for row in rows if tells_apart(row)})

    @cached_property
    def shortest_row(self) -> int:
        """The length of the shortest personal row; 0 without any."""
        return min((len(content) // 4 for content in self.single_rows.known), default=0)

    @cached_property
    def overlap(self) -> int:
        """How many rows of a table must be seen together to find values that stand in several."""
        longest_row = max((len(content) // 4 for content in self.single_rows.known), default=0)
        return max(longest_row, self.runs.longest if self.runs.parts else 0, 1) - 1

    @cached_property
    def times(self) -> Needles:
        """Runs of times, in every format."""
        return Needles({content: _TIMES[name] for content, name in self.runs.time_spellings()})

    @cached_property
    def raw_text(self) -> Needles:
        """Everything that is searched among the bytes of texts and tables."""
        known = self.personal_rows.known
        return Needles({**known, **self.long_texts.known}) if known else self.long_texts

    @cached_property
    def raw(self) -> Needles:
        """Everything that is searched among other bytes."""
        known = self.times.known
        return Needles({**known, **self.raw_text.known}) if known else self.raw_text


def _text_needles(texts: Iterable[str], what: What) -> dict[bytes, Needle]:
    found: dict[bytes, Needle] = {}
    for text in sorted(texts):
        for content, encoding in spellings(text).items():
            found.setdefault(content, Needle(what, encoding.name, text, encoding, len(content)))
    return found
