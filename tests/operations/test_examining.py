"""What the library says about who and what is held, what its scan finds, and what its attack takes."""

import pyarrow as pa
import pytest

from erasable import Recommender, WrongUse
from erasable.operations import DiskStorage
from erasable.requests import Request
from kit.asking import submit

TABLE = pa.table({"user": [10, 9, 9, 2], "item": ["b", "ä", "a", "b"]})


@pytest.fixture
def rec(tmp_path):
    Recommender(model="ease").fit(TABLE).save(tmp_path / "shop")
    return Recommender.load(tmp_path / "shop")


def test_users_and_items_come_back_as_they_were_given(rec):
    assert (rec.users, rec.items) == ([2, 9, 10], ["a", "b", "ä"])
    rec.forget(9)
    assert (rec.users, rec.items) == ([2, 10], ["b"])
    rec.learn_more(pa.table({"user": [11], "item": ["c"]}))
    assert (rec.users, rec.items) == ([2, 10, 11], ["b", "c"])


def test_an_item_of_someone_who_asked_alone_is_not_shown_either(rec, tmp_path):
    submit(DiskStorage(tmp_path / "shop"), Request("9"))
    assert (rec.users, rec.items) == ([2, 10], ["b"])


def test_someone_who_named_some_items_is_shown_without_them(rec, tmp_path):
    submit(DiskStorage(tmp_path / "shop"), Request("9", ("a",)))
    assert (rec.users, rec.items) == ([2, 9, 10], ["b", "ä"])


def test_a_scan_finds_who_is_held_and_nobody_who_was_forgotten(rec):
    assert not rec.scan(9).clean
    rec.forget(9)
    assert rec.scan(9, TABLE).clean


def test_a_recommender_in_memory_has_no_files_to_search():
    with pytest.raises(WrongUse, match="save it"):
        Recommender(model="ease").fit(TABLE).scan(9)


@pytest.mark.parametrize("given", [{"erased": 9}, {"data": "shop.csv"}, {"erased": 9, "data": "shop.csv", "users": 3}])
def test_an_attack_with_erased_people_needs_their_rows_and_no_others(rec, given):
    with pytest.raises(WrongUse, match=r"leave out|need each other"):
        rec.attack(**given)


def test_nothing_is_held_before_something_is_learned():
    for ask in (lambda rec: rec.users, lambda rec: rec.items, lambda rec: rec.scan(1), lambda rec: rec.attack()):
        with pytest.raises(WrongUse, match="call fit first"):
            ask(Recommender(model="ease"))
