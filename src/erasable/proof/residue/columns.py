"""Columns of any decoded file, alike whatever they come from: Arrow, or values of Python."""

import math
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from erasable.data.column_values import is_number
from erasable.data.ids import ArrowColumn

Floats = NDArray[np.float64]
_WHOLE = re.compile(r"([+-]?\d+)\.0+")
_MICROSECONDS = 1_000_000
_PLAIN = frozenset({str, bytes, int, float, Decimal, bool, type(None)})


class Column(Protocol):
    """What is compared of a column."""

    @property
    def name(self) -> str | None:
        """Its name, if it has one."""

    @property
    def listed(self) -> bool:
        """Whether its values come out of lists, so that a plural names them."""

    def __len__(self) -> int: ...

    def texts(self) -> set[str]:
        """Return the distinct texts in it; bytes count if they are text."""

    def whole_numbers(self) -> set[str]:
        """Return the distinct whole numbers in it, in decimal."""

    def ids(self) -> Sequence[str | None]:
        """Return what each row would be as an id."""

    def floats(self) -> Floats | None:
        """Return each row as a number, NaN where it is none; nothing if it holds none at all."""

    def blobs(self) -> Iterable[bytes]:
        """Return the distinct bytes in it that are no text."""


def as_id(value: Any) -> str | None:  # noqa: ANN401 - whatever a file holds
    """Return a value as an id would be written: text as it is, a whole number in decimal.

    >>> [as_id(value) for value in ("007", 7, 7.0, 7.5, True, b"ann")]
    ['007', '7', '7', None, None, 'ann']
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float | Decimal):
        return str(int(value)) if math.isfinite(value) and value == int(value) else None
    return _decoded(value) if isinstance(value, bytes) else None


@dataclass(frozen=True, eq=False)
class ListColumn:
    """A column of Python's values, of any types."""

    name: str | None
    values: Sequence[Any]
    listed: bool = False

    def __len__(self) -> int:
        return len(self.values)

    @cached_property
    def _distinct(self) -> Collection[Any]:
        kinds = set(map(type, self.values))
        if bool not in kinds and kinds <= _PLAIN:
            return set(self.values)
        # True equals 1, and lists are in no set.
        return {(type(value), value): value for value in self.values if type(value) in _PLAIN}.values()

    def texts(self) -> set[str]:
        """Return the distinct texts in it, blanks around them taken off too; bytes count if they are text."""
        found = {text for value in self._distinct if isinstance(value, str | bytes) and (text := as_id(value))}
        return found | {text.strip() for text in found}

    def whole_numbers(self) -> set[str]:
        """Return the distinct whole numbers in it, in decimal; those written as text with a point count too."""
        numbers = {as_id(value) for value in self._distinct if isinstance(value, int | float | Decimal)}
        written = (_WHOLE.fullmatch(text) for text in self.texts())
        return {text for text in numbers if text} | {match[1] for match in written if match}

    def ids(self) -> Sequence[str | None]:
        """Return what each row would be as an id."""
        ids = (as_id(value) for value in self.values)
        return [text.strip() if text else None for text in ids]

    def floats(self) -> Floats | None:
        """Return each row as a number, NaN where it is none; nothing if it holds none at all."""
        if not any(map(_is_number, self.values[:100])):
            return None
        try:
            return np.array(self.values, dtype=np.float64)
        except (TypeError, ValueError):
            return np.array([float(value) if _is_number(value) else math.nan for value in self.values])

    def blobs(self) -> Iterable[bytes]:
        """Return the distinct bytes in it that are no text."""
        return (value for value in self._distinct if isinstance(value, bytes) and _decoded(value) is None)


@dataclass(frozen=True, eq=False)
class ArrayColumn:
    """A column of Arrow, not nested."""

    name: str | None
    array: ArrowColumn
    listed: bool = False

    def __len__(self) -> int:
        return len(self.array)

    @cached_property
    def _kind(self) -> ArrowColumn:
        kind = self.array.type
        return kind.value_type if pa.types.is_dictionary(kind) else kind

    @cached_property
    def _distinct(self) -> ArrowColumn:
        """The distinct values; of a dictionary all, also those that no row refers to."""
        if not pa.types.is_dictionary(self.array.type):
            return pc.unique(_viewless(self.array))
        values = [_viewless(chunk.dictionary) for chunk in _chunks(self.array)]
        return pc.unique(_joined(values, _viewless_type(self._kind)))

    def texts(self) -> set[str]:
        """Return the distinct texts in it; bytes count if they are text."""
        return self._texts

    @cached_property
    def _texts(self) -> set[str]:
        if _is_text(self._kind):
            return set(pc.drop_null(self._distinct).to_pylist())
        if not _is_binary(self._kind):
            return set()
        if self._decoded is not None:
            return {text for text in self._decoded.to_pylist() if text}
        return {text for value in self._distinct.to_pylist() if value is not None and (text := _decoded(value))}

    @cached_property
    def _decoded(self) -> ArrowColumn | None:
        """The distinct values of a column of bytes, if all of them are text: Arrow reads them at once."""
        try:
            return self._distinct.cast(pa.large_binary()).cast(pa.large_string())
        except pa.ArrowException:
            return None

    def whole_numbers(self) -> set[str]:
        """Return the distinct whole numbers in it, in decimal."""
        if not _holds_numbers(self._kind):
            return set()
        return {text for value in self._distinct.to_pylist() if (text := as_id(value)) is not None}

    def ids(self) -> Sequence[str | None]:
        """Return what each row would be as an id."""
        return [as_id(value) for value in self.array.to_pylist()]

    def floats(self) -> Floats | None:
        """Return each row as a number, a moment in seconds, NaN where it is none; nothing if it can hold none."""
        array = self.array
        if pa.types.is_timestamp(self._kind) or pa.types.is_date(self._kind):
            moments = array.cast(pa.timestamp("us", getattr(self._kind, "tz", None)), safe=False).cast(pa.int64())
            return _as_floats(moments) / _MICROSECONDS
        return _as_floats(array) if _holds_numbers(self._kind) else None

    def blobs(self) -> Iterable[bytes]:
        """Return the distinct bytes in it that are no text."""
        if not _is_binary(self._kind) or self._decoded is not None:
            return ()
        return (value for value in self._distinct.to_pylist() if value is not None and _decoded(value) is None)


def flattened(name: str | None, array: ArrowColumn, listed: bool = False) -> list[ArrayColumn]:
    """Return the columns that a nested one consists of; one that is not nested is itself.

    What a struct holds is named by its field, what a list holds by the list.
    """
    kind: Any = array.type
    if isinstance(kind, pa.BaseExtensionType):
        return flattened(name, _joined([chunk.storage for chunk in _chunks(array)], kind.storage_type), listed)
    if pa.types.is_dictionary(kind) and pa.types.is_nested(kind.value_type):
        return flattened(name, _joined([chunk.dictionary for chunk in _chunks(array)], kind.value_type), listed)
    if pa.types.is_struct(kind):
        parts = [
            (kind.field(place), [pc.struct_field(chunk, place) for chunk in _chunks(array)])
            for place in range(kind.num_fields)
        ]
        return [one for part, arrays in parts for one in flattened(part.name, _joined(arrays, part.type), listed)]
    if pa.types.is_map(kind):
        keys = _joined([chunk.keys for chunk in _chunks(array)], kind.key_type)
        values = _joined([chunk.items for chunk in _chunks(array)], kind.item_type)
        return [*flattened(name, keys, listed=True), *flattened(name, values, listed=True)]
    if pa.types.is_nested(kind) and hasattr(kind, "value_type"):
        return flattened(name, _joined([chunk.flatten() for chunk in _chunks(array)], kind.value_type), listed=True)
    return [ArrayColumn(name, array, listed)]


def _chunks(array: ArrowColumn) -> list[Any]:
    return list(array.chunks) if isinstance(array, pa.ChunkedArray) else [array]


def _joined(arrays: list[ArrowColumn], kind: ArrowColumn) -> ArrowColumn:
    return pa.chunked_array(arrays, kind)


def _as_floats(array: ArrowColumn) -> Floats:
    if pa.types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    return np.asarray(pc.fill_null(array.cast(pa.float64(), safe=False), math.nan), dtype=np.float64)


def _is_text(kind: ArrowColumn) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _is_binary(kind: ArrowColumn) -> bool:
    tests = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary, pa.types.is_binary_view)
    return any(test(kind) for test in tests)


def _holds_numbers(kind: ArrowColumn) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _viewless(array: ArrowColumn) -> ArrowColumn:
    # Arrow can't tell apart the values of a view yet.
    return array.cast(_viewless_type(array.type))


def _viewless_type(kind: ArrowColumn) -> ArrowColumn:
    if pa.types.is_string_view(kind):
        return pa.large_string()
    return pa.large_binary() if pa.types.is_binary_view(kind) else kind


def _is_number(value: object) -> bool:
    if isinstance(value, str):
        return is_number(value)
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _decoded(value: bytes) -> str | None:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None
