"""Reception: requests come in, and whoever asks is not served any more from that moment on."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from erasable.errors import UnknownUser, WrongUse
from erasable.operations import Live
from erasable.service.clock import Clock
from erasable.service.filed import Filing
from erasable.service.intake import Intake
from erasable.service.logs import log
from erasable.service.requests import Requests
from erasable.store.ledger import Ledger
from erasable.unlearning import Request

ACTOR = "service"
_LONG = 8  # shorter ids are looked for where ids stand, not in sentences


class Reception:
    """Takes requests in, and keeps those who asked from being served, in memory and over restarts."""

    def __init__(self, ledger: Ledger, live: Live, clock: Clock) -> None:
        self._requests = Requests(ledger)
        self._intake = Intake(ledger)
        self._ledger = ledger
        self._live = live
        self._clock = clock
        self._lock = threading.Lock()

    def file(self, request: Request, actor: str) -> Filing:
        """Take a request in; when this returns the person is not served any more."""
        with self.filing(request, actor) as filing:
            return filing

    @contextmanager
    def filing(self, request: Request, actor: str) -> Iterator[Filing]:
        """Take a request in; what the block adds to the ledger becomes durable together with it, or none of it does."""
        held = self._is_held(request)
        with self._lock, self._ledger.writing():
            filing = self._requests.file(request, held, actor, self._clock())
            if not filing.rejected:
                self._suppress()
            yield filing
        log("request joined" if filing.joined else "request received", request_id=filing.request_id)

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
        """Refuse a reason that names someone who is known: it stays, and would be found when that person is erased."""
        known = self._live.knowledge.groups
        if reason and any(user in reason for group in known for user in group.users.texts() if len(user) >= _LONG):
            raise WrongUse("the reason names someone, and it is kept for good: say it without the id")

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
