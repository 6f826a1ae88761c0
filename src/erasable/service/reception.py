"""Reception: requests come in, and whoever asks is not served any more from that moment on."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from erasable.errors import UnknownUser, WrongUse
from erasable.operations import Live
from erasable.service.clock import Clock
from erasable.service.filed import LIMIT, PLAIN, Filing, Manner
from erasable.service.intake import Intake
from erasable.service.logs import log
from erasable.service.requests import Requests
from erasable.service.settings import DEFAULT_SETTINGS, ServiceSettings
from erasable.store.ledger import Ledger
from erasable.unlearning import Request

ACTOR = "service"
OVER_LIMIT = "one token asked for more people in a day than it may: an officer has to release it"
_DAY = timedelta(days=1)
_LONG = 8  # shorter ids are looked for where ids stand, not in sentences


class Reception:
    """Takes requests in, and keeps those who asked from being served, in memory and over restarts."""

    def __init__(self, ledger: Ledger, live: Live, clock: Clock, settings: ServiceSettings = DEFAULT_SETTINGS) -> None:
        self._requests = Requests(ledger)
        self._intake = Intake(ledger)
        self._ledger = ledger
        self._live = live
        self._clock = clock
        self._settings = settings
        self._lock = threading.Lock()

    def file(self, request: Request, actor: str, manner: Manner = PLAIN) -> Filing:
        """Take a request in; when this returns the person is not served any more."""
        with self.filing(request, actor, manner) as filing:
            return filing

    @contextmanager
    def filing(self, request: Request, actor: str, manner: Manner = PLAIN) -> Iterator[Filing]:
        """Take a request in; what the block adds to the ledger becomes durable together with it, or none of it does.

        What goes beyond the limit of a token is put on hold: the person is suppressed, and an officer decides.
        """
        held = self._is_held(request)
        limit = None
        with self._lock, self._ledger.writing():
            filing = self._requests.file(request, held, actor, self._clock(), manner)
            if not filing.rejected:
                self._suppress()
            if not filing.rejected and not filing.joined:
                limit = self._limit_passed(actor)
            if limit is not None:
                facts = {LIMIT: limit, "reason": OVER_LIMIT}
                self._requests.change(filing.request_id, "on hold", ACTOR, self._clock(), facts)
            yield filing
        log("request joined" if filing.joined else "request received", request_id=filing.request_id)
        if limit is not None:
            log("limit of a token passed", request_id=filing.request_id, actor=actor, limit=limit)

    def _limit_passed(self, actor: str) -> int | None:
        """Return how many people an actor may ask for in a day, if that many or more were asked for before this one."""
        people = sum(len(group.users) for group in self._live.knowledge.groups)
        limit = self._settings.daily_limit(people)
        asked = self._requests.accepted_since(actor, self._clock() - _DAY)
        return limit if asked > limit else None

    def hold(self, request_id: str, actor: str, reason: str | None) -> None:
        """Put a request on hold: it is not carried out, and the person stays suppressed."""
        self._refuse_names(reason)
        self._requests.hold(request_id, reason, actor, self._clock())

    def extend(self, request_id: str, actor: str, reason: str) -> None:
        """Extend the legal month by two, once."""
        self._refuse_names(reason)
        self._requests.extend(request_id, reason, actor, self._clock())

    def withdraw(self, request_id: str, actor: str, reason: str | None) -> None:
        """Take a request back; the person is served again."""
        self._refuse_names(reason)
        with self._lock:
            self._requests.withdraw(request_id, reason, actor, self._clock())
            self._suppress()

    def follow(self) -> None:
        """Serve what is current, but nobody whose request is open now."""
        with self._lock:
            self._suppress()
        self._live.follow()

    def _suppress(self) -> None:
        self._live.withhold(self._requests.suppressed_people())
        if self._requests.in_states(["accepted"]):
            with self._ledger.writing():
                for filed in self._requests.in_states(["accepted"]):
                    self._requests.change(filed.request_id, "suppressed", ACTOR, self._clock())

    def _refuse_names(self, reason: str | None) -> None:
        """Refuse a reason that names someone who is known: who looks at a request must not learn of anyone else."""
        known = self._live.knowledge.groups
        if reason and any(user in reason for group in known for user in group.users.texts() if len(user) >= _LONG):
            raise WrongUse("the reason names someone: say it without the id")

    def _is_held(self, request: Request) -> bool:
        # In this order: what is learned is current before it leaves the intake, and followed before it is looked for.
        if self._intake.holds(request):
            return True
        self._live.follow()
        return self._is_served(request)

    def _is_served(self, request: Request) -> bool:
        try:
            held = self._live.knowledge.items_of(request.user)
        except UnknownUser:
            return False
        return request.items is None or any(item in held for item in request.items)
