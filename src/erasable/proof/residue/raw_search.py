"""Finding many byte strings in one pass over some bytes; what they mean is not known here.

At each offset the next 8 bytes are one number. Each needle is known by 8 of its own bytes, those that the fewest other
needles share (of very many needles the first 8). Wherever these stand, 4 of them are one of the words that the bytes
consist of. So words are looked at first: a table, filled by a hash of those that may be in 8 such bytes, rules out
nearly all of them. Around those that are left another one, filled by a hash of the 8 bytes, does the same. The few
offsets that both leave are compared in full.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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
    """Needles made ready, each of at least 8 bytes."""

    needles: tuple[bytes, ...]
    _keys: Numbers
    """The number that each needle is known by, ascending."""
    _order: Places
    """Which needle each key belongs to."""
    _shift: Places
    """Where in its needle each key stands."""
    _seen: NDArray[np.bool_]
    """Which keys there are, by their hash."""
    _seen_words: NDArray[np.bool_]
    """Which words a key may hold, by their hash."""
    _bits: int

    @staticmethod
    def of(needles: Sequence[bytes]) -> "RawSearch":
        """Make distinct needles ready."""
        keys, shifts = _first_windows(needles) if len(needles) > _VERY_MANY else _rarest_windows(needles)
        order = np.argsort(keys, kind="stable")
        bits = min(max(_FEWEST_BITS, (256 * len(needles)).bit_length()), _MOST_BITS)
        seen, words = np.zeros((2, 1 << bits), dtype=bool)
        seen[_hashed(keys, bits)] = True
        for shift in range(_WORD):
            words[_hashed_words((keys >> np.uint64(8 * shift)).astype(np.uint32), bits)] = True
        return RawSearch(tuple(needles), keys[order], order, shifts[order], seen, words, bits)

    def find(self, content: bytes) -> Iterator[tuple[int, int]]:
        """Yield where each needle begins and which one it is, by ascending place of its key."""
        if not self.needles or len(content) < WINDOW:
            return
        numbers, words = _windows(content), np.frombuffer(content, "<u4", len(content) // _WORD)
        for begin in range(0, len(words), _BLOCK):
            places = np.flatnonzero(self._seen_words[_hashed_words(words[begin : begin + _BLOCK], self._bits)])
            if len(places):
                yield from self._find_around(content, numbers, _WORD * (places + begin))

    def _find_around(self, content: bytes, numbers: Numbers, words: Places) -> Iterator[tuple[int, int]]:
        """Yield the same of keys that hold one of these words; of the words of a key, the first is the one."""
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
    """Return for each needle the window that the fewest needles have, and where it stands; the last of equal ones."""
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
