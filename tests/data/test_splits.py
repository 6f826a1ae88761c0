"""Splits by time: each is decided by a person's own rows and declared values, and nobody loses everything."""

from datetime import UTC, date, datetime

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from erasable.data import Ids, Interactions
from erasable.data.splits import Split, SplitSettings

LAST = Split(0, name="leave-last-out")
SINCE_5 = Split(0, name="time", since=5.0)
UNKNOWN = float("nan")
SPLITS = st.sampled_from([LAST, SINCE_5, Split(3, 0.4)])
times = st.sampled_from([UNKNOWN, 1.0, 4.0, 5.0, 6.0, 9.0])
tables = st.dictionaries(st.tuples(st.sampled_from("abcde"), st.sampled_from("uvwxyz")), times, min_size=1, max_size=25)


def table(some: dict[tuple[str, str], float]) -> Interactions:
    users, items = zip(*some, strict=True)
    return Interactions.from_columns(pa.array(users), pa.array(items), time=list(some.values()))[0]


def pairs(rows: Interactions) -> set[tuple[str, str]]:
    users, items = rows.users.texts(), rows.items.texts()
    return {(users[user], items[item]) for user, item in zip(rows.user_index, rows.item_index, strict=True)}


def held(split: Split, some: dict[tuple[str, str], float]) -> set[tuple[str, str]]:
    return pairs(split.of(table(some))[1])


def test_leave_last_out_holds_out_the_latest_of_each_person():
    some = {("ann", "x"): 3.0, ("ann", "y"): 9.0, ("ann", "z"): 1.0, ("bob", "x"): 2.0, ("bob", "z"): 7.0}
    assert held(LAST, some) == {("ann", "y"), ("bob", "z")}


def test_of_equal_times_the_largest_item_id_is_the_last():
    assert held(LAST, {("ann", "x"): 3.0, ("ann", "y"): 3.0, ("ann", "a"): 3.0}) == {("ann", "y")}


def test_an_unknown_time_is_the_oldest():
    assert held(LAST, {("ann", "a"): 3.0, ("ann", "y"): UNKNOWN}) == {("ann", "a")}
    assert held(LAST, {("ann", "a"): UNKNOWN, ("ann", "y"): UNKNOWN}) == {("ann", "y")}
    assert held(Split(0, name="time", since=-1e18), {("ann", "a"): 3.0, ("ann", "y"): UNKNOWN}) == {("ann", "a")}


def test_who_has_one_interaction_keeps_it():
    assert held(LAST, {("ann", "x"): 3.0, ("bob", "x"): 2.0, ("bob", "y"): 1.0}) == {("bob", "x")}
    assert held(SINCE_5, {("ann", "x"): 9.0}) == set()


def test_by_time_everything_from_that_moment_on_is_held_out():
    some = {("ann", "u"): 4.9, ("ann", "x"): 5.0, ("ann", "y"): 6.0, ("bob", "u"): 1.0, ("bob", "x"): UNKNOWN}
    assert held(SINCE_5, some) == {("ann", "x"), ("ann", "y")}


def test_who_has_nothing_before_that_moment_keeps_the_earliest():
    assert held(SINCE_5, {("ann", "u"): 9.0, ("ann", "x"): 7.0, ("ann", "b"): 7.0}) == {("ann", "u"), ("ann", "x")}


def test_rows_without_any_time_are_the_oldest():
    rows = Interactions.from_columns(pa.array(["ann", "ann"]), pa.array(["x", "y"]))[0]
    assert pairs(SINCE_5.of(rows)[1]) == set()
    assert pairs(LAST.of(rows)[1]) == {("ann", "y")}


@given(tables, SPLITS)
def test_every_interaction_falls_on_one_side_and_everyone_keeps_one(some, split):
    training, held_out = split.of(table(some))
    assert pairs(training) | pairs(held_out) == some.keys()
    assert not pairs(training) & pairs(held_out)
    assert set(training.users) == {user for user, _ in some}


@given(tables, SPLITS, st.sampled_from("abcde"))
def test_others_who_leave_change_nothing(some, split, gone):
    left = {pair: time for pair, time in some.items() if pair[0] != gone}
    if left:
        assert held(split, left) == {pair for pair in held(split, some) if pair[0] != gone}


@given(tables, SPLITS, st.data())
def test_an_interaction_that_goes_changes_nobody_else(some, split, data):
    gone = data.draw(st.sampled_from(sorted(some)))
    left = {pair: time for pair, time in some.items() if pair != gone}
    if left:
        others = {pair for pair in held(split, some) if pair[0] != gone[0]}
        assert {pair for pair in held(split, left) if pair[0] != gone[0]} == others


@given(tables, SPLITS)
def test_item_numbers_and_the_order_of_users_do_not_matter(some, split):
    rows = table(some)
    other = rows.with_items(Ids.of(["w0", *reversed(rows.items.texts()), "a0"]))
    assert pairs(split.of(other)[1]) == pairs(split.of(rows)[1])


def test_rows_go_from_the_oldest_to_the_latest():
    rows = table({("ann", "x"): 3.0, ("ann", "y"): UNKNOWN, ("ann", "a"): 3.0, ("bob", "z"): 1.0})
    assert [rows.items[int(rows.item_index[row])] for row in rows.by_time()] == ["y", "a", "x", "z"]


def test_nothing_is_split_into_nothing():
    nobody = table({("ann", "x"): 1.0}).select(np.zeros(1, bool))
    for split in (LAST, SINCE_5):
        assert [len(part) for part in split.of(nobody)] == [0, 0]


@pytest.mark.parametrize(
    ("given_time", "seconds"),
    [
        ("1970-01-02", 86400.0),
        ("1970-01-02T01:00:00+01:00", 86400.0),
        ("1970-01-02 00:00:00 UTC", 86400.0),
        (date(1970, 1, 2), 86400.0),
        (datetime(1970, 1, 2, tzinfo=UTC), 86400.0),
        (978300760, 978300760.0),
        ("12.5", 12.5),
    ],
)
def test_a_time_alone_means_a_split_by_time(given_time, seconds):
    settings = SplitSettings(split_time=given_time)
    assert (settings.split, settings.splitting(1).since) == ("time", seconds)
    assert SplitSettings(**settings.model_dump()) == settings


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"split_time": "yesterday"}, "is no date: write 2026-01-31"),
        ({"split_time": "2026-13-01"}, "is no date"),
        ({"split_time": "inf"}, "is no date"),
        ({"split_time": True}, "is no date"),
        ({"split_time": ""}, "is no date"),
        ({"split": "time"}, "needs a date"),
        ({"split": "random", "split_time": "2026-01-31"}, "has no date"),
        ({"split": "leave-last-out", "holdout": 0.1}, "holds out no share"),
        ({"split_time": "2026-01-31", "holdout": 0.1}, "holds out no share"),
        ({"split": "last"}, "leave-last-out"),
    ],
)
def test_what_contradicts_itself_is_refused(settings, reason):
    with pytest.raises(ValidationError, match=reason):
        SplitSettings(**settings)
