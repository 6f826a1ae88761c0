"""From columns of text to numbers: sorted ids with each row's position, one row for each pair; no files."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from erasable.data.ids import ArrowColumn, Ids, byte_order
from erasable.errors import DataRefused


def encode_ids(column: ArrowColumn) -> tuple[Ids, NDArray[np.int32]]:
    """Return the distinct texts of a column by their UTF-8 bytes, and each row's position among them."""
    codes, values = _codes_and_values(column)
    # The values of a dictionary may repeat or stand unused (categories of a table).
    values = values.dictionary_encode()
    codes = np.asarray(values.indices)[codes]
    used = np.zeros(len(values.dictionary), dtype=bool)
    used[codes] = True
    order = np.asarray(byte_order(values.dictionary)).astype(np.int64)
    order = order[used[order]]
    rank = np.empty(len(used), dtype=np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    return Ids(values.dictionary.take(pa.array(order))), rank[codes]


def latest_of_each_pair(keys: NDArray[np.int64], time: NDArray[np.float64] | None) -> NDArray[np.int64]:
    """Return the rows to keep, by ascending key: for each key the latest, else the last in input order."""
    order = np.argsort(keys, kind="stable")
    last = _ends_of_runs(keys[order])
    if time is not None and not last.all():
        # An unknown time counts as the oldest; lexsort is stable, so equal times keep the input order.
        order = np.lexsort((np.where(np.isnan(time), -np.inf, time), keys))
    return order[last]


def _codes_and_values(column: ArrowColumn) -> tuple[NDArray[np.int64], ArrowColumn]:
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    if isinstance(column, pa.ChunkedArray):
        column = column.unify_dictionaries().combine_chunks()
    if column.null_count or column.dictionary.null_count:
        raise DataRefused("an id is missing: give each row a user and an item, or drop the row")
    return np.asarray(column.indices), pc.cast(column.dictionary, pa.string())


def _ends_of_runs(keys: NDArray[np.int64]) -> NDArray[np.bool_]:
    ends = np.ones(len(keys), dtype=bool)
    np.not_equal(keys[1:], keys[:-1], out=ends[:-1])
    return ends
