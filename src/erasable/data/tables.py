"""Reading tables in memory, Parquet files and sparse matrices; text files are read elsewhere."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet
from scipy import sparse

from erasable.data.column_values import (
    ColumnValues,
    ValueRefused,
    id_values,
    rating_values,
    risk_values,
    time_values,
)
from erasable.data.columns import ColumnNames, locate_by_name
from erasable.data.ids import ArrowColumn
from erasable.data.source_file import require_file
from erasable.errors import DataRefused, WrongUse

PARQUET_MAGIC = b"PAR1"


def read_parquet(path: Path, wanted: ColumnNames) -> ColumnValues:
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
    return _values(table, named, str(path), "Parquet")


def read_table(source: Any, wanted: ColumnNames) -> ColumnValues:  # noqa: ANN401 - any table
    """Read an Arrow table, or anything that hands one over (pandas, polars, the PyCapsule interface)."""
    try:
        table = pa.table(source)
    except (pa.ArrowException, TypeError, ValueError, NotImplementedError) as error:
        raise DataRefused(
            "the table can't be turned into an Arrow table: give each column one type, ids as text"
        ) from error
    return _values(table, wanted, "the table", f"a {type(source).__name__}")


def read_sparse(matrix: Any, wanted: ColumnNames) -> ColumnValues:  # noqa: ANN401 - any of SciPy's sparse classes
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
    try:
        rating = rating_values(pa.chunked_array([pa.array(entries.data)]))
    except (ValueRefused, pa.ArrowException) as error:
        raise DataRefused("the sparse matrix holds a value that is not a finite number: correct it") from error
    users, items = (_decimal(numbers, size) for numbers, size in zip(entries.coords, matrix.shape, strict=True))
    recognised = "a sparse matrix; row numbers are users, column numbers items"
    return ColumnValues(users, items, rating, time=None, risk=None, recognised=recognised)


def _decimal(numbers: np.ndarray, size: int) -> ArrowColumn:
    texts = pa.array(np.arange(size)).cast(pa.string())
    return pa.DictionaryArray.from_arrays(numbers.astype(np.int32), texts)


def _values(table: pa.Table, wanted: ColumnNames, place: str, kind: str) -> ColumnValues:
    found = locate_by_name(table.column_names, wanted, place).by_role()
    columns = {role: table.column(position) for role, position in found.items()}
    if not table.num_rows:
        raise DataRefused(f"{place} has columns but no row: give at least one interaction for each user")
    names = ", ".join(table.column_names[position] for position in found.values())
    try:
        return ColumnValues(
            users=id_values(columns["user"], "user"),
            items=id_values(columns["item"], "item"),
            rating=rating_values(columns["rating"]) if "rating" in columns else None,
            time=time_values(columns["time"]) if "time" in columns else None,
            risk=risk_values(columns["risk"]) if "risk" in columns else None,
            recognised=f"{kind}; {names}",
        )
    except ValueRefused as refused:
        row = "" if refused.row is None else f", row {refused.row + 1}"
        raise DataRefused(f"{place}{row}: {refused.reason}") from refused


def is_table(source: object) -> bool:
    """Say whether a source hands over an Arrow table."""
    return hasattr(source, "__arrow_c_stream__") or hasattr(source, "__arrow_c_array__")


def refuse_source(source: object) -> WrongUse:
    """Return the error for a source that nothing here can read."""
    return WrongUse(
        f"can't read interactions from a {type(source).__name__}: "
        "give a path, a pandas, polars or Arrow table, or a SciPy sparse matrix"
    )
