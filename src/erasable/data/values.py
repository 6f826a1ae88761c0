"""Conversion of Arrow columns to ids, ratings and times; rows that can't be used are collected with their reasons."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from math import isfinite
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from erasable.data.ids import LONGEST_ID, ArrowColumn
from erasable.data.interactions import RatingScale
from erasable.errors import BadRows

OnBadRow = Literal["refuse", "skip"]
TimeForm = Literal["number", "date", "moment", "moment with zone"]
"""How times are written: as numbers, as ISO 8601 dates, or as dates and times, with a zone or without."""
_SHOWN = 3
_MICROSECONDS = 1_000_000
_ISO_DATE = r"^\s*\d{4}-\d{2}-\d{2}"
_ZONE = r"\d{2}:\d{2}.*(Z|[+-]\d{2}:?\d{2})\s*$"
_LARGEST_RATING = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class RowRules:
    """The scale that ratings must be on, and what to do with a row that can't be used."""

    scale: RatingScale | None = None
    on_bad_row: OnBadRow = "refuse"


class RowFaults:
    """The rows of one source that can't be used, each with the first reason found."""

    def __init__(self) -> None:
        self._reasons: dict[int, str] = {}
        self._off_scale = False

    def add(self, row: int, reason: str) -> None:
        """Record why a row can't be used; of several reasons the first counts."""
        self._reasons.setdefault(row, reason)

    def add_where(self, faulty: ArrowColumn, reason: str) -> None:
        """Record the same reason for every row where the mask is true."""
        for row in np.flatnonzero(np.asarray(faulty)).tolist():
            self.add(row, reason)

    def add_off_scale(self, row: int, rating: float, scale: RatingScale) -> None:
        """Record that a rating lies outside the scale."""
        self._off_scale = True
        self.add(row, f"rating {rating:g} lies outside the scale {scale}: correct it, or drop the row")

    @property
    def rows(self) -> frozenset[int]:
        """The numbers of these rows."""
        return frozenset(self._reasons)

    def refusal(self, name: str, unit: str, total: int, first: int = 0) -> BadRows:
        """Return the error that counts all bad rows and shows the first three; rows are numbered from `first`."""
        shown = sorted(self._reasons.items())[:_SHOWN]
        places = (part for row, reason in shown for part in (f"; {unit} {row + first}: ", reason))
        count = len(self._reasons)
        in_all = f"; in all {count:,} of {total:,} rows are bad" if count > 1 else ""
        return BadRows(f"{name}, {unit} {shown[0][0] + first}: ", *list(places)[1:], in_all, off_scale=self._off_scale)

    def __len__(self) -> int:
        return len(self._reasons)


class ColumnRefused(Exception):
    """A whole column can't be used; the caller adds the name of the source."""


@dataclass(frozen=True)
class Taken:
    """Which columns of a source were read, by role, which were not, and how times and ids are written."""

    columns: dict[str, str]
    left: tuple[str, ...] = ()
    time_form: TimeForm | None = None
    numbers: frozenset[str] = frozenset()
    """The roles (user, item) whose ids came as whole numbers rather than text."""


@dataclass(frozen=True, eq=False)
class ColumnValues:
    """The columns of one source, in its order of rows without the bad ones, and how they were recognised."""

    users: ArrowColumn
    items: ArrowColumn
    rating: NDArray[np.float32] | None
    time: NDArray[np.float64] | None
    risk: NDArray[np.float64] | None
    recognised: str
    taken: Taken
    bad_rows: int = 0
    """The number of rows left out because they can't be used."""

    def without(self, rows: Collection[int]) -> "ColumnValues":
        """Return the values without bad rows."""
        keep = np.ones(len(self.users), dtype=bool)
        keep[list(rows)] = False
        mask = pa.array(keep)
        return replace(
            self,
            users=self.users.filter(mask),
            items=self.items.filter(mask),
            rating=None if self.rating is None else self.rating[keep],
            time=None if self.time is None else self.time[keep],
            risk=None if self.risk is None else self.risk[keep],
            bad_rows=len(rows),
        )


def read_columns(
    columns: Mapping[str, ArrowColumn], scale: RatingScale | None, recognised: str, taken: Taken
) -> tuple[ColumnValues, RowFaults]:
    """Convert columns by role, and return the rows that can't be used, too."""
    faults = RowFaults()
    form = _time_form(columns["time"]) if "time" in columns else None
    values = ColumnValues(
        users=id_values(columns["user"], "user", faults),
        items=id_values(columns["item"], "item", faults),
        rating=rating_values(columns["rating"], faults, scale) if "rating" in columns else None,
        time=time_values(columns["time"], faults) if "time" in columns else None,
        risk=risk_values(columns["risk"], faults) if "risk" in columns else None,
        recognised=recognised,
        taken=replace(taken, time_form=form, numbers=_roles_with_numbers(columns)),
    )
    return values, faults


def _roles_with_numbers(columns: Mapping[str, ArrowColumn]) -> frozenset[str]:
    """Return the roles whose ids are whole numbers."""
    return frozenset(role for role in ("user", "item") if pa.types.is_integer(_kind_of_values(columns[role])))


def _kind_of_values(column: ArrowColumn) -> pa.DataType:
    return column.type.value_type if pa.types.is_dictionary(column.type) else column.type


def id_values(column: ArrowColumn, role: str, faults: RowFaults) -> ArrowColumn:
    """Return a column of ids as text: text as it is, whole numbers in decimal; refuse anything else."""
    kind = _kind_of_values(column)
    if not (_is_text(kind) or pa.types.is_integer(kind)):
        raise ColumnRefused(f"the {role} column holds {kind}: turn the ids into text or whole numbers first")
    if pa.types.is_string_view(kind):
        column = _without_views(column)
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    column = column.cast(pa.dictionary(pa.int32(), pa.string()))
    faults.add_where(pc.is_null(column), f"the {role} is missing: fill it in, or drop the row")
    for fault, reason in _faulty_ids(_distinct(column), role):
        faults.add_where(pc.is_in(column.cast(pa.string()), value_set=fault), reason)
    return column


def rating_values(column: ArrowColumn, faults: RowFaults, scale: RatingScale | None = None) -> NDArray[np.float32]:
    """Return a column of ratings as numbers; refuse text. Missing, non-finite and off-scale ratings are bad rows."""
    ratings = _finite_numbers(column, "rating", np.float32, faults)
    if scale is not None:
        for row in np.flatnonzero(scale.outside(ratings)).tolist():
            if np.isfinite(ratings[row]):
                faults.add_off_scale(row, ratings[row], scale)
    return ratings


def risk_values(column: ArrowColumn, faults: RowFaults) -> NDArray[np.float64]:
    """Return a column of erasure risks as numbers; refuse text. Missing and non-finite ones are bad rows."""
    return _finite_numbers(column, "risk", np.float64, faults)


def time_values(column: ArrowColumn, faults: RowFaults) -> NDArray[np.float64]:
    """Return a column of times: numbers as they are, dates in seconds; a missing time is NaN, unknown."""
    kind = column.type
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        time = _seconds(column)
    elif _is_text(kind):
        time = _times_of_text(column, faults)
    elif pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_null(kind):
        time = _floats(column.cast(pa.float64()))
    else:
        raise ColumnRefused(f"the time column holds {kind}: turn it into numbers or ISO dates first")
    faults.add_where(np.isinf(time), "the time is infinite: correct it, or leave it empty")
    return time


def time_of_text(text: str) -> float:
    """Return a written time as a number: a number as it is, an ISO date and time in seconds (UTC)."""
    if is_number(text):
        return float(text)
    moment = datetime.fromisoformat(text.strip())
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def is_number(text: str) -> bool:
    """Whether Arrow would read a field as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return text.isascii() and "_" not in text


def is_finite_number(text: str) -> bool:
    """Whether a field is a finite number."""
    return is_number(text) and isfinite(float(text))


def is_finite_rating(text: str) -> bool:
    """Whether a rating is a finite number in single precision."""
    return is_number(text) and abs(float(text)) <= _LARGEST_RATING


def text_of_time(time: float, form: TimeForm | None) -> float | str:
    """Return a time in the form it came in; seconds as ISO 8601 if it came so and the calendar reaches that far.

    >>> text_of_time(86400.0, "date"), text_of_time(86400.0, "moment with zone"), text_of_time(86400.0, "number")
    ('1970-01-02', '1970-01-02T00:00:00Z', 86400.0)
    """
    if form is None or form == "number":
        return time
    try:
        moment = datetime(1970, 1, 1) + timedelta(microseconds=round(time * _MICROSECONDS))
    except OverflowError:
        return time
    if form == "date":
        return moment.date().isoformat()
    return moment.isoformat() + ("Z" if form == "moment with zone" else "")


def _time_form(column: ArrowColumn) -> TimeForm | None:
    """Return how times are written; None for a column without any."""
    kind = column.type
    if pa.types.is_date(kind):
        return "date"
    if pa.types.is_timestamp(kind):
        return "moment with zone" if kind.tz else "moment"
    if not _is_text(kind):
        return None if pa.types.is_null(kind) else "number"
    texts = pc.drop_null(column.cast(pa.large_string()))
    texts = texts.filter(pc.not_equal(texts, ""))
    if not len(texts):
        return None
    iso = texts.filter(pc.match_substring_regex(texts, _ISO_DATE))
    if not len(iso):
        return "number"
    if pc.all(pc.match_substring_regex(iso, _ISO_DATE + r"\s*$")).as_py():
        return "date"
    return "moment with zone" if pc.any(pc.match_substring_regex(iso, _ZONE)).as_py() else "moment"


def _finite_numbers(
    column: ArrowColumn, role: str, precision: type[np.floating[Any]], faults: RowFaults
) -> NDArray[Any]:
    kind = column.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or _is_other_number(kind)):
        raise ColumnRefused(f"the {role} column holds {kind}: turn the {role}s into numbers first")
    faults.add_where(pc.is_null(column), f"the {role} is missing: fill it in, or drop the row")
    with np.errstate(over="ignore"):
        numbers = _floats(column.cast(pa.float64(), safe=False)).astype(precision)
    faults.add_where(~np.isfinite(numbers), f"the {role} is not a finite number: correct it, or drop the row")
    return numbers


def _times_of_text(column: ArrowColumn, faults: RowFaults) -> NDArray[np.float64]:
    column = column.cast(pa.large_string())
    column = pc.if_else(pc.equal(column, pa.scalar("", pa.large_string())), pa.scalar(None, pa.large_string()), column)
    for kind in (pa.float64(), pa.timestamp("us"), pa.timestamp("us", "UTC")):
        try:
            parsed = column.cast(kind)
        except pa.ArrowInvalid:
            continue
        return _floats(parsed) if pa.types.is_floating(kind) else _seconds(parsed)
    return _times_one_by_one(column, faults)


def _times_one_by_one(column: ArrowColumn, faults: RowFaults) -> NDArray[np.float64]:
    time = np.full(len(column), np.nan)
    for row, text in enumerate(column.to_pylist()):
        try:
            time[row] = np.nan if text is None else time_of_text(text)
        except ValueError:
            faults.add(row, "the time is neither a number nor an ISO date and time: correct it, or leave it empty")
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
    # Polars exports string views, which Arrow can neither encode nor take from yet.
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
        f"the {role} has more than {LONGEST_ID:,} characters: shorten it, or drop the row": pc.greater(
            pc.utf8_length(values), LONGEST_ID
        ),
        f"the {role} holds a NUL or a line end: give plain text": pc.match_substring_regex(values, r"[\x00\r\n]"),
    }
    for reason, faulty in tests.items():
        if pc.any(faulty).as_py():
            yield values.filter(faulty), reason
