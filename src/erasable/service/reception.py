"""Reception: requests come in, and whoever asks is suppressed, or served without some items, from that moment on."""

import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import TypeVar

from erasable.errors import UnknownUser, WorkspaceError, WrongUse
from erasable.operations import Live
from erasable.requests.asked import NOBODY_ASKED, Asked
from erasable.requests.database import Connection
from erasable.requests.decisions import Decisions
from erasable.requests.intake import Intake
from erasable.requests.queue import LONG, SERVICE, Queue
from erasable.requests.request import LIMIT, Request, Submission
from erasable.service.clock import Clock
from erasable.service.logs import log
from erasable.service.settings import DEFAULT_SETTINGS, ServiceSettings

T = TypeVar("T")
OVER_LIMIT = "one token asked for more people in a day than it may: an officer has to release it"
_DAY = timedelta(days=1)


class _Behind(Exception):
    """Something has become current since it was last looked at."""


class Reception:
    """Takes requests in, and keeps what was asked for from being served, in memory and over restarts."""

    def __init__(self, queue: Queue, live: Live, clock: Clock, settings: ServiceSettings = DEFAULT_SETTINGS) -> None:
        self._queue = queue
        self._decisions = Decisions(queue)
        self._intake = Intake(queue.database)
        self._live = live
        self._clock = clock
        self._settings = settings
        self._lock = threading.Lock()
        self._looking = threading.Lock()
        self._lately = NOBODY_ASKED  # since the queue was last begun to be read

    def submit(self, request: Request, actor: str, reference: str | None = None, unaware: bool = False) -> Submission:
        """Take a request in; when this returns the person is not served any more, or not with what was asked for."""
        return self.submit_and(request, actor, lambda submission: submission, reference, unaware)

    def submit_and(
        self,
        request: Request,
        actor: str,
        answer: Callable[[Submission], T],
        reference: str | None = None,
        unaware: bool = False,
    ) -> T:
        """Take a request in and return the answer; what that adds to the queue becomes durable together with it.

        What goes beyond the limit of a token is put on hold: the person is suppressed, and an officer decides.
        """

        def take_in(connection: Connection) -> tuple[T, Submission, int | None]:
            submission = self._queue.submit(request, self._is_held(request), actor, self._clock(), reference, unaware)
            limit = None
            if not submission.rejected:
                asked = Asked.of([request])
                self._live.withhold_also(asked)
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
        """Take a request in, by what is current; that is read beforehand, while others can submit."""
        while True:
            self._live.catch_up()
            with self._lock, suppress(_Behind):
                return self._queue.database.change(take_in)

    def _limit_passed(self, actor: str) -> int | None:
        """Return how many people an actor may ask for in a day, if that many or more were asked for before this one."""
        people = sum(len(group.users) for group in self._live.knowledge.groups)
        limit = self._settings.daily_limit(people)
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
            self._live.withhold_asked(self._asked())

    def follow(self) -> None:
        """Serve what is current, without what open requests ask for."""
        self.suppress()
        self._live.follow()

    def suppress(self) -> None:
        """Serve nobody whose request is open now, or not with the items that it asks for.

        Others can submit while the queue is read: what they ask for is remembered.
        """
        with self._looking:  # one after the other: what came in since the first began is the first one's to add
            with self._lock:
                self._lately = NOBODY_ASKED  # what came in before is durable, and is read now
            asked = self._asked()
            with self._lock:
                self._live.withhold_asked(asked | self._lately)

    def _asked(self) -> Asked:
        try:
            return self._queue.asked()
        except WorkspaceError as error:
            self._live.serve_nobody(error)
            raise

    def _refuse_names(self, reason: str | None) -> None:
        """Refuse a reason that names someone who is known: who looks at a request must not learn of anyone else."""
        known = self._live.knowledge.groups
        if reason and any(user in reason for group in known for user in group.users.texts() if len(user) >= LONG):
            raise WrongUse("the reason names someone: say it without the id")

    def _is_held(self, request: Request) -> bool:
        """Whether something of what is to be erased is held; asked inside the change, so nothing goes meanwhile."""
        # In this order: what is learned is current before it leaves the intake, and followed before it is looked for.
        if self._intake.holds(request):
            return True
        if self._live.is_behind:
            raise _Behind
        return self._is_served(request)

    def _is_served(self, request: Request) -> bool:
        try:
            held = self._live.knowledge.items_of(request.user)
        except UnknownUser:
            return False
        return request.items is None or any(item in held for item in request.items)
