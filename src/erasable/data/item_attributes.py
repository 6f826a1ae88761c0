"""Attributes of items, such as category and price: declared by the owner, and about nobody."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from erasable.data._tables import arrow_table
from erasable.data.columns import locate_item
from erasable.data.ids import LONGEST_ID, ArrowColumn
from erasable.errors import DataRefused

ITEM = "item_id"
_SEPARATORS = (",", "\t", ";", "|")
_HEADER_BYTES = 2**16


def read_attributes(source: Any, item: str | None = None) -> pa.Table:  # noqa: ANN401 - a path or any table
    """Read a table with one row an item: item_id as text, then the other columns.

    Columns hold texts, whole numbers, fractions, truth values or times; another kind is refused. In a CSV only an
    empty cell is missing.
    """
    is_file = isinstance(source, str | Path)
    name = str(source) if is_file else "the table"
    table = _file(Path(source), item) if is_file else arrow_table(source)
    place = locate_item(table.column_names, item, name)
    others = [(column, table.column(at)) for at, column in enumerate(table.column_names) if at != place]
    if len({ITEM, *(column for column, _ in others)}) <= len(others):
        raise DataRefused(f"{name}: two columns have the same name: rename one")
    kept = {column: _plain(values, f"{name}: the column {column}") for column, values in others}
    return pa.table({ITEM: _ids(table.column(place), name), **kept}).combine_chunks()


def _file(path: Path, item: str | None) -> pa.Table:
    if not path.is_file():
        raise DataRefused(f"{path} does not exist: check the path")
    try:
        if path.suffix.lower() in (".parquet", ".pq"):
            return pq.read_table(path)
        with pa.input_stream(str(path)) as stream:
            header = stream.read(_HEADER_BYTES).split(b"\n", 1)[0].decode("utf-8-sig").strip()
        separator = max(_SEPARATORS, key=header.count)
        names = [name.strip().strip('"') for name in header.split(separator)]
        ids = names[locate_item(names, item, str(path))]  # else 007 would be read as 7
        return pacsv.read_csv(
            path,
            parse_options=pacsv.ParseOptions(delimiter=separator),
            convert_options=pacsv.ConvertOptions(
                column_types={ids: pa.string()},
                null_values=[""],  # not NA, which is a country, nor null, which may be an id
                strings_can_be_null=True,
            ),
        )
    except (pa.ArrowException, UnicodeDecodeError, OSError) as error:
        reason = str(error).split("\n")[0]
        raise DataRefused(f"{path}: can't be read ({reason}): give CSV with a header, or Parquet") from None


def _ids(column: ArrowColumn, name: str) -> ArrowColumn:
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if not (pa.types.is_integer(column.type) or _is_text(column.type)):
        raise DataRefused(f"{name}: item ids are texts or whole numbers: write them so")
    ids = column.cast(pa.string())
    if ids.null_count or not len(ids) or pc.min(pc.utf8_length(ids)).as_py() == 0:
        raise DataRefused(f"{name}: a row has no item id, or there is no row: give one row for each item")
    if pc.max(pc.utf8_length(ids)).as_py() > LONGEST_ID:
        raise DataRefused(f"{name}: an item id has more than {LONGEST_ID:,} characters: shorten it")
    if pc.count_distinct(ids).as_py() < len(ids):
        counted = pc.value_counts(ids.combine_chunks()).to_pylist()
        twice = next(one["values"] for one in counted if one["counts"] > 1)
        raise DataRefused(f"{name}: the item {twice!r} has several rows: give one row for each item")
    return ids


def _plain(column: ArrowColumn, name: str) -> ArrowColumn:
    """Return a column in the widest type of its kind."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind = column.type
    if pa.types.is_boolean(kind):
        return column
    if _is_text(kind) or pa.types.is_null(kind):
        return column.cast(pa.string())
    if pa.types.is_integer(kind) and not pa.types.is_uint64(kind):
        return column.cast(pa.int64())
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        numbers = column.cast(pa.float64())
        return pc.if_else(pc.is_nan(numbers), None, numbers)  # not a number says nothing, as a missing value
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return column.cast(pa.timestamp("us"), safe=False)  # a time with a zone becomes one of UTC
    raise DataRefused(f"{name} holds {kind}, not texts, numbers, truth values or times: leave it out")


def _is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
