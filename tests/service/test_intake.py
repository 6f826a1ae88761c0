"""Interactions that wait to be learned."""

import pytest

from erasable.service.intake import Coming, Intake
from erasable.service.requests import Requests
from erasable.store.layout import LEDGER
from erasable.unlearning import Request


@pytest.fixture
def intake(ledger):
    return Intake(ledger)


def test_what_came_in_waits_in_its_order(intake):
    assert intake.waiting() is None
    assert intake.add([Coming("zoe", "a", 5.0, None), Coming("ann", "b", 1.0, 7.0)]) == 2
    table = intake.waiting().table
    assert table.column("user_id").to_pylist() == ["zoe", "ann"]
    assert table.column("time").to_pylist() == [None, 7.0]
    assert (intake.count(), intake.holds("zoe"), intake.holds("bob")) == (2, True, False)


def test_a_column_that_no_row_has_is_left_out(intake):
    intake.add([Coming("zoe", "a", None, None)])
    assert intake.waiting().table.column_names == ["user_id", "item_id"]


def test_what_is_learned_is_dropped_and_what_came_since_stays(intake):
    intake.add([Coming("zoe", "a", 5.0, None)])
    last = intake.waiting().last
    intake.add([Coming("zoe", "b", 5.0, None)])
    intake.drop(last)
    assert intake.waiting().table.column("item_id").to_pylist() == ["b"]


def test_who_is_leaving_is_not_learned_from(intake, ledger, clock):
    Requests(ledger).file(Request("zoe"), held=True, actor="application 1", now=clock())
    assert intake.add([Coming("zoe", "a", 5.0, None), Coming("ann", "a", 5.0, None)]) == 1


def test_who_is_erased_and_not_certified_yet_is_not_learned_from_either(intake):
    assert intake.add([Coming("zoe", "a", 5.0, None)], leaving={"zoe"}) == 0


def test_of_some_items_only_those_go_with_the_request(intake, ledger, clock):
    intake.add([Coming("zoe", "a", 5.0, None), Coming("zoe", "b", 5.0, None), Coming("zoe", "c", 5.0, None)])
    for items in (("a",), ("b",)):
        Requests(ledger).file(Request("zoe", items), held=True, actor="application 1", now=clock())
    assert intake.waiting().table.column("item_id").to_pylist() == ["c"]


def test_what_waits_of_a_person_goes_with_the_request(intake, ledger, clock, folder):
    intake.add([Coming("zoe-the-unmistakable", "a", 5.0, None), Coming("ann", "a", 5.0, None)])
    filing = Requests(ledger).file(Request("zoe-the-unmistakable"), held=True, actor="application 1", now=clock())
    assert intake.count() == 1
    Requests(ledger).change(filing.request_id, "withdrawn", "officer 1", clock())
    ledger.wipe()
    assert b"zoe-the-unmistakable" not in b"".join(path.read_bytes() for path in folder.glob(f"{LEDGER}*"))
