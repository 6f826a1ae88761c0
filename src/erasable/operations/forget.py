"""Forget, for command and library: submit requests, carry them out here or wait for the worker, say what came of it."""

import time
from collections.abc import Collection, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

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
from erasable.operations.broken_papers import refuse_broken_papers
from erasable.operations.desk import LIBRARY, NOT_CERTIFIED, Desk, joined_by, of_commands_alone
from erasable.operations.do_not_learn import Roll, lists_of, refuse_unusable, remember, remembered_places, roll_of
from erasable.operations.erase import Carried, Manner, erase
from erasable.operations.following import wait_for
from erasable.operations.home import Home, Session, resuming, upgrading, withdrawing
from erasable.operations.meanwhile import served_meanwhile
from erasable.operations.near import telling_near_ids
from erasable.operations.outside import NOTHING_OUTSIDE, Outside, prepare_outside, write_receipts
from erasable.operations.recovery import begin, is_left, look_back, take_over
from erasable.operations.work import QUIET_WORK, Work
from erasable.proof import Receipt, Search, read_certificate, read_search
from erasable.proof.receipt import FORMAT as RECEIPT_FORMAT
from erasable.requests import Request
from erasable.requests.codes import salt_of_code
from erasable.requests.database import Connection
from erasable.requests.holding import renewed
from erasable.requests.lease import Lease, Process, holder_of
from erasable.requests.queue import Queue
from erasable.requests.request import Submission
from erasable.training import Knowledge, made_elsewhere
from erasable.unlearning import known_requests

_MOST_PEOPLE = 10
_LARGEST_SHARE = 0.01
_LEASE_SECONDS = 30.0
_ON_HOLD = "someone has a request that was put on hold: release it, or withdraw it, in the service first"


@dataclass(frozen=True)
class Extent:
    """How many of how many people requests are about."""

    people: int
    people_total: int

    @property
    def large(self) -> bool:
        """Whether it is so many that nobody should be erased by mistake: more than 10, and more than 1 %."""
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
    """For the people who asked, in the same order; nobody else keeps them. Who asked the service has their own."""
    left_out: int
    """How many requests were left out because nothing is held of what they name."""
    dropped: int
    """How many others a filter that was applied anew no longer keeps (under the policy regroup)."""
    finished: int
    """How many people's requests an earlier process had begun and this one has finished."""
    notes: tuple[str, ...] = ()
    """What is worth knowing about the do-not-learn list."""
    set_aside: tuple[str, ...] = ()
    """Why some people are erased and not certified: where something is still left of them."""
    submitted: tuple[str, ...] = ()
    """The numbers of requests that were submitted and not waited for."""
    served_meanwhile: int = 0
    """How many people are served until it is carried out, without the items that they asked for; others are not."""


def forget(
    home: Home,
    requests: Sequence[Request],
    ignore_unknown: bool = False,
    rerun: bool = False,
    work: Work = QUIET_WORK,
    outside: Outside = NOTHING_OUTSIDE,
    yes: bool = False,
    actor: str = LIBRARY,
    wait: bool = True,
) -> Forgotten:
    """Forget these requests together, exactly, and certify each; refused requests change nothing.

    More than 1 % of the people, if that is more than 10, are forgotten with `yes` only.
    What a killed process had begun is finished as well. In a numeric environment other than the one that
    learned, this is refused; with `rerun` everything is trained again. Where a worker is at work it carries them out
    next, and is waited for.
    """
    if outside.reference is not None and len({one.user for one in requests}) != 1:
        raise WrongUse(option("reference"), " is the case number of one person's request: give exactly one user")
    errand = _Errand(home, tuple(requests), ignore_unknown, rerun, work, outside, yes, actor)
    if not wait:
        return errand.submit()
    while True:
        done = errand.leave_to_worker() if _is_worked_on(home) else errand.carry_out()
        if done is not None:
            return done


def large_extent(home: Home, requests: Sequence[Request], ignore_unknown: bool = False) -> Extent | None:
    """Say how many of how many people these requests are about, if those are so many that `forget` needs a yes."""
    if len({request.user for request in requests}) <= _MOST_PEOPLE:
        return None
    with home.reading() as session:
        knowledge = session.state().knowledge
        asked = _left_to_do(requests, read_search(session.papers().pending), knowledge)
        extent = _extent(known_requests(asked, knowledge, ignore_unknown), knowledge)
    return extent if extent.large else None


def learned_elsewhere(home: Home) -> bool:
    """Whether this was learned in another numeric environment, so that forgetting trains everything again."""
    with home.reading() as session:
        return bool(made_elsewhere(session.state()))


def withdraw_submitted(home: Home) -> int:
    """Take back what commands have submitted and nobody has carried out, and say how many; what is erased stays so.

    What somebody has joined through the service waits on: they were told that it is carried out.
    """
    with home.writing() as session:
        search = read_search(session.papers().pending)
        sought = {one.request_id for one in search.people}
        left = [one for one in home.asked() if is_left(one) and one.request_id not in sought]
        if search.erasures and not left and not search.accepted:
            finish = Said("finish with forget([])", "forget with --resume")
            raise Refused("the people are erased already, only their certificates are missing: ", finish)
        if search.accepted:
            kept = search.model_copy(update={"accepted": ()})
            session.amend(replace(session.papers(), pending=kept.encoded()))
        if left:
            with home.queue(session) as queue:
                lease = Lease(queue.database, _LEASE_SECONDS)
                if not lease.take():
                    raise WorkspaceBusy("a worker is carrying requests out: withdraw them in the service")
                with renewed(lease):
                    ids = [one.request_id for one in left]
                    withdrawn = Desk(queue, lease, LIBRARY).give_back(ids, of_commands_alone)
            left = [one for one in left if one.request_id in withdrawn]
    return len({one.user for one in left} | {one.user for one in search.accepted})


@dataclass
class _Errand:
    """What one call was asked for, and what it has submitted so far."""

    home: Home
    requests: tuple[Request, ...]
    ignore_unknown: bool
    rerun: bool
    work: Work
    outside: Outside
    yes: bool
    actor: str
    submissions: list[Submission] = field(default_factory=list)
    submitted: list[Request] = field(default_factory=list)
    """What was asked for in each of them."""
    left_out: int = 0
    served_meanwhile: int = 0
    stages: int = 0
    began: float = field(default_factory=time.perf_counter)

    def submit(self) -> Forgotten:
        """Check and submit, and wait for nobody."""
        with self.home.reading() as session:
            known = self._checked(session)
            prepare_outside(self.outside, session.path)
        with self.home.queue() as queue:
            self._hand_in(queue, known, hasten=True)
        done = self._forgotten(Carried(), submitted=tuple(dict.fromkeys(self._ids)))
        return replace(done, receipts=self._written_receipts(self._own))

    def leave_to_worker(self) -> Forgotten | None:
        """Submit, and wait for whoever has the lease; None if they are gone before all is done."""
        if self.outside.listing.is_said:
            with self.home.writing() as session:
                self._manner(session, True)
        with self.home.reading() as session:
            known = self._checked(session)
            prepare_outside(self.outside, session.path)
        with self.home.queue() as queue:
            self._hand_in(queue, known, hasten=True)
            try:
                if not wait_for(queue, self._ids, self.work.reporter):
                    return None
            except KeyboardInterrupt:
                self._stop_waiting(queue)
                raise
            return self._with_told(queue, self._forgotten(Carried()), self._ids)

    def carry_out(self) -> Forgotten | None:
        """Submit and carry out in this process, with what others have left; None if another took the lease first."""
        fence = _Fence()
        with ExitStack() as at_work:
            with self.home.fenced(fence).writing() as session:
                refuse_broken_papers(session)
                known = self._checked(session)
                search = read_search(session.papers().pending)
                waiting = [one for one in self.home.asked() if is_left(one) or self._waits_here(one)]
                left = bool(known or search.accepted or waiting)
                if left:
                    _check_environment(session, self.rerun)
                manner = self._manner(session, left or bool(search.erasures))
                if not self._ids and not left and not search.erasures and not self.home.has_begun(session):
                    return self._forgotten(Carried(), notes=manner.roll.notes)
                queue = at_work.enter_context(self.home.queue(session))
                lease = Lease(queue.database, _LEASE_SECONDS)
                if not lease.take():
                    self._hand_in(queue, known, hasten=True)
                    return None
                at_work.enter_context(renewed(lease))
                fence.lease = lease
                desk = Desk(queue, lease, self.actor)
                earlier = self._left_by_others(session, desk)
                self._hand_in(queue, known, hasten=False)
                carried = self._carried(session, desk, [*dict.fromkeys([*earlier, *self._ids])], manner)
            desk.end(carried.outcomes, carried.rejected)
            desk.fail(sorted(carried.set_aside), NOT_CERTIFIED)
            done = self._forgotten(carried, earlier, manner.roll.notes)
            return self._with_told(queue, done, [one for one in self._ids if one not in carried.told])

    @property
    def _ids(self) -> list[str]:
        return [one.request_id for one in self.submissions]

    @property
    def _own(self) -> set[str]:
        """The requests that nobody else had asked for."""
        return {one.request_id for one in self.submissions if not one.joined}

    def _is_ours_alone(self, request: Request) -> bool:
        """Whether this call submitted a request, and nobody has joined it but this call."""
        submitted = self._ids.count(request.request_id)
        return request.request_id in self._own and len(joined_by(request)) < submitted

    def _waits_here(self, request: Request) -> bool:
        """Whether this call waits for a request that was submitted, or joined, before."""
        return request.request_id in self._ids and request.state != "on hold"

    def _checked(self, session: Session) -> list[Request]:
        """Return what is held of what was asked for and is not erased yet; refuse what may not be carried out."""
        knowledge = session.state().knowledge
        self.stages = knowledge.stages
        _refuse_on_hold(self.requests, self.home.asked())
        asked = _left_to_do(self.requests, read_search(session.papers().pending), knowledge)
        with telling_near_ids(knowledge, (one.user for one in asked)):
            known = known_requests(asked, knowledge, self.ignore_unknown)
        extent = _extent(known, knowledge)
        if extent.large and not self.yes:
            raise Refused(f"this erases {extent}: if that is meant, give forget yes=True; nothing was done")
        self.left_out += len(asked) - len(known)
        self.served_meanwhile += served_meanwhile(knowledge, known)
        return known

    def _manner(self, session: Session, anyone: bool) -> Manner:
        """Make ready what is written outside; for nobody, and with nothing said of it, no list is looked for."""
        prepare_outside(self.outside, session.path)
        listing, preferences = self.outside.listing, session.papers().preferences
        if anyone or listing.is_said:
            roll = roll_of(session, listing, erasing=True)
        else:
            places = remembered_places(preferences, session.path)
            roll = Roll(places=places, without=preferences.without_do_not_learn)
        if anyone:
            refuse_unusable(lists_of(roll))
        remember(session, roll)
        return Manner(roll, self.outside, self.rerun)

    def _left_by_others(self, session: Session, desk: Desk) -> list[str]:
        """Return the requests that an earlier process has begun, or submitted, and left."""
        take_over(session, desk)
        look_back(session, desk)
        sought = [one.request_id for one in read_search(session.papers().pending).people]
        waiting = [one.request_id for one in desk.queue.open_subjects() if is_left(one)]
        return [*dict.fromkeys([*sought, *waiting])]

    def _hand_in(self, queue: Queue, known: Sequence[Request], hasten: bool) -> None:
        """Submit what was asked for, once."""
        now = datetime.now(UTC)

        def submit(connection: Connection) -> list[Submission]:
            return [queue.submit(one, True, self.actor, now, self.outside.reference) for one in known]

        self.submissions += queue.database.change(submit)
        self.submitted += known
        self.requests = ()
        if hasten:
            queue.hasten(self._ids, now)

    def _carried(self, session: Session, desk: Desk, ids: Sequence[str], manner: Manner) -> Carried:
        """Carry requests out; a second one of somebody comes after the first.

        What goes wrong before an erasure is current gives back what was begun, and withdraws what only this call asked
        for. In memory nothing of it lasts.
        """
        carried, left, version = Carried(), [*ids], session.stamp.version
        try:
            while True:
                version = session.stamp.version
                part = erase(session, desk, begin(session, desk, left), (), manner, self.work)
                carried = carried.joined_with(part)
                left = [one for one in left if one not in part.told]
                if not part.told or not desk.queue.subjects(left):
                    return carried
        except BaseException as error:
            if session.path is None or session.stamp.version == version:
                self._give_back(desk, left if session.path else ids, error)
            elif isinstance(error, KeyboardInterrupt):
                raise Unfinished(
                    "stopped after the erasure and before its certificates: finish with ", resuming(session.path)
                ) from None
            raise

    def _give_back(self, desk: Desk, request_ids: Sequence[str], error: BaseException) -> None:
        """Take back what nobody else asked for, since something went wrong; where that fails too, say what to do."""
        try:
            desk.give_back(request_ids, self._is_ours_alone)
        except (ErasableError, OSError):
            ways = resuming(self.home.path), withdrawing(self.home.path)
            standing = ("the request still stands: ", ways[0], " carries it out, ", ways[1], " takes it back")
            if isinstance(error, ErasableError):
                error.args = (*error.args, ". And it could not be taken back: ", *standing)
            elif isinstance(error, KeyboardInterrupt):
                raise Unfinished("stopped before the erasure, but ", *standing) from None
            else:
                raise WorkspaceError(f"{error}: ", *standing) from error

    def _stop_waiting(self, queue: Queue) -> None:
        """Take back what nobody has begun or joined; of what is carried out all the same the receipts are written."""

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
        """Return the receipts of requests that were submitted here, written where that is wanted."""
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
        not_certified = {one: self._not_certified(why) for one, why in carried.set_aside.items()}
        own = [why for one, why in not_certified.items() if one in ours]
        if own and not ids:
            raise ResidueFound(own[0])
        others = [said("of an earlier request: ", why) for one, why in not_certified.items() if one not in ours]
        return Forgotten(
            certificates=tuple(self.home.certificate_place(f"{one}.json") for one in ids),
            receipts=tuple(one.receipt for one in carried.certified if one.receipt),
            stages_rerun=plan.stages_rerun if plan else 0,
            stages_total=self.stages,
            chain_ratio=plan.chain_ratio if plan else 0.0,
            cost_ratio=plan.cost_ratio if plan else 0.0,
            seconds=time.perf_counter() - self.began,
            left_out=self.left_out,
            dropped=carried.dropped,
            finished=len({*ids}.intersection(earlier) - self._own),
            notes=(*notes, *others),
            set_aside=tuple(own),
            submitted=submitted,
            served_meanwhile=self.served_meanwhile,
        )

    def _not_certified(self, why: str) -> str:
        remedy = resuming(self.home.path)
        return said("the erasure is done, but not certified: ", why, ". Remove them, then run: ", remedy)

    def _with_told(self, queue: Queue, done: Forgotten, request_ids: Sequence[str]) -> Forgotten:
        """Say what was done here, and what others did about some requests, from what they wrote down."""
        told = queue.history.some(request_ids)
        erased = [one for one in told if one.outcome]
        undone = [one for one in told if not one.outcome]
        if not told:
            return done
        if not erased and not done.certificates and any(one.state != "rejected" for one in undone):
            raise Refused(_why_undone(undone[0]))
        with self.home.reading() as session:
            issued = session.issued()
            certificates = {one.request_id: read_certificate(issued[f"{one.request_id}.json"]) for one in erased}
        possible = [self._receipt(one) for one in self.submissions if not one.joined]
        receipts = [one for one in possible if (found := certificates.get(one.request_id)) and one.opens(found)]
        if self.outside.receipts is not None:
            write_receipts(receipts, self.outside.receipts)
        planned = queue.history.last_event("planned")
        facts = planned.facts if planned else {}
        places = [self.home.certificate_place(f"{one}.json") for one in certificates]
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
        """Return the receipt of a request that was submitted here: of all that was asked for in it."""
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


def _why_undone(request: Request) -> str:
    """Say why nothing was erased for a request that others have looked after."""
    if request.state == "failed":
        return f"the worker could not carry it out: {request.reason}"
    if request.state == "rejected":
        return f"one request has ended: {request.reason}"
    if request.state == "withdrawn":
        return "someone has withdrawn the request meanwhile: nothing was erased for it"
    if request.state == "on hold":
        return f"{_ON_HOLD}: nothing was erased for it"
    return "the request was submitted and not carried out: try again"


class _Fence:
    """Stops whoever does not hold the lease any more."""

    lease: Lease | None = None

    def __call__(self) -> None:
        """Refuse to go on, if the lease is another's."""
        if self.lease is not None:
            self.lease.check()


def _is_worked_on(home: Home) -> bool:
    """Whether another process carries out requests just now."""
    if not home.has_queue:
        return False
    with home.queue() as queue:
        holder = holder_of(queue.database)
    return holder is not None and holder != Process.current()


def _refuse_on_hold(requests: Sequence[Request], asked: Sequence[Request]) -> None:
    """Leave to the service what someone has put on hold there."""
    held = {one.user for one in asked if one.state == "on hold"}
    if any(one.user in held for one in requests):
        raise Refused(_ON_HOLD)


def _left_to_do(requests: Sequence[Request], search: Search, knowledge: Knowledge) -> list[Request]:
    """Return requests, less what is erased already and was not learned again since."""
    return [left for one in requests if (left := _left_of(one, search, knowledge)) is not None]


def _left_of(request: Request, search: Search, knowledge: Knowledge) -> Request | None:
    left = search.left_of(request)
    again = [] if left == request else known_requests([request], knowledge, ignore_unknown=True)
    if not again or request.items is None:
        return request if again else left
    wanted = {*(again[0].items or ()), *((left and left.items) or ())}
    return Request(request.user, tuple(item for item in request.items if item in wanted))


def _extent(known: Sequence[Request], knowledge: Knowledge) -> Extent:
    return Extent(len({one.user for one in known}), knowledge.users)


def _check_environment(session: Session, rerun: bool) -> None:
    found = made_elsewhere(session.state())
    if found and not rerun:
        raise NotReproducible(
            f"this was learned {found.how} ({found}): bring it here with ",
            upgrading(session),
            " and forget then; or forget there, or give ",
            Said("rerun=True", "--rerun"),
            " to train everything again here",
        )
