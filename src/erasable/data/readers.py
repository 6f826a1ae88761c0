"""Reading interactions from files, tables in memory and sparse matrices; a bad line is named by its number."""

import csv
import io
import zlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv as arrow_csv
from pyarrow import parquet
from scipy import sparse

from erasable.data.columns import (
    ONE_BYTE,
    ColumnNames,
    DoubleColonReader,
    Layout,
    WithoutLines,
    column_option,
    is_gzip,
    locate_by_name,
    numbered_lines,
    open_bytes,
    recognise_layout,
    require_file,
)
from erasable.data.ids import LONGEST_ID, ArrowColumn, encode_ids
from erasable.data.interactions import Interactions, RatingScale
from erasable.data.values import (
    ColumnRefused,
    ColumnValues,
    OnBadRow,
    RowFaults,
    RowRules,
    Taken,
    is_finite_number,
    is_finite_rating,
    is_number,
    rating_values,
    read_columns,
    time_of_text,
)
from erasable.errors import DataRefused, WrongUse, said

PARQUET_MAGIC = b"PAR1"
NOTHING_TAKEN = Taken({})
_PARQUET_ENDINGS = (".parquet", ".pq")
_RECOGNISE_ALL = ColumnNames()
_SHOWN_CHARACTERS = 20
_BLOCK_BYTES = 8 * 2**20


def read_parquet(path: Path, wanted: ColumnNames, rules: RowRules) -> ColumnValues:
    """Read the needed columns of a Parquet file."""
    require_file(path)
    try:
        with parquet.ParquetFile(path) as file:
            names = file.schema_arrow.names
            places = locate_by_name(names, wanted, str(path)).by_role()
            table = file.read(columns=[names[place] for place in places.values()])
    except (pa.ArrowException, OSError) as error:
        raise DataRefused(f"{path} is not a Parquet file, or is damaged: write it again") from error
    named = ColumnNames(**{role: names[place] for role, place in places.items()})
    left = tuple(name for place, name in enumerate(names) if place not in places.values())
    values = _values(table, named, str(path), "Parquet", rules)
    return replace(values, taken=replace(values.taken, left=left))


def read_table(source: Any, wanted: ColumnNames, rules: RowRules) -> ColumnValues:  # noqa: ANN401 - any table
    """Read an Arrow table, or anything that exports one (pandas, polars, the PyCapsule interface)."""
    try:
        table = pa.table(source)
    except (pa.ArrowException, TypeError, ValueError, NotImplementedError) as error:
        raise DataRefused(
            "the table can't be turned into an Arrow table: give each column one type, ids as text"
        ) from error
    return _values(table, wanted, "the table", f"a {type(source).__name__}", rules)


def read_sparse(matrix: Any, wanted: ColumnNames, rules: RowRules) -> ColumnValues:  # noqa: ANN401 - SciPy's classes
    """Read a sparse matrix: row numbers are users, column numbers are items, explicit zeros are rows too."""
    if wanted.risk is not None:
        raise WrongUse("a sparse matrix has no risk column: give a table or a file that has one, or leave it out")
    if matrix.ndim != 2:
        raise DataRefused("the sparse array must have two dimensions: users by items")
    entries = sparse.coo_array(matrix, copy=True)
    # In SciPy, repeated entries mean their sum.
    entries.sum_duplicates()
    if not entries.nnz:
        raise DataRefused("the sparse matrix holds no entry: give at least one for each user")
    faults = RowFaults()
    try:
        rating = rating_values(pa.chunked_array([pa.array(entries.data)]), faults, rules.scale)
    except (ColumnRefused, pa.ArrowException) as error:
        raise DataRefused("the sparse matrix holds a value that is not a finite number: correct it") from error
    users, items = (_decimal(numbers, size) for numbers, size in zip(entries.coords, matrix.shape, strict=True))
    recognised = "a sparse matrix; row numbers are users, column numbers items"
    columns = {"user": "row number", "item": "column number", "rating": "value"}
    taken = Taken(columns, numbers=frozenset(("user", "item")))
    values = ColumnValues(users, items, rating, time=None, risk=None, recognised=recognised, taken=taken)
    return _settled(values, faults, rules, "the sparse matrix", "entry")


def _decimal(numbers: np.ndarray, size: int) -> ArrowColumn:
    texts = pa.array(np.arange(size)).cast(pa.string())
    return pa.DictionaryArray.from_arrays(numbers.astype(np.int32), texts)


def _settled(values: ColumnValues, faults: RowFaults, rules: RowRules, place: str, unit: str = "row") -> ColumnValues:
    """Refuse bad rows, or leave them out."""
    if not faults:
        return values
    if rules.on_bad_row == "refuse":
        raise faults.refusal(place, unit, len(values.users), first=1)
    return values.without(faults.rows)


def _values(table: pa.Table, wanted: ColumnNames, place: str, kind: str, rules: RowRules) -> ColumnValues:
    found = locate_by_name(table.column_names, wanted, place).by_role()
    columns = {role: table.column(position) for role, position in found.items()}
    if not table.num_rows:
        raise DataRefused(f"{place} has columns but no row: give at least one interaction for each user")
    names = {role: table.column_names[position] for role, position in found.items()}
    left = tuple(name for number, name in enumerate(table.column_names) if number not in found.values())
    try:
        values, faults = read_columns(columns, rules.scale, f"{kind}; {', '.join(names.values())}", Taken(names, left))
    except ColumnRefused as refused:
        raise DataRefused(f"{place}: {refused}") from refused
    return _settled(values, faults, rules, place)


def is_table(source: object) -> bool:
    """Whether a source exports an Arrow table."""
    return hasattr(source, "__arrow_c_stream__") or hasattr(source, "__arrow_c_array__")


def refuse_source(source: object) -> WrongUse:
    """Return the error for a source of an unknown type."""
    return WrongUse(
        f"can't read interactions from a {type(source).__name__}: "
        "give a path, a pandas, polars or Arrow table, or a SciPy sparse matrix"
    )


def faults_of_lines(path: Path, layout: Layout, scale: RatingScale | None) -> tuple[RowFaults, int]:
    """Return the bad lines by number, without their text, and the number of all lines."""
    faults, lines = RowFaults(), 0
    for number, line in numbered_lines(path):
        if number <= layout.lines_before or not line:
            continue
        lines += 1
        reason = _fault(layout, line)
        if reason:
            faults.add(number, reason)
        elif scale is not None and layout.columns.rating is not None:
            rating = float(layout.fields(line)[layout.columns.rating])
            if not scale.contains(np.float32(rating)):
                faults.add_off_scale(number, rating, scale)
    return faults, lines


def _fault(layout: Layout, line: str) -> str | None:
    if layout.quotes and _leaves_a_quote_open(line, layout.separator):
        return "a quote is not closed: close it, or double the quotes inside a field"
    fields = layout.fields(line)
    if len(fields) != layout.width:
        return f"holds {len(fields)} fields instead of {layout.width}: correct its separators, or drop it"
    if layout.separator == "::" and any(ONE_BYTE in field for field in fields):
        return "holds the control character 1F: give plain text"
    return _value_fault(layout, {role: fields[place] for role, place in layout.columns.by_role().items()})


def _value_fault(layout: Layout, texts: dict[str, str]) -> str | None:
    for role in ("user", "item"):
        if not texts[role]:
            return f"the {role} is empty: fill it in, or drop the line"
        if len(texts[role]) > LONGEST_ID:
            return f"the {role} has more than {LONGEST_ID:,} characters: shorten it, or drop the line"
    for role, is_right in (("rating", is_finite_rating), ("risk", is_finite_number)):
        if role in texts and not is_right(texts[role]):
            return said(
                f"{_shown(texts[role])} is not a {role}: give a finite number, or name another ", column_option(role)
            )
    if "time" in texts and not _is_time(texts["time"], layout):
        return f"{_shown(texts['time'])} is not a time: give seconds or an ISO date and time, one kind in all lines"
    return None


def _leaves_a_quote_open(line: str, separator: str) -> bool:
    try:
        next(csv.reader([line], delimiter=separator, strict=True))
    except csv.Error as error:
        return "end of data" in str(error)
    return False


def _is_time(text: str, layout: Layout) -> bool:
    if layout.time_is_number:
        return not text or (is_number(text) and abs(float(text)) != float("inf"))
    try:
        return not text or abs(time_of_text(text)) != float("inf")
    except ValueError:
        return False


def _shown(text: str) -> str:
    short = text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "…"
    return repr(short) if text else "an empty field"


def read_delimited(path: Path, wanted: ColumnNames, rules: RowRules) -> ColumnValues:
    """Read a delimited text file, compressed or not."""
    require_file(path)
    layout = recognise_layout(path, wanted)
    values = _quick_values(path, layout, rules.scale)
    return _values_of_good_lines(path, layout, rules) if values is None else values


def _values_of_good_lines(path: Path, layout: Layout, rules: RowRules) -> ColumnValues:
    """Refuse the bad lines by number, or leave them out."""
    faults, lines = faults_of_lines(path, layout, rules.scale)
    if faults and rules.on_bad_row == "refuse":
        raise faults.refusal(str(path), "line", lines)
    values = _quick_values(path, layout, rules.scale, faults.rows) if faults else None
    if values is None:
        raise DataRefused(f"{path}: can't be read as {layout}: write it again as plain CSV, one row a line")
    return replace(values, bad_rows=len(faults))


def _quick_values(
    path: Path, layout: Layout, scale: RatingScale | None, left_out: Collection[int] = ()
) -> ColumnValues | None:
    try:
        table = _read_table(path, layout, left_out)
        columns = {role: table.column(str(place)) for role, place in layout.columns.by_role().items()}
        values, faults = read_columns(columns, scale, str(layout), layout.taken())
    except (pa.ArrowInvalid, ColumnRefused, OSError, EOFError, zlib.error):
        # Arrow's message repeats the whole row, which is personal data: it must not be chained to ours.
        return None
    return None if faults else values


def _read_table(path: Path, layout: Layout, left_out: Collection[int]) -> pa.Table:
    with _open(path, layout, left_out) as stream:
        return arrow_csv.read_csv(
            stream,
            read_options=arrow_csv.ReadOptions(
                column_names=[str(place) for place in range(layout.width)],
                skip_rows=layout.lines_before,
                block_size=_BLOCK_BYTES,
            ),
            parse_options=arrow_csv.ParseOptions(
                delimiter=ONE_BYTE if layout.separator == "::" else layout.separator,
                quote_char='"' if layout.quotes else False,
            ),
            convert_options=arrow_csv.ConvertOptions(
                column_types=_types(layout),
                include_columns=[str(place) for place in layout.columns.by_role().values()],
                null_values=[""],
                strings_can_be_null=False,
            ),
        )


def _open(path: Path, layout: Layout, left_out: Collection[int]) -> Any:  # noqa: ANN401 - Arrow's and Python's
    if layout.separator == "::" or left_out:
        stream = open_bytes(path)
        stream = io.BufferedReader(WithoutLines(stream, left_out), _BLOCK_BYTES) if left_out else stream
        return io.BufferedReader(DoubleColonReader(stream), _BLOCK_BYTES) if layout.separator == "::" else stream
    return pa.CompressedInputStream(str(path), "gzip") if is_gzip(path) else pa.OSFile(str(path), "rb")


def _types(layout: Layout) -> dict[str, pa.DataType]:
    text = pa.dictionary(pa.int32(), pa.string())
    time = pa.float64() if layout.time_is_number else pa.string()
    kinds = {"user": text, "item": text, "rating": pa.float64(), "time": time, "risk": pa.float64()}
    return {str(place): kinds[role] for role, place in layout.columns.by_role().items()}


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


def read_interactions(
    source: Any,  # noqa: ANN401 - told apart here
    columns: ColumnNames = _RECOGNISE_ALL,
    scale: RatingScale | None = None,
    fewest_users: int = 2,
    on_bad_row: OnBadRow = "refuse",
) -> ReadResult:
    """Read interactions from a file, a table in memory or a sparse matrix; refuse anything ambiguous.

    With a scale, ratings outside it are bad. Bad rows are counted and refused together, or left out; row numbers do
    not count a header.
    """
    values = _read(source, columns, RowRules(scale, on_bad_row))
    name = str(source) if isinstance(source, str | Path) else "the table"
    if scale is not None and values.rating is None and not scale.contains(1.0):
        raise DataRefused(
            f"{name}: without ratings each is 1, outside the scale {scale}: name them (", column_option("rating"), ")"
        )
    interactions, repeated = Interactions.from_columns(values.users, values.items, values.rating, values.time)
    if not len(interactions):
        held = "no row that can be used" if values.bad_rows else "no interaction, only a header"
        raise DataRefused(f"{name} holds {held}: give one interaction a line")
    if len(interactions.users) < fewest_users:
        raise DataRefused(f"{name} holds one user only: give the interactions of two users at least")
    return ReadResult(
        interactions,
        _notes(values, repeated),
        _largest_risks(values),
        values.rating is not None,
        values.taken,
        len(values.users) + values.bad_rows,
        repeated,
        values.bad_rows,
    )


def _read(source: Any, columns: ColumnNames, rules: RowRules) -> ColumnValues:  # noqa: ANN401 - told apart here
    if isinstance(source, str | Path):
        path = Path(source)
        return read_parquet(path, columns, rules) if _is_parquet(path) else read_delimited(path, columns, rules)
    if sparse.issparse(source):
        return read_sparse(source, columns, rules)
    if is_table(source):
        return read_table(source, columns, rules)
    raise refuse_source(source)


def _is_parquet(path: Path) -> bool:
    if path.suffix.lower() in _PARQUET_ENDINGS:
        return True
    require_file(path)
    with path.open("rb") as stream:
        return stream.read(len(PARQUET_MAGIC)) == PARQUET_MAGIC


def _largest_risks(values: ColumnValues) -> dict[str, float] | None:
    if values.risk is None:
        return None
    # Over all rows of the source: a dropped repeat counts too.
    users, user_index = encode_ids(values.users)
    largest = np.full(len(users), -np.inf)
    np.maximum.at(largest, user_index, values.risk)
    return dict(zip(users, largest.tolist(), strict=True))


def _notes(values: ColumnValues, repeated: int) -> tuple[str, ...]:
    notes = [values.recognised]
    if values.rating is None:
        notes.append("no rating column: every rating is 1")
    if repeated:
        notes.append(f"{repeated} repeated (user, item) pairs dropped; the latest of each stays")
    if values.bad_rows:
        notes.append(f"{values.bad_rows} bad rows left out")
    return tuple(notes)
