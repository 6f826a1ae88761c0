"""Tables of a workspace as Parquet: buckets of people, and what is counted of all; a bucket is read when it is used."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from weakref import finalize

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from erasable import fingerprint
from erasable.chain.buckets import Bucket
from erasable.chain.counts import Counts, Rules
from erasable.data.ids import ArrowColumn, Ids
from erasable.data.interactions import Interactions
from erasable.data.item_attributes import ITEM
from erasable.data.item_features import ItemFeatures
from erasable.data.slots import SLOTS, slots_of
from erasable.errors import DataRefused, WrongUse
from erasable.fingerprint import DIGEST_BYTES
from erasable.workspace import files
from erasable.workspace.folder import CheckedFolder
from erasable.workspace.manifest import BucketRecord, GroupRecord, damaged

_Content = TypeVar("_Content")
MALFORMED = (pa.ArrowException, ValueError, KeyError, TypeError, WrongUse, DataRefused)
"""What reading a table raises that holds what can't be."""
_IDS = ["user_id", "item_id"]


def encode_bucket(bucket: Bucket) -> bytes:
    """Write the rows of a bucket's people as (user_id, item_id, rating[, time], group, held_out), in its order.

    Ids are written plainly: no dictionary or statistics repeats one. An unknown time is NaN.
    """
    parts = [bucket.training, *([bucket.held_out] if len(bucket.held_out) else [])]
    owners = [bucket.training.user_index.astype(np.int64)]
    if len(parts) > 1:
        owners.append(bucket.users.positions_of(bucket.held_out.users.array)[bucket.held_out.user_index])
    people, items = np.concatenate(owners), np.concatenate([part.item_index for part in parts])
    held_out = np.repeat([False, True][: len(parts)], [len(part) for part in parts])
    order = np.lexsort((items, people)) if len(parts) > 1 else slice(None)
    rating, time = np.concatenate([part.rating for part in parts]), _times(parts)
    columns = {
        "user_id": bucket.users.array.take(pa.array(people[order])),
        "item_id": bucket.training.items.array.take(pa.array(items[order])),
        "rating": pa.array(rating[order]),
        **({} if time is None else {"time": pa.array(time[order])}),
        "group": pa.array(bucket.groups[people[order]]),
        "held_out": pa.array(held_out[order]),
    }
    return encode_table(pa.table(columns))


def _times(parts: Sequence[Interactions]) -> NDArray[np.float64] | None:
    if all(part.time is None for part in parts):
        return None
    return np.concatenate([np.full(len(part), np.nan) if part.time is None else part.time for part in parts])


def decode_bucket(content: bytes, items: Ids, slots: NDArray[np.int16]) -> Bucket:
    """Read a bucket; `slots` holds the slot of each of its people."""
    table = decode_table(content)
    ids, held_out = _column(table, "user_id"), np.asarray(_column(table, "held_out").cast(pa.uint8())).astype(bool)
    is_first = np.ones(len(ids), bool)
    if len(ids) > 1:
        is_first[1:] = np.asarray(pc.not_equal(ids[1:], ids[:-1]).cast(pa.uint8())).astype(bool)
    firsts = np.flatnonzero(is_first)
    users = Ids.unchecked(ids.take(pa.array(firsts)))  # distinct, since `_are_ordered`
    people = np.cumsum(is_first, dtype=np.int32) - np.int32(1)
    numbers = items.positions_of(_column(table, "item_id"))
    if len(slots) != len(users) or (numbers < 0).any() or not _are_ordered(users, slots):
        raise ValueError("the people or items are not those that the slots and items list")
    rating = np.asarray(_column(table, "rating"))
    time = np.asarray(_column(table, "time")) if "time" in table.column_names else None
    whole = Interactions(users, items, people, numbers.astype(np.int32), rating, time, by_slot=True)
    each = np.asarray(_whole_numbers(_column(table, "group"))).astype(np.int64)
    groups = each[firsts].astype(np.int16)
    if not np.array_equal(groups[people], each):
        raise ValueError("somebody has two groups")
    if not held_out.any():
        return Bucket(whole, _nothing_of(whole), groups, slots)
    training = whole.select(~held_out)
    if len(training.users) != len(users):
        raise ValueError("somebody has no row to learn from")
    return Bucket(training, whole.select(held_out), groups, slots)


def _are_ordered(users: Ids, slots: NDArray[np.int16]) -> bool:
    """Whether ids ascend within each slot."""
    if len(users) < 2:
        return True
    ascends = np.asarray(pc.less(users.array[:-1], users.array[1:]).cast(pa.uint8())).astype(bool)
    return bool((ascends | (slots[1:] > slots[:-1])).all())


def _nothing_of(rows: Interactions) -> Interactions:
    return rows.select(np.zeros(len(rows), bool))


def _whole_numbers(column: ArrowColumn) -> ArrowColumn:
    if not pa.types.is_integer(column.type) or column.null_count or (np.asarray(column) < 0).any():
        raise ValueError("a group is none")
    return column


def _column(table: Any, name: str) -> ArrowColumn:  # noqa: ANN401 - Arrow's own
    column = table[name]
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def decode_interactions(content: bytes, items: Ids | None = None) -> Interactions:
    """Read interactions; items are numbered by the list given, or sorted by their UTF-8 bytes."""
    table = decode_table(content, read_dictionary=_IDS)
    time = np.asarray(table["time"]) if "time" in table.column_names else None
    read, _ = Interactions.from_columns(table["user_id"], table["item_id"], np.asarray(table["rating"]), time)
    return read if items is None else read.with_items(items)


def encode_interactions(rows: Interactions) -> bytes:
    """Write interactions as (user_id, item_id, rating[, time])."""
    columns = {
        "user_id": rows.users.array.take(pa.array(rows.user_index)),
        "item_id": rows.items.array.take(pa.array(rows.item_index)),
        "rating": pa.array(rows.rating),
        **({} if rows.time is None else {"time": pa.array(rows.time)}),
    }
    return encode_table(pa.table(columns))


def encode_items(items: Ids, **counts: NDArray[np.int64]) -> bytes:
    """Write item ids, in order, and what is counted of each."""
    return encode_table(pa.table({"item_id": items.array, **{name: _as_bytes(one) for name, one in counts.items()}}))


def decode_items(content: bytes) -> Ids:
    """Read item ids, in order."""
    return _ids_of(decode_table(content))


def _ids_of(table: Any) -> Ids:  # noqa: ANN401 - Arrow's own
    return Ids(pa.concat_arrays([pa.array([], pa.string()), *table["item_id"].chunks]))


_OF_TEXTS = ":text"


def encode_features(features: ItemFeatures) -> bytes:
    """Write features of items: item_id, and a column of texts for each, its name marked as in declared items."""
    named = [ITEM, *(f"{name}{_OF_TEXTS}" for name in features.names)]
    return encode_table(features.table.rename_columns(named))


def decode_features(content: bytes) -> ItemFeatures:
    """Read features of items."""
    table = decode_table(content)
    columns = {name.removesuffix(_OF_TEXTS): table[name].cast(pa.string()) for name in table.column_names}
    features = ItemFeatures(pa.table(columns).combine_chunks())
    if features.table.column_names[:1] != [ITEM] or len(columns) < 2 or not features.items.is_sorted:
        raise ValueError("not a table of features")
    return features


class CountsFiles(NamedTuple):
    """What is known of all people without reading a bucket, as files."""

    items: bytes
    slots: bytes
    histories: bytes


def encode_counts(items: Ids, counts: Counts) -> CountsFiles:
    """Write counts as three tables.

    Numbers are written as bytes: a scan would take a slot for someone with this number as id, and how many people have
    each of some items for someone's ratings of them. Columns are named like measures: nobody is found in their names.
    """
    by_stage = {_of_stage(stage): one for stage, one in enumerate(counts.learned)}
    digests = {"digest": counts.whole, **{_of_stage(stage): one for stage, one in enumerate(counts.of_stages)}}
    slots = {name: _binary(one) for name, one in digests.items()}
    histories = {name: _as_bytes(counts.histories[:, place]) for place, name in enumerate(_OF_A_HISTORY)}
    return CountsFiles(
        encode_items(items, rows=counts.rows, trained_rows=counts.trained, **by_stage),
        encode_table(pa.table({"slot_number": _as_bytes(counts.slots), "people": _as_bytes(counts.people), **slots})),
        encode_table(pa.table(histories)),
    )


class MalformedCounts(ValueError):
    """One of the tables of counts holds what can't be."""

    def __init__(self, table: str) -> None:
        super().__init__(f"the counts of {table} can't be")
        self.table = table


@contextmanager
def _reading(table: str) -> Iterator[None]:
    try:
        yield
    except MALFORMED as error:
        raise MalformedCounts(table) from error


def decode_counts(files: CountsFiles, rules: Rules, held_out: int) -> tuple[Ids, Counts]:
    """Read items and counts."""
    stages = [_of_stage(stage) for stage in range(rules.stages)]
    with _reading("items"):
        table = decode_table(files.items)
        ids, rows, trained = _ids_of(table), _numbers(table, "rows"), _numbers(table, "trained_rows")
        learned = [_numbers(table, name) for name in stages]
    with _reading("slots"):
        table = decode_table(files.slots)
        slots, people = _numbers(table, "slot_number"), _numbers(table, "people", least=1)
        whole, of_stages = _digests(table, "digest"), [_digests(table, name) for name in stages]
        if not (np.diff(slots) > 0).all() or (slots >= SLOTS).any():
            raise ValueError("the slots do not ascend")
    with _reading("histories"):
        table = decode_table(files.histories)
        least = (0, 0, 1, 1)
        histories = [_numbers(table, name, one) for name, one in zip(_OF_A_HISTORY, least, strict=True)]
    counts = Counts(
        rules=rules,
        rows=rows,
        trained=trained,
        learned=np.stack(learned) if learned else np.zeros((0, len(ids)), np.int64),
        histories=np.stack(histories, axis=1),
        held_out=held_out,
        slots=slots,
        people=people,
        whole=whole,
        of_stages=np.stack(of_stages) if of_stages else np.zeros((0, len(slots), DIGEST_BYTES), np.uint8),
    )
    return ids, counts


_NUMBER = np.dtype("<i8")
_OF_A_HISTORY = ("group", "anchor_count", "length", "people")


def _of_stage(stage: int) -> str:
    return f"stage_no_{stage}"


def check_counts(counts: Counts, groups: Sequence[GroupRecord]) -> None:
    """Refuse counts of other people than the groups have."""
    users = sum(group.users for group in groups)
    if (counts.people > users).any() or counts.users != users:
        raise MalformedCounts("slots")
    position, _, _, people = counts.histories.T
    by_group = [int(people[position == group.position].sum()) for group in groups]
    if by_group != [group.users for group in groups] or (people > users).any() or (position >= len(groups)).any():
        raise MalformedCounts("histories")


def _binary(digests: NDArray[np.uint8]) -> ArrowColumn:
    content: ArrowColumn = pa.py_buffer(np.ascontiguousarray(digests).tobytes())
    return pa.Array.from_buffers(pa.binary(DIGEST_BYTES), len(digests), [None, content])


def _as_bytes(numbers: NDArray[np.int64]) -> ArrowColumn:
    content: ArrowColumn = pa.py_buffer(np.ascontiguousarray(numbers, _NUMBER).tobytes())
    return pa.Array.from_buffers(pa.binary(_NUMBER.itemsize), len(numbers), [None, content])


def _digests(table: Any, name: str) -> NDArray[np.uint8]:  # noqa: ANN401 - Arrow's own
    return np.frombuffer(_fixed_width(table, name, DIGEST_BYTES), np.uint8).reshape(-1, DIGEST_BYTES)


def _numbers(table: Any, name: str, least: int = 0) -> NDArray[np.int64]:  # noqa: ANN401 - Arrow's own
    found = np.frombuffer(_fixed_width(table, name, _NUMBER.itemsize), _NUMBER).astype(np.int64)
    if (found < least).any():
        raise ValueError("a number is too small")
    return found


def _fixed_width(table: Any, name: str, width: int) -> memoryview:  # noqa: ANN401 - Arrow's own
    """Return the bytes of a column whose values all have one width."""
    column = _column(table, name)
    if column.type != pa.binary(width) or column.null_count:
        raise ValueError("a value has another width, or is missing")
    if not len(column):
        return memoryview(b"")
    return memoryview(column.buffers()[1])[width * column.offset : width * (column.offset + len(column))]


def decode_table(content: bytes, **options: Any) -> Any:  # noqa: ANN401 - Arrow's own
    """Read a Parquet file."""
    # Not pq.read_table: it always reads in a thread of Arrow's pool, which may release the content, a Python object,
    # only while the interpreter shuts down; then the process aborts.
    with pq.ParquetFile(pa.BufferReader(content), **options) as file:
        return file.read(use_threads=False)


def encode_table(table: ArrowColumn) -> bytes:
    """Write a Parquet file."""
    sink: Any = pa.BufferOutputStream()
    # Without Arrow's own schema every reader sees plain text.
    pq.write_table(table, sink, compression="zstd", store_schema=False, use_dictionary=False, write_statistics=False)
    content: bytes = sink.getvalue().to_pybytes()
    return content


class Expected(NamedTuple):
    """What a bucket's file must fit."""

    slots: NDArray[np.int64]
    """The slots of its people."""
    people: NDArray[np.int64]
    """How many people each slot has."""
    seed: int
    groups: int
    """How many groups there are."""

    def bucket_in(self, content: bytes, items: Ids) -> Bucket:
        """Read a bucket, its rows numbered by a list of items."""
        slots = np.repeat(self.slots, self.people).astype(np.int16)
        bucket = decode_bucket(content, items, slots)
        if (bucket.groups >= self.groups).any() or not np.array_equal(slots_of(bucket.users, self.seed), slots):
            raise ValueError("somebody is in a slot or a group where nobody would look for them")
        return bucket


@dataclass(frozen=True, eq=False)
class StoredFile:
    """A bucket in a file of a workspace; it is read when it is used, as long as a version names it."""

    folder: CheckedFolder
    record: BucketRecord
    expected: Expected
    items: Ids

    def read(self, items: Ids) -> Bucket:
        """Return the bucket, its rows numbered by a list of items."""
        return decoded(self.folder, self.record.file, lambda content: self.expected.bucket_in(content, items))

    def kept_open(self) -> "Bucket | OpenFile":
        """Return the same bucket, to be read even when no version names its file any more."""
        name = self.record.file
        digest = self.folder.hashes([name])[name]
        try:
            path = self.folder.root / name
            return OpenFile(path, os.open(path, os.O_RDONLY), digest, self.expected)
        except OSError:  # too many files are open, or this one is gone
            return self.read(self.items)


@dataclass(frozen=True, eq=False)
class OpenFile:
    """A bucket in a file that is kept open."""

    path: Path
    descriptor: int
    digest: str
    expected: Expected

    def __post_init__(self) -> None:
        finalize(self, os.close, self.descriptor)

    def read(self, items: Ids) -> Bucket:
        """Return the bucket, its rows numbered by a list of items."""
        content = os.pread(self.descriptor, os.fstat(self.descriptor).st_size, 0)
        if fingerprint.of_bytes(content) != self.digest:
            raise damaged(self.path)
        try:
            return self.expected.bucket_in(content, items)
        except MALFORMED as error:
            raise damaged(self.path) from error

    def kept_open(self) -> "OpenFile":
        """Return itself."""
        return self


def keep_bucket(folder: CheckedFolder, bucket: Bucket, number: int, seed: int, groups: int) -> StoredFile:
    """Write a bucket durably; it becomes current with the next commit that names it."""
    file = folder.write_hashed(f"{files.DATA}/bucket-{number:03d}.parquet", encode_bucket(bucket))
    record = BucketRecord(file=file, slot=int(bucket.slots[0]) if len(bucket.slots) else 0)
    slots, people = np.unique(bucket.slots.astype(np.int64), return_counts=True)
    return StoredFile(folder, record, Expected(slots, people, seed, groups), bucket.training.items)


def decoded(folder: CheckedFolder, name: str, decode: Callable[[bytes], _Content]) -> _Content:
    """Read a Parquet file, or report it as damaged."""
    content = folder.read(name)
    try:
        return decode(content)
    except MALFORMED as error:
        raise damaged(folder.root / name) from error
