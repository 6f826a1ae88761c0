"""Reception: requests come in, and whoever asks is not served any more from that moment on."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from erasable.errors import UnknownUser
from erasable.operations import Live
from erasable.service.clock import Clock
from erasable.service.filed import Filing
from erasable.service.intake import Intake
from erasable.service.logs import log
from erasable.service.requests import Requests
from erasable.store.ledger import Ledger
from erasable.unlearning import Request

ACTOR = "service"


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

    def withdraw(self, request_id: str, actor: str, reason: str | None) -> None:
        """Take a request back; the person is served again."""
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

    def _is_held(self, request: Request) -> bool:
        # In this order: what is learned is current before it leaves the intake, and followed before it is looked for.
        if self._intake.holds(request) or self._is_served(request):
            return True
        self._live.follow()
        return self._is_served(request)

    def _is_served(self, request: Request) -> bool:
        try:
            held = self._live.knowledge.items_of(request.user)
        except UnknownUser:
            return False
        return request.items is None or any(item in held for item in request.items)
