"""From Arrow columns of any type to ids, ratings, times and risks; which source they come from is not known here."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from math import isfinite
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from erasable.data.ids import ArrowColumn

_MICROSECONDS = 1_000_000
_LARGEST_RATING = float(np.finfo(np.float32).max)


class ValueRefused(Exception):
    """A value can't be used; the caller knows its source and says where it stands."""

    def __init__(self, reason: str, row: int | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.row = row


@dataclass(frozen=True, eq=False)
class ColumnValues:
    """The columns of one source, row by row as they came, and how they were recognised."""

    users: ArrowColumn
    items: ArrowColumn
    rating: NDArray[np.float32] | None
    time: NDArray[np.float64] | None
    risk: NDArray[np.float64] | None
    recognised: str


def id_values(column: ArrowColumn, role: str) -> ArrowColumn:
    """Return a column of ids as text: text as it is, whole numbers in decimal, anything else refused."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if not (_is_text(kind) or pa.types.is_integer(kind)):
        raise ValueRefused(f"the {role} column holds {kind}: turn the ids into text or whole numbers first")
    if pa.types.is_string_view(kind):
        column = _without_views(column)
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    column = column.cast(pa.dictionary(pa.int32(), pa.string()))
    _refuse_first(pc.is_null(column), f"the {role} is missing: fill it in, or drop the row")
    for fault, reason in _faulty_ids(_distinct(column), role):
        _refuse_first(pc.is_in(column.cast(pa.string()), value_set=fault), reason)
    return column


def rating_values(column: ArrowColumn) -> NDArray[np.float32]:
    """Return a column of ratings as numbers; text, gaps, NaN and infinity are refused."""
    return _finite_numbers(column, "rating", np.float32)


def risk_values(column: ArrowColumn) -> NDArray[np.float64]:
    """Return a column of erasure risks as numbers; text, gaps, NaN and infinity are refused."""
    return _finite_numbers(column, "risk", np.float64)


def time_values(column: ArrowColumn) -> NDArray[np.float64]:
    """Return a column of times as seconds, or as the numbers they are; a gap is NaN, unknown."""
    kind = column.type
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        time = _seconds(column)
    elif _is_text(kind):
        time = _times_of_text(column)
    elif pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_null(kind):
        time = _floats(column.cast(pa.float64()))
    else:
        raise ValueRefused(f"the time column holds {kind}: turn it into numbers or ISO dates first")
    _refuse_first(np.isinf(time), "the time is infinite: correct it, or leave it empty")
    return time


def time_of_text(text: str) -> float:
    """Return one written time as a number: a number as it is, an ISO date and time in seconds (UTC)."""
    if is_number(text):
        return float(text)
    moment = datetime.fromisoformat(text.strip())
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def is_number(text: str) -> bool:
    """Say whether a field is written as a number, in the way that Arrow reads one."""
    try:
        float(text)
    except ValueError:
        return False
    return text.isascii() and "_" not in text


def is_finite_number(text: str) -> bool:
    """Say whether a field is written as a finite number."""
    return is_number(text) and isfinite(float(text))


def is_finite_rating(text: str) -> bool:
    """Say whether a written rating is a finite number in single precision."""
    return is_number(text) and abs(float(text)) <= _LARGEST_RATING


def _finite_numbers(column: ArrowColumn, role: str, precision: type[np.floating[Any]]) -> NDArray[Any]:
    kind = column.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or _is_other_number(kind)):
        raise ValueRefused(f"the {role} column holds {kind}: turn the {role}s into numbers first")
    _refuse_first(pc.is_null(column), f"the {role} is missing: fill it in, or drop the row")
    with np.errstate(over="ignore"):
        numbers = np.asarray(column.cast(pa.float64(), safe=False)).astype(precision)
    _refuse_first(~np.isfinite(numbers), f"the {role} is not a finite number: correct it, or drop the row")
    return numbers


def _times_of_text(column: ArrowColumn) -> NDArray[np.float64]:
    column = column.cast(pa.large_string())
    column = pc.if_else(pc.equal(column, pa.scalar("", pa.large_string())), pa.scalar(None, pa.large_string()), column)
    for kind in (pa.float64(), pa.timestamp("us"), pa.timestamp("us", "UTC")):
        try:
            parsed = column.cast(kind)
        except pa.ArrowInvalid:
            continue
        return _floats(parsed) if pa.types.is_floating(kind) else _seconds(parsed)
    return _times_one_by_one(column)


def _times_one_by_one(column: ArrowColumn) -> NDArray[np.float64]:
    time = np.full(len(column), np.nan)
    for row, text in enumerate(column.to_pylist()):
        try:
            time[row] = np.nan if text is None else time_of_text(text)
        except ValueError as error:
            raise ValueRefused("the time is neither a number nor an ISO date and time", row) from error
    return time


def _seconds(column: ArrowColumn) -> NDArray[np.float64]:
    zone = column.type.tz if pa.types.is_timestamp(column.type) else None
    microseconds = column.cast(pa.timestamp("us", zone), safe=False).cast(pa.int64())
    return _floats(microseconds.cast(pa.float64(), safe=False)) / _MICROSECONDS


def _floats(column: ArrowColumn) -> NDArray[np.float64]:
    return np.asarray(pc.fill_null(column, float("nan")), dtype=np.float64)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _is_other_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_boolean(kind) or pa.types.is_decimal(kind))


def _without_views(column: ArrowColumn) -> ArrowColumn:
    # Polars hands over views, which Arrow can neither encode nor take from yet.
    if not pa.types.is_dictionary(column.type):
        return column.cast(pa.large_string())
    parts: list[ArrowColumn] = [
        pa.DictionaryArray.from_arrays(chunk.indices, chunk.dictionary.cast(pa.large_string()))
        for chunk in column.chunks
    ]
    return pa.chunked_array(parts)


def _distinct(column: ArrowColumn) -> ArrowColumn:
    parts = [chunk.dictionary for chunk in column.chunks]
    return pc.unique(pa.concat_arrays(parts)) if parts else pa.array([], pa.string())


def _faulty_ids(values: ArrowColumn, role: str) -> Iterator[tuple[ArrowColumn, str]]:
    tests = {
        f"the {role} is empty: fill it in, or drop the row": pc.equal(values, pa.scalar("")),
        f"the {role} holds a NUL or a line end: give plain text": pc.match_substring_regex(values, r"[\x00\r\n]"),
    }
    for reason, faulty in tests.items():
        if pc.any(faulty).as_py():
            yield values.filter(faulty), reason


def _refuse_first(faulty: ArrowColumn, reason: str) -> None:
    rows = np.flatnonzero(np.asarray(faulty))
    if len(rows):
        raise ValueRefused(reason, int(rows[0]))
