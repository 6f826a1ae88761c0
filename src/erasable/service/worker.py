"""The worker: one process that carries out what the ledger says is due; any number may run, one of them works."""

import os
import signal
import threading
import time
from dataclasses import dataclass
from multiprocessing import parent_process
from pathlib import Path
from types import FrameType

from erasable.errors import ErasableError, LeaseLost, Unfinished, WorkspaceBusy, of_command
from erasable.operations import (
    DiskHome,
    Inputs,
    LearnedMore,
    Upgraded,
    Work,
    available_cores,
    learn_more,
    learned_elsewhere,
    upgrade,
    verify,
)
from erasable.proof.suppression import Suppression
from erasable.service.clock import Clock, universal_time
from erasable.service.erasing import ACTOR, Eraser
from erasable.service.intake import Intake, Waiting
from erasable.service.lease import Lease, Process
from erasable.service.logs import log, log_everything_as_json, log_failure
from erasable.service.progress import LedgerReporter
from erasable.service.requests import Requests
from erasable.service.settings import ServiceSettings
from erasable.store.ledger import Ledger

_PAUSE = 0.2
_NICENESS = 10
_FAILURE_SECONDS = 1.0
_LARGEST_LOG = 1_000_000
_ANSWERS_KEPT = 86_400


@dataclass(frozen=True)
class Post:
    """Where a worker works, and how."""

    folder: Path
    settings: ServiceSettings
    suppression: Suppression | None = None
    threads: int | None = None
    pause: float = _PAUSE
    clock: Clock = universal_time


class Worker:
    """Does one thing after the other while it holds the lease."""

    def __init__(self, post: Post, holder: Process | None = None) -> None:
        self.post = post
        self.ledger = Ledger.open(post.folder)
        self.lease = Lease(self.ledger, post.settings.lease_seconds, holder)
        self.home = DiskHome(post.folder, fence=self.lease.check)
        self._learned = 0.0
        self._seen: object = None
        self._look_again = 0.0
        self._wiped = 0
        self._upgrade_seen: object = None
        self._upgrade_again = 0.0

    @property
    def _eraser(self) -> Eraser:
        post = self.post
        return Eraser(self.ledger, self.lease, self.home, post.settings, post.clock, self._threads, post.suppression)

    @property
    def _threads(self) -> int:
        return self.post.threads or available_cores()

    def step(self) -> bool:
        """Do the next thing there is to do; False if there is none, or if another worker holds the lease."""
        try:
            return (self.lease.held or self.lease.take()) and self._do_next()
        except LeaseLost:
            log("lease lost")
        except WorkspaceBusy:
            return False  # a command is writing: there is time to wait for it
        except ErasableError as error:
            log_failure("the worker could not go on", error)
            time.sleep(_FAILURE_SECONDS)
        return False

    def _do_next(self) -> bool:
        eraser = self._eraser
        return (
            eraser.resume()
            or self._finish_commands()
            or eraser.carry_out_due()
            or eraser.seal_ended()
            or self._upgrade()
            or self._learn()
            or self._verify()
            or self._tidy()
        )

    def _finish_commands(self) -> bool:
        """Finish what a command has left; looked at when the workspace has changed, and once in a while."""
        mark, now = self.home.mark(), time.monotonic()
        if mark == self._seen and now < self._look_again:
            return False
        self._seen, self._look_again = mark, now + self.post.settings.retry_seconds
        return self._eraser.finish_commands()

    def _upgrade(self) -> bool:
        """Bring the workspace to this numeric environment, if it was learned in another one; failures are tried again.

        People who are due come first: erasing them trains everything here, so that nothing is left to upgrade.
        """
        mark, now = self.home.mark(), time.monotonic()
        if mark == self._upgrade_seen and now < self._upgrade_again:
            return False
        self._upgrade_seen, self._upgrade_again = mark, now + self.post.settings.retry_seconds
        if not learned_elsewhere(self.home):
            return False
        reporter = LedgerReporter(self.lease, "upgrade")
        done = self._upgraded(reporter)
        if done is not None and done.changed:
            facts = {"adopted": done.adopted, "trained": done.trained}
            with self.lease.writing():
                Requests(self.ledger).note(None, "upgraded", ACTOR, self.post.clock(), facts)
            log("upgraded", **facts)
        reporter.clear()
        return done is not None and done.changed

    def _upgraded(self, reporter: LedgerReporter) -> Upgraded | None:
        """Upgrade; None if that failed, which is written down."""
        try:
            return upgrade(self.home, Work(self._threads, reporter))
        except (LeaseLost, WorkspaceBusy):
            raise
        except (ErasableError, OSError, MemoryError) as error:
            log_failure("the upgrade failed", error)
            self._note_once("upgrade failed", "upgraded", type(error).__name__)
            return None

    def _verify(self) -> bool:
        """Verify the workspace if someone has asked for it."""
        requests = Requests(self.ledger)
        last = requests.last_event("verification asked", "verification begun", "verification ended")
        if last is None or last.name == "verification ended":
            return False
        reporter = LedgerReporter(self.lease, "verification")
        if last.name == "verification begun" and last.facts["lease"] != self.lease.number:
            facts = _unverified("the worker ended while it was verifying: look at the log of the service")
        else:
            with self.lease.writing():
                requests.note(None, "verification begun", ACTOR, self.post.clock(), {"lease": self.lease.number})
            facts = self._verified(reporter)
        with self.lease.writing():
            requests.note(None, "verification ended", ACTOR, self.post.clock(), facts)
        reporter.clear()
        return True

    def _verified(self, reporter: LedgerReporter) -> dict[str, object]:
        try:
            found = verify(self.home, work=Work(self._threads, reporter))
        except (LeaseLost, WorkspaceBusy):
            raise
        except (ErasableError, OSError, MemoryError) as error:
            log_failure("verification failed", error)
            return _unverified(f"it could not be verified ({type(error).__name__}): look at the log of the service")
        return {"identical": found.identical, "compared": found.compared, "reason": of_command(found.reason)}

    def _learn(self) -> bool:
        """Learn what came in, once it was collected for a while."""
        if time.monotonic() - self._learned < self.post.settings.learn_seconds:
            return False
        intake = Intake(self.ledger)
        self._learned, waiting = time.monotonic(), intake.waiting()
        if waiting is None:
            return False
        reporter = LedgerReporter(self.lease, "learning")
        learned = self._learned_from(waiting, reporter)
        if learned is not None:
            facts = {"users": learned.users_added, "interactions": learned.interactions_added}
            if learned.suppressed:
                facts["left_out"] = learned.suppressed
            with self.lease.writing():
                intake.drop(waiting.last)
                Requests(self.ledger).note(None, "learned more", ACTOR, self.post.clock(), facts)
            log("learned more", **facts)
            self.ledger.wipe()
        reporter.clear()
        return learned is not None

    def _learned_from(self, waiting: Waiting, reporter: LedgerReporter) -> LearnedMore | None:
        """Learn more; None if that failed, which is written down."""
        inputs, work = Inputs(suppression=self.post.suppression), Work(self._threads, reporter)
        try:
            return learn_more(self.home, waiting.table, inputs, work, learned_elsewhere(self.home))
        except (LeaseLost, WorkspaceBusy):
            raise
        except (ErasableError, OSError, MemoryError) as error:
            log_failure("learning failed", error)
            self._note_once("learning failed", "learned more", type(error).__name__)
            return None

    def _note_once(self, failed: str, done: str, reason: str) -> None:
        """Write down that something fails, once for each reason until it is done."""
        requests = Requests(self.ledger)
        last = requests.last_event(failed, done)
        if last is None or last.facts.get("reason") != reason:
            with self.lease.writing():
                requests.note(None, failed, ACTOR, self.post.clock(), {"reason": reason})

    def _tidy(self) -> bool:
        """Drop answers that nobody repeats any more, and keep the ledger's log short."""
        with self.ledger.reading() as connection:
            old = connection.execute(
                "SELECT 1 FROM answers WHERE answer_time < ? LIMIT 1", (time.time() - _ANSWERS_KEPT,)
            ).fetchone()
        if old:
            with self.lease.writing() as connection:
                connection.execute("DELETE FROM answers WHERE answer_time < ?", (time.time() - _ANSWERS_KEPT,))
        # Whoever took a request back stands in the file still.
        ended = Requests(self.ledger).last_event("withdrawn", "rejected")
        if old or (ended is not None and ended.number > self._wiped):
            self.ledger.wipe()
            self._wiped = ended.number if ended else 0
        elif self.ledger.log_size() > _LARGEST_LOG:
            self.ledger.cut_log()
        return False


def _unverified(reason: str) -> dict[str, object]:
    return {"identical": None, "compared": 0, "reason": reason}


def run_worker(post: Post) -> None:
    """Work until the process is told to end."""
    stop = threading.Event()
    log_everything_as_json()

    def end(number: int, frame: FrameType | None) -> None:
        stop.set()
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, end)
    os.nice(_NICENESS)  # whoever asks for recommendations does not wait for whoever trains
    worker, parent = Worker(post), parent_process()
    threading.Thread(target=_renew, args=(worker.lease, stop), daemon=True).start()
    log("worker started")
    try:
        # A service that was killed has another worker when it is back.
        while parent is None or parent.is_alive():
            if not worker.step():
                stop.wait(post.pause)
    except (KeyboardInterrupt, Unfinished):
        log("worker stopped")
    except Exception as error:
        log_failure("worker failed", error)
        raise SystemExit(1) from None
    finally:
        stop.set()
        worker.lease.release()


def _renew(lease: Lease, stop: threading.Event) -> None:
    """Keep the lease while the worker works, and end who had it before and is frozen: the worker may wait for it."""
    while not stop.wait(lease.seconds / 3):
        if lease.end_frozen():
            log("a frozen worker was ended")
        if lease.held:
            try:
                lease.renew()
            except ErasableError as error:
                log("lease not renewed", reason=type(error).__name__)
