"""The desk: where whoever holds the lease takes requests from the queue, and writes down what came of them."""

import secrets
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from erasable.errors import Said, said
from erasable.requests import Request
from erasable.requests.database import Connection
from erasable.requests.lease import Lease
from erasable.requests.lifecycle import RequestState
from erasable.requests.queue import NOTHING_LEFT, Queue

_PAUSE = timedelta(minutes=1)
Retry = Callable[[Request], datetime | None]
"""Says when what failed is tried again; None: when someone has looked at it."""


NOT_CERTIFIED = said(
    "the data is erased, but a file of the workspace still holds the person: ",
    Said("forget([])", "erasable forget DIR --resume"),
    " says which; remove it, or change the label of the token (",
    Said("token rename", "erasable token rename"),
    ")",
).of_command
"""What is written down of a residue: where it was found may name people, and stands in the search file alone."""
COMMAND, LIBRARY = "command", "library"
"""In whose name requests are submitted that are carried out at once."""


def of_commands(request: Request) -> bool:
    """Whether a request came by command or from the library."""
    return request.events[0].actor in (COMMAND, LIBRARY)


def joined_by(request: Request) -> list[str]:
    """Return in whose name others have joined a request, once for each time."""
    return [event.actor for event in request.events if event.name == "joined"]


def of_commands_alone(request: Request) -> bool:
    """Whether nobody but commands and the library asked for it."""
    return {request.events[0].actor, *joined_by(request)} <= {COMMAND, LIBRARY}


def _after_a_pause(request: Request) -> datetime | None:
    return datetime.now(UTC) + _PAUSE


def _untold(what: str, **facts: object) -> None:
    """Tell nobody."""


@dataclass(frozen=True)
class Desk:
    """The queue as the holder of the lease uses it, in somebody's name."""

    queue: Queue
    lease: Lease
    actor: str
    clock: Callable[[], datetime] = field(default=lambda: datetime.now(UTC))
    retry: Retry = _after_a_pause
    tell: Callable[..., None] = _untold
    """Who hears of each change."""
    batch: str = field(default_factory=lambda: secrets.token_hex(8))

    def begin(self, request_ids: Sequence[str]) -> list[Request]:
        """Begin requests and return those, with who asked and for what, which nobody can widen from now on.

        Not those that were taken back, or put on hold, since they were chosen.
        """
        if not request_ids:
            return []
        begun = self.queue.claim(self.lease, request_ids, self.actor, self.clock(), {"batch": self.batch})
        self.tell("requests begun", batch=self.batch, requests=len(begun))
        return begun

    def has_begun(self, request: Request) -> bool:
        """Whether a request was begun, or gone on with, in this batch."""
        return any(event.facts.get("batch") == self.batch for event in request.events)

    def resume(self, request_ids: Sequence[str]) -> None:
        """Write down that what another process had begun is gone on with here."""
        facts = {"batch": self.batch, "lease": self.lease.number}

        def note(connection: Connection) -> None:
            for request_id in request_ids:
                self.queue.note(request_id, "resumed", self.actor, self.clock(), facts)

        if request_ids:
            self.lease.change(note)

    def planned(self, facts: Mapping[str, Any]) -> None:
        """Write down what the batch does, once for all who are in it."""
        told = {"batch": self.batch, **facts}
        self.lease.change(lambda _: self.queue.note(None, "planned", self.actor, self.clock(), told))

    def forget(self, erased: Sequence[Request]) -> None:
        """Have the queue forget who asked, since their data is gone, and let nothing of it be left in its files.

        What failed after that has been forgotten already, and goes on waiting.
        """
        ids = [one.request_id for one in erased]
        kept = {one.request_id for one in self.queue.subjects(ids)}
        set_aside = {one.request_id for one in self.queue.history.some(ids) if one.state == "failed"} - kept
        going = [one for one in erased if one.request_id not in set_aside]
        struck = self.lease.change(lambda _: self.queue.forget_subjects(going, self.actor, self.clock()))
        if struck:
            self.tell("remarks struck out that named someone", remarks=struck)
        self.queue.database.wipe()

    def asked_by_command(self, request_ids: Sequence[str]) -> set[str]:
        """Return which requests came by command or from the library; what the queue does not know did too."""
        known = self.queue.history.some(request_ids)
        return {*request_ids}.difference(one.request_id for one in known if not of_commands(one))

    def end(self, outcomes: Mapping[str, Mapping[str, Any]], rejected: Sequence[str] = ()) -> None:
        """Write down what is certified, and what nothing is held of."""

        def end(connection: Connection) -> None:
            for one in self.queue.history.some([*outcomes, *rejected]):
                if one.open and one.request_id in outcomes:
                    self._change(one, "erased", outcomes[one.request_id])
                elif one.open:
                    self._change(one, "rejected", {"reason": NOTHING_LEFT})

        if outcomes or rejected:
            self.lease.change(end)
        if rejected:
            self.queue.database.wipe()

    def fail(
        self, request_ids: Sequence[str], reason: str, again: Collection[str] = (), retry: Retry | None = None
    ) -> None:
        """Write down that requests came to nothing, and when they are tried again.

        What has failed before and was only looked at in passing goes on waiting, unless it was tried again.
        """
        next_attempt = retry or self.retry

        def fail(connection: Connection) -> None:
            for one in self.queue.history.some(request_ids):
                if one.open and (one.state != "failed" or one.request_id in again):
                    retry_at = next_attempt(one)
                    facts = {"reason": reason, "retry_at": retry_at.isoformat() if retry_at else None}
                    self._change(one, "failed", facts)

        if request_ids:
            self.lease.change(fail)

    def give_back(self, request_ids: Sequence[str], is_withdrawn: Callable[[Request], bool]) -> list[str]:
        """Give back what was begun and is not erased, withdraw what nobody else asked for, and return which.

        Who has joined a request was told that it is carried out: so what is withdrawn is decided by its events.
        """

        def give_back(connection: Connection) -> list[str]:
            found = [one for one in self.queue.history.some(request_ids) if one.open]
            withdrawn = [one for one in found if is_withdrawn(one)]
            for one in found:
                if one.state == "erasing" or (one.state == "failed" and one in withdrawn):
                    self._change(one, "suppressed")
            for one in withdrawn:
                self._change(one, "withdrawn")
            return [one.request_id for one in withdrawn]

        withdrawn = self.lease.change(give_back)
        if withdrawn:
            self.queue.database.wipe()
        return withdrawn

    def _change(self, request: Request, state: RequestState, facts: Mapping[str, Any] | None = None) -> None:
        self.queue.advance(request.request_id, state, self.actor, self.clock(), facts)
        self.tell("request changed", request_id=request.request_id, state=state)
