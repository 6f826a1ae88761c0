"""Splits by time, from learning to forgetting: any path gives the bytes of learning the outcome."""

import numpy as np
import pyarrow as pa
import pytest

from erasable import DataRefused, Recommender, Refused, WrongSetting
from erasable.chain import Config
from erasable.operations import (
    DiskStorage,
    Inputs,
    MemoryStorage,
    Work,
    evaluate,
    forget,
    learn,
    learn_more,
    show,
    verify,
)
from erasable.operations.again import learn_again
from erasable.operations.learn import learn_into
from erasable.operations.scan import scan
from erasable.operations.sync import SyncRules, sync
from erasable.requests import Request

SPLITS = {"last": {"split": "leave-last-out"}, "date": {"split_time": "2026-01-10"}}
WAYS = {
    "ease": {"model": "ease"},
    "als": {"model": "als", "factors": 4, "epochs": 2},
    "independent": {"model": "nmf", "epochs": 2, "groups": 3, "grouping": "independent"},
    "regroup": {"model": "nmf", "epochs": 2, "groups": 2, "policy": "regroup"},
}


def clicks(seed: int = 4, people: int = 12) -> pa.Table:
    """Make up dated interactions, some of a day, some without a date."""
    chance = np.random.default_rng(seed)
    rows = [
        (f"p{person:02d}", f"i{item}", f"2026-01-{day:02d}" if day else None)
        for person in range(people)
        for item, day in zip(
            sorted(chance.choice(14, 2 + person % 6, replace=False)), chance.integers(0, 20, 14), strict=False
        )
    ]
    return pa.table(dict(zip(("user", "item", "time"), zip(*rows, strict=True), strict=True)))


def rows_of(table: pa.Table, users: set[str]) -> pa.Table:
    return table.filter(pa.compute.is_in(table["user"], pa.array(sorted(users))))


def config(way: str, split: str) -> Config:
    return Config(**WAYS[way], **SPLITS[split], seed=2)


def learned(table: pa.Table, chosen: Config) -> MemoryStorage:
    storage = MemoryStorage()
    with storage.writing() as session:
        learn_into(session, table, chosen, Inputs(), Work(1))
    return storage


def held_out(storage, user: str) -> set[str]:
    return {one.item_id for one in show(storage, user).interactions if one.held_out}


@pytest.fixture
def same(snapshot):
    """Assert that two recommenders have the same names, bytes, groups and holdout."""

    def compare(one, other) -> None:
        mine, theirs = snapshot(one), snapshot(other)
        assert (mine.names, mine.arrays, mine.groups) == (theirs.names, theirs.arrays, theirs.groups)
        assert mine.held_out == theirs.held_out

    return compare


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("way", WAYS)
def test_forgetting_a_person_and_an_interaction_equals_never_having_known_them(way, split, same):
    table, chosen = clicks(), config(way, split)
    storage = learned(table, chosen)
    latest = next(iter(held_out(storage, "p05")))  # so that another interaction is the latest
    forget(storage, [Request("p03"), Request("p05", (latest,))])
    gone = [
        user != "p03" and (user, item) != ("p05", latest)
        for user, item in zip(table["user"].to_pylist(), table["item"].to_pylist(), strict=True)
    ]
    same(storage, learned(table.filter(pa.array(gone)), chosen))
    assert verify(storage).identical


def test_the_next_to_last_is_held_out_once_the_last_is_forgotten():
    table = pa.table({"user": ["a"] * 3 + ["b"] * 2, "item": list("xyzxy"), "time": [1, 3, 2, 5, 4]})
    storage = learned(table, Config(split="leave-last-out"))
    assert (held_out(storage, "a"), held_out(storage, "b")) == ({"y"}, {"x"})
    forget(storage, [Request("a", ("y",))])
    assert (held_out(storage, "a"), held_out(storage, "b")) == ({"z"}, {"x"})
    forget(storage, [Request("a", ("z",))])
    assert held_out(storage, "a") == set()


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("way", ["ease", "independent", "regroup"])
def test_what_comes_later_moves_the_held_out_interaction_into_training(way, split, same):
    table, chosen = clicks(), config(way, split)
    later = pa.table({"user": ["p04", "p05", "zoe"], "item": ["i1", "new", "i2"], "time": ["2026-01-30"] * 3})
    storage = learned(table, chosen)
    before = held_out(storage, "p05")
    learn_more(storage, later)
    same(storage, learned(pa.concat_tables([table, later]), chosen))
    assert held_out(storage, "p05") == ({"new"} if split == "last" else before | {"new"})


@pytest.mark.parametrize("split", SPLITS)
def test_another_time_alone_is_learned_by_sync(split, same):
    table, chosen = clicks(), config("ease", split)
    storage = learned(table, chosen)
    (latest, *_) = held_out(storage, "p05")
    mine = [
        (user, item) == ("p05", latest)
        for user, item in zip(table["user"].to_pylist(), table["item"].to_pylist(), strict=True)
    ]
    dates = pa.compute.if_else(pa.array(mine), "2020-01-01", table["time"])
    export = rows_of(table.set_column(2, "time", dates), {f"p{number:02d}" for number in range(11)})
    sync(storage, export, rules=SyncRules(forget_missing=True, yes=True))
    same(storage, learned(export, chosen))
    assert latest not in held_out(storage, "p05")


@pytest.mark.parametrize("split", SPLITS)
def test_people_in_files_are_split_as_those_in_memory(tmp_path, split, same):
    table, chosen = clicks(), config("ease", split)
    learn(table, tmp_path / "shop", chosen)
    same(DiskStorage(tmp_path / "shop"), learned(table, chosen))
    forget(DiskStorage(tmp_path / "shop"), [Request("p07")])
    same(DiskStorage(tmp_path / "shop"), learned(table.filter(pa.compute.not_equal(table["user"], "p07")), chosen))
    pa.csv.write_csv(table, tmp_path / "clicks.csv")
    assert not scan(tmp_path / "shop", "p07", str(tmp_path / "clicks.csv")).residues


def test_others_who_leave_or_come_change_nobodys_split():
    table, chosen = clicks(), config("als", "last")
    whole, half = learned(table, chosen), learned(rows_of(table, {"p05", "p06", "p07"}), chosen)
    for user in ("p05", "p06", "p07"):
        assert held_out(whole, user) == held_out(half, user)


def test_the_split_reaches_no_name_of_a_checkpoint(snapshot):
    """Training rows alone decide: where both hold out the same, both have the same checkpoints."""
    table = pa.table({"user": list("aabb"), "item": list("xyxy"), "time": [1.0, 2.0, 1.0, 2.0]})
    one = snapshot(learned(table, Config(split="leave-last-out")))
    other = snapshot(learned(table, Config(split_time=2)))
    assert (one.names, one.arrays, one.held_out) == (other.names, other.arrays, other.held_out)


def test_the_settings_are_written_only_where_they_are_used(tmp_path):
    assert not {"split", "split_time"} & Config(holdout=0.1, split="random").flat().keys()
    Recommender(split_time="2026-01-10").fit(clicks()).save(tmp_path / "shop")
    storage = DiskStorage(tmp_path / "shop")
    with storage.reading() as session:
        assert session.state().dataset.config.flat()["split_time"] == "2026-01-10"
    assert evaluate(storage).users > 0


def test_another_way_to_hold_out_takes_the_place_of_the_first(same):
    table = clicks()
    storage = learned(table, Config(holdout=0.3))
    learn_again(storage, None, {"split": "leave-last-out"})
    same(storage, learned(table, Config(split="leave-last-out")))
    learn_again(storage, None, {"split_time": "2026-01-10"})
    same(storage, learned(table, Config(split_time="2026-01-10")))
    learn_again(storage, None, {"model": "als", "epochs": 2})
    same(storage, learned(table, Config(model="als", epochs=2, split_time="2026-01-10")))
    learn_again(storage, None, {"holdout": 0.3})
    same(storage, learned(table, Config(model="als", epochs=2, holdout=0.3)))


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("way", ["ease", "regroup"])
def test_without_times_it_is_refused(way, split):
    with pytest.raises(DataRefused, match="needs times, and there are none: name their column with time='NAME'"):
        learned(clicks().drop_columns(["time"]), config(way, split))


def test_more_without_times_is_refused():
    storage = learned(clicks(), config("ease", "last"))
    with pytest.raises(DataRefused, match="needs times"):
        learn_more(storage, pa.table({"user": ["zoe"], "item": ["i1"]}))


def test_what_was_learned_without_times_can_not_be_split_by_them():
    storage = learned(clicks().drop_columns(["time"]), Config())
    with pytest.raises(Refused, match="no times are held"):
        learn_again(storage, None, {"split": "leave-last-out"})


def test_a_number_where_times_are_dates_is_refused():
    with pytest.raises(DataRefused, match="times are dates here, and 2026 is a number"):
        learned(clicks(), Config(split_time=2026))


def test_wrong_settings_name_what_to_give():
    with pytest.raises(WrongSetting, match="`split_time`: 'soon' is no date") as refused:
        Config(split_time="soon")
    assert "--split-time" in refused.value.of_command
    with pytest.raises(WrongSetting) as refused:
        Config(split="time")
    assert refused.value.of_command.endswith("give --split-time 2026-01-31")


@pytest.mark.parametrize(
    ("since", "said"),
    [("2030-01-01", "nothing is held out"), ("1980-01-01", "each person keeps one"), ("2026-01-10", "")],
)
def test_a_date_before_or_after_everything_is_pointed_out(tmp_path, since, said):
    table = clicks()
    table = table.filter(pa.compute.is_valid(table["time"]))
    notes = " ".join(learn(table, tmp_path / "shop", Config(split_time=since)).notes)
    assert (said in notes) if said else not notes
