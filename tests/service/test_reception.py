"""Reception: whoever asks is not served any more, now and after a restart."""

import json
import threading

import pytest

from erasable.errors import (
    Refused,
    SuppressionUnknown,
    UnknownUser,
    WorkspaceBusy,
    WorkspaceDamaged,
    WorkspaceError,
    WrongUse,
)
from erasable.operations import live, recommend
from erasable.requests import Request
from erasable.requests.database import WaitingInteraction
from erasable.service._service import Service
from kit.asking import accept


def test_when_a_request_is_taken_in_the_person_is_not_served_any_more(shop):
    assert shop.live.recommend("ann", 3).ranked
    filing = shop.reception.submit(Request("ann"), "application 1")
    assert shop.history.get(filing.request_id).state == "suppressed"
    with pytest.raises(UnknownUser):
        shop.live.recommend("ann", 3)
    assert shop.live.recommend("bob", 3).ranked


def test_so_it_is_after_a_restart(shop, folder, settings, clock):
    shop.reception.submit(Request("ann"), "application 1")
    with pytest.raises(UnknownUser):
        Service.open(folder, settings, clock).live.recommend("ann", 3)


def test_a_restart_in_between_suppresses_who_was_accepted(shop, folder, settings, clock):
    filing = shop.queue.submit(Request("ann"), held=True, actor="application 1", now=clock())
    again = Service.open(folder, settings, clock)
    assert again.history.get(filing.request_id).state == "suppressed"
    with pytest.raises(UnknownUser):
        again.live.recommend("ann", 3)


def test_who_withdraws_is_served_again(shop):
    before = shop.live.recommend("ann", 3)
    filing = shop.reception.submit(Request("ann"), "application 1")
    shop.reception.withdraw(filing.request_id, "officer 1", "asked by mistake")
    shop.reception.follow()
    assert shop.live.recommend("ann", 3) == before


def test_what_is_not_held_is_rejected(shop):
    for request in (Request("nobody"), Request("ann", ("f",))):
        filing = shop.reception.submit(request, "application 1")
        assert shop.history.get(filing.request_id).state == "rejected"
    assert shop.live.recommend("ann", 3).ranked


def test_of_whom_something_waits_to_be_learned_something_is_held(shop):
    shop.intake.add([WaitingInteraction("zoe", "a", 5.0, None)])
    filing = shop.reception.submit(Request("zoe"), "application 1")
    assert shop.history.get(filing.request_id).state == "suppressed"
    assert not shop.intake.holds(Request("zoe"))


def test_nobody_is_served_between_the_erasure_and_the_version_without_them(shop, worker, clock):
    shop.reception.submit(Request("ann"), "application 1")
    clock.pass_days(7)
    assert worker.step()
    with pytest.raises(UnknownUser):
        shop.live.recommend("ann", 3)
    shop.reception.follow()
    assert shop.live.version == 2
    with pytest.raises(UnknownUser):
        shop.live.recommend("ann", 3)


def test_what_has_begun_can_not_be_withdrawn(shop, clock):
    filing = shop.reception.submit(Request("ann"), "application 1")
    shop.queue.advance(filing.request_id, "erasing", "worker", clock())
    with pytest.raises(Refused, match="until erasing begins"):
        shop.reception.withdraw(filing.request_id, "officer 1", "too late")


def test_a_reason_that_names_anyone_who_is_known_is_refused(shop):
    filing = shop.reception.submit(Request("ann"), "application 1")
    for act in (shop.reception.hold, shop.reception.extend, shop.reception.withdraw):
        with pytest.raises(WrongUse, match="names someone"):
            act(filing.request_id, "officer 1", "same household as fay-the-unmistakable")


def test_who_is_erased_and_asks_again_at_once_is_told_that_nothing_is_held(shop, worker, clock):
    shop.reception.submit(Request("ann"), "application 1")
    clock.pass_days(7)
    worker.step()
    again = shop.reception.submit(Request("ann"), "application 1")
    assert again.rejected
    assert shop.queue.suppressed() == frozenset()


def test_the_command_does_not_serve_who_has_asked_the_service(shop):
    assert recommend(shop.storage, ["bob"])
    shop.reception.submit(Request("bob"), "application 1")
    with pytest.raises(UnknownUser):
        recommend(shop.storage, ["bob"])


def test_while_it_can_not_be_read_who_asked_nobody_is_served(shop, monkeypatch):
    shop.reception.submit(Request("ann"), "application 1")
    reading = shop.queue.asked

    def unreadable():
        raise WorkspaceDamaged("the queue is damaged")

    monkeypatch.setattr(shop.queue, "asked", unreadable)
    with pytest.raises(WorkspaceDamaged):
        shop.reception.follow()
    for user in ("ann", "bob"):
        with pytest.raises(SuppressionUnknown, match="nobody is served"):
            shop.live.recommend(user, 3)
    monkeypatch.setattr(shop.queue, "asked", reading)
    shop.reception.follow()
    assert shop.live.recommend("bob", 3).ranked
    with pytest.raises(UnknownUser):
        shop.live.recommend("ann", 3)


def test_while_the_workspace_can_not_be_read_nobody_is_served(shop):
    manifest = shop.folder / "manifest.json"
    content = manifest.read_bytes()
    other = {**json.loads(content), "format": 99}
    manifest.write_text(json.dumps(other))
    for _ in range(2):  # that the queue is read is not enough
        with pytest.raises(WorkspaceError):
            shop.reception.follow()
        with pytest.raises(SuppressionUnknown, match="nobody is served"):
            shop.live.recommend("bob", 3)
    manifest.write_bytes(content)
    shop.reception.follow()
    assert shop.live.recommend("bob", 3).ranked


def test_who_submits_while_two_look_at_the_queue_stays_suppressed(shop, monkeypatch):
    """The first look began before the submission, and ends after the second one has begun."""
    real, looked, go_on = shop.queue.asked, threading.Event(), threading.Event()
    slow = []

    def asked():
        found = real()
        if not slow:
            slow.append(True)
            looked.set()
            go_on.wait(20)
        return found

    monkeypatch.setattr(shop.queue, "asked", asked)
    first = threading.Thread(target=shop.reception.suppress)
    first.start()
    looked.wait(20)
    shop.reception.submit(Request("bob"), "application 1")
    second = threading.Thread(target=shop.reception.suppress)
    second.start()
    second.join(1)  # it may have to wait for the first
    go_on.set()
    first.join()
    second.join()
    shop.live.follow()
    assert shop.live.suppresses("bob")


def test_while_neither_can_be_read_one_of_them_is_not_enough(shop):
    manifest = shop.folder / "manifest.json"
    content = manifest.read_bytes()
    manifest.write_bytes(b"{}")
    with pytest.raises(WorkspaceError):
        shop.reception.follow()
    shop.live.serve_nobody()
    manifest.write_bytes(content)
    shop.live.follow()
    with pytest.raises(SuppressionUnknown):
        shop.live.recommend("bob", 3)
    shop.reception.follow()
    assert shop.live.recommend("bob", 3).ranked


def test_a_workspace_that_is_busy_is_served_as_it_was(shop, monkeypatch):
    def busy(settle):
        raise WorkspaceBusy("someone writes")

    monkeypatch.setattr(shop.live, "_swap_in_current", busy)
    with pytest.raises(WorkspaceBusy):
        shop.reception.follow()
    assert shop.live.recommend("bob", 3).ranked


def test_while_pending_requests_can_not_be_read_nobody_is_served(shop):
    accept(shop.storage, Request("ann"))
    (pending,) = shop.folder.glob("pending-*.json")
    content = pending.read_bytes()
    pending.write_bytes(b"damaged")
    with pytest.raises(WorkspaceError):
        shop.reception.follow()
    with pytest.raises(SuppressionUnknown, match="nobody is served"):
        shop.live.recommend("ann", 3)
    pending.write_bytes(content)
    shop.reception.follow()
    assert shop.live.recommend("bob", 3).ranked
    with pytest.raises(UnknownUser):
        shop.live.recommend("ann", 3)


def test_whoever_submits_does_not_wait_for_what_others_taught_to_be_taken_out(shop, monkeypatch):
    taken_out = []
    real = live._without_lessons
    monkeypatch.setattr(live, "_without_lessons", lambda *given: taken_out.append(given[2]) or real(*given))
    for user in ("ann", "bob", "ann"):
        shop.reception.submit(Request(user), "application 1")
    assert taken_out == []
    shop.reception.follow()
    assert taken_out == [{"ann", "bob"}]


def test_what_is_learned_while_someone_submits_is_held(shop, worker, clock, monkeypatch):
    shop.intake.add([WaitingInteraction("zoe", "a", 5.0, None)])
    worker.lease.take()
    behind = []

    def late():
        """What was looked at first is not current any more when it is the turn of the request."""
        behind.append(worker._learn() if not behind else real())

    real = shop.live.catch_up
    monkeypatch.setattr(shop.live, "catch_up", late)
    assert not shop.reception.submit(Request("zoe"), "application 1").rejected
    assert behind == [True, None]
    with pytest.raises(UnknownUser):
        shop.live.recommend("zoe", 3)
