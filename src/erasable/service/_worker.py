"""The worker: a process that carries out what is due in the queue; of several, the one with the lease works."""

import os
import signal
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from multiprocessing import parent_process
from pathlib import Path
from types import FrameType

from erasable.errors import ErasableError, LeaseLost, WorkspaceBusy, of_command
from erasable.operations.forget import learned_elsewhere
from erasable.operations.more import LearnedMore, learn_more
from erasable.operations.prepare import Inputs
from erasable.operations.storage import DiskStorage
from erasable.operations.upgrade import Upgraded, upgrade
from erasable.operations.verify import verify
from erasable.operations.work import Work, available_cores
from erasable.proof.do_not_learn import Suppression
from erasable.requests.database import Connection, Database
from erasable.requests.decisions import Intake, ToLearn
from erasable.requests.lease import Lease, Process, QueueReporter, give_back, keep_renewing
from erasable.requests.opening import open_database
from erasable.requests.queue import Queue
from erasable.requests.tokens import Answers
from erasable.service._erasing import ACTOR, Eraser
from erasable.service.settings import (
    Clock,
    ServiceSettings,
    in_words,
    log,
    log_everything_as_json,
    log_failure,
    universal_time,
)
from erasable.without_pandas import keep_pandas_out

_PAUSE = 0.2
_NICENESS = 10
_FAILURE_SECONDS = 1.0


@dataclass(frozen=True)
class WorkerOptions:
    """Where a worker works, and how."""

    folder: Path
    settings: ServiceSettings
    suppression: Suppression | None = None
    threads: int | None = None
    pause: float = _PAUSE
    clock: Clock = universal_time


class Worker:
    """Does one thing after the other while it holds the lease."""

    def __init__(self, options: WorkerOptions, holder: Process | None = None) -> None:
        self.options = options
        self.queue = Queue(open_database(options.folder), options.settings)
        self.queue.migrate(options.clock())
        self.lease = Lease(self.database, options.settings.lease_seconds, holder)
        self.storage = DiskStorage(options.folder, fence=self.lease.check)
        self.eraser = Eraser(
            self.queue, self.lease, self.storage, options.settings, options.clock, self._threads, options.suppression
        )
        self._learned = 0.0
        self._seen: object = None
        self._look_again = 0.0
        self._wiped = 0
        self._upgrade_seen: object = None
        self._upgrade_again = 0.0

    @property
    def database(self) -> Database:
        """Where the queue lies."""
        return self.queue.database

    @property
    def _threads(self) -> int:
        return self.options.threads or available_cores()

    def step(self) -> bool:
        """Do the next thing; False if there is nothing to do, or another worker holds the lease."""
        try:
            return (self.lease.held or self.lease.take()) and self._do_next()
        except LeaseLost:
            log("lease lost")
        except WorkspaceBusy:
            return False  # a command is writing: wait for it
        except ErasableError as error:
            log_failure("the worker could not go on", error)
            time.sleep(_FAILURE_SECONDS)
        return False

    def _do_next(self) -> bool:
        eraser = self.eraser
        return (
            eraser.resume()
            or eraser.carry_out_due()  # also finishes what an earlier release left, in the same session
            or self._finish_others()
            or eraser.seal_ended()
            or self._upgrade()
            or self._learn()
            or self._verify()
            or self._tidy()
        )

    def _finish_others(self) -> bool:
        """Finish what an earlier release left; looked for when the workspace has changed, and once in a while."""
        mark, now = self.storage.mark(), time.monotonic()
        if mark == self._seen and now < self._look_again:
            return False
        self._seen, self._look_again = mark, now + self.options.settings.retry_seconds
        return self.eraser.finish_others()

    def _upgrade(self) -> bool:
        """Bring the workspace to this numeric environment, if it was learned in another one; failures are retried.

        People who are due come first: erasing them trains everything here, so that nothing is left to upgrade.
        """
        mark, now = self.storage.mark(), time.monotonic()
        if mark == self._upgrade_seen and now < self._upgrade_again:
            return False
        self._upgrade_seen, self._upgrade_again = mark, now + self.options.settings.retry_seconds
        if not learned_elsewhere(self.storage):
            return False
        reporter = QueueReporter(self.lease, "upgrade")
        done = self._upgraded(reporter)
        if done is not None and done.changed:
            facts = {"adopted": done.adopted, "trained": done.trained}
            self._note("upgraded", facts)
            log("upgraded", **facts)
        reporter.clear()
        return done is not None and done.changed

    def _upgraded(self, reporter: QueueReporter) -> Upgraded | None:
        """Upgrade; None if that failed, which is recorded."""
        try:
            return upgrade(self.storage, Work(self._threads, reporter))
        except (LeaseLost, WorkspaceBusy):
            raise
        except (ErasableError, OSError, MemoryError) as error:
            log_failure("the upgrade failed", error)
            self._note_once("upgrade failed", "upgraded", type(error).__name__)
            return None

    def _verify(self) -> bool:
        """Verify the workspace if someone asked for it."""
        last = self.queue.history.last_event("verification asked", "verification begun", "verification ended")
        if last is None or last.name == "verification ended":
            return False
        reporter = QueueReporter(self.lease, "verification")
        if last.name == "verification begun" and last.facts["lease"] != self.lease.number:
            facts = _unverified("the worker ended while verifying: look at the service's output (standard error)")
        else:
            self._note("verification begun", {"lease": self.lease.number})
            facts = self._verified(reporter)
        self._note("verification ended", facts)
        reporter.clear()
        return True

    def _verified(self, reporter: QueueReporter) -> dict[str, object]:
        try:
            found = verify(self.storage, work=Work(self._threads, reporter))
        except (LeaseLost, WorkspaceBusy):
            raise
        except (ErasableError, OSError, MemoryError) as error:
            log_failure("verification failed", error)
            reason = f"it could not be verified ({type(error).__name__})"
            return _unverified(f"{reason}: look at the service's output (standard error)")
        return {"identical": found.identical, "compared": found.compared, "reason": of_command(found.reason)}

    def _learn(self) -> bool:
        """Learn what came in, once enough time has passed to collect it."""
        if time.monotonic() - self._learned < self.options.settings.learn_seconds:
            return False
        intake = Intake(self.database)
        self._learned, waiting = time.monotonic(), intake.waiting()
        if waiting is None:
            return False
        reporter = QueueReporter(self.lease, "learning")
        learned = self._learned_from(waiting, reporter)
        if learned is not None:
            facts = {"users": learned.users_added, "interactions": learned.interactions_added}
            if learned.suppressed:
                facts["left_out"] = learned.suppressed

            def drop(connection: Connection) -> None:
                intake.drop(waiting.numbers)
                self._note("learned more", facts)

            self.lease.change(drop)
            log("learned more", **facts)
            self.database.wipe()
        reporter.clear()
        return learned is not None

    def _learned_from(self, waiting: ToLearn, reporter: QueueReporter) -> LearnedMore | None:
        """Learn more; None if that failed, which is recorded."""
        inputs, work = Inputs(suppression=self.options.suppression), Work(self._threads, reporter)
        try:
            return learn_more(self.storage, waiting.table, inputs, work, learned_elsewhere(self.storage))
        except (LeaseLost, WorkspaceBusy):
            raise
        except (ErasableError, OSError, MemoryError) as error:
            log_failure("learning failed", error)
            self._note_once("learning failed", "learned more", type(error).__name__)
            return None

    def _note_once(self, failed: str, done: str, reason: str) -> None:
        """Record a failure once for each reason, until it succeeds."""
        last = self.queue.history.last_event(failed, done)
        if last is None or last.facts.get("reason") != reason:
            self._note(failed, {"reason": reason})

    def _note(self, name: str, facts: Mapping[str, object]) -> None:
        self.lease.change(lambda connection: self.queue.note(None, name, ACTOR, self.options.clock(), facts))

    def _tidy(self) -> bool:
        """Drop stored answers that are too old to be repeated, and keep the files beside the queue small."""
        old = Answers(self.database).drop_old(self.lease)
        # The id of a withdrawn request is still in the file.
        ended = self.queue.history.last_event("withdrawn", "rejected")
        if old or (ended is not None and ended.number > self._wiped):
            self.database.wipe()
            self._wiped = ended.number if ended else 0
        else:
            self.database.tidy()
        return False


def _unverified(reason: str) -> dict[str, object]:
    return {"identical": None, "compared": 0, "reason": reason}


def run_worker(options: WorkerOptions) -> None:
    """Work until told to stop."""
    keep_pandas_out()
    stop, told = threading.Event(), list[int]()
    log_everything_as_json()

    def end(number: int, frame: FrameType | None) -> None:
        told.append(number)  # a library that is just being imported may swallow what is raised
        raise KeyboardInterrupt  # setting an event here could deadlock: whoever waits for it may hold its lock

    signal.signal(signal.SIGTERM, end)
    os.nice(_NICENESS)  # recommendations do not wait for training
    worker, parent = _begun(options, told), parent_process()
    threading.Thread(target=keep_renewing, args=(worker.lease, stop, _tell), daemon=True).start()
    log("worker started")
    try:
        # End with the service: if it was killed, it starts another worker when it is back.
        while not told and (parent is None or parent.is_alive()):
            if not worker.step():
                stop.wait(options.pause)
            if worker.eraser.has_erased:
                log("worker ends after an erasure")  # and the ids in its memory go with it
                break
    except KeyboardInterrupt:
        told.append(signal.SIGINT)
    except Exception as error:
        if not told:
            log_failure("worker failed", error)
            raise SystemExit(1) from None
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it is ending already
        stop.set()
        if told:
            log("worker stopped")
        give_back(worker.lease)


def _begun(options: WorkerOptions, told: Sequence[int]) -> Worker:
    """Return a worker; if it can't start, as when its queue is lost, write one line to standard error and end."""
    try:
        return Worker(options)
    except KeyboardInterrupt:
        raise SystemExit(0) from None
    except Exception as error:
        if told:
            raise SystemExit(0) from None
        log_failure("worker failed", error)
        raise SystemExit(1) from None


def _tell(what: str, error: Exception | None = None) -> None:
    """Write what became of the lease to standard error."""
    log(what, **({} if error is None else {"error": type(error).__name__, **in_words(error)}))
