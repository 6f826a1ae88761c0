"""The lease: one holder, and no write by anyone who has lost it."""

import time

import pytest

from erasable.errors import LeaseLost
from erasable.requests.lease import Lease, Process, holder_of, silent_seconds
from erasable.requests.queue import Queue


def test_one_holds_it_and_others_wait(database, other_process):
    first, second = Lease(database, 60, other_process), Lease(database, 60)
    assert first.take()
    assert not second.take()
    assert holder_of(database) == other_process


def test_who_is_silent_for_too_long_loses_it(database, other_process):
    first, second = Lease(database, 0.05, other_process), Lease(database, 60)
    first.take()
    time.sleep(0.06)
    assert second.take()
    assert second.before == other_process


def test_whoever_renews_it_keeps_it(database, other_process):
    first, second = Lease(database, 0.2, other_process), Lease(database, 60)
    first.take()
    for _ in range(4):
        time.sleep(0.1)
        first.renew()
    assert not second.take()


def test_the_lease_of_a_process_that_has_ended_is_free_at_once(database):
    gone = Process(2**22 + 1, "1")
    assert Lease(database, 60, gone).take()
    second = Lease(database, 60)
    assert second.take()
    assert second.before is None
    assert not gone.alive


def test_a_number_that_came_again_is_another_process(other_process):
    assert other_process.alive
    assert not Process(other_process.number, "1").alive


def test_whoever_has_lost_it_can_write_nothing(database, other_process, clock):
    stale, fresh = Lease(database, 0, other_process), Lease(database, 60)
    stale.take()
    fresh.take()
    with pytest.raises(LeaseLost):
        stale.change(lambda connection: Queue(database).note(None, "must not be there", "worker", clock()))
    for act in (stale.check, stale.renew):
        with pytest.raises(LeaseLost):
            act()
    assert not stale.held
    assert Queue(database).history.events(9) == []
    fresh.check()


def test_a_stale_holder_can_not_give_back_what_another_has(database, other_process):
    stale, fresh = Lease(database, 0, other_process), Lease(database, 60)
    stale.take()
    fresh.take()
    stale.release()
    fresh.check()


def test_what_is_given_back_is_free(database, other_process):
    first = Lease(database, 60, other_process)
    first.take()
    first.release()
    assert holder_of(database) is None
    assert Lease(database, 60).take()


def test_a_frozen_process_can_be_ended(other_process):
    other_process.end()
    for _ in range(100):
        if not other_process.alive:
            return
        time.sleep(0.02)
    pytest.fail("it is still alive")


def test_silence_is_counted_from_when_the_lease_has_run_out(database, other_process):
    Lease(database, 60, other_process).take()
    assert silent_seconds(database, other_process.number) == 0
    Lease(database, -5, other_process).take()
    assert silent_seconds(database, other_process.number) >= 5
    assert silent_seconds(database, 1) == 0


def test_whoever_works_on_another_machine_has_it_until_its_time_is_over(database):
    elsewhere = Process(1, "1", "another machine")
    first, second = Lease(database, 0.2, elsewhere), Lease(database, 60)
    assert first.take()
    assert not second.take()
    assert holder_of(database) == elsewhere
    assert silent_seconds(database, 1) == 0
    time.sleep(0.25)
    assert second.take()
    assert not elsewhere.end()  # nobody can, from here
