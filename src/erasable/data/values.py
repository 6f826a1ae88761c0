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
from erasable.errors import BadRows, DataRefused, option, said

OnBadRow = Literal["refuse", "skip"]
TimeForm = Literal["number", "date", "moment", "moment with zone"]
"""How times are written: as numbers, as ISO 8601 dates, or as dates and times, with a zone or without."""
_SHOWN = 3
_MICROSECONDS = 1_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_MOMENT = (datetime(1, 1, 1, tzinfo=UTC) - _EPOCH).total_seconds()  # Arrow knows a year 0, Python does not
_ISO_DATE = r"^\s*\d{4}-\d{2}-\d{2}"
_ZONE = r"\d{2}:\d{2}.*(Z|UTC|[+-]\d{2}(:?\d{2})?)\s*$"
_UTC = "UTC"  # as BigQuery writes the zone
_E_MAIL = r"^[^@\s]+@[^@\s]+\.[^@\s]+$"
NO_WEIGHT = "the weight is no whole number from 1 up: round it, or drop the row"
_LARGEST_RATING = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class Weights:
    """How rows are weighed: the most that a pair may weigh, and what each type of event counts if there are types."""

    most: int
    events: Mapping[str, int] | None = None

    def of(self, quantity: int | None, event: str | None) -> int:
        """Return the weight of one row, 0 if its event is not learned; what is missing counts 1."""
        if (event is None) != (self.events is None):
            raise DataRefused("types of events are weighed: give one" if self.events else "leave out the type of event")
        fault = None if event is None else self.event_fault(event)
        if fault:
            raise DataRefused(fault)
        return min((quantity or 1) * (1 if event is None else (self.events or {})[event]), self.most)

    def event_fault(self, event: str) -> str | None:
        """Return why a row with this event can't be used, if it can't."""
        if event in (self.events or {}):
            return None
        known = ", ".join(self.events or {})
        return said(
            f"its event is none of {known}: add it to ", option("event_weights"), ", with 0 to leave such rows out"
        )


@dataclass(frozen=True)
class RowRules:
    """The scale that ratings must be on, what to do with a row that can't be used, and how rows are weighed."""

    scale: RatingScale | None = None
    on_bad_row: OnBadRow = "refuse"
    weights: Weights | None = None


class RowFaults:
    """The rows of one source that can't be used, each with the first reason found."""

    def __init__(self) -> None:
        self._reasons: dict[int, str] = {}
        self._others = 0
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

    def join(self, later: "RowFaults", start: int) -> None:
        """Take over the faults of rows that begin at `start`; all are counted, and the first reasons kept."""
        for row, reason in sorted(later._reasons.items()):
            if len(self._reasons) < _SHOWN:
                self.add(row + start, reason)
            else:
                self._others += 1
        self._others += later._others
        self._off_scale |= later._off_scale

    def refusal(self, name: str, unit: str, total: int, first: int = 0) -> BadRows:
        """Return the error that counts all bad rows and shows the first three; rows are numbered from `first`."""
        shown = sorted(self._reasons.items())[:_SHOWN]
        places = (part for row, reason in shown for part in (f"; {unit} {row + first}: ", reason))
        count = len(self)
        in_all = f"; in all {count:,} of {total:,} rows are bad" if count > 1 else ""
        return BadRows(f"{name}, {unit} {shown[0][0] + first}: ", *list(places)[1:], in_all, off_scale=self._off_scale)

    def __len__(self) -> int:
        return len(self._reasons) + self._others


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


@dataclass(frozen=True)
class WrittenTimes:
    """How the times of some rows are written; `|` joins what is known of two pieces of a column."""

    known: bool = False
    """Whether there is any time, or the column's type alone says how times are written."""
    iso: bool = False
    moments: bool = False
    """Whether one has a date and more."""
    zones: bool = False

    def __or__(self, other: "WrittenTimes") -> "WrittenTimes":
        return WrittenTimes(
            self.known or other.known, self.iso or other.iso, self.moments or other.moments, self.zones or other.zones
        )

    @property
    def form(self) -> TimeForm | None:
        """The form of all of them together."""
        if not self.iso:
            return "number" if self.known else None
        if not self.moments:
            return "date"
        return "moment with zone" if self.zones else "moment"


NO_TIMES = WrittenTimes()


@dataclass(frozen=True, eq=False)
class ColumnValues:
    """The columns of a source, or of a piece of one, in its order of rows without the bad ones."""

    users: ArrowColumn
    items: ArrowColumn
    rating: NDArray[np.float32] | None
    time: NDArray[np.float64] | None
    risk: NDArray[np.float64] | None
    times: WrittenTimes = NO_TIMES
    bad_rows: int = 0
    """The number of rows left out because they can't be used."""

    def weighing(self) -> "ColumnValues":
        """Return the values without the rows whose event counts 0."""
        idle = np.flatnonzero(self.rating == 0) if self.rating is not None else ()
        return replace(self.without(idle), bad_rows=self.bad_rows) if len(idle) else self

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

    def __len__(self) -> int:
        return len(self.users)


@dataclass(frozen=True)
class OpenedSource:
    """One file or table: what its columns are, and its values piece by piece, which can be read once."""

    name: str
    recognised: str
    """How its columns were recognised, in words."""
    taken: Taken
    pieces: Iterator[ColumnValues]
    nothing: str
    """What to say if there is no row."""


def read_columns(columns: Mapping[str, ArrowColumn], rules: RowRules) -> tuple[ColumnValues, RowFaults]:
    """Convert columns by role, and return the rows that can't be used, too.

    Each row is read by itself, so the pieces of a column give what the whole gives.
    """
    faults = RowFaults()
    values = ColumnValues(
        users=id_values(columns["user"], "user", faults),
        items=id_values(columns["item"], "item", faults),
        rating=ratings_of(columns, rules, faults),
        time=time_values(columns["time"], faults) if "time" in columns else None,
        risk=risk_values(columns["risk"], faults) if "risk" in columns else None,
        times=_written_times(columns["time"]) if "time" in columns else NO_TIMES,
    )
    return values, faults


def ratings_of(columns: Mapping[str, ArrowColumn], rules: RowRules, faults: RowFaults) -> NDArray[np.float32] | None:
    """Return ratings or weights, or None if there is no such column."""
    if "rating" in columns:
        return rating_values(columns["rating"], faults, rules.scale)
    if rules.weights is None or not columns.keys() & {"weight", "event"}:
        return None
    quantities = weight_values(columns["weight"], faults) if "weight" in columns else np.ones(1)
    events = event_values(columns["event"], rules.weights, faults) if "event" in columns else np.ones(1)
    return np.minimum(quantities * events, rules.weights.most).astype(np.float32)


def roles_with_numbers(kinds: Mapping[str, pa.DataType]) -> frozenset[str]:
    """Return the roles whose ids are numbers, by the types of the columns; those that are not whole are refused."""
    found = {role: _kind_of_values(kinds[role]) for role in ("user", "item")}
    return frozenset(role for role, kind in found.items() if pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _kind_of_values(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def id_values(column: ArrowColumn, role: str, faults: RowFaults) -> ArrowColumn:
    """Return a column of ids as text: text as it is, whole numbers in decimal; refuse anything else."""
    kind = _kind_of_values(column.type)
    if pa.types.is_floating(kind):
        column = _whole_numbers(_plain(column), role)
        kind = column.type
    if not (_is_text(kind) or pa.types.is_integer(kind)):
        raise ColumnRefused(f"the {role} column holds {kind}: turn the ids into text or whole numbers first")
    if pa.types.is_string_view(kind):
        column = _without_views(column)
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    column = _one_array(column.cast(pa.dictionary(pa.int32(), pa.string())))
    faults.add_where(pc.is_null(column), f"the {role} is missing: fill it in, or drop the row")
    for fault, reason in _faulty_ids(column.dictionary, role):
        faults.add_where(pc.is_in(column.cast(pa.string()), value_set=fault), reason)
    return column


def _whole_numbers(column: ArrowColumn, role: str) -> ArrowColumn:
    """Return numbers as whole numbers, NaN as missing: pandas makes a column of floats of whole numbers with a gap."""
    numbers = _floats(column.cast(pa.float64()))
    missing = np.isnan(numbers)
    if not np.array_equal(numbers[~missing], np.trunc(numbers[~missing])):
        raise ColumnRefused(f"the {role} column holds {column.type}: turn the ids into text or whole numbers first")
    exact = 2 ** (np.finfo(column.type.to_pandas_dtype()).nmant + 1)  # from here on two ids may have become one
    if np.any(np.abs(numbers[~missing]) >= exact):
        raise ColumnRefused(
            f"the {role} column holds {column.type}, which rounds ids from {exact:,} on: read them as text or as whole "
            "numbers"
        )
    return pa.array(np.where(missing, 0, numbers).astype(np.int64), mask=missing)


def has_e_mails(ids: ArrowColumn) -> bool:
    """Whether one of the ids is an e-mail address."""
    texts = ids.dictionary if pa.types.is_dictionary(ids.type) else ids
    with_sign = texts.filter(pc.match_substring(texts, "@"))  # far faster than the pattern, and mostly none is left
    return bool(pc.any(pc.match_substring_regex(with_sign, _E_MAIL), min_count=0).as_py())


def rating_values(column: ArrowColumn, faults: RowFaults, scale: RatingScale | None = None) -> NDArray[np.float32]:
    """Return a column of ratings as numbers; refuse text. Missing, non-finite and off-scale ratings are bad rows."""
    ratings = _finite_numbers(column, "rating", np.float32, faults)
    if scale is not None:
        for row in np.flatnonzero(scale.outside(ratings)).tolist():
            if np.isfinite(ratings[row]):
                faults.add_off_scale(row, ratings[row], scale)
    return ratings


def weight_values(column: ArrowColumn, faults: RowFaults) -> NDArray[np.float64]:
    """Return a column of weights; refuse text. Whatever is no whole number from 1 up is a bad row."""
    weights = _finite_numbers(column, "weight", np.float64, faults)
    with np.errstate(invalid="ignore"):
        faults.add_where(~((weights >= 1) & (weights == np.floor(weights))), NO_WEIGHT)
    return np.nan_to_num(weights, nan=1.0, posinf=1.0, neginf=1.0)


def event_values(column: ArrowColumn, weights: Weights, faults: RowFaults) -> NDArray[np.float64]:
    """Return what the type of event of each row counts; a type without a weight is a bad row."""
    kind = _kind_of_values(column.type)
    if not (_is_text(kind) or pa.types.is_integer(kind)):
        raise ColumnRefused(f"the event column holds {kind}: turn the types of events into text first")
    texts = _one_array(_plain(column).cast(pa.large_string()).dictionary_encode())
    faults.add_where(pc.is_null(texts), "the event is missing: fill it in, or drop the row")
    known = [(weights.events or {}).get(text) for text in texts.dictionary.to_pylist()]
    places = np.asarray(pc.fill_null(texts.indices, 0))
    for number, text in enumerate(texts.dictionary.to_pylist()):
        if known[number] is None:
            faults.add_where(places == number, weights.event_fault(text) or "")
    counts = np.array([1 if weight is None else weight for weight in known] or [1], np.float64)
    found: NDArray[np.float64] = counts[places]
    return found


def is_weight(text: str) -> bool:
    """Whether a field is a whole number from 1 up."""
    return is_finite_number(text) and float(text) >= 1 and float(text).is_integer()


def risk_values(column: ArrowColumn, faults: RowFaults) -> NDArray[np.float64]:
    """Return a column of erasure risks as numbers; refuse text. Missing and non-finite ones are bad rows."""
    return _finite_numbers(column, "risk", np.float64, faults)


def time_values(column: ArrowColumn, faults: RowFaults) -> NDArray[np.float64]:
    """Return a column of times: numbers as they are, dates in seconds; a missing time is NaN, unknown."""
    column = _plain(column)
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
    written = text.strip()
    moment = datetime.fromisoformat(written.removesuffix(_UTC).rstrip() + "Z" if written.endswith(_UTC) else written)
    since = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH
    # As `_seconds` does it, so that a far date is the same number, whichever of the two reads it.
    return float(since // timedelta(microseconds=1)) / _MICROSECONDS


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


def _written_times(column: ArrowColumn) -> WrittenTimes:
    """Return how times are written."""
    column = _plain(column)
    kind = column.type
    if pa.types.is_date(kind):
        return WrittenTimes(known=True, iso=True)
    if pa.types.is_timestamp(kind):
        return WrittenTimes(known=True, iso=True, moments=True, zones=bool(kind.tz))
    if not _is_text(kind):
        return WrittenTimes(known=not pa.types.is_null(kind))
    texts = pc.drop_null(column.cast(pa.large_string()))
    texts = texts.filter(pc.not_equal(texts, ""))
    iso = texts.filter(pc.match_substring_regex(texts, _ISO_DATE))
    only_dates = pc.all(pc.match_substring_regex(iso, _ISO_DATE + r"\s*$"), min_count=0).as_py()
    zones = pc.any(pc.match_substring_regex(iso, _ZONE), min_count=0).as_py()
    return WrittenTimes(bool(len(texts)), bool(len(iso)), not only_dates, zones)


def _finite_numbers(
    column: ArrowColumn, role: str, precision: type[np.floating[Any]], faults: RowFaults
) -> NDArray[Any]:
    column = _plain(column)
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
    if pc.any(pc.match_substring(column, _UTC), min_count=0).as_py():
        column = pc.replace_substring_regex(column, rf"\s*{_UTC}\s*$", "Z")
    for kind in (pa.float64(), pa.timestamp("us"), pa.timestamp("us", "UTC")):
        try:
            parsed = column.cast(kind)
        except pa.ArrowInvalid:
            continue
        time = _floats(parsed) if pa.types.is_floating(kind) else _seconds(parsed)
        # Arrow takes a few texts that `time_of_text` refuses, such as nan(x): what a text means must not depend on
        # the texts beside it.
        unlikely = np.isnan(time) if pa.types.is_floating(kind) else time < _FIRST_MOMENT
        if np.count_nonzero(unlikely) <= (column.null_count if pa.types.is_floating(kind) else 0):
            return time
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


def _plain(column: ArrowColumn) -> ArrowColumn:
    """Return a column of categories as one in which each row has its own value."""
    if not pa.types.is_dictionary(column.type):
        return column
    if pa.types.is_string_view(column.type.value_type):
        column = _without_views(column)
    return column.cast(column.type.value_type)


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


def _one_array(column: ArrowColumn) -> ArrowColumn:
    if not isinstance(column, pa.ChunkedArray):
        return column
    return column.unify_dictionaries().combine_chunks() if column.num_chunks > 1 else column.combine_chunks()


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
