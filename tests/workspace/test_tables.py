import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from erasable.data import Ids, Interactions
from erasable.workspace.versions import decode_interactions, decode_items, encode_interactions, encode_items

# A grown catalogue: the last items do not stand in order.
CATALOGUE = Ids.of(["7", "b", "ü", "007", "a"])


def interactions(users, items, rating=None, time=None):
    return Interactions.from_columns(pa.array(users, pa.string()), pa.array(items, pa.string()), rating, time)[
        0
    ].with_items(CATALOGUE)


@pytest.mark.parametrize("time", [None, [1.5, np.nan, -3.0, 4.0]])
def test_interactions_come_back_the_same(time):
    given = interactions(["z", "z", "é", "01"], ["a", "b", "007", "7"], [1, 0.7, 3, 5], time)
    found = decode_interactions(encode_interactions(given), CATALOGUE)
    assert found.users == given.users
    assert found.items == CATALOGUE
    assert found.digest() == given.digest()
    assert (found.time is None) == (time is None)
    assert time is None or found.time.tobytes() == given.time.tobytes()


def test_no_interactions_come_back_as_none():
    found = decode_interactions(encode_interactions(interactions([], [])), CATALOGUE)
    assert len(found) == len(found.users) == 0
    assert found.items == CATALOGUE


def test_any_reader_sees_text_and_only_what_stands_in_a_row():
    content = encode_interactions(interactions(["007", "7"], ["a", "b"]).without(users=["7"]))
    table = pq.read_table(pa.BufferReader(content))
    assert table.to_pydict() == {"user_id": ["007"], "item_id": ["a"], "rating": [1.0]}
    assert table.schema.field("user_id").type == pa.string()


def test_equal_interactions_give_equal_bytes():
    first = interactions(["x", "y"], ["a", "b"])
    second = interactions(["x", "y", "z"], ["a", "b", "7"]).without(users=["z"])
    assert encode_interactions(first) == encode_interactions(second)


def test_items_keep_their_order():
    assert decode_items(encode_items(CATALOGUE)) == CATALOGUE
    assert len(decode_items(encode_items(Ids.of([])))) == 0


@pytest.mark.full
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="threads are counted where Linux lists them")
def test_reading_starts_no_thread_that_could_outlive_it():
    # Arrow's threads hold the content, and abort the process if they let go of it while Python ends.
    script = (
        "import os, sys\n"
        "from erasable.workspace.versions import decode_items\n"
        "before = len(os.listdir('/proc/self/task'))\n"
        "decode_items(sys.stdin.buffer.read())\n"
        "sys.exit(len(os.listdir('/proc/self/task')) - before)\n"
    )
    command = [sys.executable, "-c", script]
    assert subprocess.run(command, input=encode_items(CATALOGUE), check=False).returncode == 0
