"""Claim requests from the queue under a lease, choose which to carry out together, wait for another worker."""

import secrets
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from erasable.chain.dataset import State
from erasable.chain.plan import known_requests
from erasable.errors import Said, said
from erasable.progress import Reporter, retelling
from erasable.requests.database import Connection
from erasable.requests.lease import Lease, holder_of, read_progress
from erasable.requests.queue import NOTHING_LEFT, Queue
from erasable.requests.request import Request, RequestState

_PAUSE = timedelta(minutes=1)
_LOOK_SECONDS = 0.5
_HARDLY = 0.1  # of what requests would cost by themselves
Retry = Callable[[Request], datetime | None]
"""Says when a failed request is tried again; None: not before someone has looked at it."""
NOT_CERTIFIED = said(
    "the data is erased, but a file of the workspace still holds the person: ",
    Said("forget([])", "erasable forget DIR --resume"),
    " says which; remove it, or change the label of the token (",
    Said("token rename", "erasable token rename"),
    ")",
).of_command
"""What the queue records of a residue: where it was found may name people, so only the search file says that."""
COMMAND, LIBRARY = "command", "library"
"""The actors of requests that are carried out at once."""


def of_commands(request: Request) -> bool:
    """Whether a request came by command or from the library."""
    return request.events[0].actor in (COMMAND, LIBRARY)


def joined_by(request: Request) -> list[str]:
    """Return the actor of each time that a request was joined."""
    return [event.actor for event in request.events if event.name == "joined"]


def of_commands_alone(request: Request) -> bool:
    """Whether only commands and the library asked for it."""
    return {request.events[0].actor, *joined_by(request)} <= {COMMAND, LIBRARY}


def _after_a_pause(request: Request) -> datetime | None:
    return datetime.now(UTC) + _PAUSE


def _untold(what: str, **facts: object) -> None:
    """Tell nobody."""


@dataclass(frozen=True)
class RequestClaims:
    """Claims requests for the holder of the lease, and records what came of them."""

    queue: Queue
    lease: Lease
    actor: str
    clock: Callable[[], datetime] = field(default=lambda: datetime.now(UTC))
    retry: Retry = _after_a_pause
    tell: Callable[..., None] = _untold
    """Called with each change."""
    batch: str = field(default_factory=lambda: secrets.token_hex(8))

    def begin(self, request_ids: Sequence[str]) -> list[Request]:
        """Begin requests and return them, with who asked and for what; nobody can extend them from now on.

        Requests that were withdrawn or put on hold since they were chosen are left out.
        """
        if not request_ids:
            return []
        begun = self.queue.claim(self.lease, request_ids, self.actor, self.clock(), {"batch": self.batch})
        self.tell("requests begun", batch=self.batch, requests=len(begun))
        return begun

    def has_begun(self, request: Request) -> bool:
        """Whether a request was begun or resumed in this batch."""
        return any(event.facts.get("batch") == self.batch for event in request.events)

    def resume(self, request_ids: Sequence[str]) -> None:
        """Record that requests begun by another process are resumed here."""
        facts = {"batch": self.batch, "lease": self.lease.number}

        def note(connection: Connection) -> None:
            for request_id in request_ids:
                self.queue.note(request_id, "resumed", self.actor, self.clock(), facts)

        if request_ids:
            self.lease.change(note)

    def planned(self, facts: Mapping[str, Any]) -> None:
        """Record the plan of the batch, once for all its requests."""
        told = {"batch": self.batch, **facts}
        self.lease.change(lambda _: self.queue.note(None, "planned", self.actor, self.clock(), told))

    def forget(self, erased: Sequence[Request]) -> None:
        """Remove from the queue who asked, since their data is gone, and wipe its files.

        A request that failed after that step was removed already, and keeps waiting.
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
        """Return which requests came by command or from the library; so did those that the queue does not know."""
        known = self.queue.history.some(request_ids)
        return {*request_ids}.difference(one.request_id for one in known if not of_commands(one))

    def end(self, outcomes: Mapping[str, Mapping[str, Any]], rejected: Sequence[str] = ()) -> None:
        """Record which requests are certified, and which are rejected because nothing is held of them."""

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
        """Record that requests failed, and when they are tried again.

        A request that had failed before keeps waiting, unless it was tried again.
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
        """Return requests that are begun and not erased to the queue, withdraw some, and return which.

        Whoever joined a request was told that it is carried out, so its events decide whether it is withdrawn.
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


def joined_cheaply(state: State, due: Sequence[Request], waiting: Sequence[Request]) -> list[Request]:
    """Return the waiting requests that cost hardly anything beside those that are due.

    A user in a group that is trained again anyway costs next to nothing now, and a training of its own later. Requests
    cost together the sum over the stages that any of them touches; no plan is made for it. Under the policy regroup
    everything is trained again anyway.
    """
    known = known_requests(waiting, state.dataset, ignore_unknown=True)
    if state.dataset.config.policy == "regroup":
        return known
    touched = _touched(state, due)
    chosen: list[Request] = []
    for stages, alike in sorted(_by_stages(state, known).items(), key=lambda kind: sorted(kind[0]), reverse=True):
        if _cost(state, stages - touched) <= _HARDLY * _cost(state, stages):
            touched |= stages
            chosen += alike
    return chosen


def _by_stages(state: State, requests: Sequence[Request]) -> dict[frozenset[int], list[Request]]:
    """Return requests by the stages that they touch: anchors of one group cost the same, and so do its others."""
    shaping = set(state.dataset.lessons_of([request.user for request in requests]).users) if requests else set()
    kinds: dict[frozenset[int], list[Request]] = {}
    for request in requests:
        shapes = request.user in shaping
        stages = _from(state, state.dataset.find(request.user)[0]) if shapes else frozenset[int]()
        kinds.setdefault(stages, []).append(request)
    return kinds


def _touched(state: State, requests: Sequence[Request]) -> frozenset[int]:
    return frozenset().union(*_by_stages(state, requests))


def _from(state: State, position: int) -> frozenset[int]:
    """Return the stages that are trained again with one: itself, and all that start from it."""
    names = [link.fingerprint for link in state.chain]
    touched = {position}
    for place, link in enumerate(state.chain):
        if link.parent in {names[one] for one in touched if one < len(names)}:
            touched.add(place)
    return frozenset(touched)


def _cost(state: State, stages: frozenset[int]) -> int:
    return sum(state.chain[place].samples for place in stages if place < len(state.chain))


def wait_for(queue: Queue, request_ids: Sequence[str], reporter: Reporter) -> bool:
    """Wait until requests have ended, failed or were put on hold; False if the worker is gone before that."""
    with retelling(reporter, "waiting for the worker") as tell:
        while _wait(queue, request_ids):
            if holder_of(queue.database) is None:
                return not _wait(queue, request_ids)  # they may have ended just before the lease was released
            tell(read_progress(queue.database))
            queue.database.wait(_LOOK_SECONDS)
    return True


def _wait(queue: Queue, request_ids: Sequence[str]) -> bool:
    """Whether any of these requests is waiting or being carried out."""
    return any(one.open and one.state not in ("failed", "on hold") for one in queue.history.some(request_ids))
