"""Reading delimited text files: quick by Arrow, and where that fails, with the line at fault named."""

import io
import zlib
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import csv

from erasable.data.column_values import (
    ColumnValues,
    ValueRefused,
    id_values,
    rating_values,
    risk_values,
    time_values,
)
from erasable.data.columns import ColumnNames
from erasable.data.delimited_faults import first_fault
from erasable.data.double_colon import ONE_BYTE, DoubleColonReader
from erasable.data.layout import Layout, recognise_layout
from erasable.data.source_file import is_gzip, open_bytes, require_file

_BLOCK_BYTES = 8 * 2**20


def read_delimited(path: Path, wanted: ColumnNames) -> ColumnValues:
    """Read a delimited text file, compressed or not."""
    require_file(path)
    layout = recognise_layout(path, wanted)
    values = _quick_values(path, layout)
    if values is None:
        raise first_fault(path, layout)
    return values


def _quick_values(path: Path, layout: Layout) -> ColumnValues | None:
    try:
        return _values(_read_table(path, layout), layout)
    except (pa.ArrowInvalid, ValueRefused, OSError, EOFError, zlib.error):
        # Arrow's message repeats the whole row, which is personal: it must not travel with ours.
        return None


def _read_table(path: Path, layout: Layout) -> pa.Table:
    with _open(path, layout) as stream:
        return csv.read_csv(
            stream,
            read_options=csv.ReadOptions(
                column_names=[str(place) for place in range(layout.width)],
                skip_rows=layout.lines_before,
                block_size=_BLOCK_BYTES,
            ),
            parse_options=csv.ParseOptions(
                delimiter=ONE_BYTE if layout.separator == "::" else layout.separator,
                quote_char='"' if layout.quotes else False,
            ),
            convert_options=csv.ConvertOptions(
                column_types=_types(layout),
                include_columns=[str(place) for place in layout.columns.by_role().values()],
                null_values=[""],
                strings_can_be_null=False,
            ),
        )


def _open(path: Path, layout: Layout) -> Any:  # noqa: ANN401 - Arrow's streams and Python's
    if layout.separator == "::":
        return io.BufferedReader(DoubleColonReader(open_bytes(path)), _BLOCK_BYTES)
    return pa.CompressedInputStream(str(path), "gzip") if is_gzip(path) else pa.OSFile(str(path), "rb")


def _types(layout: Layout) -> dict[str, pa.DataType]:
    text = pa.dictionary(pa.int32(), pa.string())
    time = pa.float64() if layout.time_is_number else pa.string()
    kinds = {"user": text, "item": text, "rating": pa.float64(), "time": time, "risk": pa.float64()}
    return {str(place): kinds[role] for role, place in layout.columns.by_role().items()}


def _values(table: pa.Table, layout: Layout) -> ColumnValues:
    columns = {role: table.column(str(place)) for role, place in layout.columns.by_role().items()}
    return ColumnValues(
        users=id_values(columns["user"], "user"),
        items=id_values(columns["item"], "item"),
        rating=rating_values(columns["rating"]) if "rating" in columns else None,
        time=time_values(columns["time"]) if "time" in columns else None,
        risk=risk_values(columns["risk"]) if "risk" in columns else None,
        recognised=str(layout),
    )
