"""What others ask for while an erasure goes on: nothing of it is lost, whoever carries it out."""

import errno
import json
import sys
from contextlib import contextmanager

import pytest

from erasable.errors import DiskFull, Refused, UnknownUser
from erasable.operations import DiskStorage, Work, certificates_of, forget, show, withdraw_submitted
from erasable.operations import claims as following
from erasable.operations.claims import COMMAND
from erasable.proof import Receipt
from erasable.requests import Request, database
from erasable.requests.lease import Lease
from erasable.requests.tokens import salt_of_code
from erasable.workspace import files
from kit.asking import submit
from kit.erasure_service import work_off

erase = sys.modules["erasable.operations.erase"]
errands = sys.modules["erasable.operations.forget"]


@pytest.fixture
def while_chosen(monkeypatch):
    """Do something while a batch is chosen: what is due is begun, who may join it is not; everyone is cheap."""

    def arrange(action):
        def chosen(state, due, waiting):
            action()
            return [*waiting]

        monkeypatch.setattr(erase, "joined_cheaply", chosen)

    return arrange


class TestMoreIsAskedForWhileSomeIsErased:
    def test_the_worker_erases_what_was_asked_for_when_it_began(self, shop, worker, clock, while_chosen):
        shop.reception.submit(Request("bob"), "application 1")
        clock.pass_days(3)
        some = shop.reception.submit(Request("ann", ("a",)), "application 1")
        clock.pass_days(3.5)
        while_chosen(lambda: shop.reception.submit(Request("ann"), "application 1"))
        assert worker.step()
        assert shop.history.get(some.request_id).state == "erased"
        with pytest.raises(UnknownUser):
            show(shop.storage, "ann")
        receipt = Receipt(
            request_id=some.request_id, user_id="ann", items=None, salt=salt_of_code(some.receipt_code or "")
        )
        assert receipt.opens(certificates_of(shop.storage, [some.request_id])[some.request_id])

    def test_the_command_erases_it_now_or_leaves_it_waiting(self, folder, shop, while_chosen):
        while_chosen(lambda: shop.reception.submit(Request("ann"), "application 1", unaware=True))
        done = forget(DiskStorage(folder), [Request("ann", ("a",))], work=Work(1), actor=COMMAND)
        assert len(done.certificates) == 1
        assert shop.queue.suppressed() == {"ann"}
        assert not json.loads((folder / done.certificates[0]).read_bytes())["scan"]["residues"]

    def test_what_was_not_held_when_it_was_read_is_not_rejected_once_more_is_asked_for(self, folder, shop, monkeypatch):
        """The command has joined somebody's request; what it reads of it may be widened until it begins it."""
        known, asked = erase.known_requests, []

        def none_known(requests, *given, **more):
            if not asked:
                asked.append(shop.reception.submit(Request("ann"), "application 1", unaware=True))
                return []
            return known(requests, *given, **more)

        monkeypatch.setattr(erase, "known_requests", none_known)
        forget(DiskStorage(folder), [Request("ann", ("a",))], work=Work(1), actor=COMMAND)
        assert shop.queue.suppressed() == {"ann"}


class Stopping:
    """A reporter that does something when training begins, and is stopped then."""

    def __init__(self, action) -> None:
        self._action = action

    def note(self, text) -> None:
        pass

    def doubt(self, text) -> None:
        pass

    @contextmanager
    def track(self, label, total=None):
        if label == "forgetting":
            self._action()
            raise KeyboardInterrupt
        yield lambda done: None


class TestWhatIsTakenBack:
    """Who has joined a request was told that it is carried out: no command takes it back."""

    @pytest.fixture
    def stopped(self, folder):
        """Stop a command while it erases, once something was done meanwhile."""

        def run(action, *requests):
            with pytest.raises(KeyboardInterrupt):
                forget(DiskStorage(folder), requests, work=Work(1, Stopping(action)), actor=COMMAND)

        return run

    def test_a_command_that_is_stopped_keeps_what_somebody_has_joined_through_the_service(self, shop, stopped):
        joined = []
        stopped(
            lambda: joined.append(shop.reception.submit(Request("ann"), "application 1", unaware=True)), Request("ann")
        )
        assert joined[0].joined
        assert shop.history.submission(joined[0].receipt_code).request.state == "suppressed"
        assert shop.queue.suppressed() == {"ann"}

    def test_and_what_another_command_waits_for(self, folder, shop, stopped):
        stopped(lambda: submit(DiskStorage(folder), Request("ann")), Request("ann"))
        assert shop.queue.suppressed() == {"ann"}

    def test_but_not_what_it_asked_for_twice_itself(self, shop, stopped):
        stopped(lambda: None, Request("ann", ("a",)), Request("ann", ("b",)))
        assert shop.queue.suppressed() == frozenset()

    def test_withdrawing_keeps_what_somebody_has_joined_through_the_service(self, folder, shop):
        submit(DiskStorage(folder), Request("ann"), Request("bob"))
        joined = shop.reception.submit(Request("bob"), "application 1", unaware=True)
        assert withdraw_submitted(DiskStorage(folder)) == 1
        assert shop.history.submission(joined.receipt_code).request.state == "suppressed"
        assert shop.queue.suppressed() == {"bob"}

    def test_what_failed_can_be_withdrawn_as_long_as_nothing_is_erased(self, folder, shop, clock):
        (request_id,) = submit(DiskStorage(folder), Request("ann"))
        shop.queue.advance(request_id, "erasing", "worker", clock())
        shop.queue.advance(request_id, "failed", "worker", clock(), {"reason": "the disk is full", "retry_at": None})
        assert withdraw_submitted(DiskStorage(folder)) == 1
        assert shop.history.get(request_id).state == "withdrawn"


class TestWaitingForTheWorker:
    """The command ends with a certificate or says why there is none, whenever the worker ends."""

    @pytest.fixture
    def when_looked(self, shop, other_process, monkeypatch):
        """Let another process hold the lease, and do something when the command looks whether it still does."""

        def arrange(action):
            lease, real = Lease(shop.database, 60, other_process), following.holder_of
            assert lease.take()

            def look(database):
                monkeypatch.setattr(following, "holder_of", real)
                action(lease)
                return real(database)

            monkeypatch.setattr(following, "holder_of", look)

        return arrange

    @pytest.fixture
    def asking(self, folder):
        return lambda user: forget(DiskStorage(folder), [Request(user)], work=Work(1), actor=COMMAND)

    def test_a_request_that_it_joined_is_carried_out_here_once_the_worker_is_gone(self, shop, asking, when_looked):
        taken = shop.reception.submit(Request("ann"), "application 1")
        when_looked(lambda lease: lease.release())
        assert len(asking("ann").certificates) == 1
        assert shop.history.get(taken.request_id).state == "erased"

    def test_what_the_worker_did_just_before_it_ended_is_told_with_the_receipt(self, folder, shop, asking, when_looked):
        def finish(lease):
            lease.release()
            work_off(folder)

        when_looked(finish)
        done = asking("ann")
        assert (len(done.certificates), len(done.receipts)) == (1, 1)

    def test_what_the_worker_did_after_it_was_looked_at_is_told_too(
        self, folder, shop, asking, when_looked, monkeypatch
    ):
        whole = errands._ForgetCall.carry_out

        def later(errand):
            work_off(folder)
            return whole(errand)

        when_looked(lambda lease: lease.release())
        monkeypatch.setattr(errands._ForgetCall, "carry_out", later)
        done = asking("ann")
        assert (len(done.certificates), len(done.receipts)) == (1, 1)

    @pytest.mark.parametrize("decide", ["hold", "withdraw"])
    @pytest.mark.parametrize("ends", [False, True])
    def test_what_someone_decides_meanwhile_is_said(self, shop, asking, when_looked, decide, ends):
        def put_off(lease):
            (waiting,) = shop.history.in_states(["suppressed"])
            getattr(shop.reception, decide)(waiting.request_id, "officer 1", None)
            if ends:
                lease.release()

        when_looked(put_off)
        with pytest.raises(Refused, match="nothing was erased"):
            asking("ann")


class TestAFullDisk:
    @pytest.fixture
    def full(self, monkeypatch):
        """A disk that is full from the first checkpoint on, for the queue too."""
        seen = []

        def change(kind, path):
            if seen or (kind == "write" and path.suffix == ".safetensors"):
                seen.append(path)
                raise OSError(errno.ENOSPC, "No space left on device")

        def commit():
            if seen:
                raise DiskFull("the disk of the queue is full")

        with monkeypatch.context() as patch:
            patch.setattr(files, "before_change", change)
            patch.setattr(database, "before_commit", commit)
            yield patch

    def test_what_could_not_be_taken_back_is_said_with_what_takes_it_back(self, folder, shop, full):
        with pytest.raises(DiskFull, match="still stands") as told:
            forget(DiskStorage(folder), [Request("ann")], work=Work(1), actor=COMMAND)
        full.undo()
        assert f"erasable forget {folder} --withdraw takes it back" in told.value.of_command
        assert shop.queue.suppressed() == {"ann"}
        assert withdraw_submitted(DiskStorage(folder)) == 1
        assert shop.queue.suppressed() == frozenset()
