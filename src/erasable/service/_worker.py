"""The worker: a process that carries out what is due in the queue; of several, the one with the lease works."""

import os
import secrets
import signal
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from multiprocessing import parent_process
from pathlib import Path
from types import FrameType

from erasable.chain.chain import made_elsewhere
from erasable.errors import (
    DiskFull,
    ErasableError,
    LeaseLost,
    ListUnusable,
    WorkspaceBusy,
    WorkspaceDamaged,
    WorkspaceError,
    of_command,
)
from erasable.operations.claims import (
    NOT_CERTIFIED,
    RequestClaims,
    begin,
    look_back,
    refuse_broken_documents,
    take_over,
    unknown_to,
)
from erasable.operations.do_not_learn import Outside, lists_of, open_list_of, refuse_unusable, remember
from erasable.operations.erase import Carried, Manner, erase
from erasable.operations.forget import learned_elsewhere
from erasable.operations.learn import LearnedMore, has_learned, learn_more
from erasable.operations.prepare import Inputs
from erasable.operations.storage import DiskStorage, Session, Storage
from erasable.operations.upgrade import Upgraded, upgrade
from erasable.operations.verify import verify
from erasable.operations.work import Work, available_cores
from erasable.proof.do_not_learn import DoNotLearnFiles
from erasable.proof.search_file import read_search
from erasable.requests.database import Connection, Database
from erasable.requests.decisions import WEIGHT_TAKEN_IN, Intake, ToLearn
from erasable.requests.lease import Lease, Process, QueueReporter, give_back, keep_renewing
from erasable.requests.opening import open_database
from erasable.requests.queue import Queue, SealsEnded
from erasable.requests.request import DISK_FULL, Request, RequestState
from erasable.requests.tokens import Answers
from erasable.service._syncing import Syncer
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

ACTOR = "worker"
_INTERRUPTED: tuple[RequestState, ...] = ("erasing", "certifying")
_CAME_TO_NOTHING = "the attempt had no result: look at the service's output (standard error), then try again"
_ENDED_WORKERS = "the worker ended again and again while carrying it out: look at the service's output (standard error)"
_SLOWER = 4  # each pause before the next attempt is this many times the one before
_SLOWEST = timedelta(hours=6)
_REASONS: Mapping[type[Exception], str] = {
    ListUnusable: "the do-not-learn list or its key is missing or damaged: restore it from its newest copy, or name "
    "another with erasable forget DIR --resume --do-not-learn LIST --do-not-learn-key KEY",
    DiskFull: DISK_FULL,
    WorkspaceDamaged: "a file of the workspace is damaged: run erasable verify",
    WorkspaceError: "the workspace can't be used: look at the service's output (standard error)",
    MemoryError: "there is too little memory: give the service more",
}
"""The reason that is recorded for a failure; an error's own message may name people."""


@dataclass
class Eraser:
    """Carries out requests while its process holds the lease."""

    queue: Queue
    lease: Lease
    storage: Storage
    settings: ServiceSettings
    clock: Clock
    threads: int
    do_not_learn: DoNotLearnFiles | None = None
    may_hold_ids: bool = False
    """Whether someone was erased or certified, so that ids are in the memory of this process."""

    def resume(self) -> bool:
        """Resume interrupted requests and retry failed ones that are due; return whether there were any."""
        now = self.clock()
        interrupted = self.queue.history.in_states(_INTERRUPTED)
        failed = [one for one in self.queue.history.in_states(["failed"]) if one.retry_at and one.retry_at <= now]
        for together in (*_apart_if_often(self._resumable(interrupted)), *_apart_if_often(failed)):
            self._carry_out(together)
        return bool(interrupted or failed)

    def finish_others(self) -> bool:
        """Finish what an earlier release left unfinished in the workspace; return whether there was anything."""
        with self.storage.reading() as session:
            search = read_search(session.documents().pending)
        if not search.accepted and not unknown_to(self.queue, search):
            return False
        self._carry_out([])
        return True

    def seal_ended(self) -> bool:
        """Seal ended requests once there are enough, and delete them from the queue; return whether any were.

        Each erasure searches the queue's file, so the file must not grow with every request ever carried out. Nothing
        is searched here, where the ids are no longer known: these rows were in the file when each person's erasure
        searched it. Only the outcome was added since, and it names nobody.
        """
        database = self.queue.database
        if not isinstance(database, SealsEnded):
            return False
        ended = self.queue.to_seal()
        if ended:
            with self.storage.writing() as session:
                session.amend(replace(session.documents(), requests=database.sealed_with(ended)))
        elif not database.sealed_twice():
            return False
        self.lease.change(lambda connection: database.delete_sealed())
        self.queue.database.wipe()
        log("ended requests sealed", requests=len(ended))
        return True

    def carry_out_due(self) -> bool:
        """Carry out the requests that are due, and those best done with them; return whether there were any.

        A request joins them once it is a day old, or has waited half of its own time: before, it may be taken back.
        """
        now = self.clock()
        due = self.queue.due(now)
        if due:
            waiting = self.queue.history.in_states(["suppressed"])
            self._carry_out(due, [one for one in waiting if one.deadlines(self.settings).join <= now])
        return bool(due)

    def _carry_out(self, due: Sequence[Request], waiting: Sequence[Request] = ()) -> None:
        """Carry out requests in one session, and record the outcome."""
        claims = RequestClaims(self.queue, self.lease, ACTOR, self.clock, self._next_attempt, log)
        reporter = QueueReporter(self.lease, claims.batch)
        ids = [one.request_id for one in due]
        try:
            with self.storage.writing() as session:
                self.may_hold_ids = True
                claims.resume([one.request_id for one in due if one.state in _INTERRUPTED and not self._is_ours(one)])
                carried = self._carried(session, claims, ids, waiting, Work(self.threads, reporter))
        except (LeaseLost, WorkspaceBusy):
            raise  # nothing is wrong with the requests
        except (ErasableError, OSError, MemoryError) as error:
            log("erasing failed", error=type(error).__name__, **in_words(error))
            reason = next((_REASONS[kind] for kind in type(error).__mro__ if kind in _REASONS), "an unexpected error")
            tried = [one.request_id for one in claims.begin(ids)]
            joined = [one.request_id for one in self.queue.history.in_states(_INTERRUPTED) if claims.has_begun(one)]
            retry = self._once_there_is_room if isinstance(error, DiskFull) else None
            claims.fail([*dict.fromkeys([*tried, *joined])], reason, again=tried, retry=retry)
        else:
            claims.end(carried.outcomes, carried.rejected)
            claims.fail(sorted(carried.set_aside), NOT_CERTIFIED, again=ids)
            # Every attempt ends with an event: otherwise it would be repeated for ever.
            untold = [one for one in ids if one not in carried.told]
            left = [one.request_id for one in self.queue.history.some(untold) if one.state in _INTERRUPTED]
            claims.fail(left, _CAME_TO_NOTHING)
        reporter.clear()

    def _carried(
        self, session: Session, claims: RequestClaims, ids: Sequence[str], waiting: Sequence[Request], work: Work
    ) -> Carried:
        refuse_broken_documents(session)
        take_over(session, claims)
        look_back(session, claims, ids)
        due = begin(session, claims, ids)
        others = self.queue.subjects([one.request_id for one in waiting if one.request_id not in ids])
        outside = Outside(do_not_learn=self.do_not_learn)
        open_list = open_list_of(session, outside.listing, erasing=True)
        refuse_unusable(lists_of(open_list, session.path), session.path)
        remember(session, open_list)
        # The legal deadline does not wait for someone to notice that the machine was updated: train again here.
        manner = Manner(open_list, outside, rerun=bool(made_elsewhere(session.state())))
        return erase(session, claims, due, others, manner, work)

    def _resumable(self, interrupted: Sequence[Request]) -> list[Request]:
        """Return the interrupted requests, and give up those that too many workers have ended on."""
        too_often = [one for one in interrupted if not self._is_ours(one) and one.attempts >= self.settings.attempts]

        def give_up(connection: Connection) -> None:
            for one in too_often:
                facts = {"reason": _ENDED_WORKERS, "retry_at": None}
                self.queue.advance(one.request_id, "failed", ACTOR, self.clock(), facts)

        if too_often:
            self.lease.change(give_up)
        return [one for one in interrupted if one not in too_often]

    def _is_ours(self, request: Request) -> bool:
        """Whether a request was begun or resumed under this lease: then it did not crash a worker, it only waits."""
        return any(event.facts.get("lease") == self.lease.number for event in request.events)

    def _once_there_is_room(self, request: Request) -> datetime:
        """Return when to try again on a full disk, however often that was: the request is not at fault."""
        return self.clock() + timedelta(seconds=self.settings.retry_seconds)

    def _next_attempt(self, request: Request) -> datetime | None:
        """Return when to retry a failure, after longer and longer pauses; None if the attempts are used up."""
        if request.attempts + 1 >= self.settings.attempts:
            return None
        pause = timedelta(seconds=self.settings.retry_seconds) * _SLOWER ** min(request.attempts, 10)
        return self.clock() + min(_SLOWEST, pause)


def _apart_if_often(requests: Sequence[Request]) -> list[list[Request]]:
    """Return requests that failed at most once as one batch, and each of the others by itself.

    A fault in one must not keep the others waiting.
    """
    often = [one for one in requests if one.attempts > 1]
    return [part for part in ([one for one in requests if one not in often], *([one] for one in often)) if part]


_PAUSE = 0.2
_NICENESS = 10
_FAILURE_SECONDS = 1.0


@dataclass(frozen=True)
class WorkerOptions:
    """Where a worker works, and how."""

    folder: Path
    settings: ServiceSettings
    do_not_learn: DoNotLearnFiles | None = None
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
            self.queue, self.lease, self.storage, options.settings, options.clock, self._threads, options.do_not_learn
        )
        self.syncer = Syncer(
            self.queue, self.lease, self.storage, options.settings, options.clock, self._threads, options.do_not_learn
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
            or self._sync()
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
        return self._learn_waiting()

    def _sync(self) -> bool:
        """Make the workspace equal to the export, if it is time for that or someone asked for it."""
        asked = self.syncer.due()
        if asked is None:
            return False
        # What came in before is learned before: afterwards it might be learned twice, from the export and from here.
        self._learn_waiting()
        self.syncer.carry_out(asked)
        return True

    def _learn_waiting(self) -> bool:
        intake = Intake(self.database)
        self._learned, waiting = time.monotonic(), self._still_waiting(intake)
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

    def _still_waiting(self, intake: Intake) -> ToLearn | None:
        """Return what waits, without what a worker that was killed had learned: weights would count twice."""
        waiting, begun = intake.waiting(), self.queue.history.last_event("learning", "learned more")
        if waiting is None or begun is None or begun.name != "learning":
            return waiting
        with self.storage.reading() as session:
            if not has_learned(session, begun.facts["taken_in"]):
                return waiting
        done = [number for number in waiting.numbers if number <= begun.facts["until"]]

        def drop(connection: Connection) -> None:
            intake.drop(done)
            self._note("learned more", {"interactions": len(done), "users": 0})

        self.lease.change(drop)
        return intake.waiting()

    def _learned_from(self, waiting: ToLearn, reporter: QueueReporter) -> LearnedMore | None:
        """Learn more; None if that failed, which is recorded."""
        inputs, work = Inputs(do_not_learn=self.options.do_not_learn), Work(self._threads, reporter)
        taken_in = None
        try:
            with self.storage.reading() as session:
                state = session.state()
            if state.dataset.config.weighed:
                inputs, taken_in = replace(inputs, columns=WEIGHT_TAKEN_IN), secrets.token_hex(16)
                self._note("learning", {"taken_in": taken_in, "until": max(waiting.numbers)})
            return learn_more(self.storage, waiting.table, inputs, work, bool(made_elsewhere(state)), taken_in)
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
            if worker.eraser.may_hold_ids:
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
