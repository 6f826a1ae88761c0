"""The file of declared items: which are hidden, and the attributes of each.

A column's name ends with its kind. Numbers, truth values and times are 8 bytes: a scan would take numbers beside item
ids for someone's ratings.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from erasable.data.ids import ArrowColumn
from erasable.data.item_attributes import ITEM
from erasable.workspace.tables import decode_table, encode_table

HIDDEN = "hidden_item"
"""The column that says whether an item is hidden; no attribute may have this name."""
_KINDS = {
    "text": pa.string(),
    "yes": pa.bool_(),
    "whole": pa.int64(),
    "number": pa.float64(),
    "time": pa.timestamp("us"),
}
_WIDE = pa.binary(8)
_WHOLE, _FRACTION = "<i8", "<f8"
NUMBERS = {"whole": _WHOLE, "number": _FRACTION}
"""How the 8 bytes of the columns of numbers are read; only these can be someone's id."""


def encode_declared(table: pa.Table) -> bytes:
    """Write declared items: the columns item_id and hidden_item, and any attributes."""
    names = {kind: name for name, kind in _KINDS.items()}
    columns = {ITEM: table[ITEM]}
    for field in list(table.schema)[1:]:
        column = table[field.name].combine_chunks()
        columns[f"{field.name}:{names[field.type]}"] = column if pa.types.is_string(field.type) else _as_bytes(column)
    return encode_table(pa.table(columns))


def decode_declared(content: bytes) -> pa.Table:
    """Read declared items."""
    table = decode_table(content)
    columns = {ITEM: table[ITEM].cast(pa.string())}
    for stored in table.column_names[1:]:
        name, _, kind = stored.rpartition(":")
        columns[name] = table[stored].cast(pa.string()) if kind == "text" else _of_bytes(table[stored], kind)
    found = pa.table(columns).combine_chunks()
    if found.column_names[:2] != [ITEM, HIDDEN] or found.schema.field(HIDDEN).type != pa.bool_():
        raise ValueError("not a table of declared items")
    return found


def _as_bytes(column: ArrowColumn) -> ArrowColumn:
    wide = column if pa.types.is_floating(column.type) else column.cast(pa.int64())
    values = wide.fill_null(0).to_numpy(zero_copy_only=False)
    content: ArrowColumn = pa.py_buffer(values.astype(values.dtype.newbyteorder("<")).tobytes())
    whole = pa.Array.from_buffers(_WIDE, len(column), [None, content])
    return pc.if_else(column.is_valid(), whole, pa.scalar(None, _WIDE))


def _of_bytes(column: ArrowColumn, kind: str) -> ArrowColumn:
    if column.type != _WIDE:
        raise ValueError("a value has another width")
    values = b"".join(one or bytes(_WIDE.byte_width) for one in column.to_pylist())
    numbers = np.frombuffer(values, NUMBERS.get(kind, _WHOLE))
    return pa.array(numbers, mask=column.is_null().to_numpy()).cast(_KINDS[kind])
