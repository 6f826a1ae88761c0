"""Searching bytes: many byte strings in one pass, and values that stand as whole cells of a column.

Each byte string (needle) has a key: 8 of its bytes, those that the fewest other needles share. Wherever a key stands,
it covers one 5-byte word at an offset that is a multiple of 4. So only these words are looked up: a table of all words
that a key may cover, with their offset in the key, rules out nearly all of them. What passes is compared with the keys,
and then in full. The loops are compiled by numba, which we have anyway (decision 39 compares libraries), and release
the interpreter lock.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numba import njit
from numpy.typing import NDArray

from erasable.scan._target import ArrowColumn, Texts

WINDOW = 8
_STRIDE = 4
_SPREAD = np.uint64(0x9E3779B97F4A7C15)
_FEWEST_BITS, _MOST_BITS = 14, 24
_ROOM = 1 << 14
_INTEGER = re.compile("0|-?[1-9][0-9]*")
_LONGEST_INTEGER = 400  # digits of the largest float

Bytes = NDArray[np.uint8]
Numbers = NDArray[np.uint64]
Places = NDArray[np.int64]


def _compiled(function: Callable[..., Any]) -> Any:  # noqa: ANN401 - numba's own
    # Not `seeding.compiled`: its sources name the kernels that trained a model, which a scan does not change.
    try:
        return njit(cache=True, nogil=True)(function)
    except RuntimeError:  # no folder for the cache
        return njit(nogil=True)(function)


def as_bytes(content: Any) -> Bytes:  # noqa: ANN401 - anything with a buffer
    """Return bytes as an array that can't be written, the one kind that the loops are compiled for."""
    array = np.frombuffer(content, np.uint8) if len(content) else np.empty(0, np.uint8)
    array.flags.writeable = False
    return array


# The loops; they are long because calls would hide the algorithm


@_compiled
def _next(windows, place, seen, shift):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202 - compiled
    """Return the next place whose word a key may cover, or the first one beyond; most of the time is spent here."""
    while place < len(windows):
        hashed = ((windows[place] << np.uint64(24)) * _SPREAD) >> (shift - np.uint64(6))
        bits = seen[hashed >> np.uint64(12)]
        if (bits >> (hashed & np.uint64(63))) & (bits >> ((hashed >> np.uint64(6)) & np.uint64(63))) & np.uint64(1):
            return place
        place += 4
    return place


@_compiled
def _find(content, windows, begin, tables, slots, keys, entries, starts, numbers):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202, C901
    """Write the start and the number of each needle found; return how many, and where to go on if there was no room."""
    seen, table = tables
    needles, shifts, blob, bounds = entries
    shift = np.uint64(64) - np.uint64(np.log2(len(table)))
    slot_shift = np.uint64(64) - np.uint64(np.log2(len(slots)))
    size, count, place = len(content), 0, begin
    while True:
        place = _next(windows, place, seen, shift)
        if place + 5 > size:
            return count, -1
        if place + 8 <= size:
            word = windows[place]
        else:
            word = np.uint64(0)
            for step in range(5):
                word |= np.uint64(content[place + step]) << np.uint64(8 * step)
        flags = table[((word << np.uint64(24)) * _SPREAD) >> shift]
        before = count
        for offset in range(4):
            start = place - offset
            if not (flags >> offset) & 1 or start < 0 or start + 8 > size:
                continue
            key = windows[start]
            slot = (key * _SPREAD) >> slot_shift
            while slots[slot] >= 0 and keys[slots[slot]] != key:
                slot = (slot + np.uint64(1)) & np.uint64(len(slots) - 1)
            entry = slots[slot]
            while 0 <= entry < len(keys) and keys[entry] == key:
                first, needle = start - shifts[entry], needles[entry]
                length = bounds[needle + 1] - bounds[needle]
                same = first >= 0 and first + length <= size
                if same:
                    for step in range(length):
                        if content[first + step] != blob[bounds[needle] + step]:
                            same = False
                            break
                if same:
                    if count == len(starts):
                        return before, place
                    starts[count], numbers[count] = first, needle
                    count += 1
                entry += 1
        place += 4


@_compiled
def _whole_key(content, windows, start, end):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202 - compiled
    """Return a hash of all bytes of a cell."""
    key = np.uint64(end - start) * _SPREAD
    if end - start >= 8:
        for place in range(start, end - 8, 8):
            key = (key ^ windows[place]) * _SPREAD
            key ^= key >> np.uint64(32)
        last = windows[end - 8]
    else:
        last = np.uint64(0)
        for place in range(start, end):
            last = (last << np.uint64(8)) | np.uint64(content[place])
    key = (key ^ last) * _SPREAD
    return key ^ (key >> np.uint64(32))


@_compiled
def _match(content, windows, bounds, lengths, slots, keys, blob, value_bounds, found):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Write for each cell the number of the value that it equals; the others keep what was there."""
    slot_shift = np.uint64(64) - np.uint64(np.log2(len(slots)))
    for cell in range(len(bounds) - 1):
        start, end = bounds[cell], bounds[cell + 1]
        length = end - start
        if length >= len(lengths) or not lengths[length]:
            continue
        key = _whole_key(content, windows, start, end)
        slot = (key * _SPREAD) >> slot_shift
        while slots[slot] >= 0:
            value = slots[slot]
            if keys[value] == key and value_bounds[value + 1] - value_bounds[value] == length:
                same = True
                for step in range(length):
                    if content[start + step] != blob[value_bounds[value] + step]:
                        same = False
                        break
                if same:
                    found[cell] = value
                    break
            slot = (slot + np.uint64(1)) & np.uint64(len(slots) - 1)


@_compiled
def _fill(slots, keys, shift):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202 - compiled
    for place in range(len(keys)):
        if place and keys[place] == keys[place - 1]:
            continue
        slot = (keys[place] * _SPREAD) >> shift
        while slots[slot] >= 0:
            slot = (slot + np.uint64(1)) & np.uint64(len(slots) - 1)
        slots[slot] = place


@_compiled
def _lengths_before(content, bounds):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202 - compiled
    for value in range(len(bounds) - 1):
        start = bounds[value]
        if start + 4 > len(content):
            bounds[-1] = len(content) + 1
            return
        length = np.int64(0)
        for step in range(4):
            length |= np.int64(content[start + step]) << np.int64(8 * step)
        bounds[value + 1] = start + 4 + length


def lengths_before(content: Bytes, count: int) -> Places:
    """Return where values begin and end that have their length in four bytes before each; beyond the end if cut off."""
    bounds = np.zeros(count + 1, dtype=np.int64)
    _lengths_before(content, bounds)
    return bounds


# Many byte strings in one pass


@dataclass(frozen=True, eq=False)
class RawSearch:
    """Needles of at least 8 bytes each, prepared for searching."""

    needles: tuple[bytes, ...]
    lengths: Places
    _tables: tuple[Numbers, Bytes]
    """Whether a key may cover a word, as two bits for each hash, to fit a cache; and for each hash its offsets in keys.

    Both bits of a hash lie in one number, so that they are looked up at once.
    """
    _slots: Places
    """For each hash of a key, the first entry with it; -1 if there is none."""
    _keys: Numbers
    """The keys, ascending."""
    _entries: tuple[Places, Places, Bytes, Places]
    """The needle of each key and the key's offset in it; the bytes of all needles, and their bounds."""

    @staticmethod
    def of(needles: Sequence[bytes]) -> "RawSearch":
        """Prepare distinct needles."""
        blob, bounds = _joined(needles)
        keys, shifts = _rarest_windows(blob, bounds)
        order = np.argsort(keys, kind="stable")
        bits = min(max(_FEWEST_BITS, (128 * len(needles)).bit_length()), _MOST_BITS)
        table = np.zeros(1 << bits, dtype=np.uint8)
        seen = np.zeros(1 << (bits - 6), dtype=np.uint64)
        for offset in range(_STRIDE):
            words = ((keys >> np.uint64(8 * offset)) << np.uint64(24)) * _SPREAD >> np.uint64(64 - bits - 6)
            table[words >> np.uint64(6)] |= np.uint8(1 << offset)
            for low in (np.uint64(0), np.uint64(6)):
                np.bitwise_or.at(seen, words >> np.uint64(12), np.uint64(1) << (words >> low & np.uint64(63)))
        tables = seen, table
        entries = (order, shifts[order], blob, bounds)
        return RawSearch(tuple(needles), np.diff(bounds), tables, _slots(keys[order]), keys[order], entries)

    def places(self, content: Any) -> tuple[Places, Places]:  # noqa: ANN401 - anything with a buffer
        """Return the offset and the number of each needle found, by ascending offset."""
        found: list[tuple[Places, Places]] = []
        room, begin, data = _ROOM, 0 if self.needles and len(content) >= WINDOW else -1, as_bytes(content)
        windows = _windows(data)
        while begin >= 0:
            starts, numbers = np.empty(room, np.int64), np.empty(room, np.int64)
            count, after = _find(
                data, windows, begin, self._tables, self._slots, self._keys, self._entries, starts, numbers
            )
            found.append((starts[:count], numbers[:count]))
            room, begin = room * 4 if after == begin else room, after
        starts, numbers = (np.concatenate([np.empty(0, np.int64), *(pair[part] for pair in found)]) for part in (0, 1))
        order = np.lexsort((numbers, starts))
        return starts[order], numbers[order]

    def find(self, content: bytes) -> Iterator[tuple[int, int]]:
        """Yield the offset and the number of each needle found."""
        starts, numbers = self.places(content)
        return zip(starts.tolist(), numbers.tolist(), strict=True)


def _windows(content: Bytes) -> Numbers:
    """Return the 8 bytes at each offset as one number, without copying them."""
    if len(content) < 2 * WINDOW:  # a view of one number would be of another kind, and compiled anew
        content = as_bytes(content.tobytes().ljust(2 * WINDOW, b"\0"))
    return np.ndarray((len(content) - WINDOW + 1,), dtype="<u8", buffer=content.data, strides=(1,))


def _joined(parts: Sequence[bytes]) -> tuple[Bytes, Places]:
    bounds = np.cumsum([0, *map(len, parts)], dtype=np.int64)
    return as_bytes(b"".join(parts)), bounds


def _slots(keys: Numbers) -> Places:
    """Return a hash table of keys: their places; of equal ones in a row the first."""
    size = 1 << max(8, (2 * len(keys)).bit_length())
    slots = np.full(size, -1, dtype=np.int64)
    _fill(slots, keys, np.uint64(64 - (size.bit_length() - 1)))
    return slots


def _rarest_windows(blob: Bytes, bounds: Places) -> tuple[Numbers, Places]:
    """Return for each needle the window that the fewest needles share, and its offset; the last of equal ones."""
    if len(bounds) == 1:
        return np.empty(0, np.uint64), np.empty(0, np.int64)
    windows = _windows(blob)[: len(blob) - WINDOW + 1].copy()
    needle = np.searchsorted(bounds, np.arange(len(windows)), side="right") - 1
    inside = np.flatnonzero(np.arange(len(windows)) + WINDOW <= bounds[needle + 1])
    _, which, counts = np.unique(windows[inside], return_inverse=True, return_counts=True)
    # Rarest first, and of equal ones the last: one number to compare.
    rank = counts[which] * np.int64(len(blob)) + (len(blob) - 1 - inside)
    starts = np.searchsorted(inside, bounds[:-1])
    chosen = len(blob) - 1 - np.minimum.reduceat(rank, starts) % len(blob)
    return windows[chosen], chosen - bounds[:-1]


# Cells of a column, and values that stand in them


@dataclass(frozen=True, eq=False)
class Cells:
    """Texts or bytes one after another, as they lie in memory."""

    content: Bytes
    bounds: NDArray[np.int32] | Places

    @staticmethod
    def of(texts: Texts) -> "Cells":
        """Return an Arrow array of texts or bytes, or any texts, as cells; what is missing is empty."""
        array = _one_array(texts)
        if pa.types.is_fixed_size_binary(array.type):
            width = array.type.byte_width
            content = as_bytes(array.buffers()[1])[array.offset * width : (array.offset + len(array)) * width]
            return Cells(content, _fixed(np.arange(len(array) + 1, dtype=np.int64) * width))
        _, offsets, content = array.buffers()
        if offsets is None or not len(array):
            return Cells(as_bytes(b""), _fixed(np.zeros(len(array) + 1, np.int64)))
        wide = pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)
        bounds: Any = np.frombuffer(offsets, np.int64 if wide else np.int32)
        bounds = bounds[array.offset : array.offset + len(array) + 1]
        whole = as_bytes(b"" if content is None else content)
        if bounds[0]:
            bounds = _fixed(bounds - bounds[0])
        first = np.frombuffer(offsets, bounds.dtype, 1, array.offset * bounds.itemsize)[0]
        return Cells(whole[first : first + bounds[-1]], bounds)

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def at(self, cell: int) -> bytes:
        """Return one cell."""
        return self.content[self.bounds[cell] : self.bounds[cell + 1]].tobytes()

    def distinct(self, cells: Places) -> "Cells":
        """Return some of the cells, equal ones once."""
        return Cells.of(pc.unique(self._array.take(pa.array(np.unique(cells)))))

    def between(self, separator: str) -> "Cells":
        """Return the distinct texts between separators, without blanks around them."""
        texts = pc.unique(self._array).cast(pa.large_string())
        return Cells.of(pc.utf8_trim_whitespace(pc.list_flatten(pc.split_pattern(texts, separator))))

    def of_width(self, width: int) -> Bytes:
        """Return the cells that have so many bytes, one after another."""
        starts = self.bounds[:-1][np.diff(self.bounds) == width].astype(np.int64)
        found: Bytes = self.content[starts[:, np.newaxis] + np.arange(width)].ravel()
        return found

    @property
    def _array(self) -> ArrowColumn:
        bounds = self.bounds.astype(np.int64, copy=False)
        return pa.Array.from_buffers(
            pa.large_binary(), len(self), [None, pa.py_buffer(bounds), pa.py_buffer(self.content)]
        )

    def joined(self, between: bytes) -> bytes:
        """Return all cells as one text."""
        array = self._array
        whole = pa.LargeListArray.from_arrays(pa.array([0, len(array)], pa.int64()), array)
        return bytes(pc.binary_join(whole, pa.scalar(between, pa.large_binary()))[0].as_py() or b"")

    def found(self, search: RawSearch) -> tuple[Places, Places, Places]:
        """Return the cell, the offset in it and the number of each needle that stands in one cell."""
        starts, numbers = search.places(self.content)
        if not len(starts):
            return starts, starts, numbers
        cells = np.searchsorted(self.bounds, starts, side="right") - 1
        inside = starts + search.lengths[numbers] <= self.bounds[np.minimum(cells + 1, len(self))]
        cells, starts, numbers = cells[inside], starts[inside], numbers[inside]
        return cells, starts - self.bounds[cells], numbers


def _fixed(bounds: Places) -> Places:
    bounds.flags.writeable = False
    return bounds


def _one_array(texts: Texts) -> ArrowColumn:
    if isinstance(texts, pa.ChunkedArray):
        texts = texts.combine_chunks()
    if not isinstance(texts, pa.Array):
        content = [text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text for text in texts]
        return pa.array(content, pa.large_binary())
    if pa.types.is_dictionary(texts.type):
        texts = texts.cast(texts.type.value_type)
    if pa.types.is_string_view(texts.type):
        return texts.cast(pa.large_string())
    return texts.cast(pa.large_binary()) if pa.types.is_binary_view(texts.type) else texts


@dataclass(frozen=True, eq=False)
class Values:
    """Distinct texts that are compared with whole cells."""

    texts: tuple[str, ...]

    @staticmethod
    def of(texts: Iterable[str]) -> "Values":
        """Return texts in order."""
        return Values(tuple(sorted(texts)))

    @cached_property
    def _prepared(self) -> tuple[NDArray[np.bool_], Places, Numbers, Bytes, Places]:
        blob, bounds = _joined([text.encode("utf-8", "surrogatepass") for text in self.texts])
        sizes = np.diff(bounds)
        lengths = np.zeros(int(sizes.max(initial=0)) + 1, dtype=bool)
        lengths[sizes] = True
        ends = zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)
        windows = _windows(blob)
        keys = np.array([_whole_key(blob, windows, start, end) for start, end in ends], dtype=np.uint64)
        order = np.arange(len(keys))
        return lengths, _slots(keys) if len(order) else np.full(256, -1, np.int64), keys, blob, bounds

    def in_cells(self, cells: Cells) -> Places:
        """Return for each cell the number of the text that it equals, or -1."""
        found = np.full(len(cells), -1, dtype=np.int64)
        if self.texts and len(cells):
            _match(cells.content, _windows(cells.content), cells.bounds, *self._prepared, found)
        return found

    def chosen(self, numbers: Places) -> frozenset[str]:
        """Return the texts with these numbers; -1 is none."""
        return frozenset(self.texts[number] for number in np.unique(numbers[numbers >= 0]).tolist())

    def in_numbers(self, array: ArrowColumn) -> Places:
        """Return for each number of an Arrow array that of the text that writes it as an integer, or -1."""
        if pa.types.is_float16(array.type):
            array = array.cast(pa.float32())  # Arrow has no hash of halves
        known = self._as_numbers(array.type)
        if not known:
            return np.full(len(array), -1, dtype=np.int64)
        kept = pa.array([number for number, _ in known], array.type)
        places = np.array([place for _, place in known] + [-1], dtype=np.int64)
        return places[np.asarray(pc.fill_null(pc.index_in(array, value_set=kept), len(known)), dtype=np.int64)]

    def _as_numbers(self, kind: ArrowColumn) -> list[tuple[Any, int]]:
        """Return the texts that are integers as numbers of this type, each with its place."""
        found: list[tuple[Any, int]] = []
        for number, place in self._integers:
            try:
                if pa.types.is_floating(kind):
                    value = pa.scalar(float(number), pa.float64()).cast(kind, safe=False).as_py()
                    found += [(value, place)] * (value == number) + [(-0.0, place)] * (number == 0)
                else:
                    found.append((pa.scalar(number, kind).as_py(), place))
            except (pa.ArrowException, OverflowError, ValueError):  # too large for the type
                continue
        return found

    @cached_property
    def _integers(self) -> list[tuple[int, int]]:
        texts = ((text, place) for place, text in enumerate(self.texts) if len(text) <= _LONGEST_INTEGER)
        return [(int(text), place) for text, place in texts if _INTEGER.fullmatch(text)]
