"""Reading interactions, piece by piece or as a whole: from files, object stores, tables and sparse matrices."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy import sparse

from erasable.data._delimited import open_delimited
from erasable.data._tables import arrow_table, open_parquet, open_sparse, open_table
from erasable.data.columns import OF_WEIGHTS, ColumnNames, column_option
from erasable.data.ids import ArrowColumn, encode_ids
from erasable.data.interactions import Interactions, RatingScale
from erasable.data.sources import InputSource, name_of, sources_of
from erasable.data.values import (
    NO_TIMES,
    ColumnValues,
    OnBadRow,
    OpenedSource,
    RowRules,
    Taken,
    Weights,
    WrittenTimes,
    has_e_mails,
)
from erasable.errors import DataRefused, WrongUse

NOTHING_TAKEN = Taken({})
_RECOGNISE_ALL = ColumnNames()
_TEXT = pa.dictionary(pa.int32(), pa.string())
_E_MAILS_AS_IDS = (
    "some user ids are e-mail addresses, and the workspace holds them as they are: replace them by pseudonyms before "
    "learning, or keep the folder as safe as a list of customers"
)


@dataclass(frozen=True)
class SourceFacts:
    """What is known of a source once all its pieces were read."""

    recognised: str
    """How it was understood, in words."""
    taken: Taken
    rows: int
    """The number of rows, bad ones included."""
    bad_rows: int
    """The number of rows left out because they can't be used."""
    rated: bool
    """Whether there is a rating column; without one, every rating is 1."""
    lowest: float
    highest: float
    """The smallest and the largest rating of the rows that can be used; 1 without ratings."""
    risk: Mapping[str, float] | None
    """The largest erasure risk of each user, over all rows that can be used, if that column was named."""
    e_mails: bool = False
    """Whether some user ids are e-mail addresses."""
    idle: int = 0
    """The number of rows left out because their event counts 0."""

    @property
    def notices(self) -> tuple[str, ...]:
        """What should be thought about before this is learned."""
        return (_E_MAILS_AS_IDS,) if self.e_mails else ()

    @property
    def weighed(self) -> bool:
        """Whether rows have weights, which add up."""
        return not self.taken.columns.keys().isdisjoint(OF_WEIGHTS)

    def notes(self, repeated: int = 0) -> tuple[str, ...]:
        """Return notes on how the source was understood."""
        notes = [self.recognised]
        if not self.rated:
            notes.append("no rating column: every rating is 1")
        if self.idle:
            notes.append(f"{self.idle} rows left out: their events count 0")
        if repeated and self.weighed:
            notes.append(f"{repeated} rows added to others of the same user and item")
        elif repeated:
            notes.append(f"{repeated} repeated (user, item) pairs dropped; the latest of each stays")
        if self.bad_rows:
            notes.append(f"{self.bad_rows} bad rows left out")
        return tuple(notes)


@dataclass
class _Tally:
    """What is known of a source so far."""

    rows: int = 0
    bad_rows: int = 0
    rated: bool = False
    lowest: float = np.inf
    highest: float = -np.inf
    risk: dict[str, float] | None = None
    times: WrittenTimes = NO_TIMES
    e_mails: bool = False
    idle: int = 0

    def add(self, values: ColumnValues) -> None:
        self.rows += len(values) + values.bad_rows
        self.bad_rows += values.bad_rows
        self.times |= values.times
        self.rated |= values.rating is not None
        ratings = np.ones(1) if values.rating is None else values.rating
        if len(values):
            self.lowest, self.highest = min(self.lowest, ratings.min()), max(self.highest, ratings.max())
        if values.risk is not None:
            self.risk = _larger(self.risk or {}, values.users, values.risk)
        self.e_mails = self.e_mails or has_e_mails(values.users)

    def facts(self, first: OpenedSource) -> SourceFacts:
        taken = replace(first.taken, time_form=self.times.form)
        ends = float(self.lowest), float(self.highest)
        return SourceFacts(
            first.recognised, taken, self.rows, self.bad_rows, self.rated, *ends, self.risk, self.e_mails, self.idle
        )


def _larger(risks: dict[str, float], column: ArrowColumn, risk: NDArray[np.float64]) -> dict[str, float]:
    users, user_index = encode_ids(column)
    largest = np.full(len(users), -np.inf)
    np.maximum.at(largest, user_index, risk)
    for user, value in zip(users, largest.tolist(), strict=True):
        risks[user] = max(value, risks.get(user, value))
    return risks


class Batches:
    """The interactions of a source in pieces of bounded size, in its order; each pass reads it again.

    A pass may end in a refusal, so nothing of it counts before its end. Then `facts` is known.
    """

    def __init__(self, source: Any, columns: ColumnNames, rules: RowRules) -> None:  # noqa: ANN401 - told apart here
        self.name = name_of(source)
        self._columns, self._rules = columns, rules
        _refuse_unweighed(columns, rules)
        self._facts: SourceFacts | None = None
        self._files: tuple[InputSource, ...] = ()
        self._matrix: Any = None
        if isinstance(source, str | Path):
            self._files = sources_of(source)
        elif sparse.issparse(source):
            self._matrix = source
        elif is_table(source):
            # A stream can be read once only.
            self._kind, self._table = f"a {type(source).__name__}", arrow_table(source)
        else:
            raise refuse_source(source)

    @property
    def facts(self) -> SourceFacts:
        """What the last pass found out."""
        if self._facts is None:
            raise WrongUse("the source has not been read to its end: iterate over it first")
        return self._facts

    def __iter__(self) -> Iterator[ColumnValues]:
        self._facts = None
        first, tally = None, _Tally()
        for opened in self._opened():
            first = first or opened
            _refuse_other_columns(opened, first)
            before, own = tally.times, NO_TIMES
            for values in opened.pieces:
                own |= values.times
                _refuse_other_times(opened, own, first, before)
                tally.add(values)
                if self._rules.weights is not None:
                    before_it, values = len(values), values.weighing()
                    tally.idle += before_it - len(values)
                if len(values):
                    yield values
        assert first is not None  # noqa: S101 - there is one file at least
        self._refuse_nothing(first, tally)
        self._facts = tally.facts(first)

    def _opened(self) -> Iterator[OpenedSource]:
        if self._files:
            for file in self._files:
                yield (open_parquet if file.is_parquet else open_delimited)(file, self._columns, self._rules)
        elif self._matrix is not None:
            yield open_sparse(self._matrix, self._columns, self._rules)
        else:
            yield open_table(self._table, self._kind, self._columns, self._rules)

    def _refuse_nothing(self, first: OpenedSource, tally: _Tally) -> None:
        if not tally.rows:
            raise DataRefused(f"{self.name} {first.nothing}")
        scale = self._rules.scale
        if scale is not None and "rating" not in first.taken.columns and not scale.contains(1.0):
            option = column_option("rating")
            raise DataRefused(
                f"{self.name}: without ratings each is 1, outside the scale {scale}: name them (", option, ")"
            )
        if tally.rows == tally.bad_rows + tally.idle:
            raise DataRefused(f"{self.name} holds no row that can be used: give one interaction a line")


def _refuse_other_columns(opened: OpenedSource, first: OpenedSource) -> None:
    """Refuse a file that is laid out differently from the first one of its folder."""
    if opened.recognised != first.recognised:
        differs = f"{opened.recognised}; in {first.name}: {first.recognised}"
    elif sorted(opened.taken.left) != sorted(first.taken.left):
        differs = f"its other columns are not those of {first.name}"
    elif opened.taken.numbers != first.taken.numbers:
        differs = f"its ids are of another type than in {first.name}"
    else:
        return
    raise DataRefused(f"{opened.name} has another layout ({differs}): give files of one layout together")


def _refuse_other_times(opened: OpenedSource, own: WrittenTimes, first: OpenedSource, before: WrittenTimes) -> None:
    """Refuse a file with times as numbers where the files before have dates, and the other way round."""
    if None not in (own.form, before.form) and (own.form == "number") != (before.form == "number"):
        raise DataRefused(
            f"{opened.name} writes times in another way than {first.name}, numbers or dates: write them in one way"
        )


def read_batches(
    source: Any,  # noqa: ANN401 - told apart by Batches
    columns: ColumnNames = _RECOGNISE_ALL,
    scale: RatingScale | None = None,
    on_bad_row: OnBadRow = "refuse",
    weights: Weights | None = None,
) -> Batches:
    """Return the interactions of a source in pieces: a file, a folder, a pattern, a URL, a table or a sparse matrix.

    With a scale, ratings outside it are bad. Weights come from the columns of weights and events that are named. Bad
    rows are counted and refused together, file by file, or left out; row numbers do not count a header.
    """
    return Batches(source, columns, RowRules(scale, on_bad_row, weights))


def _refuse_unweighed(columns: ColumnNames, rules: RowRules) -> None:
    """Refuse columns of weights and events where nothing says how to weigh them."""
    weights = rules.weights
    if columns.weight is not None and weights is None:
        raise WrongUse("no weights are learned here: leave out ", column_option("weight"))
    if columns.event is not None and (weights is None or weights.events is None):
        raise WrongUse("no types of events are weighed here: leave out ", column_option("event"))


def is_table(source: object) -> bool:
    """Whether a source exports an Arrow table."""
    return hasattr(source, "__arrow_c_stream__") or hasattr(source, "__arrow_c_array__")


def refuse_source(source: object) -> WrongUse:
    """Return the error for a source of an unknown type."""
    return WrongUse(
        f"can't read interactions from a {type(source).__name__}: "
        "give a path, a pandas, polars or Arrow table, or a SciPy sparse matrix"
    )


@dataclass(frozen=True)
class ReadResult:
    """What was read, notes on how it was understood, and each user's erasure risk if that column was named."""

    interactions: Interactions
    notes: tuple[str, ...]
    risk: Mapping[str, float] | None = None
    rated: bool = True
    """Whether there is a rating column; without one, every rating is 1."""
    taken: Taken = NOTHING_TAKEN
    rows: int = 0
    """The number of rows in the source, bad ones included."""
    repeated: int = 0
    """The number of rows dropped because a later one has the same user and item."""
    bad_rows: int = 0
    """The number of rows left out because they can't be used."""
    notices: tuple[str, ...] = ()
    """What should be thought about before this is learned."""


def read_interactions(
    source: Any,  # noqa: ANN401 - told apart by Batches
    columns: ColumnNames = _RECOGNISE_ALL,
    scale: RatingScale | None = None,
    fewest_users: int = 2,
    on_bad_row: OnBadRow = "refuse",
    weights: Weights | None = None,
) -> ReadResult:
    """Read all interactions of a source into memory; refuse anything ambiguous. `read_batches` says what it may be."""
    batches = read_batches(source, columns, scale, on_bad_row, weights)
    pieces = list(batches)
    interactions, repeated = Interactions.from_columns(
        pa.chunked_array([values.users for values in pieces], _TEXT),
        pa.chunked_array([values.items for values in pieces], _TEXT),
        _joined([values.rating for values in pieces]),
        _joined([values.time for values in pieces]),
        weights.most if weights is not None and batches.facts.weighed else None,
    )
    if len(interactions.users) < fewest_users:
        raise DataRefused(f"{batches.name} holds one user only: give the interactions of two users at least")
    facts = batches.facts
    return ReadResult(
        interactions,
        facts.notes(repeated),
        facts.risk,
        facts.rated,
        facts.taken,
        facts.rows,
        repeated,
        facts.bad_rows,
        facts.notices,
    )


def _joined(arrays: list[Any]) -> Any:  # noqa: ANN401 - an array, or None if the column is missing
    return None if arrays[0] is None else np.concatenate(arrays)
