"""Carrying out what is due: requests are taken from the queue, the people erased, and the outcome recorded."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from erasable.chain.chain import made_elsewhere
from erasable.errors import (
    DiskFull,
    ErasableError,
    LeaseLost,
    ListUnusable,
    WorkspaceBusy,
    WorkspaceDamaged,
    WorkspaceError,
)
from erasable.operations.claims import NOT_CERTIFIED, RequestClaims
from erasable.operations.do_not_learn import Outside, lists_of, refuse_unusable, remember, roll_of
from erasable.operations.erase import Carried, Manner, erase
from erasable.operations.recovery import begin, look_back, refuse_broken_documents, take_over, unknown_to
from erasable.operations.storage import Session, Storage
from erasable.operations.work import Work
from erasable.proof.do_not_learn import Suppression
from erasable.proof.search_file import read_search
from erasable.requests.database import Connection
from erasable.requests.lease import Lease, QueueReporter
from erasable.requests.queue import Queue, SealsEnded
from erasable.requests.request import DISK_FULL, Request, RequestState
from erasable.service.settings import Clock, ServiceSettings, in_words, log

ACTOR = "worker"
_INTERRUPTED: tuple[RequestState, ...] = ("erasing", "certifying")
_CAME_TO_NOTHING = "the attempt had no result: look at the service's output (standard error), then try again"
_ENDED_WORKERS = "the worker ended again and again while carrying it out: look at the service's output (standard error)"
_SLOWER = 4  # each pause before the next attempt is this many times the one before
_SLOWEST = timedelta(hours=6)
_TIME_TO_TAKE_BACK = timedelta(days=1)
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
    suppression: Suppression | None = None
    has_erased: bool = False
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

        A request less than a day old does not join them: there is time to take it back.
        """
        now = self.clock()
        due = self.queue.due(now)
        if due:
            waiting = self.queue.history.in_states(["suppressed"])
            self._carry_out(due, [one for one in waiting if one.received <= now - _TIME_TO_TAKE_BACK])
        return bool(due)

    def _carry_out(self, due: Sequence[Request], waiting: Sequence[Request] = ()) -> None:
        """Carry out requests in one session, and record the outcome."""
        claims = RequestClaims(self.queue, self.lease, ACTOR, self.clock, self._next_attempt, log)
        reporter = QueueReporter(self.lease, claims.batch)
        ids = [one.request_id for one in due]
        try:
            with self.storage.writing() as session:
                self.has_erased = True
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
        outside = Outside(suppression=self.suppression)
        roll = roll_of(session, outside.listing, erasing=True)
        refuse_unusable(lists_of(roll))
        remember(session, roll)
        # The legal deadline does not wait for someone to notice that the machine was updated: train again here.
        manner = Manner(roll, outside, rerun=bool(made_elsewhere(session.state())))
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
        """Whether a request was begun or resumed under this lease: then it ended no worker, it only has to wait."""
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
