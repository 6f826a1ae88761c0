"""Records of SQLite as they lie among bytes: those that are whole, and those whose first bytes were overwritten.

A row of a table is stored as its length, its number and a record, a row of an index as its length and a record. A
record is the length of its header, a type for each value, and the values. A row that is deleted stays where it was, or
loses its first four bytes to a note of how many bytes are free there.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

_FIXED_SIZES = (0, 1, 2, 3, 4, 6, 8, 8, 0, 0)
_INTEGER_SIZES = (1, 2, 3, 4, 6, 8)
_IMPOSSIBLE = 1 << 40
_LONGEST_HEADER = 127
_LONGEST_NUMBER = 9
_FEWEST_COLUMNS = 2
_SHORTEST_ROW = 4

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Record:
    """The values of one row, and its number where that is known."""

    values: tuple[Any, ...]
    number: int | None = None


def whole_records(content: bytes, codec: str) -> Iterator[Record]:
    """Yield what is stored like a row with at least two values.

    The length before it must fit its header, its types must exist, and its texts must be texts. Of a row that goes on
    in another page, the values that lie here are known.
    """
    for start, number_size in _row_starts(content):
        values = record_values(content, start, codec)
        if values is not None:
            yield Record(values, read_varint(content, start - number_size)[0] if number_size else None)


def whole_row_places(content: bytes) -> set[int]:
    """Return where whole rows begin, their length and their number included."""
    found = set()
    for start, number_size in _row_starts(content):
        length = record_length(content, start)
        found.add(start - number_size - max(1, -(-length.bit_length() // 7)))
    return found


def record_values(content: bytes, start: int, codec: str) -> tuple[Any, ...] | None:
    """Return the values of the record that begins somewhere; nothing if it can be none."""
    end, place = read_varint(content, start)
    end += start
    types = []
    while place < end <= len(content):
        kind, place = read_varint(content, place)
        types.append(kind)
    return typed_values(content[end:], types, codec) if place == end else None


def record_length(content: bytes, start: int) -> int:
    """Return how many bytes the record takes that begins somewhere."""
    length, place = read_varint(content, start)
    end = start + length
    while place < end:
        kind, place = read_varint(content, place)
        length += size_of(kind)
    return length


def typed_values(content: bytes, types: Sequence[int], codec: str) -> tuple[Any, ...] | None:
    """Return values of these types that follow each other; nothing if there is no such type or a text is none."""
    values, place = [], 0
    for kind in types:
        size = size_of(kind)
        part = content[place : place + size]
        try:
            values.append(_value(kind, part, codec) if len(part) == size else None)
        except ValueError:
            return None
        place += size
    return tuple(values)


def size_of(kind: int) -> int:
    """Return how many bytes a value of a type takes."""
    if kind >= 12:
        return (kind - 12) // 2
    return _FIXED_SIZES[kind] if kind < len(_FIXED_SIZES) else _IMPOSSIBLE


def type_of(value: Any) -> int:  # noqa: ANN401 - whatever the row holds
    """Return the type that a value is stored under; all texts have one here, and all bytes."""
    if value is None:
        return 0
    if isinstance(value, int):
        bits = (value if value >= 0 else ~value).bit_length() + 1
        return 8 + value if value in (0, 1) else next(n for n, size in enumerate(_INTEGER_SIZES, 1) if 8 * size >= bits)
    if isinstance(value, float):
        return 7
    return 13 if isinstance(value, str) else 12


def untyped_values(content: bytes, codec: str) -> Iterator[Any]:
    """Yield what some bytes may be whose type was overwritten: a text, or a whole number."""
    text = _text_or_none(content, codec)
    if text:
        yield text
    number = untyped_number(content)
    if number is not None:
        yield number


def untyped_number(content: bytes) -> int | None:
    """Return the whole number that some bytes are, if SQLite would not write it in fewer."""
    number = int.from_bytes(content, "big", signed=True)
    shorter = max((size for size in (0, *_INTEGER_SIZES) if size < len(content)), default=0)
    fits_shorter = number in (0, 1) if shorter == 0 else -(1 << (8 * shorter - 1)) <= number < 1 << (8 * shorter - 1)
    return None if len(content) not in _INTEGER_SIZES or fits_shorter else number


def read_varint(content: bytes, place: int) -> tuple[int, int]:
    """Return the number that is written somewhere in SQLite's way, and where it ends."""
    number = 0
    for step, byte in enumerate(content[place : place + 9]):
        if step == 8:
            return (number << 8) | byte, place + 9
        number = (number << 7) | (byte & 127)
        if byte < 128:
            return number, place + step + 1
    return number, len(content) + 1


def _value(kind: int, part: bytes, codec: str) -> Any:  # noqa: ANN401 - whatever the row holds
    if kind in (0, 10, 11):
        if kind:
            raise ValueError("there is no such type")
        return None
    if kind < 7:
        return int.from_bytes(part, "big", signed=True)
    if kind == 7:
        return float(np.frombuffer(part, ">f8")[0])
    if kind in (8, 9):
        return kind - 8
    return _text(part, codec) if kind % 2 else part


def _text(part: bytes, codec: str) -> str:
    text = part.decode(codec)
    if any(ord(letter) < 32 and letter not in "\t\r\n" for letter in text):
        raise ValueError("this is no text")
    return text


def _text_or_none(part: bytes, codec: str) -> str | None:
    try:
        return _text(part, codec)
    except ValueError:
        return None


def _row_starts(content: bytes) -> list[tuple[int, int]]:
    """Return where a record begins and how many bytes before it are the row's number, 0 in an index.

    All places are tried at once: the sizes of the values are summed up over the header, and the length of the row must
    stand right before its number.
    """
    if len(content) < _SHORTEST_ROW:
        return []
    data = np.frombuffer(content, np.uint8).astype(np.int64)
    starts = np.flatnonzero((data > _FEWEST_COLUMNS) & (data <= _LONGEST_HEADER))
    starts = starts[(starts > 0) & (starts + data[starts] <= len(data))]
    ends = starts + data[starts] - 1
    last = data < 128
    summed, counted = np.cumsum(np.where(last, _sizes(_numbers_ending(data, 3)), 0)), np.cumsum(last)
    lengths = data[starts] + summed[ends] - summed[starts]
    likely = (counted[ends] - counted[starts] >= _FEWEST_COLUMNS) & last[ends] & (lengths < _IMPOSSIBLE)
    return list(_behind_lengths(data, starts[likely], lengths[likely]))


def _behind_lengths(data: Integers, starts: Integers, lengths: Integers) -> Iterator[tuple[int, int]]:
    """Yield the starts that the length of their row stands before, and how many bytes of a number are between."""
    # What comes before the length may look like a part of it.
    endings = [_numbers_ending(data, most) for most in (1, 2, 3)]
    for size in range(_LONGEST_NUMBER + 1):
        fits = (starts > size) & _is_number(data, starts, size)
        before = starts[fits] - size - 1
        same = np.any([numbers[before] == lengths[fits] for numbers in endings], axis=0)
        yield from ((start, size) for start in starts[fits][same].tolist())


def _is_number(data: Integers, starts: Integers, size: int) -> NDArray[np.bool_]:
    """Whether so many bytes before each start are one number."""
    fits = np.ones(len(starts), dtype=bool)
    for step in range(1, size + 1):
        byte = data[np.maximum(starts - step, 0)]
        fits &= byte < 128 if step == 1 else byte >= 128
    return fits


def _numbers_ending(data: Integers, most: int) -> Integers:
    """Return the number that ends at each byte and takes so many bytes at most."""
    numbers, goes_on = data.copy(), np.ones(len(data), dtype=bool)
    for step in range(1, most):
        before = np.concatenate([np.zeros(step, dtype=np.int64), data[:-step]])
        goes_on &= before >= 128
        numbers += np.where(goes_on, (before & 127) << 7 * step, 0)
    return numbers


def _sizes(kinds: Integers) -> Integers:
    fixed = np.array([*_FIXED_SIZES, _IMPOSSIBLE, _IMPOSSIBLE], dtype=np.int64)
    return np.where(kinds >= 12, (kinds - 12) // 2, fixed[np.minimum(kinds, 11)])
