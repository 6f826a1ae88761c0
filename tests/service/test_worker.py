"""The worker: one at a time, learning and verifying besides."""

import json
import time
from multiprocessing import get_context

import pytest

from erasable.errors import LeaseLost, Refused, UnknownUser
from erasable.operations import learned_elsewhere, verify
from erasable.proof.do_not_learn import DoNotLearnFiles, DoNotLearnList, add_requests
from erasable.requests import Request
from erasable.requests.database import WaitingInteraction
from erasable.requests.lease import Lease
from erasable.requests.queue import Queue
from erasable.service import _worker as worker_module
from erasable.service._worker import Worker, WorkerOptions, run_worker
from erasable.service.settings import ServiceSettings
from erasable.service.web._pages import event_in_words
from erasable.workspace import Workspace
from erasable.workspace.files import QUEUE_FILES
from kit import elsewhere


@pytest.fixture
def settings():
    return ServiceSettings(batch_window=0, learn_seconds=0)


def test_of_two_workers_one_works(folder, shop, worker, other_process, clock, settings):
    second = Worker(WorkerOptions(folder, settings, threads=1, clock=clock), other_process)
    filing = shop.reception.submit(Request("ann"), "application 1")
    second.lease.take()
    assert not worker.step()
    assert second.step()
    assert shop.history.get(filing.request_id).state == "erased"


def test_a_worker_that_was_frozen_past_its_lease_can_not_write(
    folder, shop, worker, other_process, clock, settings, monkeypatch
):
    """It is frozen in the middle of an erasure; when it wakes up the other one has finished."""
    filing = shop.reception.submit(Request("ann"), "application 1")
    frozen = Worker(
        WorkerOptions(folder, settings.model_copy(update={"lease_seconds": 0.001}), threads=1, clock=clock),
        other_process,
    )
    writing = frozen.storage.writing

    def freeze_and_wake():
        monkeypatch.setattr(frozen.storage, "writing", writing)
        time.sleep(0.01)  # longer than its lease
        assert worker.step()
        return writing()

    monkeypatch.setattr(frozen.storage, "writing", freeze_and_wake)
    assert not frozen.step()
    assert not frozen.lease.held
    events = shop.history.get(filing.request_id).events
    assert [event.name for event in events].count("erased") == 1
    assert sum(name.endswith(".json") for name in issued(shop)) == 1


def issued(shop):
    with shop.storage.reading() as session:
        return list(session.issued())


def test_a_stale_worker_can_not_make_a_version_current(folder, worker, other_process, clock, settings):
    stale = Worker(WorkerOptions(folder, settings, threads=1, clock=clock), other_process)
    stale.lease.take()
    with stale.storage.writing() as session:
        stale.lease.seconds = 0
        stale.lease.renew()
        assert worker.lease.take()
        with pytest.raises(LeaseLost):
            session.commit(session.state(), session.documents())
    with worker.storage.reading() as session:
        assert session.stamp.version == 1


def test_one_that_finds_its_queue_lost_says_so_in_one_line_of_the_log(folder, shop, settings, capfd):
    shop.reception.submit(Request("fay-the-unmistakable"), "application 1")
    shop.database.close()
    for name in QUEUE_FILES:
        (folder / name).unlink(missing_ok=True)
    ended = get_context("spawn").Process(target=run_worker, args=(WorkerOptions(folder, settings, threads=1),))
    ended.start()
    ended.join()
    received, failed = map(json.loads, capfd.readouterr().err.splitlines())  # each line is one: there is no traceback
    assert received["event"] == "request received"
    assert (ended.exitcode, failed["event"], failed["error"]) == (1, "worker failed", "QueueLost")
    assert "erasable status" in failed["reason"]


def test_what_came_in_is_learned(shop, worker):
    shop.intake.add([WaitingInteraction("zoe", "a", 5.0, None), WaitingInteraction("zoe", "b", 1.0, None)])
    assert worker.step()
    shop.reception.follow()
    assert shop.live.knows("zoe")
    assert shop.intake.count() == 0
    assert shop.history.last_event("learned more").facts == {"users": 1, "interactions": 2}


def test_who_came_in_while_leaving_is_erased_for_good(shop, worker, clock):
    """The rows are read for learning just before the person asks to be erased."""
    shop.intake.add([WaitingInteraction("zoe", "a", 5.0, None), WaitingInteraction("zoe", "b", 1.0, None)])
    worker.lease.take()
    worker._learn()
    filing = shop.reception.submit(Request("zoe"), "application 1")
    shop.reception.follow()
    assert shop.history.get(filing.request_id).state in ("suppressed", "rejected")
    worker.step()
    shop.reception.follow()
    with pytest.raises(UnknownUser):
        shop.live.recommend("zoe", 1)
    assert not shop.live.knows("zoe")


def test_a_verification_that_was_asked_for_is_done_once(shop, worker, clock):
    shop.queue.note(None, "verification asked", "officer 1", clock())
    assert worker.step()
    ended = shop.history.last_event("verification ended")
    assert ended.facts["identical"] is True
    assert ended.facts["compared"] > 0
    assert not worker.step()


def test_old_answers_are_dropped(shop, worker):
    shop.answers.keep("key", b"body", b"answer")
    shop.database.change(lambda connection: connection.execute("UPDATE answers SET answer_time = 0"))
    worker.step()
    assert shop.answers.earlier("key", b"body") is None


def test_what_was_learned_elsewhere_is_trained_again_here_when_more_is_learned(shop, worker, monkeypatch):
    monkeypatch.setattr(worker_module, "learned_elsewhere", lambda storage: True)
    shop.intake.add([WaitingInteraction("zoe", "a", 5.0, None)])
    assert worker.step()
    shop.reception.follow()
    assert shop.live.knows("zoe")


class TestAnotherNumericEnvironment:
    @pytest.fixture
    def moved(self, folder):
        elsewhere.moved(folder, numpy="0.0")

    def test_is_left_behind_when_there_is_nothing_else_to_do(self, shop, worker, moved):
        assert worker.step()
        upgraded = shop.history.last_event("upgraded")
        assert upgraded.facts == {"adopted": 3, "trained": 0}
        assert event_in_words(upgraded).startswith("Trained again on the updated machine: 3 checkpoints")
        assert verify(worker.storage).identical is True
        assert not worker.step()
        with worker.storage.reading() as session:
            assert session.stamp.version == 2

    def test_is_no_reason_to_let_people_wait_who_are_due(self, shop, worker, moved, clock):
        filing = shop.reception.submit(Request("ann"), "application 1")
        assert worker.step()
        found = shop.history.get(filing.request_id)
        assert (found.state, found.outcome["stages_rerun"]) == ("erased", 3)
        assert not worker.step()
        assert shop.history.last_event("upgraded") is None

    def test_is_left_behind_before_more_is_learned(self, shop, worker, moved):
        shop.intake.add([WaitingInteraction("zoe", "a", 5.0, None)])
        assert worker.step()
        assert shop.intake.count() == 1
        assert worker.step()
        assert shop.intake.count() == 0
        assert not learned_elsewhere(worker.storage)

    def test_keeps_people_who_wait_suppressed(self, folder, shop, moved, clock):
        later = ServiceSettings(batch_window=7)
        Queue(shop.database, later).submit(Request("ann"), held=True, actor="application 1", now=clock())
        waiting = Worker(WorkerOptions(folder, later, threads=1, clock=clock))
        assert waiting.step()
        assert shop.history.last_event("upgraded").facts["adopted"] == 3
        shop.reception.follow()
        with pytest.raises(UnknownUser):
            shop.live.recommend("ann", 1)

    def test_that_can_not_be_left_is_written_down_once(self, shop, worker, moved, monkeypatch):
        def refuse(*arguments):
            raise Refused("not today")

        monkeypatch.setattr(worker_module, "upgrade", refuse)
        monkeypatch.setattr(worker_module.time, "monotonic", iter(range(0, 10**9, 10**6)).__next__)
        assert not worker.step()
        assert not worker.step()
        events = [event.name for event in shop.history.events(limit=100)]
        assert events.count("upgrade failed") == 1
        assert "Refused" in event_in_words(shop.history.last_event("upgrade failed"))

    def test_is_not_left_by_a_worker_without_the_lease(self, folder, worker, moved, other_process, monkeypatch):
        assert worker.lease.take()
        do = worker_module.upgrade

        def freeze_and_wake(*arguments):
            worker.lease.seconds = 0
            worker.lease.renew()
            assert Lease(worker.database, 60, other_process).take()
            return do(*arguments)

        monkeypatch.setattr(worker_module, "upgrade", freeze_and_wake)
        assert not worker.step()
        with worker.storage.reading() as session:
            assert session.stamp.version == 1


def test_learning_that_fails_is_written_down_once_and_keeps_what_came_in(shop, worker, monkeypatch):
    def fail(*arguments):
        raise Refused("not now, zoe")

    monkeypatch.setattr(worker_module, "learn_more", fail)
    shop.intake.add([WaitingInteraction("zoe", "a", 5.0, None)])
    for _ in range(3):
        worker.step()
    assert [event.facts for event in shop.history.events(9) if event.name == "learning failed"] == [
        {"reason": "Refused"}
    ]
    assert shop.intake.count() == 1


def test_who_took_a_request_back_is_gone_from_the_log_soon(shop, worker, folder):
    filing = shop.reception.submit(Request("fay-the-unmistakable", ("a",)), "application 1")
    shop.reception.withdraw(filing.request_id, "officer 1", "a mistake")
    worker.step()
    assert b"fay-the-unmistakable" not in b"".join(path.read_bytes() for path in folder.glob("ledger.sqlite*"))


def test_a_verification_that_ended_its_worker_is_not_begun_again(shop, worker, clock, monkeypatch):
    def end_the_worker(*arguments, **given):
        raise KeyboardInterrupt

    shop.queue.note(None, "verification asked", "officer 1", clock())
    monkeypatch.setattr(worker_module, "verify", end_the_worker)
    with pytest.raises(KeyboardInterrupt):
        worker.step()
    worker.lease.release()
    assert worker.step()
    assert shop.history.last_event("verification ended").facts["identical"] is None
    assert not worker.step()


def test_a_verification_without_memory_ends_no_worker(shop, worker, clock, monkeypatch):
    def fail(*arguments, **given):
        raise MemoryError

    shop.queue.note(None, "verification asked", "officer 1", clock())
    monkeypatch.setattr(worker_module, "verify", fail)
    assert worker.step()
    assert "MemoryError" in shop.history.last_event("verification ended").facts["reason"]


def test_whoever_was_erased_does_not_come_back_with_what_is_sent_in(shop, worker):
    shop.reception.submit(Request("ann"), "application 1")
    worker.step()
    shop.intake.add([WaitingInteraction("ann", "a", 5.0, None), WaitingInteraction("zoe", "a", 5.0, None)])
    worker.step()
    shop.reception.follow()
    assert (shop.live.knows("ann"), shop.live.knows("zoe")) == (False, True)
    event = shop.history.last_event("learned more")
    assert event.facts == {"users": 1, "interactions": 1, "left_out": 1}
    assert event_in_words(event).endswith("1 new users; left out what is on the do-not-learn list")


def test_whoever_was_erased_and_comes_alone_is_dropped_and_counted(shop, worker):
    shop.reception.submit(Request("ann"), "application 1")
    worker.step()
    shop.intake.add([WaitingInteraction("ann", "a", 5.0, None)])
    worker.step()
    assert shop.intake.count() == 0
    assert shop.history.last_event("learned more").facts == {"users": 0, "interactions": 0, "left_out": 1}
    assert shop.history.last_event("learning failed") is None


def test_a_list_that_is_lost_stops_the_worker_until_it_is_back(shop, worker, folder):
    lists = folder.with_name("shop.do-not-learn")
    lists.rename(folder.with_name("lost"))
    filing = shop.reception.submit(Request("ann"), "application 1")
    worker.step()
    failed = shop.history.get(filing.request_id)
    assert failed.state == "failed"
    assert failed.reason.startswith("the do-not-learn list or its key is missing or damaged: restore it from its")
    shop.intake.add([WaitingInteraction("zoe", "a", 5.0, None)])
    worker.step()
    assert shop.intake.count() == 1
    folder.with_name("lost").rename(lists)
    worker.step()
    assert shop.intake.count() == 0


def test_rows_of_erased_people_alone_are_dropped_and_block_nothing(folder, shop, clock, settings, tmp_path):
    (tmp_path / "apart").mkdir()
    list_files = DoNotLearnFiles(tmp_path / "list", tmp_path / "apart" / "key")
    DoNotLearnList.open_or_create(list_files)
    add_requests(list_files, [Request("zoe")])
    worker = Worker(WorkerOptions(folder, settings, list_files, threads=1, clock=clock))
    shop.intake.add([WaitingInteraction("zoe", "a", 5.0, None)])
    worker.step()
    assert shop.intake.count() == 0
    assert not shop.live.knows("zoe")
    worker.database.close()


def test_an_erasure_opens_the_workspace_once(shop, worker, clock, monkeypatch):
    shop.reception.submit(Request("ann"), "application 1")
    clock.pass_days(7)
    opened = []

    def counted(name, real):
        def opening(*given, **named):
            opened.append(name)
            return real(*given, **named)

        return opening

    for name in ("reading", "writing"):
        monkeypatch.setattr(Workspace, name, counted(name, getattr(Workspace, name)))
    assert worker.step()
    assert worker.eraser.may_hold_ids
    assert opened == ["writing"]
