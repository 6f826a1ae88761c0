"""Carrying out what is due: requests are taken from the queue, erased, and what came of it is written down."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from erasable.errors import (
    DiskFull,
    ErasableError,
    LeaseLost,
    ListUnusable,
    WorkspaceBusy,
    WorkspaceDamaged,
    WorkspaceError,
)
from erasable.operations import Home, Outside, Work
from erasable.operations.broken_papers import refuse_broken_papers
from erasable.operations.desk import NOT_CERTIFIED, Desk
from erasable.operations.do_not_learn import lists_of, refuse_unusable, remember, roll_of
from erasable.operations.erase import Carried, Manner, erase
from erasable.operations.home import Session
from erasable.operations.recovery import begin, look_back, take_over, unknown_to
from erasable.proof import read_search
from erasable.proof.suppression import Suppression
from erasable.requests import Request
from erasable.requests.database import Connection
from erasable.requests.lease import Lease
from erasable.requests.lifecycle import RequestState
from erasable.requests.progress import QueueReporter
from erasable.requests.queue import Queue, SealsEnded
from erasable.requests.request import DISK_FULL
from erasable.service.clock import Clock
from erasable.service.logs import in_words, log
from erasable.service.settings import ServiceSettings
from erasable.training import made_elsewhere

ACTOR = "worker"
_INTERRUPTED: tuple[RequestState, ...] = ("erasing", "certifying")
_CAME_TO_NOTHING = "nothing came of it: look at the log of the service, then try again"
_ENDED_WORKERS = "the worker ended again and again while it was carried out: look at the log of the service"
_SLOWER = 4  # each wait for the next attempt is so many times the one before
_SLOWEST = timedelta(hours=6)
_TIME_TO_TAKE_BACK = timedelta(days=1)
_REASONS: Mapping[type[Exception], str] = {
    ListUnusable: "the do-not-learn list or its key is missing or damaged: restore it from its newest copy, or name "
    "another with erasable forget DIR --resume --do-not-learn LIST --do-not-learn-key KEY",
    DiskFull: DISK_FULL,
    WorkspaceDamaged: "a file of the workspace is damaged: run erasable verify",
    WorkspaceError: "the workspace can't be used: look at the log of the service",
    MemoryError: "there is too little memory: give the service more",
}
"""What is said of a failure; the errors themselves may name people."""


@dataclass
class Eraser:
    """Carries out requests, as the holder of the lease."""

    queue: Queue
    lease: Lease
    home: Home
    settings: ServiceSettings
    clock: Clock
    threads: int
    suppression: Suppression | None = None
    has_erased: bool = False
    """Whether someone was erased or certified: then ids are in the memory of this process."""

    def resume(self) -> bool:
        """Go on with what was begun and not finished, or failed and is to be tried again; say whether there was any."""
        now = self.clock()
        interrupted = self.queue.history.in_states(_INTERRUPTED)
        failed = [one for one in self.queue.history.in_states(["failed"]) if one.retry_at and one.retry_at <= now]
        for together in (*_apart_if_often(self._resumable(interrupted)), *_apart_if_often(failed)):
            self._carry_out(together)
        return bool(interrupted or failed)

    def finish_others(self) -> bool:
        """Finish what an earlier release has begun in the workspace and left; say whether there was any."""
        with self.home.reading() as session:
            search = read_search(session.papers().pending)
        if not search.accepted and not unknown_to(self.queue, search):
            return False
        self._carry_out([])
        return True

    def seal_ended(self) -> bool:
        """Seal requests that have ended, once there are enough, and delete them from the queue; say whether it was so.

        Each erasure searches the queue's file, so it must not grow with those that were ever carried out. Nothing is
        searched here, where nobody knows any more who asked: these rows lay there when the erasure of each of these
        people searched it. What came since is how it ended, and that names nobody.
        """
        database = self.queue.database
        if not isinstance(database, SealsEnded):
            return False
        ended = self.queue.to_seal()
        if ended:
            with self.home.writing() as session:
                session.amend(replace(session.papers(), requests=database.sealed_with(ended)))
        elif not database.sealed_twice():
            return False
        self.lease.change(lambda connection: database.delete_sealed())
        self.queue.database.wipe()
        log("ended requests sealed", requests=len(ended))
        return True

    def carry_out_due(self) -> bool:
        """Carry out the requests that are due, and those that are best done with them; say whether there were any.

        Who has asked just now is not among these: there is time to take it back.
        """
        now = self.clock()
        due = self.queue.due(now)
        if due:
            waiting = self.queue.history.in_states(["suppressed"])
            self._carry_out(due, [one for one in waiting if one.received <= now - _TIME_TO_TAKE_BACK])
        return bool(due)

    def _carry_out(self, due: Sequence[Request], waiting: Sequence[Request] = ()) -> None:
        """Carry out requests in one session, and write down what came of them."""
        desk = Desk(self.queue, self.lease, ACTOR, self.clock, self._next_attempt, log)
        reporter = QueueReporter(self.lease, desk.batch)
        ids = [one.request_id for one in due]
        try:
            with self.home.writing() as session:
                self.has_erased = True
                desk.resume([one.request_id for one in due if one.state in _INTERRUPTED and not self._is_ours(one)])
                carried = self._carried(session, desk, ids, waiting, Work(self.threads, reporter))
        except (LeaseLost, WorkspaceBusy):
            raise  # nothing is wrong with the requests
        except (ErasableError, OSError, MemoryError) as error:
            log("erasing failed", error=type(error).__name__, **in_words(error))
            reason = next((_REASONS[kind] for kind in type(error).__mro__ if kind in _REASONS), "an unexpected error")
            tried = [one.request_id for one in desk.begin(ids)]
            joined = [one.request_id for one in self.queue.history.in_states(_INTERRUPTED) if desk.has_begun(one)]
            retry = self._once_there_is_room if isinstance(error, DiskFull) else None
            desk.fail([*dict.fromkeys([*tried, *joined])], reason, again=tried, retry=retry)
        else:
            desk.end(carried.outcomes, carried.rejected)
            desk.fail(sorted(carried.set_aside), NOT_CERTIFIED, again=ids)
            # Whatever is tried ends with an event: else it would be tried for ever.
            untold = [one for one in ids if one not in carried.told]
            left = [one.request_id for one in self.queue.history.some(untold) if one.state in _INTERRUPTED]
            desk.fail(left, _CAME_TO_NOTHING)
        reporter.clear()

    def _carried(
        self, session: Session, desk: Desk, ids: Sequence[str], waiting: Sequence[Request], work: Work
    ) -> Carried:
        refuse_broken_papers(session)
        take_over(session, desk)
        look_back(session, desk, ids)
        due = begin(session, desk, ids)
        others = self.queue.subjects([one.request_id for one in waiting if one.request_id not in ids])
        outside = Outside(suppression=self.suppression)
        roll = roll_of(session, outside.listing, erasing=True)
        refuse_unusable(lists_of(roll))
        remember(session, roll)
        # A law that has to be kept does not wait for someone to notice that the machine was updated.
        manner = Manner(roll, outside, rerun=bool(made_elsewhere(session.state())))
        return erase(session, desk, due, others, manner, work)

    def _resumable(self, interrupted: Sequence[Request]) -> list[Request]:
        """Return what another worker had begun, less what has ended too many workers."""
        too_often = [one for one in interrupted if not self._is_ours(one) and one.attempts >= self.settings.attempts]

        def give_up(connection: Connection) -> None:
            for one in too_often:
                facts = {"reason": _ENDED_WORKERS, "retry_at": None}
                self.queue.advance(one.request_id, "failed", ACTOR, self.clock(), facts)

        if too_often:
            self.lease.change(give_up)
        return [one for one in interrupted if one not in too_often]

    def _is_ours(self, request: Request) -> bool:
        """Whether a request was begun, or gone on with, under this lease: then it ended no worker, it has to wait."""
        return any(event.facts.get("lease") == self.lease.number for event in request.events)

    def _once_there_is_room(self, request: Request) -> datetime:
        """Return when it is looked for room again: a full disk is nobody's fault, and all goes on by itself."""
        return self.clock() + timedelta(seconds=self.settings.retry_seconds)

    def _next_attempt(self, request: Request) -> datetime | None:
        """Return when what fails is tried again, after longer and longer pauses; None if it was tried often enough."""
        if request.attempts + 1 >= self.settings.attempts:
            return None
        pause = timedelta(seconds=self.settings.retry_seconds) * _SLOWER ** min(request.attempts, 10)
        return self.clock() + min(_SLOWEST, pause)


def _apart_if_often(requests: Sequence[Request]) -> list[list[Request]]:
    """Return what came to nothing once together, and what did so more often each by itself.

    What is wrong with one must not keep others waiting.
    """
    often = [one for one in requests if one.attempts > 1]
    return [part for part in ([one for one in requests if one not in often], *([one] for one in often)) if part]
