"""Reading tables in memory, Parquet files and sparse matrices; text files are read elsewhere."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet
from scipy import sparse

from erasable.data.bad_rows import RowFaults, RowRules
from erasable.data.column_values import ColumnRefused, ColumnValues, Taken, rating_values, read_columns
from erasable.data.columns import ColumnNames, locate_by_name
from erasable.data.ids import ArrowColumn
from erasable.data.source_file import require_file
from erasable.errors import DataRefused, WrongUse

PARQUET_MAGIC = b"PAR1"


def read_parquet(path: Path, wanted: ColumnNames, rules: RowRules) -> ColumnValues:
    """Read the columns that matter from a Parquet file."""
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
    """Read an Arrow table, or anything that hands one over (pandas, polars, the PyCapsule interface)."""
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
    # SciPy reads repeated entries as their sum.
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
    """Say whether a source hands over an Arrow table."""
    return hasattr(source, "__arrow_c_stream__") or hasattr(source, "__arrow_c_array__")


def refuse_source(source: object) -> WrongUse:
    """Return the error for a source that nothing here can read."""
    return WrongUse(
        f"can't read interactions from a {type(source).__name__}: "
        "give a path, a pandas, polars or Arrow table, or a SciPy sparse matrix"
    )
