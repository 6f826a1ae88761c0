"""What is counted and hashed of everyone lies beside the data, and neither hides nor names anybody."""

import random
from itertools import islice

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from erasable.chain import Config
from erasable.data.ids import Ids
from erasable.data.slots import slots_of
from erasable.operations import DiskStorage, forget, learn, scan
from erasable.requests import Request

ITEMS = [f"item-{number}" for number in range(6)]


def learned(rows, folder, **settings) -> DiskStorage:
    users, items, ratings = zip(*rows, strict=True)
    learn(pa.table({"user_id": users, "item_id": items, "rating": ratings}), folder, Config(model="ease", **settings))
    return DiskStorage(folder)


@pytest.fixture(params=[50_000, 5], ids=["one bucket", "many buckets"])
def in_buckets(request, monkeypatch):
    monkeypatch.setattr("erasable.chain.buckets.PEOPLE_IN_A_BUCKET", request.param)


@pytest.mark.usefixtures("in_buckets")
def test_whoever_is_called_like_the_number_of_a_slot_is_certified(tmp_path):
    draw = random.Random(0)
    rows = [(str(user), item, draw.randint(1, 5)) for user in range(300) for item in draw.sample(ITEMS, 3)]
    storage = learned(rows, tmp_path / "shop")
    with storage.reading() as session:
        dataset = session.state().dataset
        starts = [str(slot) for slot in dataset.buckets.starts if 0 < slot < 300]
        people = [*starts[:2], *(str(slot) for slot in islice(dataset.counts.slots.tolist(), 3) if slot < 300)]
    done = forget(storage, [Request(user) for user in dict.fromkeys(people)])
    assert (len(done.certificates), done.set_aside) == (len({*people}), ())


def test_whoever_rated_items_as_many_people_have_them_is_certified(tmp_path):
    """Of five items as many people are left as the stars they got, in the order of their ids."""
    left = [(f"u{number}", item, 5) for place, item in enumerate(ITEMS[:5]) for number in range(place + 1)]
    rows = [*left, *(("someone", item, place + 1) for place, item in enumerate(ITEMS[:5]))]
    done = forget(learned(rows, tmp_path / "shop"), [Request("someone")])
    assert (len(done.certificates), done.set_aside) == (1, ())


def test_whoever_rated_items_as_many_people_lie_in_the_slots_of_their_numbers_is_certified(tmp_path):
    """Items are called like three slots, in which one and two people are left."""
    people = [f"u{number}" for number in range(60_000)]
    slots = slots_of(Ids.of(people), 0)
    first = next(one for one in range(1, 4000) if all((slots == one + step).sum() >= 2 for step in range(3)))
    chosen = [people[place] for step in range(3) for place in np.flatnonzero(slots == first + step)[: 1 + step % 2]]
    rows = [(user, str(first + step), 5) for user in chosen for step in range(3)]
    rows += [("someone", str(first + step), 1 + step % 2) for step in range(3)]
    done = forget(learned(rows, tmp_path / "shop"), [Request("someone")])
    assert (len(done.certificates), done.set_aside) == (1, ())


@pytest.mark.usefixtures("in_buckets")
def test_what_was_counted_and_hashed_of_someone_is_in_no_file_afterwards(tmp_path):
    """Somebody else has the same slot, so that it stays."""
    people = [f"u{number}" for number in range(40)]
    slot = slots_of(Ids.of(people[:1]), 0)[0]
    many = [f"v{number}" for number in range(40_000)]
    beside = many[int(np.flatnonzero(slots_of(Ids.of(many), 0) == slot)[0])]
    draw = random.Random(1)
    rows = [(user, item, draw.randint(1, 5)) for user in (*people, beside) for item in draw.sample(ITEMS, 4)]
    storage = learned([*rows, (people[0], "own", 3)], tmp_path / "shop", holdout=0.3)
    before = {path.name for path in storage.path.glob("data/*")}
    with storage.reading() as session:
        counts = session.state().dataset.counts
    place = int(np.searchsorted(counts.slots, slot))
    assert counts.people[place] == 2
    digests = {digests[place].tobytes() for digests in (counts.whole, *counts.of_stages)}
    assert forget(storage, [Request(people[0])]).set_aside == ()
    after = {path.name: path.read_bytes() for path in storage.path.rglob("*") if path.is_file()}
    assert {name.split("-")[0] for name in before - after.keys()} >= {"bucket", "items", "slots", "histories"}
    tables = [pq.read_table(path) for path in storage.path.glob("data/*.parquet")]
    values = {value for table in tables for column in table.columns for value in column.to_pylist()}
    assert not values & {*digests, people[0], "own"}
    assert not [name for name, content in after.items() if any(one.hex().encode() in content for one in digests)]
    assert scan(storage.path, people[0]).clean
    never = learned([row for row in rows if row[0] != people[0]], tmp_path / "never", holdout=0.3)
    with storage.reading() as session, never.reading() as other:
        left, expected = session.state().dataset.counts, other.state().dataset.counts
        for name in ("rows", "trained", "learned", "histories", "slots", "people", "whole", "of_stages"):
            assert np.array_equal(getattr(left, name), getattr(expected, name)), name
        assert left.held_out == expected.held_out
