"""The worker: one process that carries out what is due in the queue; any number may run, one of them works."""

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
from erasable.requests.answers import Answers
from erasable.requests.database import Connection, Database
from erasable.requests.holding import give_back, keep_renewing
from erasable.requests.intake import Intake, ToLearn
from erasable.requests.lease import Lease, Process
from erasable.requests.opening import open_database
from erasable.requests.progress import QueueReporter
from erasable.requests.queue import Queue
from erasable.service.clock import Clock, universal_time
from erasable.service.erasing import ACTOR, Eraser
from erasable.service.logs import in_words, log, log_everything_as_json, log_failure
from erasable.service.settings import ServiceSettings
from erasable.without_pandas import keep_pandas_out

_PAUSE = 0.2
_NICENESS = 10
_FAILURE_SECONDS = 1.0


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
        self.queue = Queue(open_database(post.folder), post.settings)
        self.queue.migrate(post.clock())
        self.lease = Lease(self.database, post.settings.lease_seconds, holder)
        self.home = DiskHome(post.folder, fence=self.lease.check)
        self.eraser = Eraser(
            self.queue, self.lease, self.home, post.settings, post.clock, self._threads, post.suppression
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
        eraser = self.eraser
        return (
            eraser.resume()
            or eraser.carry_out_due()  # which finishes what others have left, in the one session that it opens
            or self._finish_others()
            or eraser.seal_ended()
            or self._upgrade()
            or self._learn()
            or self._verify()
            or self._tidy()
        )

    def _finish_others(self) -> bool:
        """Finish what an earlier release has left; looked at when the workspace has changed, and once in a while."""
        mark, now = self.home.mark(), time.monotonic()
        if mark == self._seen and now < self._look_again:
            return False
        self._seen, self._look_again = mark, now + self.post.settings.retry_seconds
        return self.eraser.finish_others()

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
        reporter = QueueReporter(self.lease, "upgrade")
        done = self._upgraded(reporter)
        if done is not None and done.changed:
            facts = {"adopted": done.adopted, "trained": done.trained}
            self._note("upgraded", facts)
            log("upgraded", **facts)
        reporter.clear()
        return done is not None and done.changed

    def _upgraded(self, reporter: QueueReporter) -> Upgraded | None:
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
        last = self.queue.history.last_event("verification asked", "verification begun", "verification ended")
        if last is None or last.name == "verification ended":
            return False
        reporter = QueueReporter(self.lease, "verification")
        if last.name == "verification begun" and last.facts["lease"] != self.lease.number:
            facts = _unverified("the worker ended while it was verifying: look at the log of the service")
        else:
            self._note("verification begun", {"lease": self.lease.number})
            facts = self._verified(reporter)
        self._note("verification ended", facts)
        reporter.clear()
        return True

    def _verified(self, reporter: QueueReporter) -> dict[str, object]:
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
        last = self.queue.history.last_event(failed, done)
        if last is None or last.facts.get("reason") != reason:
            self._note(failed, {"reason": reason})

    def _note(self, name: str, facts: Mapping[str, object]) -> None:
        self.lease.change(lambda connection: self.queue.note(None, name, ACTOR, self.post.clock(), facts))

    def _tidy(self) -> bool:
        """Drop answers that nobody repeats any more, and keep what lies beside the queue small."""
        old = Answers(self.database).drop_old(self.lease)
        # Whoever took a request back stands in the file still.
        ended = self.queue.history.last_event("withdrawn", "rejected")
        if old or (ended is not None and ended.number > self._wiped):
            self.database.wipe()
            self._wiped = ended.number if ended else 0
        else:
            self.database.tidy()
        return False


def _unverified(reason: str) -> dict[str, object]:
    return {"identical": None, "compared": 0, "reason": reason}


def run_worker(post: Post) -> None:
    """Work until the process is told to end."""
    keep_pandas_out()
    stop, told = threading.Event(), list[int]()
    log_everything_as_json()

    def end(number: int, frame: FrameType | None) -> None:
        told.append(number)  # a library that is just being imported may swallow what is raised
        raise KeyboardInterrupt  # an event that is set here may be the one that is waited for, with its lock

    signal.signal(signal.SIGTERM, end)
    os.nice(_NICENESS)  # whoever asks for recommendations does not wait for whoever trains
    worker, parent = _begun(post, told), parent_process()
    threading.Thread(target=keep_renewing, args=(worker.lease, stop, _tell), daemon=True).start()
    log("worker started")
    try:
        # A service that was killed has another worker when it is back.
        while not told and (parent is None or parent.is_alive()):
            if not worker.step():
                stop.wait(post.pause)
            if worker.eraser.has_erased:
                log("worker ends after an erasure")  # and the ids that are in its memory go with it
                break
    except KeyboardInterrupt:
        told.append(signal.SIGINT)
    except Exception as error:
        if not told:
            log_failure("worker failed", error)
            raise SystemExit(1) from None
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it ends by itself just now
        stop.set()
        if told:
            log("worker stopped")
        give_back(worker.lease)


def _begun(post: Post, told: Sequence[int]) -> Worker:
    """Return a worker; where there is none to be had, since its queue is lost, say, the log has it in one line."""
    try:
        return Worker(post)
    except KeyboardInterrupt:
        raise SystemExit(0) from None
    except Exception as error:
        if told:
            raise SystemExit(0) from None
        log_failure("worker failed", error)
        raise SystemExit(1) from None


def _tell(what: str, error: Exception | None = None) -> None:
    """Log what became of the lease."""
    log(what, **({} if error is None else {"error": type(error).__name__, **in_words(error)}))
