"""Interactions and ids as Parquet, in memory; ids are text, item numbers are never written."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from erasable.data import Ids, Interactions
from erasable.data.ids import ArrowColumn

_IDS = ["user_id", "item_id"]


def encode_interactions(interactions: Interactions) -> bytes:
    """Write interactions as (user_id, item_id, rating[, time]); an unknown time is NaN."""
    columns = {
        "user_id": _texts(interactions.users, interactions.user_index),
        "item_id": _texts(interactions.items, interactions.item_index),
        "rating": pa.array(interactions.rating),
    }
    if interactions.time is not None:
        columns["time"] = pa.array(interactions.time)
    return _encode(pa.table(columns))


def decode_interactions(content: bytes, items: Ids | None = None) -> Interactions:
    """Read interactions and number their items by a list, or by their own UTF-8 bytes."""
    table = _decode(content, read_dictionary=_IDS)
    time = np.asarray(table["time"]) if "time" in table.column_names else None
    read, _ = Interactions.from_columns(table["user_id"], table["item_id"], np.asarray(table["rating"]), time)
    return read if items is None else read.with_items(items)


def encode_items(items: Ids) -> bytes:
    """Write item ids in their order."""
    return _encode(pa.table({"item_id": items.array}))


def decode_items(content: bytes) -> Ids:
    """Read item ids in their order."""
    table = _decode(content)
    return Ids(pa.concat_arrays([pa.array([], pa.string()), *table["item_id"].chunks]))


def _decode(content: bytes, **options: Any) -> Any:  # noqa: ANN401 - Arrow's own
    # Not pq.read_table: it reads in a thread of Arrow's pool, whatever it is told, and that thread may let go of the
    # content, a Python object, only after Python has begun to end; then the whole process aborts.
    with pq.ParquetFile(pa.BufferReader(content), **options) as file:
        return file.read(use_threads=False)


def _texts(ids: Ids, index: NDArray[np.int32]) -> ArrowColumn:
    # Parquet would write the whole dictionary; only the ids that stand in a row belong into the file.
    used = np.zeros(len(ids), dtype=bool)
    used[index] = True
    place = (np.cumsum(used) - 1).astype(np.int32)
    values = ids.array.take(pa.array(np.flatnonzero(used)))
    numbers: ArrowColumn = pa.array(place[index])
    return pa.DictionaryArray.from_arrays(numbers, values)


def _encode(table: ArrowColumn) -> bytes:
    sink: Any = pa.BufferOutputStream()
    # Without Arrow's own schema every reader sees plain text.
    pq.write_table(table, sink, compression="zstd", store_schema=False)
    content: bytes = sink.getvalue().to_pybytes()
    return content
