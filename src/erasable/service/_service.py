"""The service: takes requests in, suppresses whoever asks, and holds what its routes work with."""

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

from erasable.errors import DiskFull, UnknownUser, WorkspaceError, WrongUse
from erasable.operations.live import Live
from erasable.operations.people import NOT_SERVED, SERVED_WITHOUT, Meanwhile, can_serve_without
from erasable.operations.storage import DiskStorage
from erasable.requests.database import Connection, Database
from erasable.requests.decisions import Decisions, Intake
from erasable.requests.history import History, Totals
from erasable.requests.opening import open_database
from erasable.requests.queue import SERVICE, SHORTEST_PART, Queue
from erasable.requests.request import DISK_FULL, LIMIT, NOBODY_ASKED, SOME, Asked, Request, Submission
from erasable.requests.tokens import Answers, Tokens
from erasable.service.settings import DEFAULT_SETTINGS, Clock, ServiceSettings, log, universal_time
from erasable.workspace.files import refuse_if_full

T = TypeVar("T")
OVER_LIMIT = "one token asked for more people in a day than it may: an officer has to release it"
_DAY = timedelta(days=1)
_SHOWN = 50  # of the requests that need action, at most
_LEAST_ROOM = 1_000_000  # bytes; a few more requests may fit into the queue's write-ahead log, but no erasure does


class _Behind(Exception):
    """A newer version has become current and is not loaded yet."""


class Reception:
    """Takes requests in, and keeps what was asked for suppressed, in memory and across restarts."""

    def __init__(self, queue: Queue, live: Live, clock: Clock, settings: ServiceSettings = DEFAULT_SETTINGS) -> None:
        self._queue = queue
        self._decisions = Decisions(queue)
        self._intake = Intake(queue.database)
        self._live = live
        self._clock = clock
        self._settings = settings
        self._lock = threading.Lock()
        self._looking = threading.Lock()
        self._lately = NOBODY_ASKED  # asked for since the last read of the queue began

    def submit(self, request: Request, actor: str, reference: str | None = None, unaware: bool = False) -> Submission:
        """Take a request in; when this returns the person is not served any more, or not with the items asked for."""
        return self.submit_and(request, actor, lambda submission: submission, reference, unaware)

    def submit_and(
        self,
        request: Request,
        actor: str,
        answer: Callable[[Submission], T],
        reference: str | None = None,
        unaware: bool = False,
    ) -> T:
        """Take a request in and return the answer; what the answer adds to the queue is committed with the request.

        A request beyond the daily limit of a token is put on hold: the person is suppressed, and an officer decides.
        """

        def take_in(connection: Connection) -> tuple[T, Submission, int | None]:
            submission = self._queue.submit(request, self._is_held(request), actor, self._clock(), reference, unaware)
            limit = None
            if not submission.rejected:
                asked = Asked.of([request])
                self._live.suppress_also(asked)
                self._lately |= asked
            if not submission.rejected and not submission.joined:
                limit = self._limit_passed(actor)
            if limit is not None:
                facts = {LIMIT: limit, "reason": OVER_LIMIT}
                self._queue.advance(submission.request_id, "on hold", SERVICE, self._clock(), facts)
            return answer(submission), submission, limit

        answered, submission, limit = self._taken_in(take_in)
        log("request joined" if submission.joined else "request received", request_id=submission.request_id)
        if limit is not None:
            log("limit of a token passed", request_id=submission.request_id, actor=actor, limit=limit)
        return answered

    def _taken_in(self, take_in: Callable[[Connection], T]) -> T:
        """Check a request against the current version; it is loaded outside the lock, so that nobody waits for it."""
        while True:
            self._live.catch_up()
            with self._lock, suppress(_Behind):
                return self._queue.database.change(take_in)

    def _limit_passed(self, actor: str) -> int | None:
        """Return the daily limit of an actor if this request goes beyond it."""
        limit = self._settings.daily_limit(self._live.dataset.users)
        asked = self._queue.history.submitted_since(actor, self._clock() - _DAY)
        return limit if asked > limit else None

    def hold(self, request_id: str, actor: str, reason: str | None) -> None:
        """Put a request on hold: it is not carried out, and the person stays suppressed."""
        self._refuse_names(reason)
        self._decisions.hold(request_id, reason, actor, self._clock())

    def extend(self, request_id: str, actor: str, reason: str) -> None:
        """Extend the legal month by two, once."""
        self._refuse_names(reason)
        self._decisions.extend(request_id, reason, actor, self._clock())

    def withdraw(self, request_id: str, actor: str, reason: str | None) -> None:
        """Take a request back; the person is served again."""
        self._refuse_names(reason)
        with self._lock:
            self._decisions.withdraw(request_id, reason, actor, self._clock())
            self._live.suppress_asked(self._asked())

    def follow(self) -> None:
        """Serve the current version, without what open requests ask for."""
        self.suppress()
        self._live.follow()

    def suppress(self) -> None:
        """Suppress everyone whose request is open now, or the items that it asks for.

        Others can submit while the queue is read: what they ask for is added.
        """
        with self._looking:  # one read at a time: each resets what came in since it began
            with self._lock:
                self._lately = NOBODY_ASKED  # what came in before is in the queue, and is read now
            asked = self._asked()
            with self._lock:
                self._live.suppress_asked(asked | self._lately)

    def _asked(self) -> Asked:
        try:
            return self._queue.asked()
        except WorkspaceError as error:
            self._live.serve_nobody(error)
            raise

    def _refuse_names(self, reason: str | None) -> None:
        """Refuse a reason that names a user: whoever reads a request must not learn of anyone else."""
        buckets = self._live.dataset.buckets if reason else ()
        if reason and any(
            user in reason for bucket in buckets for user in bucket.users.texts() if len(user) >= SHORTEST_PART
        ):
            raise WrongUse("the reason names someone: say it without the id")

    def _is_held(self, request: Request) -> bool:
        """Whether anything to be erased is held; called inside the transaction, so that nothing vanishes meanwhile."""
        # In this order: learned rows are current before they leave the intake, and loaded before they are looked for.
        if self._intake.holds(request):
            return True
        if self._live.is_behind:
            raise _Behind
        return self._is_served(request)

    def _is_served(self, request: Request) -> bool:
        try:
            held = self._live.dataset.items_of(request.user)
        except UnknownUser:
            return False
        return request.items is None or any(item in held for item in request.items)


@dataclass(frozen=True)
class Service:
    """A workspace that is served."""

    folder: Path
    storage: DiskStorage
    queue: Queue
    live: Live
    settings: ServiceSettings = DEFAULT_SETTINGS
    clock: Clock = universal_time
    decisions: Decisions = field(init=False)
    tokens: Tokens = field(init=False)
    answers: Answers = field(init=False)
    intake: Intake = field(init=False)
    reception: Reception = field(init=False)

    def __post_init__(self) -> None:
        parts = {
            "decisions": Decisions(self.queue),
            "tokens": Tokens(self.database),
            "answers": Answers(self.database),
            "intake": Intake(self.database),
            "reception": Reception(self.queue, self.live, self.clock, self.settings),
        }
        for name, part in parts.items():
            object.__setattr__(self, name, part)

    @property
    def database(self) -> Database:
        """Where the queue lies."""
        return self.queue.database

    @property
    def history(self) -> History:
        """The requests and their events."""
        return self.queue.history

    def suppressed(self) -> frozenset[str]:
        """Return the people who are not served because of an open request, and whose data may still be there."""
        return self.live.not_served(self.queue.asked())

    def places(self, erasure_request: Request) -> tuple[str, ...]:
        """Return where residue of the person is found, if that keeps a request from being certified."""
        return self.live.places.get(erasure_request.request_id, ()) if erasure_request.state == "failed" else ()

    def meanwhile(self, erasure_request: Request, user: str | None = None) -> Meanwhile | None:
        """Say what an open request means for the person, who is looked up if not given; None if it has ended."""
        if not erasure_request.open:
            return None
        if erasure_request.scope != SOME or not can_serve_without(self.live.dataset):
            return NOT_SERVED
        users = [user] if user is not None else [one.user for one in self.queue.subjects([erasure_request.request_id])]
        return NOT_SERVED if any(map(self.live.suppresses, users)) else SERVED_WITHOUT

    def problem(self) -> str | None:
        """Return what keeps the service from working; None if nothing does."""
        try:
            refuse_if_full(self.folder, _LEAST_ROOM)
        except DiskFull:
            return DISK_FULL
        return None

    @staticmethod
    def open(folder: Path, settings: ServiceSettings = DEFAULT_SETTINGS, clock: Clock = universal_time) -> "Service":
        """Open a workspace for serving; whoever has asked to be erased is not served from the beginning."""
        storage = DiskStorage(folder)
        live = Live(storage)
        queue = Queue(open_database(folder), settings)
        queue.migrate(clock())
        service = Service(folder, storage, queue, live, settings, clock)
        service.reception.follow()
        return service


@dataclass(frozen=True)
class Overview:
    """How many requests there are, and the most urgent of those that need action."""

    totals: Totals
    needs_action: Sequence[Request]
    """Past the limit, past the day of the alarm, failed for good, or beyond the limit of a token; first limit first."""


def overview(service: Service) -> Overview:
    """Return the state of the service now."""
    now = service.clock()
    totals = service.history.totals(now)
    urgent = service.history.urgent_ids("action", now, _SHOWN) if totals.urgent["action"] else []
    found = {one.request_id: one for one in service.history.some([request_id for request_id, _ in urgent])}
    return Overview(totals, [found[request_id] for request_id, _ in urgent])
