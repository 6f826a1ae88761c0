"""Everything that is searched about some people, prepared for comparing values and for searching bytes.

All byte strings are found in one pass. Each needle has a key: 8 of its bytes, those that the fewest other needles share
(with very many needles the first 8). Wherever a key stands, it covers one aligned 4-byte word of the content. So the
aligned words are looked up first: a hash table of all words that a key may cover rules out nearly all of them. Around
the words left, a hash table of the keys does the same at each offset. The few offsets that pass both are compared in
full.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from erasable.scan._target import SHORTEST, Encoding, Floats, Rows, Target, What, spellings

# Many byte strings in one pass

WINDOW = 8
_WORD = 4
_BLOCK = 1 << 16
_SPREAD = np.uint64(0x9E3779B97F4A7C15)
_SPREAD_WORD = np.uint32(0x9E3779B1)
_FEWEST_BITS, _MOST_BITS = 16, 24
_VERY_MANY = 20_000

Numbers = NDArray[np.uint64]
Places = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class RawSearch:
    """Needles of at least 8 bytes each, prepared for searching."""

    needles: tuple[bytes, ...]
    _keys: Numbers
    """The keys of the needles as numbers, ascending."""
    _order: Places
    """The needle of each key."""
    _shift: Places
    """The offset of each key in its needle."""
    _seen: NDArray[np.bool_]
    """Whether there is a key with this hash."""
    _seen_words: NDArray[np.bool_]
    """Whether a key may cover a word with this hash."""
    _bits: int

    @staticmethod
    def of(needles: Sequence[bytes]) -> "RawSearch":
        """Prepare distinct needles."""
        keys, shifts = _first_windows(needles) if len(needles) > _VERY_MANY else _rarest_windows(needles)
        order = np.argsort(keys, kind="stable")
        bits = min(max(_FEWEST_BITS, (256 * len(needles)).bit_length()), _MOST_BITS)
        seen, words = np.zeros((2, 1 << bits), dtype=bool)
        seen[_hashed(keys, bits)] = True
        for shift in range(_WORD):
            words[_hashed_words((keys >> np.uint64(8 * shift)).astype(np.uint32), bits)] = True
        return RawSearch(tuple(needles), keys[order], order, shifts[order], seen, words, bits)

    def find(self, content: bytes) -> Iterator[tuple[int, int]]:
        """Yield the offset and the number of each needle found, by ascending offset of its key."""
        if not self.needles or len(content) < WINDOW:
            return
        numbers, words = _windows(content), np.frombuffer(content, "<u4", len(content) // _WORD)
        for begin in range(0, len(words), _BLOCK):
            places = np.flatnonzero(self._seen_words[_hashed_words(words[begin : begin + _BLOCK], self._bits)])
            if len(places):
                yield from self._find_around(content, numbers, _WORD * (places + begin))

    def _find_around(self, content: bytes, numbers: Numbers, words: Places) -> Iterator[tuple[int, int]]:
        """Yield the hits whose key covers one of these words; the first word counts."""
        places = (words[:, None] - np.arange(_WORD - 1, -1, -1)).ravel()
        places = places[(places >= 0) & (places < len(numbers))]
        places = places[self._seen[_hashed(numbers[places], self._bits)]]
        found = numbers[places]
        first = np.searchsorted(self._keys, found, side="left")
        counts = np.searchsorted(self._keys, found, side="right") - first
        which = np.repeat(first, counts) + _counted_up(counts)
        starts = np.repeat(places, counts) - self._shift[which]
        for start, needle in zip(starts.tolist(), self._order[which].tolist(), strict=True):
            if content.startswith(self.needles[needle], start):
                yield start, needle


def _windows(content: bytes) -> Numbers:
    """Return the 8 bytes at each offset as one number, without copying them."""
    return np.ndarray((len(content) - WINDOW + 1,), dtype="<u8", buffer=content, strides=(1,))


def _hashed(numbers: Numbers, bits: int) -> Numbers:
    return (numbers * _SPREAD) >> np.uint64(64 - bits)


def _hashed_words(words: NDArray[np.uint32], bits: int) -> NDArray[np.uint32]:
    return (words * _SPREAD_WORD) >> np.uint32(32 - bits)


def _first_windows(needles: Sequence[bytes]) -> tuple[Numbers, Places]:
    keys = np.frombuffer(b"".join(needle[:WINDOW] for needle in needles), dtype="<u8")
    return keys, np.zeros(len(keys), dtype=np.int64)


def _rarest_windows(needles: Sequence[bytes]) -> tuple[Numbers, Places]:
    """Return for each needle the window that the fewest needles share, and its offset; the last of equal ones."""
    if not needles:
        return np.empty(0, np.uint64), np.empty(0, np.int64)
    windows = [_windows(needle) for needle in needles]
    _, place, counts = np.unique(np.concatenate(windows), return_inverse=True, return_counts=True)
    commonness = np.split(counts[place], np.cumsum([len(one) for one in windows])[:-1])
    shifts = np.array([len(one) - 1 - int(np.argmin(one[::-1])) for one in commonness], dtype=np.int64)
    keys = np.array([one[shift] for one, shift in zip(windows, shifts, strict=True)], dtype=np.uint64)
    return keys, shifts


def _counted_up(counts: Places) -> Places:
    """Return 0, 1, … for each count in turn.

    >>> _counted_up(np.array([2, 0, 3])).tolist()
    [0, 1, 0, 1, 2]
    """
    ends = np.cumsum(counts)
    return np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - counts, counts)


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

    def in_ratings(self, items: Sequence[str | None], ratings: Floats) -> bool:
        """Whether the items with ratings contain one of these runs."""
        pairs = [*zip(items, single(ratings).tolist(), strict=True)]
        known = self.by_rating
        return any(
            run is not None and tuple(pairs[start : start + len(run)]) == run
            for start in _starts(items, self.items)
            if (run := known.get(tuple(pairs[start : start + RUN]))) is not None  # type: ignore[arg-type]
        )

    def in_times(self, times: Floats) -> bool:
        """Whether the times contain one of these runs."""
        return not self._time_runs.isdisjoint(zip(*(times[step:].tolist() for step in range(RUN)), strict=False))

    @cached_property
    def _time_runs(self) -> frozenset[tuple[float, ...]]:
        return frozenset(map(tuple, self.times.tolist()))


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


def _starts(items: Sequence[str | None], known: frozenset[str]) -> Iterator[int]:
    places = [place for place, item in enumerate(items) if item in known]
    follows = [after - before == 1 for before, after in pairwise(places)]
    return (place for place, one, two in zip(places, follows, follows[1:], strict=False) if one and two)


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


_ROWS = {name: Needle("personal row", name) for name in ROW_FORMATS}
_TIMES = {name: Needle("interactions", name) for name in TIME_FORMATS}


@dataclass(frozen=True, eq=False)
class Needles:
    """Bytes that are searched for together."""

    known: Mapping[bytes, Needle]

    @cached_property
    def _search(self) -> tuple[RawSearch, tuple[Needle, ...]]:
        return RawSearch.of(tuple(self.known)), tuple(self.known.values())

    def find(self, content: bytes) -> Iterator[tuple[slice, Needle]]:
        """Yield the place of each needle found."""
        if not self.known or len(content) < WINDOW:
            return
        search, needles = self._search
        for start, number in search.find(content):
            yield slice(start, start + len(search.needles[number])), needles[number]


@dataclass(frozen=True, eq=False)
class Wanted:
    """What must not be left after the erasure of some people."""

    targets: Sequence[Target]

    @cached_property
    def ids(self) -> frozenset[str]:
        """The ids of people who were erased completely."""
        return frozenset(target.user for target in self.targets if target.items is None)

    @cached_property
    def long_ids(self) -> frozenset[str]:
        """Those of 8 bytes or more, which are not found by chance."""
        return frozenset(user for user in self.ids if len(user.encode()) >= SHORTEST)

    @cached_property
    def long_numbers(self) -> frozenset[str]:
        """Those that are decimal numbers."""
        return frozenset(user for user in self.long_ids if re.fullmatch("[0-9]+", user))

    @cached_property
    def pairs(self) -> Mapping[str, frozenset[str]]:
        """The erased items of people who stay."""
        found: dict[str, frozenset[str]] = {}
        for target in self.targets:
            if target.items is not None and target.user not in self.ids:
                found[target.user] = found.get(target.user, frozenset()) | frozenset(target.items)
        return found

    @cached_property
    def texts(self) -> frozenset[str]:
        """Other texts that must be gone."""
        return frozenset(text for target in self.targets for text in target.texts if text)

    @cached_property
    def own_items(self) -> frozenset[str]:
        """Items that are gone with them."""
        return frozenset(item for target in self.targets for item in target.own_items)

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
    def times(self) -> Needles:
        """Runs of times, in every format."""
        return Needles({content: _TIMES[name] for content, name in self.runs.time_spellings()})


def _text_needles(texts: Iterable[str], what: What) -> dict[bytes, Needle]:
    found: dict[bytes, Needle] = {}
    for text in sorted(texts):
        for content, encoding in spellings(text).items():
            found.setdefault(content, Needle(what, encoding.name, text, encoding))
    return found
