"""Whatever is tried ends with an event: nobody's request keeps the worker busy for ever, and others waiting."""

import shutil

import pytest

from erasable.errors import Refused
from erasable.operations import DiskStorage, certificates_of
from erasable.operations.claims import LOST, RequestClaims
from erasable.operations.erase import Carried
from erasable.operations.recording import begin_new_queue
from erasable.requests import Request
from erasable.requests.lease import Lease
from erasable.service import _worker as erasing
from erasable.service._worker import Worker, WorkerOptions
from erasable.service.settings import ServiceSettings
from erasable.workspace.files import QUEUE_FILES
from kit.asking import erase_only
from kit.copies import copy_of

FAY = "fay-the-unmistakable"


@pytest.fixture
def settings():
    return ServiceSettings(batch_window=0, retry_seconds=60)


@pytest.fixture
def workers(folder, settings, clock):
    """Let one worker after the other work, each until it has erased someone or has nothing to do."""

    def run(count: int) -> int:
        steps = 0
        for _ in range(count):
            worker = Worker(WorkerOptions(folder, settings, threads=1, clock=clock))
            while not worker.eraser.may_hold_ids and worker.step():
                steps += 1
            worker.lease.release()
            worker.database.close()
        return steps

    return run


class TestWhatIsLost:
    """It was to be certified, and neither search file nor certificate is there: an older workspace was put back."""

    @pytest.fixture
    def lost(self, shop):
        taken = shop.reception.submit(Request("ann"), "application 1")
        lease = Lease(shop.database, 30)
        assert lease.take()
        claims = RequestClaims(shop.queue, lease, "worker")
        claims.forget(claims.begin([taken.request_id]))
        lease.release()
        return taken.request_id

    def test_waits_for_someone_to_look_at_it_and_keeps_nobody_waiting(self, shop, lost, workers, clock):
        bob = shop.reception.submit(Request("bob"), "application 1")
        workers(3)
        found = shop.history.get(lost)
        assert (found.state, found.reason, found.retry_at) == ("failed", LOST, None)
        assert shop.history.get(bob.request_id).state == "erased"
        clock.pass_days(1)
        assert workers(2) == 0

    def test_is_looked_at_once_more_when_someone_asks_for_it(self, shop, lost, workers, clock):
        workers(1)
        shop.decisions.retry(lost, "operator 1", clock())
        workers(3)
        events = [event.name for event in shop.history.get(lost).events]
        assert events[-3:] == ["failed", "retry asked", "failed"]
        assert shop.history.get(lost).retry_at is None

    def test_is_erased_once_the_newest_copy_of_the_workspace_is_back(
        self, shop, folder, workers, clock, swift_path, monkeypatch
    ):
        older = copy_of(folder, swift_path / "older")
        taken = shop.reception.submit(Request("ann"), "application 1")
        with monkeypatch.context() as killing:
            killing.setattr(RequestClaims, "end", _killed)
            with pytest.raises(KeyboardInterrupt):
                workers(1)
        newest = copy_of(folder, swift_path / "newest")
        _put_back(older, folder)
        workers(2)
        assert shop.history.get(taken.request_id).reason == LOST
        _put_back(newest, folder)
        shop.decisions.retry(taken.request_id, "operator 1", clock())
        workers(2)
        assert shop.history.get(taken.request_id).state == "erased"
        assert certificates_of(shop.storage, [taken.request_id])


def _killed(*given):
    raise KeyboardInterrupt


def _put_back(copy, folder) -> None:
    """Put a copy of a workspace in its place; its queue stays as it is, as one in Postgres does."""
    for path in [*folder.rglob("*")]:
        if path.is_file() and path.name not in QUEUE_FILES:
            path.unlink()
    for path in copy.rglob("*"):
        if path.is_file() and path.name not in QUEUE_FILES:
            (folder / path.relative_to(copy)).parent.mkdir(exist_ok=True)
            shutil.copy2(path, folder / path.relative_to(copy))


class TestWhatAnEarlierReleaseHasErasedAndNotCertified:
    """Its request is unknown to the queue, and something still names the person."""

    @pytest.fixture
    def left(self, folder):
        erase_only(DiskStorage(folder), Request(FAY))
        for name in QUEUE_FILES:
            (folder / name).unlink(missing_ok=True)
        begin_new_queue(DiskStorage(folder))
        (folder / "notes.txt").write_text(f"{FAY} called")
        return folder

    def test_is_a_request_that_is_tried_again_and_keeps_nobody_waiting(self, left, shop, workers, clock):
        bob = shop.reception.submit(Request("bob"), "application 1")
        workers(3)
        assert shop.history.get(bob.request_id).state == "erased"
        (failed,) = shop.history.in_states(["failed"])
        assert failed.retry_at > clock()
        assert workers(2) == 0

    def test_is_certified_once_the_place_is_clean(self, left, shop, workers, clock):
        workers(2)
        (left / "notes.txt").unlink()
        clock.pass_days(1)
        workers(2)
        (done,) = shop.history.in_states(["erased"])
        assert certificates_of(shop.storage, [done.request_id])


def test_what_nothing_comes_of_fails(shop, workers, monkeypatch):
    taken = shop.reception.submit(Request("ann"), "application 1")
    monkeypatch.setattr(erasing, "erase", lambda *given: Carried())
    workers(1)
    assert shop.history.get(taken.request_id).state == "failed"
    assert shop.history.get(taken.request_id).retry_at


def test_a_group_that_fails_uses_up_no_attempt_of_one_that_was_not_tried(shop, workers, clock, monkeypatch):
    """Two were begun and interrupted, the first too often to be tried with others."""
    first, second = (shop.reception.submit(Request(user), "application 1") for user in ("ann", "bob"))
    for one in (first, second):
        shop.queue.advance(one.request_id, "erasing", "worker", clock())
    for _ in range(2):
        shop.queue.note(second.request_id, "resumed", "worker", clock())
    monkeypatch.setattr(erasing, "erase", _diverged)
    workers(1)
    assert shop.history.get(first.request_id).state == "failed"
    assert shop.history.get(second.request_id).state == "failed"
    assert [event.name for event in shop.history.get(second.request_id).events].count("failed") == 1
    assert shop.history.get(second.request_id).attempts == 4  # resumed once more, and failed


def _diverged(*given):
    raise Refused("training diverged")


def test_while_a_command_writes_nothing_is_begun_or_written_down(shop, worker, clock, capsys):
    taken = shop.reception.submit(Request("ann"), "application 1")
    capsys.readouterr()
    with shop.storage.writing():
        worker.step()
        mark = shop.database.mark()
        assert not worker.step()
        assert shop.database.mark() == mark
    assert "requests begun" not in capsys.readouterr().err
    assert shop.history.get(taken.request_id).state == "suppressed"
