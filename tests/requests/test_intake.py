"""Interactions that wait to be learned."""

import pytest

from erasable.requests import Request
from erasable.requests.database import WaitingInteraction
from erasable.requests.decisions import Intake
from erasable.requests.queue import Queue
from erasable.workspace.files import QUEUE_FILE


@pytest.fixture
def intake(database):
    return Intake(database)


def test_what_came_in_waits_in_its_order(intake):
    assert intake.waiting() is None
    assert intake.add([WaitingInteraction("zoe", "a", 5.0, None), WaitingInteraction("ann", "b", 1.0, 7.0)]) == 2
    table = intake.waiting().table
    assert table.column("user_id").to_pylist() == ["zoe", "ann"]
    assert table.column("time").to_pylist() == [None, 7.0]
    assert (intake.count(), intake.holds(Request("zoe")), intake.holds(Request("bob"))) == (2, True, False)


def test_a_column_that_no_row_has_is_left_out(intake):
    intake.add([WaitingInteraction("zoe", "a", None, None)])
    assert intake.waiting().table.column_names == ["user_id", "item_id"]


def test_what_is_learned_is_dropped_and_what_came_since_stays(intake):
    intake.add([WaitingInteraction("zoe", "a", 5.0, None)])
    numbers = intake.waiting().numbers
    intake.add([WaitingInteraction("zoe", "b", 5.0, None)])
    intake.drop(numbers)
    assert intake.waiting().table.column("item_id").to_pylist() == ["b"]


def test_who_is_leaving_is_not_learned_from(intake, database, clock):
    Queue(database).submit(Request("zoe"), held=True, actor="application 1", now=clock())
    assert intake.add([WaitingInteraction("zoe", "a", 5.0, None), WaitingInteraction("ann", "a", 5.0, None)]) == 1


def test_who_is_erased_and_not_certified_yet_is_not_learned_from_either(intake):
    assert intake.add([WaitingInteraction("zoe", "a", 5.0, None)], leaving={"zoe"}) == 0


def test_of_some_items_only_those_go_with_the_request(intake, database, clock):
    intake.add([WaitingInteraction("zoe", item, 5.0, None) for item in "abc"])
    for items in (("a",), ("b",)):
        Queue(database).submit(Request("zoe", items), held=True, actor="application 1", now=clock())
    assert intake.waiting().table.column("item_id").to_pylist() == ["c"]


def test_what_waits_of_a_person_goes_with_the_request(in_file, clock, folder):
    intake, queue = Intake(in_file), Queue(in_file)
    intake.add([WaitingInteraction("zoe-the-unmistakable", "a", 5.0, None), WaitingInteraction("ann", "a", 5.0, None)])
    filing = queue.submit(Request("zoe-the-unmistakable"), held=True, actor="application 1", now=clock())
    assert intake.count() == 1
    queue.advance(filing.request_id, "withdrawn", "officer 1", clock())
    in_file.wipe()
    assert b"zoe-the-unmistakable" not in b"".join(path.read_bytes() for path in folder.glob(f"{QUEUE_FILE}*"))
