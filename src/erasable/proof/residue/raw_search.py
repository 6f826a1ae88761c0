"""Finding many byte strings in one pass over some bytes; what they mean is not known here.

At each offset the next 8 bytes are one number. Each needle is known by 8 of its own bytes, those that the fewest other
needles share (of very many needles the first 8); a table of bits, filled by a hash of these numbers, rules out nearly
every offset. The few that are left are compared in full.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

WINDOW = 8
_BLOCK = 1 << 16
_SPREAD = np.uint64(0x9E3779B97F4A7C15)
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
    _bits: int

    @staticmethod
    def of(needles: Sequence[bytes]) -> "RawSearch":
        """Make distinct needles ready."""
        keys, shifts = _first_windows(needles) if len(needles) > _VERY_MANY else _rarest_windows(needles)
        order = np.argsort(keys, kind="stable")
        bits = min(max(_FEWEST_BITS, (64 * len(needles)).bit_length()), _MOST_BITS)
        seen = np.zeros(1 << bits, dtype=bool)
        seen[_hashed(keys, bits)] = True
        return RawSearch(tuple(needles), keys[order], order, shifts[order], seen, bits)

    def find(self, content: bytes) -> Iterator[tuple[int, int]]:
        """Yield where each needle begins and which one it is, by ascending place of its key."""
        if not self.needles or len(content) < WINDOW:
            return
        numbers = _windows(content)
        for begin in range(0, len(numbers), _BLOCK):
            yield from self._find_in_block(content, numbers, begin)

    def _find_in_block(self, content: bytes, numbers: Numbers, begin: int) -> Iterator[tuple[int, int]]:
        block = numbers[begin : begin + _BLOCK].copy()
        places = np.flatnonzero(self._seen[_hashed(block, self._bits)])
        found = block[places]
        first = np.searchsorted(self._keys, found, side="left")
        counts = np.searchsorted(self._keys, found, side="right") - first
        which = np.repeat(first, counts) + _counted_up(counts)
        starts = np.repeat(places, counts) + begin - self._shift[which]
        for start, needle in zip(starts.tolist(), self._order[which].tolist(), strict=True):
            if content.startswith(self.needles[needle], start):
                yield start, needle


def _windows(content: bytes) -> Numbers:
    """Return the 8 bytes at each offset as one number, without copying them."""
    return np.ndarray((len(content) - WINDOW + 1,), dtype="<u8", buffer=content, strides=(1,))


def _hashed(numbers: Numbers, bits: int) -> Numbers:
    return (numbers * _SPREAD) >> np.uint64(64 - bits)


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
