import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from erasable.chain.buckets import Bucket
from erasable.chain.counts import Counts, Rules
from erasable.data import Ids, Interactions
from erasable.workspace.tables import (
    decode_bucket,
    decode_counts,
    decode_interactions,
    decode_items,
    encode_bucket,
    encode_counts,
    encode_items,
)

# A grown catalogue: the last items do not stand in order.
CATALOGUE = Ids.of(["7", "b", "ü", "007", "a"])


def interactions(users, items, rating=None, time=None):
    return Interactions.from_columns(pa.array(users, pa.string()), pa.array(items, pa.string()), rating, time)[
        0
    ].with_items(CATALOGUE)


def bucket(training, held_out=None, groups=None, seed=0):
    nothing = training.select(np.zeros(len(training), bool))
    given = np.zeros(len(training.users), np.int64) if groups is None else groups
    return Bucket.of(training, nothing if held_out is None else held_out, given, seed)


def everything(rows):
    time = None if rows.time is None else rows.time.tobytes()
    return rows.users.texts(), rows.items.texts(), rows.digest(), time, rows.by_slot


def assert_same(found, given):
    assert everything(found.training) == everything(given.training)
    # Where nothing is held out, nothing says whether there would be times.
    assert everything(found.held_out.timeless)[:3] == everything(given.held_out.timeless)[:3]
    assert not len(given.held_out) or everything(found.held_out) == everything(given.held_out)
    assert (found.groups.tolist(), found.slots.tolist()) == (given.groups.tolist(), given.slots.tolist())


@pytest.mark.parametrize("time", [None, [1.5, np.nan, -3.0, 4.0]])
@pytest.mark.parametrize("held_out", [{}, {"z": "ü"}, {"z": "ü", "01": "a", "é": "7"}])
@pytest.mark.parametrize("groups", [[0, 0, 0], [2, 0, 1]])
def test_a_bucket_comes_back_the_same(time, held_out, groups):
    given = interactions(["z", "z", "é", "01"], ["a", "b", "007", "7"], [1, 0.7, 3, 5], time)
    times = None if time is None else [7.0] * len(held_out)
    apart = interactions([*held_out], [*held_out.values()], [2.5] * len(held_out), times)
    made = bucket(given, apart, groups)
    assert_same(decode_bucket(encode_bucket(made), CATALOGUE, made.slots), made)


def test_times_may_be_known_in_training_alone_or_in_the_holdout_alone():
    known, unknown = interactions(["x"], ["a"], [1.0], [4.0]), interactions(["x"], ["b"], [1.0])
    for training, held_out in ((known, unknown), (unknown, known)):
        made = bucket(training, held_out)
        found = decode_bucket(encode_bucket(made), CATALOGUE, made.slots)
        times = [part.time.tolist() for part in (found.training, found.held_out)]
        assert np.array_equal(times, [[4.0], [np.nan]] if training is known else [[np.nan], [4.0]], equal_nan=True)


def test_nobody_comes_back_as_nobody():
    made = bucket(interactions([], []))
    found = decode_bucket(encode_bucket(made), CATALOGUE, made.slots)
    assert len(found.training) == len(found.users) == len(found.held_out) == len(found.groups) == 0
    assert found.training.items == CATALOGUE


def test_any_reader_sees_text_and_only_what_stands_in_a_row():
    made = bucket(interactions(["007", "7"], ["a", "b"]), interactions(["007", "7"], ["b", "a"]), [3, 1])
    content = encode_bucket(made.without(np.array([made.users.texts().index("7")])))
    table = pq.read_table(pa.BufferReader(content))
    # In the order of the catalogue, held out or not.
    assert table.to_pydict() == {
        "user_id": ["007", "007"],
        "item_id": ["b", "a"],
        "rating": [1.0, 1.0],
        "group": [3, 3],
        "held_out": [True, False],
    }
    assert table.schema.field("user_id").type == pa.string()
    assert b"007" in content
    assert pq.ParquetFile(pa.BufferReader(content)).metadata.row_group(0).column(0).statistics is None


def test_equal_rows_give_equal_bytes():
    first = bucket(interactions(["x", "y"], ["a", "b"]))
    second = bucket(interactions(["x", "y", "z"], ["a", "b", "7"]))
    (z,) = second.users.positions(["z"])
    assert encode_bucket(first) == encode_bucket(second.without(np.array([z])))


@pytest.mark.parametrize("slots", [[], [1], [1, 1], [3, 2, 1], [1, 1, 1, 1]])
def test_people_of_other_slots_are_refused(slots):
    made = bucket(interactions(["z", "é", "01"], ["a", "b", "007"]))
    with pytest.raises(ValueError, match="not those that the slots and items list"):
        decode_bucket(encode_bucket(made), CATALOGUE, np.array(slots, np.int16))


def test_items_that_are_not_listed_are_refused():
    made = bucket(interactions(["z"], ["a"]))
    with pytest.raises(ValueError, match="not those that the slots and items list"):
        decode_bucket(encode_bucket(made), CATALOGUE.take([0, 1]), made.slots)


def test_counts_come_back_the_same():
    made = bucket(interactions(["z", "é", "01"], ["a", "b", "007"]), interactions(["z"], ["b"]), [0, 1, 1])
    for rules in (Rules(0, 1.0, 2), Rules(0, 1.0, 0), Rules(0, 0.5, 1)):
        given = Counts.of(made, rules)
        items, found = decode_counts(encode_counts(CATALOGUE, given), rules, 1)
        assert items == CATALOGUE
        for part in fields(Counts):
            assert np.array_equal(getattr(found, part.name), getattr(given, part.name)), part.name
            assert np.shape(getattr(found, part.name)) == np.shape(getattr(given, part.name))


def by_an_earlier_release(time=None):
    """Write a table as releases before format 5 did."""
    columns = {"user_id": ["01", "z", "z", "é"], "item_id": ["7", "a", "b", "007"], "rating": [5.0, 1.0, 0.7, 3.0]}
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns | ({} if time is None else {"time": time})), sink, store_schema=False)
    return sink.getvalue().to_pybytes()


@pytest.mark.parametrize("time", [None, [4.0, 1.5, np.nan, -3.0]])
def test_interactions_of_earlier_releases_are_read(time):
    given = interactions(["01", "z", "z", "é"], ["7", "a", "b", "007"], [5, 1, 0.7, 3], time)
    found = decode_interactions(by_an_earlier_release(time), CATALOGUE)
    assert everything(found) == everything(given)
    assert decode_interactions(by_an_earlier_release(time)).items.texts() == ["007", "7", "a", "b"]


def test_items_keep_their_order():
    assert decode_items(encode_items(CATALOGUE)) == CATALOGUE
    assert len(decode_items(encode_items(Ids.of([])))) == 0


@pytest.mark.full
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="threads are counted where Linux lists them")
def test_reading_starts_no_thread_that_could_outlive_it():
    # Arrow's threads hold the content, and abort the process if they let go of it while Python ends.
    script = (
        "import os, sys\n"
        "from erasable.workspace.tables import decode_items\n"
        "before = len(os.listdir('/proc/self/task'))\n"
        "decode_items(sys.stdin.buffer.read())\n"
        "sys.exit(len(os.listdir('/proc/self/task')) - before)\n"
    )
    command = [sys.executable, "-c", script]
    assert subprocess.run(command, input=encode_items(CATALOGUE), check=False).returncode == 0
