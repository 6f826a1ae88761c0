"""Reading Parquet files, tables in memory and sparse matrices in pieces; a bad row is named by its number."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from erasable.data.columns import ColumnNames, locate_by_name
from erasable.data.ids import ArrowColumn
from erasable.data.sources import InputSource
from erasable.data.values import (
    ColumnRefused,
    ColumnValues,
    OpenedSource,
    RowFaults,
    RowRules,
    Taken,
    ratings_of,
    read_columns,
    roles_with_numbers,
)
from erasable.errors import DataRefused, WrongUse

ROWS_AT_ONCE = 2**18
_BUFFER_BYTES = 4 * 2**20
_NOTHING = "has columns but no row: give at least one interaction for each user"


def open_parquet(source: InputSource, wanted: ColumnNames, rules: RowRules) -> OpenedSource:
    """Find the needed columns of a Parquet file; its pieces are read when they are asked for."""
    with _parquet_file(source) as file:
        schema = file.schema_arrow
    names, taken = _recognised(schema.names, schema.types, wanted, source.name)
    pieces = _pieces(_batches(source, names), names, source.name, rules)
    return OpenedSource(source.name, f"Parquet; {', '.join(names.values())}", taken, pieces, _NOTHING)


@contextmanager
def _parquet_file(source: InputSource) -> Iterator[Any]:
    source.refuse_unreadable()
    try:
        # Buffered, so that not a whole column of a row group is held; Arrow's own file, for Arrow's threads.
        with source.open_for_arrow() as stream, parquet.ParquetFile(stream, buffer_size=_BUFFER_BYTES) as file:
            yield file
    except (pa.ArrowException, OSError) as error:
        source.refuse_if_store_failed(error)
        cause = error if source.store is None else None
        raise DataRefused(f"{source.name} is not a Parquet file, or is damaged: write it again") from cause


def _batches(source: InputSource, names: Mapping[str, str]) -> Iterator[pa.Table]:
    with _parquet_file(source) as file:
        for batch in file.iter_batches(ROWS_AT_ONCE, columns=list(names.values())):
            yield pa.Table.from_batches([batch])


def open_table(table: pa.Table, kind: str, wanted: ColumnNames, rules: RowRules) -> OpenedSource:
    """Find the needed columns of an Arrow table."""
    place = "the table"
    names, taken = _recognised(table.column_names, table.schema.types, wanted, place)
    pieces = _pieces(_slices(table, names), names, place, rules)
    return OpenedSource(place, f"{kind}; {', '.join(names.values())}", taken, pieces, _NOTHING)


def _slices(table: pa.Table, names: Mapping[str, str]) -> Iterator[pa.Table]:
    places = [table.column_names.index(name) for name in names.values()]
    for start in range(0, table.num_rows, ROWS_AT_ONCE):
        yield table.select(places).slice(start, ROWS_AT_ONCE)


def arrow_table(source: Any) -> pa.Table:  # noqa: ANN401 - any table
    """Return an Arrow table, or anything that exports one (pandas, polars, the PyCapsule interface), as one."""
    try:
        return pa.table(source)
    except (pa.ArrowException, TypeError, ValueError, NotImplementedError) as error:
        raise DataRefused(
            "the table can't be turned into an Arrow table: give each column one type, ids as text"
        ) from error


def _recognised(
    names: Sequence[str], kinds: Sequence[pa.DataType], wanted: ColumnNames, place: str
) -> tuple[dict[str, str], Taken]:
    """Return the names of the needed columns by role, and what was taken and left."""
    found = locate_by_name(names, wanted, place).by_role()
    columns = {role: names[position] for role, position in found.items()}
    left = tuple(name for position, name in enumerate(names) if position not in found.values())
    numbers = roles_with_numbers({role: kinds[position] for role, position in found.items()})
    return columns, Taken(columns, left, numbers=numbers)


def _pieces(
    tables: Iterable[pa.Table], names: Mapping[str, str], place: str, rules: RowRules
) -> Iterator[ColumnValues]:
    def converted() -> Iterator[tuple[ColumnValues, RowFaults]]:
        for table in tables:
            there = table.column_names
            columns = {role: table.column(there.index(name)) for role, name in names.items()}
            try:
                yield read_columns(columns, rules)
            except ColumnRefused as refused:
                raise DataRefused(f"{place}: {refused}") from refused

    return _settled(converted(), rules, place)


def _settled(
    pieces: Iterable[tuple[ColumnValues, RowFaults]], rules: RowRules, place: str, unit: str = "row"
) -> Iterator[ColumnValues]:
    """Leave out bad rows, or count those of all pieces and refuse them."""
    faults, rows = RowFaults(), 0
    for values, found in pieces:
        if rules.on_bad_row == "skip":
            yield values.without(found.rows) if found else values
            continue
        faults.join(found, rows)
        rows += len(values)
        if not faults:
            yield values
    if faults:
        raise faults.refusal(place, unit, rows, first=1)


def open_sparse(matrix: Any, wanted: ColumnNames, rules: RowRules) -> OpenedSource:  # noqa: ANN401 - SciPy's classes
    """Read a sparse matrix: row numbers are users, column numbers are items, explicit zeros are rows too."""
    for role in ("risk", "event"):
        if getattr(wanted, role) is not None:
            raise WrongUse(
                f"a sparse matrix has no {role} column: give a table or a file that has one, or leave it out"
            )
    if matrix.ndim != 2:
        raise DataRefused("the sparse array must have two dimensions: users by items")
    from scipy.sparse import coo_array

    entries = coo_array(matrix, copy=True)
    # In SciPy, repeated entries mean their sum.
    entries.sum_duplicates()
    if not entries.nnz:
        raise DataRefused("the sparse matrix holds no entry: give at least one for each user")
    columns = {"user": "row number", "item": "column number", _meaning(rules): "value"}
    return OpenedSource(
        "the table",
        "a sparse matrix; row numbers are users, column numbers items",
        Taken(columns, numbers=frozenset(("user", "item"))),
        _settled(_entries(entries, rules), rules, "the sparse matrix", "entry"),
        _NOTHING,
    )


def _entries(entries: Any, rules: RowRules) -> Iterator[tuple[ColumnValues, RowFaults]]:  # noqa: ANN401 - SciPy's
    texts = [pa.array(np.arange(size)).cast(pa.string()) for size in entries.shape]
    for start in range(0, entries.nnz, ROWS_AT_ONCE):
        faults, piece = RowFaults(), slice(start, start + ROWS_AT_ONCE)
        users, items = (_numbered(one[piece], text) for one, text in zip(entries.coords, texts, strict=True))
        try:
            values = pa.chunked_array([pa.array(entries.data[piece])])
            rating = ratings_of({_meaning(rules): values}, rules, faults)
        except (ColumnRefused, pa.ArrowException) as error:
            raise DataRefused("the sparse matrix holds a value that is not a finite number: correct it") from error
        yield ColumnValues(users, items, rating, time=None, risk=None), faults


def _meaning(rules: RowRules) -> str:
    """Return what the values of a sparse matrix are: ratings, or weights if those are learned."""
    return "rating" if rules.weights is None else "weight"


def _numbered(numbers: np.ndarray, texts: ArrowColumn) -> ArrowColumn:
    return pa.DictionaryArray.from_arrays(numbers.astype(np.int32), texts)
