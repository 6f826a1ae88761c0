"""Forget, for command and library: submit requests, carry them out here or wait for the worker, report the outcome."""

import time
from collections.abc import Collection, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from erasable.chain.chain import made_elsewhere
from erasable.chain.dataset import Dataset
from erasable.chain.plan import known_requests
from erasable.errors import (
    ErasableError,
    NotReproducible,
    Refused,
    ResidueFound,
    Said,
    Unfinished,
    WorkspaceBusy,
    WorkspaceError,
    WrongUse,
    option,
    said,
)
from erasable.operations.claims import (
    LIBRARY,
    NOT_CERTIFIED,
    RequestClaims,
    begin,
    is_left,
    joined_by,
    look_back,
    of_commands_alone,
    refuse_broken_documents,
    take_over,
    wait_for,
)
from erasable.operations.do_not_learn import (
    NOTHING_OUTSIDE,
    OpenList,
    Outside,
    lists_of,
    open_list_of,
    prepare_outside,
    refuse_unusable,
    remember,
    remembered_places,
    write_receipts,
)
from erasable.operations.erase import Carried, Manner, erase
from erasable.operations.people import served_meanwhile, telling_near_ids
from erasable.operations.storage import Session, Storage, resuming, upgrading, withdrawing
from erasable.operations.work import QUIET_WORK, Work
from erasable.proof.certificate import read_certificate
from erasable.proof.issuing import FORMAT as RECEIPT_FORMAT
from erasable.proof.issuing import Receipt
from erasable.proof.search_file import Search, read_search
from erasable.requests.database import Connection
from erasable.requests.lease import Lease, Process, holder_of, renewed
from erasable.requests.queue import Queue
from erasable.requests.request import Request, Submission
from erasable.requests.tokens import salt_of_code

_MOST_PEOPLE = 10
_LARGEST_SHARE = 0.01
LEASE_SECONDS = 30.0
_ON_HOLD = "someone has a request that was put on hold: release it, or withdraw it, in the service first"


@dataclass(frozen=True)
class Extent:
    """How many people the requests are about, of how many."""

    people: int
    people_total: int

    @property
    def large(self) -> bool:
        """Whether the requests need a confirmation: more than 10 people, and more than 1 %."""
        return self.people > _MOST_PEOPLE and self.people > _LARGEST_SHARE * self.people_total

    def __str__(self) -> str:
        return f"{self.people:,} of {self.people_total:,} people"


@dataclass(frozen=True)
class Forgotten:
    """What forgetting did: one certificate for each person, and what it cost."""

    certificates: tuple[str, ...]
    stages_rerun: int
    stages_total: int
    chain_ratio: float
    cost_ratio: float
    seconds: float
    receipts: tuple[Receipt, ...] = field(repr=False)
    """For the people who asked, in the same order; no copy is kept. Whoever asked the service has their own."""
    left_out: int
    """How many requests were left out because nothing is held of what they name."""
    dropped: int
    """How many others the filter, applied again under the policy regroup, no longer keeps."""
    finished: int
    """How many people's requests an earlier process began and this one finished."""
    notes: tuple[str, ...] = ()
    """What is worth knowing about the do-not-learn list."""
    set_aside: tuple[str, ...] = ()
    """Why some people are erased but not certified: where something is left of them."""
    submitted: tuple[str, ...] = ()
    """The ids of requests that were submitted and not waited for."""
    served_meanwhile: int = 0
    """How many people are still served until the erasure, without the items they named; the others are not served."""


def forget(
    storage: Storage,
    requests: Sequence[Request],
    ignore_unknown: bool = False,
    rerun: bool = False,
    work: Work = QUIET_WORK,
    outside: Outside = NOTHING_OUTSIDE,
    yes: bool = False,
    actor: str = LIBRARY,
    wait: bool = True,
) -> Forgotten:
    """Carry out these requests together, exactly, and certify each; refused requests change nothing.

    More than 1 % of the people, if that is more than 10, need `yes`. What a killed process left unfinished is finished
    too. In another numeric environment than the one that learned, this is refused; with `rerun` everything is trained
    again, and so is what an earlier revision of a model of ours learned. If a worker is running, it carries the
    requests out next, and this call waits for it.
    """
    if outside.reference is not None and len({one.user for one in requests}) != 1:
        raise WrongUse(option("reference"), " is the case number of one person's request: give exactly one user")
    call = _ForgetCall(storage, tuple(requests), ignore_unknown, rerun, work, outside, yes, actor)
    if not wait:
        return call.submit()
    while True:
        done = call.leave_to_worker() if is_worked_on(storage) else call.carry_out()
        if done is not None:
            return done


def large_extent(storage: Storage, requests: Sequence[Request], ignore_unknown: bool = False) -> Extent | None:
    """Return how many people these requests are about, if `forget` needs `yes` for so many."""
    if len({request.user for request in requests}) <= _MOST_PEOPLE:
        return None
    with storage.reading() as session:
        dataset = session.state().dataset
        asked = _left_to_do(requests, read_search(session.documents().pending), dataset)
        extent = _extent(known_requests(asked, dataset, ignore_unknown), dataset)
    return extent if extent.large else None


def learned_elsewhere(storage: Storage) -> bool:
    """Whether this was learned in another numeric environment, so that forgetting trains everything again."""
    with storage.reading() as session:
        return bool(made_elsewhere(session.state()))


def withdraw_submitted(storage: Storage) -> int:
    """Withdraw what commands have submitted and nobody has carried out, and return how many people that is.

    What is erased stays erased. A request that somebody joined through the service stays in the queue: they were told
    that it is carried out.
    """
    with storage.writing() as session:
        search = read_search(session.documents().pending)
        sought = {one.request_id for one in search.people}
        left = [one for one in storage.asked() if is_left(one) and one.request_id not in sought]
        if search.erasures and not left and not search.accepted:
            finish = Said("finish with forget([])", "forget with --resume")
            raise Refused("the people are erased already, only their certificates are missing: ", finish)
        if search.accepted:
            kept = search.model_copy(update={"accepted": ()})
            session.amend(replace(session.documents(), pending=kept.encoded()))
        if left:
            with storage.queue(session) as queue:
                lease = Lease(queue.database, LEASE_SECONDS)
                if not lease.take():
                    raise WorkspaceBusy("a worker is carrying requests out: withdraw them in the service")
                with renewed(lease):
                    ids = [one.request_id for one in left]
                    withdrawn = RequestClaims(queue, lease, LIBRARY).give_back(ids, of_commands_alone)
            left = [one for one in left if one.request_id in withdrawn]
    return len({one.user for one in left} | {one.user for one in search.accepted})


@dataclass
class _ForgetCall:
    """One call of `forget`: its arguments, and what it has submitted so far."""

    storage: Storage
    requests: tuple[Request, ...]
    ignore_unknown: bool
    rerun: bool
    work: Work
    outside: Outside
    yes: bool
    actor: str
    submissions: list[Submission] = field(default_factory=list)
    submitted: list[Request] = field(default_factory=list)
    """What each of them asks for."""
    left_out: int = 0
    served_meanwhile: int = 0
    stages: int = 0
    said: tuple[str, ...] = ()
    """What was said before the work began."""
    began: float = field(default_factory=time.perf_counter)

    def submit(self) -> Forgotten:
        """Check and submit, without waiting."""
        with self.storage.reading() as session:
            known = self._checked(session)
            prepare_outside(self.outside, session.path)
        with self.storage.queue() as queue:
            self._hand_in(queue, known, hasten=True)
        done = self._forgotten(Carried(), submitted=tuple(dict.fromkeys(self._ids)))
        return replace(done, receipts=self._written_receipts(self._own))

    def leave_to_worker(self) -> Forgotten | None:
        """Submit, and wait for the holder of the lease; None if it is gone before all is done."""
        if self.outside.listing.is_said:
            with self.storage.writing() as session:
                self._manner(session, True)
        with self.storage.reading() as session:
            known = self._checked(session)
            prepare_outside(self.outside, session.path)
        with self.storage.queue() as queue:
            self._hand_in(queue, known, hasten=True)
            try:
                if not wait_for(queue, self._ids, self.work.reporter):
                    return None
            except KeyboardInterrupt:
                self._stop_waiting(queue)
                raise
            return self._with_told(queue, self._forgotten(Carried()), self._ids)

    def carry_out(self) -> Forgotten | None:
        """Submit and carry out in this process, with what others left; None if another process took the lease first."""
        fence = Fence()
        with ExitStack() as at_work:
            with self.storage.fenced(fence).writing() as session:
                refuse_broken_documents(session)
                known = self._checked(session)
                search = read_search(session.documents().pending)
                waiting = [one for one in self.storage.asked() if is_left(one) or self._waits_here(one)]
                left = bool(known or search.accepted or waiting)
                if left:
                    self._check_environment(session)
                manner = self._manner(session, left or bool(search.erasures))
                if not self._ids and not left and not search.erasures and not self.storage.has_begun(session):
                    return self._forgotten(Carried(), notes=manner.open_list.notes)
                queue = at_work.enter_context(self.storage.queue(session))
                lease = Lease(queue.database, LEASE_SECONDS)
                if not lease.take():
                    self._hand_in(queue, known, hasten=True)
                    return None
                at_work.enter_context(renewed(lease))
                fence.lease = lease
                claims = RequestClaims(queue, lease, self.actor)
                earlier = self._left_by_others(session, claims)
                self._hand_in(queue, known, hasten=False)
                carried = self._carried(session, claims, [*dict.fromkeys([*earlier, *self._ids])], manner)
            claims.end(carried.outcomes, carried.rejected)
            claims.fail(sorted(carried.set_aside), NOT_CERTIFIED)
            done = self._forgotten(carried, earlier, manner.open_list.notes)
            return self._with_told(queue, done, [one for one in self._ids if one not in carried.told])

    @property
    def _ids(self) -> list[str]:
        return [one.request_id for one in self.submissions]

    @property
    def _own(self) -> set[str]:
        """The requests that this call submitted and did not join."""
        return {one.request_id for one in self.submissions if not one.joined}

    def _is_ours_alone(self, request: Request) -> bool:
        """Whether this call submitted a request and nobody else has joined it."""
        submitted = self._ids.count(request.request_id)
        return request.request_id in self._own and len(joined_by(request)) < submitted

    def _check_environment(self, session: Session) -> None:
        """Refuse what was learned elsewhere; what an earlier revision of our model learned is trained again, once."""
        found = made_elsewhere(session.state())
        if found.newer_revision and not self.rerun:
            self.said = (f"everything is trained again, once: {found}",)
            self.work.reporter.note(self.said[0])
            self.rerun = True
        if found and not self.rerun:
            raise NotReproducible(
                f"this was learned {found.how} ({found}): bring it here with ",
                upgrading(session),
                " and forget then; or forget there, or give ",
                Said("rerun=True", "--rerun"),
                " to train everything again here",
            )

    def _waits_here(self, request: Request) -> bool:
        """Whether this call has submitted or joined a request, which is not on hold."""
        return request.request_id in self._ids and request.state != "on hold"

    def _checked(self, session: Session) -> list[Request]:
        """Return the requests that are about data still held; refuse what may not be carried out."""
        dataset = session.state().dataset
        self.stages = dataset.stages
        _refuse_on_hold(self.requests, self.storage.asked())
        asked = _left_to_do(self.requests, read_search(session.documents().pending), dataset)
        with telling_near_ids(dataset, (one.user for one in asked)):
            known = known_requests(asked, dataset, self.ignore_unknown)
        extent = _extent(known, dataset)
        if extent.large and not self.yes:
            raise Refused(f"this erases {extent}: if that is meant, give forget yes=True; nothing was done")
        self.left_out += len(asked) - len(known)
        self.served_meanwhile += served_meanwhile(dataset, known)
        return known

    def _manner(self, session: Session, anyone: bool) -> Manner:
        """Prepare receipts and do-not-learn list; if nobody is erased and no list is named, none is opened."""
        prepare_outside(self.outside, session.path)
        listing, preferences = self.outside.listing, session.documents().preferences
        if anyone or listing.is_said:
            open_list = open_list_of(session, listing, erasing=True)
        else:
            places = remembered_places(preferences, session.path)
            open_list = OpenList(places=places, without=preferences.without_do_not_learn)
        if anyone:
            refuse_unusable(lists_of(open_list, session.path), session.path)
        remember(session, open_list)
        return Manner(open_list, self.outside, self.rerun)

    def _left_by_others(self, session: Session, claims: RequestClaims) -> list[str]:
        """Return the requests that an earlier process began or submitted and did not finish."""
        take_over(session, claims)
        look_back(session, claims)
        sought = [one.request_id for one in read_search(session.documents().pending).people]
        waiting = [one.request_id for one in claims.queue.open_subjects() if is_left(one)]
        return [*dict.fromkeys([*sought, *waiting])]

    def _hand_in(self, queue: Queue, known: Sequence[Request], hasten: bool) -> None:
        """Submit the requests, once."""
        now = datetime.now(UTC)

        def submit(connection: Connection) -> list[Submission]:
            return [queue.submit(one, True, self.actor, now, self.outside.reference) for one in known]

        self.submissions += queue.database.change(submit)
        self.submitted += known
        self.requests = ()
        if hasten:
            queue.hasten(self._ids, now)

    def _carried(self, session: Session, claims: RequestClaims, ids: Sequence[str], manner: Manner) -> Carried:
        """Carry requests out; a person's second request comes after the first.

        If something fails before the erasure is current, requests return to the queue, and those that only this call
        asked for are withdrawn. In memory nothing is left of them.
        """
        carried, left, version = Carried(), [*ids], session.stamp.version
        try:
            while True:
                version = session.stamp.version
                part = erase(session, claims, begin(session, claims, left), (), manner, self.work)
                carried = carried.joined_with(part)
                left = [one for one in left if one not in part.told]
                if not part.told or not claims.queue.subjects(left):
                    return carried
        except BaseException as error:
            if session.path is None or session.stamp.version == version:
                self._give_back(claims, left if session.path else ids, error)
            elif isinstance(error, KeyboardInterrupt):
                raise Unfinished(
                    "interrupted after the erasure and before its certificates: finish with ", resuming(session.path)
                ) from None
            raise

    def _give_back(self, claims: RequestClaims, request_ids: Sequence[str], error: BaseException) -> None:
        """After a failure, withdraw what nobody else asked for; if that fails too, say what to do."""
        try:
            claims.give_back(request_ids, self._is_ours_alone)
        except (ErasableError, OSError):
            ways = resuming(self.storage.path), withdrawing(self.storage.path)
            standing = ("the request still stands: ", ways[0], " carries it out, ", ways[1], " takes it back")
            if isinstance(error, ErasableError):
                error.args = (*error.args, ". And it could not be taken back: ", *standing)
            elif isinstance(error, KeyboardInterrupt):
                raise Unfinished("interrupted before the erasure, but ", *standing) from None
            else:
                raise WorkspaceError(f"{error}: ", *standing) from error

    def _stop_waiting(self, queue: Queue) -> None:
        """Withdraw what nobody has begun or joined; write the receipts of what is carried out all the same."""

        def take_back(connection: Connection) -> list[str]:
            left = []
            for one in queue.history.some([*dict.fromkeys(self._ids)]):
                if one.open and one.state == "suppressed" and self._is_ours_alone(one):
                    queue.advance(one.request_id, "withdrawn", self.actor, datetime.now(UTC))
                elif one.state not in ("withdrawn", "rejected"):
                    left.append(one.request_id)
            return left

        left = queue.database.change(take_back)
        queue.database.wipe()
        if left:
            self._written_receipts(self._own.intersection(left))
            raise Unfinished(f"stopped waiting, but the worker carries out what it has begun: {', '.join(left)}")

    def _written_receipts(self, request_ids: Collection[str]) -> tuple[Receipt, ...]:
        """Return the receipts of requests submitted here, and write them if a folder was given."""
        both = {one.request_id: one for one in self.submissions if not one.joined and one.request_id in request_ids}
        receipts = tuple(map(self._receipt, both.values()))
        if self.outside.receipts is not None:
            write_receipts(receipts, self.outside.receipts)
        return receipts

    def _forgotten(
        self,
        carried: Carried,
        earlier: Sequence[str] = (),
        notes: Sequence[str] = (),
        submitted: tuple[str, ...] = (),
    ) -> Forgotten:
        ids, plan = [*carried.outcomes], carried.plan
        ours = {*self._ids} if self._ids else {*carried.set_aside}
        uncertified = {one: not_certified(why, self.storage.path) for one, why in carried.set_aside.items()}
        own = [why for one, why in uncertified.items() if one in ours]
        if own and not ids:
            raise ResidueFound(own[0])
        others = [said("of an earlier request: ", why) for one, why in uncertified.items() if one not in ours]
        return Forgotten(
            certificates=tuple(self.storage.certificate_place(f"{one}.json") for one in ids),
            receipts=tuple(one.receipt for one in carried.certified if one.receipt),
            stages_rerun=plan.stages_rerun if plan else 0,
            stages_total=self.stages,
            chain_ratio=plan.chain_ratio if plan else 0.0,
            cost_ratio=plan.cost_ratio if plan else 0.0,
            seconds=time.perf_counter() - self.began,
            left_out=self.left_out,
            dropped=carried.dropped,
            finished=len({*ids}.intersection(earlier) - self._own),
            notes=(*self.said, *notes, *others),
            set_aside=tuple(own),
            submitted=submitted,
            served_meanwhile=self.served_meanwhile,
        )

    def _with_told(self, queue: Queue, done: Forgotten, request_ids: Sequence[str]) -> Forgotten:
        """Add what other processes did about some requests, as the queue records it."""
        told = queue.history.some(request_ids)
        erased = [one for one in told if one.outcome]
        undone = [one for one in told if not one.outcome]
        if not told:
            return done
        if not erased and not done.certificates and any(one.state != "rejected" for one in undone):
            raise Refused(_why_undone(undone[0]))
        with self.storage.reading() as session:
            issued = session.issued()
            certificates = {one.request_id: read_certificate(issued[f"{one.request_id}.json"]) for one in erased}
        possible = [self._receipt(one) for one in self.submissions if not one.joined]
        receipts = [one for one in possible if (found := certificates.get(one.request_id)) and one.opens(found)]
        if self.outside.receipts is not None:
            write_receipts(receipts, self.outside.receipts)
        planned = queue.history.last_event("planned")
        facts = planned.facts if planned else {}
        places = [self.storage.certificate_place(f"{one}.json") for one in certificates]
        return replace(
            done,
            certificates=(*done.certificates, *places),
            receipts=(*done.receipts, *receipts),
            stages_rerun=max([done.stages_rerun, *(one.outcome["stages_rerun"] for one in erased if one.outcome)]),
            chain_ratio=done.chain_ratio or facts.get("chain_ratio", 0.0),
            cost_ratio=done.cost_ratio or facts.get("cost_ratio", 0.0),
            notes=(*done.notes, *map(_why_undone, undone)),
        )

    def _receipt(self, submission: Submission) -> Receipt:
        """Return the receipt of a request submitted here, for everything that it asks for."""
        both = zip(self.submitted, self.submissions, strict=True)
        asked = [one for one, other in both if other.request_id == submission.request_id]
        whole = any(one.everything for one in asked)
        return Receipt(
            format=RECEIPT_FORMAT,
            request_id=submission.request_id,
            user_id=asked[0].user,
            items=None if whole else tuple(dict.fromkeys(item for one in asked for item in one.items or ())),
            reference=self.outside.reference,
            salt=salt_of_code(submission.salting_code),
        )


def not_certified(why: str, path: Path | None) -> str:
    """Say that an erasure is done and why it is not certified."""
    return said("the erasure is done, but not certified: ", why, ". Remove them, then run: ", resuming(path))


def _why_undone(request: Request) -> str:
    """Say why another process erased nothing for a request."""
    if request.state == "failed":
        return f"the worker could not carry it out: {request.reason}"
    if request.state == "rejected":
        return f"one request has ended: {request.reason}"
    if request.state == "withdrawn":
        return "someone has withdrawn the request meanwhile: nothing was erased for it"
    if request.state == "on hold":
        return f"{_ON_HOLD}: nothing was erased for it"
    return "the request was submitted and not carried out: try again"


class Fence:
    """Stops a process that has lost the lease."""

    lease: Lease | None = None

    def __call__(self) -> None:
        """Refuse to continue if another process has the lease."""
        if self.lease is not None:
            self.lease.check()


def is_worked_on(storage: Storage) -> bool:
    """Whether another process is carrying out requests."""
    if not storage.has_queue:
        return False
    with storage.queue() as queue:
        holder = holder_of(queue.database)
    return holder is not None and holder != Process.current()


def _refuse_on_hold(requests: Sequence[Request], asked: Sequence[Request]) -> None:
    """Refuse requests of people whose request is on hold in the service."""
    held = {one.user for one in asked if one.state == "on hold"}
    if any(one.user in held for one in requests):
        raise Refused(_ON_HOLD)


def _left_to_do(requests: Sequence[Request], search: Search, dataset: Dataset) -> list[Request]:
    """Return requests without what is erased already and was not learned again since."""
    return [left for one in requests if (left := _left_of(one, search, dataset)) is not None]


def _left_of(request: Request, search: Search, dataset: Dataset) -> Request | None:
    left = search.left_of(request)
    again = [] if left == request else known_requests([request], dataset, ignore_unknown=True)
    if not again or request.items is None:
        return request if again else left
    wanted = {*(again[0].items or ()), *((left and left.items) or ())}
    return Request(request.user, tuple(item for item in request.items if item in wanted))


def _extent(known: Sequence[Request], dataset: Dataset) -> Extent:
    return Extent(len({one.user for one in known}), dataset.users)
