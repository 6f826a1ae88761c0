"""Claim requests from the queue under a lease, wait for another worker, and recover what earlier processes left."""

import secrets
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from erasable.chain.dataset import State
from erasable.chain.plan import known_requests
from erasable.errors import Said, WorkspaceDamaged, WorkspaceError, WrongUse, said
from erasable.operations.storage import Session, Storage
from erasable.progress import Reporter, retelling
from erasable.proof.certificate import Certificate, outcome_of, read_certificate
from erasable.proof.checking import (
    certificate_fault,
    documents_fault,
    newest_documents_fault,
    records_about,
    signing_public_key,
    version_fault,
)
from erasable.proof.log import first_fault, records_of
from erasable.proof.search_file import Search, Sought, read_search
from erasable.requests.database import Connection
from erasable.requests.lease import Lease, holder_of, read_progress
from erasable.requests.queue import NOTHING_LEFT, Queue
from erasable.requests.request import AT_ONCE, Request, RequestState

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
_PUT_BACK = " (if an older manifest.json was put back, it names destroyed files: take the newest copy of the folder)"


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

        A failed request whose subject is already gone is skipped: it waits for its retry.
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
        stages = _from(state, state.dataset.find(request.user).group) if shapes else frozenset[int]()
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


LOST = (
    "its certificate is missing, and it is no longer known who asked: put back the newest copy of the workspace and "
    "try again; if there is none the person may be in the data again, so submit their request again"
)
"""Why a request fails whose subject is removed, and that no certificate and no search file names."""


def refuse_broken_documents(session: Session) -> None:
    """Refuse if log, signing key and version contradict each other: a new certificate would never verify."""
    documents = session.documents()
    fault = newest_documents_fault(documents, session.issued(), bool(session.sealed_files))
    if fault is None and not is_unrecorded(session):
        fault = version_fault(documents, session.stamp, session.state())
    if fault:
        remedy = ": nothing was done; restore the workspace from a copy made after the last erasure"
        raise WorkspaceDamaged(said(fault, remedy))


def integrity_fault(session: Session, certificate: Certificate | None = None) -> str | None:
    """Return what is wrong with files, records or signatures, if anything is; no data or parameters are loaded."""
    damaged = session.damaged()
    if damaged:
        return _damage(session, damaged)
    if session.leftovers:
        return f"files of an earlier version are left, remove them: {', '.join(session.leftovers)}"
    documents, issued = session.documents(), session.issued()
    fault = documents_fault(documents, issued)
    if fault or certificate is None:
        return fault
    if certificate.public_key != signing_public_key(documents):
        raise WrongUse(
            "the certificate was signed with another key: it is of another workspace; name the folder that it is of"
        )
    return certificate_fault(certificate, documents, issued, session.stamp)


def _damage(session: Session, damaged: Sequence[str]) -> str:
    """Name the damaged files, and the record if the log is one of them."""
    named = f"damaged or missing: {', '.join(damaged)}"
    if session.path is not None and any(not (session.path / name).exists() for name in damaged):
        named = f"{named}{_PUT_BACK}"
    if not any(name.startswith("audit") for name in damaged):
        return named
    try:
        located = first_fault(session.unchecked_log()) or "records at its end are missing"
    except WorkspaceError:  # the log can't be read
        return named
    return f"{named}; the log: {located}"


def is_unrecorded(session: Session) -> bool:
    """Whether the current version comes from an erasure of which nobody is certified yet."""
    documents = session.documents()
    recorded = [record["version"] for record in records_of(documents.log) if record["what"] != "verify"]
    made = [one.version for one in read_search(documents.pending).erasures]
    return any(one in (None, session.stamp.version) for one in made) and session.stamp.version not in recorded[-1:]


def take_over(session: Session, claims: RequestClaims) -> None:
    """Move requests into the queue that an earlier release kept in the workspace.

    A person's open request is joined, so this can be repeated after a kill. People who are erased and not certified get
    a request too, which records what comes of it and when it is tried again.
    """
    documents = session.documents()
    search = read_search(documents.pending)
    queue = Queue(claims.queue.database, AT_ONCE)
    for one in search.accepted:
        received = datetime.fromisoformat(one.received)
        queue.submit(Request(one.user, one.items), True, COMMAND, received, one.reference)
    for sought in unknown_to(claims.queue, search):
        queue.adopt(sought.request, COMMAND, datetime.fromisoformat(sought.received))
    if search.accepted:
        session.amend(replace(documents, pending=search.model_copy(update={"accepted": ()}).encoded()))


def unknown_to(queue: Queue, search: Search) -> list[Sought]:
    """Return people who are erased and not certified, and have no request in the queue."""
    people = [*search.people]
    known = {one.request_id for one in queue.history.some([one.request_id for one in people])}
    return [one for one in people if one.request_id not in known]


def look_back(session: Session, claims: RequestClaims, tried: Collection[str] = ()) -> None:
    """Record requests that were begun and are certified by now as erased.

    Requests that the search file names are erased, and certified next. A request that is neither there nor certified,
    and whose subject is removed, is lost: it can't be retried automatically, someone has to look at it.
    """
    found = claims.queue.history.in_states(["erasing", "certifying", "failed"])
    certified = _end_certified(session, claims, found)
    sought = {one.request_id for one in read_search(session.documents().pending).people}
    left = [one.request_id for one in found if one.request_id not in certified | sought]
    kept = {one.request_id for one in claims.queue.subjects(left)}
    claims.fail([one for one in left if one not in kept], LOST, tried, retry=lambda request: None)


def begin(session: Session, claims: RequestClaims, request_ids: Sequence[str]) -> list[Request]:
    """Begin requests, except those that the search file names as erased, and return them with their subjects."""
    sought = {one.request_id for one in read_search(session.documents().pending).people}
    return [one for one in claims.begin([one for one in request_ids if one not in sought]) if one.user]


def _end_certified(session: Session, claims: RequestClaims, found: Sequence[Request]) -> set[str]:
    issued = session.issued()
    contents = {one.request_id: issued[name] for one in found if (name := f"{one.request_id}.json") in issued}
    if contents:
        records = records_about(contents, session.documents())
        read = {one: read_certificate(content) for one, content in contents.items()}
        claims.end({one: outcome_of(certificate, records.get(one, {})) for one, certificate in read.items()})
    return {*contents}


def is_left(request: Request) -> bool:
    """Whether an open request came by command or from the library: then the next `forget` finishes it."""
    return of_commands(request) and request.state in ("suppressed", "erasing", "failed")


def left_to_finish(storage: Storage, session: Session) -> frozenset[str]:
    """Return people who are erased and not certified, or asked by command and are not erased."""
    search = read_search(session.documents().pending)
    return search.users.union(one.user for one in storage.asked() if is_left(one))
