"""Rows are dealt out while a source is read: in memory or on disk the same, and nothing of it is left."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from erasable.chain import Config
from erasable.data import Interactions
from erasable.data.readers import read_batches
from erasable.errors import DataRefused
from erasable.operations import DiskStorage, learn, verify
from erasable.workspace.dealing import SHARES, dealing
from kit.tables import as_rows, random_table


def table_of(users: int, seed: int = 1) -> pa.Table:
    rows = random_table(seed, users=users, items=30, ratings=True)
    return pa.table(
        {
            "user": rows.users.array.take(pa.array(rows.user_index)),
            "item": rows.items.array.take(pa.array(rows.item_index)),
            "rating": rows.rating,
            "time": np.arange(len(rows)) * 60,
        }
    )


@pytest.fixture
def on_disk(monkeypatch):
    """Everything is written, in pieces of a few rows."""
    monkeypatch.setattr("erasable.workspace.dealing.MOST_IN_MEMORY", 0)
    monkeypatch.setattr("erasable.data._tables.ROWS_AT_ONCE", 50)


def dealt_out(table, folder):
    with dealing(7, folder) as dealt:
        for values in read_batches(table):
            dealt.add(values)
        return dealt.people, [(as_rows(rows), repeated) for rows, repeated in dealt]


def test_every_row_comes_back_once_from_the_share_of_its_person(tmp_path, on_disk):
    table = table_of(200)
    _, shares = dealt_out(table, tmp_path)
    assert len(shares) == SHARES
    whole, _ = Interactions.from_columns(table["user"], table["item"], np.asarray(table["rating"]))
    assert sorted(row for rows, _ in shares for row in rows) == sorted(as_rows(whole))
    owners = [{user for user, *_ in rows} for rows, _ in shares]
    assert sum(map(len, owners)) == len(set().union(*owners)) == 200


def test_written_or_not_it_is_the_same_and_nothing_is_left(tmp_path, on_disk, monkeypatch):
    table = pa.concat_tables([table_of(120), table_of(120)])
    _, written = dealt_out(table, tmp_path)
    assert not list(tmp_path.rglob("*.arrow"))
    people, kept = dealt_out(table, None)
    assert written == kept
    assert people == 120
    assert sum(repeated for _, repeated in kept) == len(table) // 2


def test_once_written_people_are_estimated(tmp_path, on_disk):
    people, _ = dealt_out(table_of(3000), tmp_path)
    assert people == pytest.approx(3000, rel=0.4)


def test_what_is_learned_from_a_folder_through_the_disk_is_what_is_learned_from_a_table(tmp_path, on_disk, monkeypatch):
    monkeypatch.setattr("erasable.chain.buckets.PEOPLE_IN_A_BUCKET", 50)
    table = table_of(600)
    parts = tmp_path / "parts"
    parts.mkdir()
    for number in range(4):
        pq.write_table(table.slice(number * len(table) // 4, len(table) // 4 + 4), parts / f"{number}.parquet")
    config = Config(model="als", factors=4, epochs=2, holdout=0.2)
    learn(parts, tmp_path / "one", config)
    monkeypatch.undo()
    learn(table, tmp_path / "other", config)
    with DiskStorage(tmp_path / "one").reading() as one, DiskStorage(tmp_path / "other").reading() as other:
        assert len(one.state().dataset.buckets) > 1 == len(other.state().dataset.buckets)
        assert [link.fingerprint for link in one.state().chain] == [link.fingerprint for link in other.state().chain]
        assert one.state().dataset.data_name == other.state().dataset.data_name
    one, other = (sorted((tmp_path / name).rglob("*.safetensors")) for name in ("one", "other"))
    assert [file.read_bytes() for file in one] == [file.read_bytes() for file in other]
    assert verify(DiskStorage(tmp_path / "one")).identical


def test_the_rows_of_a_learn_that_was_killed_are_swept_by_the_next(tmp_path):
    """A killed process leaves its lock, and what it had dealt out."""
    left = tmp_path / "shop" / "data" / "dealing"
    left.mkdir(parents=True)
    (left / "share-003.arrow").write_bytes(b"somebody")
    (tmp_path / "shop" / "writer.lock").touch()
    learn(table_of(60), tmp_path / "shop", Config(model="ease"))
    assert not left.exists()
    assert verify(DiskStorage(tmp_path / "shop")).identical


def test_a_source_that_is_refused_at_its_end_leaves_nothing(tmp_path, on_disk):
    table = table_of(60)
    bad = pa.concat_tables([table, table.slice(0, 1).set_column(2, "rating", pa.array([np.nan], pa.float32()))])
    with pytest.raises(DataRefused, match="row"):
        learn(bad, tmp_path / "shop", Config(model="ease"))
    assert not (tmp_path / "shop").exists()
