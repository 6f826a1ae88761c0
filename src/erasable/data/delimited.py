"""Reading delimited text files: quick by Arrow, and where that fails, with the line at fault named."""

import io
import zlib
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import csv

from erasable.data.bad_rows import RowRules
from erasable.data.column_values import ColumnRefused, ColumnValues, read_columns
from erasable.data.columns import ColumnNames
from erasable.data.delimited_faults import faults_of_lines
from erasable.data.double_colon import ONE_BYTE, DoubleColonReader
from erasable.data.layout import Layout, recognise_layout
from erasable.data.rating_scale import RatingScale
from erasable.data.source_file import WithoutLines, is_gzip, open_bytes, require_file
from erasable.errors import DataRefused

_BLOCK_BYTES = 8 * 2**20


def read_delimited(path: Path, wanted: ColumnNames, rules: RowRules) -> ColumnValues:
    """Read a delimited text file, compressed or not."""
    require_file(path)
    layout = recognise_layout(path, wanted)
    values = _quick_values(path, layout, rules.scale)
    return _values_of_good_lines(path, layout, rules) if values is None else values


def _values_of_good_lines(path: Path, layout: Layout, rules: RowRules) -> ColumnValues:
    """Name the lines at fault, or leave them out."""
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
        # Arrow's message repeats the whole row, which is personal: it must not travel with ours.
        return None
    return None if faults else values


def _read_table(path: Path, layout: Layout, left_out: Collection[int]) -> pa.Table:
    with _open(path, layout, left_out) as stream:
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
