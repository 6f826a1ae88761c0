"""Plan and forget: what erasing someone would touch and cost, and erasing them."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from erasable.errors import NotReproducible, Refused, Said, Unfinished, WrongUse, option
from erasable.operations.broken_papers import refuse_broken_papers
from erasable.operations.do_not_learn import (
    Roll,
    listed_on,
    put_on_lists,
    refuse_unusable,
    remember,
    remembered_places,
    roll_of,
)
from erasable.operations.erasure import Done, Outside, accept, certify, erase, prepare_outside, withdraw
from erasable.operations.home import Home, Session, resuming, upgrading
from erasable.operations.near import telling_near_ids
from erasable.operations.work import QUIET_WORK, Work
from erasable.proof import NOTHING_PENDING, Accepted, Certificate, Pending, Receipt, read_pending
from erasable.store.ledger import people_in_ledger
from erasable.training import Knowledge, made_elsewhere
from erasable.unlearning import Request, known_requests

NOTHING_OUTSIDE = Outside()
_MOST_PEOPLE = 10
_LARGEST_SHARE = 0.01


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
    """For the people who asked, in the same order; nobody else keeps them."""
    left_out: int
    """How many requests were left out because nothing is held of what they name."""
    dropped: int
    """How many others a filter that was applied anew no longer keeps (under the policy regroup)."""
    finished: int
    """How many people's requests an earlier process had begun and this one has finished."""
    notes: tuple[str, ...] = ()
    """What is worth knowing about the do-not-learn list."""


def forget(
    home: Home,
    requests: Sequence[Request | Accepted],
    ignore_unknown: bool = False,
    rerun: bool = False,
    work: Work = QUIET_WORK,
    outside: Outside = NOTHING_OUTSIDE,
    yes: bool = False,
) -> Forgotten:
    """Forget these requests together, exactly, and certify each; refused requests change nothing.

    More than 1 % of the people, if that is more than 10, are forgotten with `yes` only.
    Requests that were filed elsewhere come accepted, under an id of their own. Those that a killed process had accepted
    are finished as well. In a numeric environment other than the one that
    learned, this is refused; with `rerun` everything is trained again.
    """
    began = time.perf_counter()
    with home.writing() as session:
        refuse_broken_papers(session)
        _refuse_filed(session, requests)
        interrupted = read_pending(session.papers().pending)
        # Erased but not certified: nothing but the certificates is left to do for these.
        finished, begun = (interrupted, NOTHING_PENDING) if interrupted.erased else (NOTHING_PENDING, interrupted)
        asked = _left_to_do(_accepted(requests, outside.reference), finished)
        with telling_near_ids(session.state().knowledge, (one.user for one in asked)):
            known = _known(asked, session.state().knowledge, ignore_unknown)
        if not yes:
            _refuse_many(requests, known, session.state().knowledge)
        pending = begun.joined_with(known)
        if pending.accepted:
            _check_environment(session, rerun)
        prepare_outside(outside, session.path)
        roll = _roll(session, outside, pending.accepted or finished.accepted)
        finished, pending = (listed_on(some, roll, outside.listing) for some in (finished, pending))
        refuse_unusable(pending)
        remember(session, roll)
        put_on_lists(session, finished)
        certificates = _certified(session, finished, outside, work) if finished.accepted else []
        done = _carried_out(session, pending, begun, rerun, work) if pending.accepted else None
        if done:
            certificates += _certified(session, done.pending, outside, work)
        stages = session.state().knowledge.stages
    people = [*finished.accepted, *(done.pending.accepted if done else ())]
    return Forgotten(
        certificates=tuple(home.certificate_place(f"{one.request_id}.json") for one in certificates),
        receipts=tuple(Receipt.of(accepted) for accepted in people),
        stages_rerun=done.plan.stages_rerun if done else 0,
        stages_total=stages,
        chain_ratio=done.plan.chain_ratio if done else 0.0,
        cost_ratio=done.plan.cost_ratio if done else 0.0,
        seconds=time.perf_counter() - began,
        left_out=len(asked) - len(known),
        dropped=done.dropped if done else 0,
        finished=len(interrupted.accepted),
        notes=roll.notes,
    )


def large_extent(home: Home, requests: Sequence[Request], ignore_unknown: bool = False) -> Extent | None:
    """Say how many of how many people these requests are about, if those are so many that `forget` needs a yes."""
    if len({request.user for request in requests}) <= _MOST_PEOPLE:
        return None
    with home.reading() as session:
        knowledge = session.state().knowledge
        finished = read_pending(session.papers().pending)
        asked = _left_to_do(_accepted(requests), finished if finished.erased else NOTHING_PENDING)
        extent = _extent(_known(asked, knowledge, ignore_unknown), knowledge)
    return extent if extent.large else None


def learned_elsewhere(home: Home) -> bool:
    """Whether this was learned in another numeric environment, so that forgetting trains everything again."""
    with home.reading() as session:
        return bool(made_elsewhere(session.state()))


def withdraw_pending(home: Home) -> int:
    """Take back requests that were accepted and not carried out, and say how many; what is erased stays erased."""
    with home.writing() as session:
        pending = read_pending(session.papers().pending)
        if pending.erased:
            finish = Said("finish with forget([])", "forget with --resume")
            raise Refused("the people are erased already, only their certificates are missing: ", finish)
        session.amend(replace(session.papers(), pending=b""))
    return len(pending.accepted)


def _refuse_filed(session: Session, requests: Sequence[Request | Accepted]) -> None:
    """Leave to the service what it was asked for: someone may have put it on hold."""
    asked = {one.user for one in requests if isinstance(one, Request)}
    if session.path is not None and asked and asked & people_in_ledger(session.path):
        raise Refused(
            "someone has an open request with the service, which carries it out: let it, or withdraw it there first"
        )


def _accepted(requests: Sequence[Request | Accepted], reference: str | None = None) -> list[Accepted]:
    if reference is not None and len({one.user for one in requests}) != 1:
        raise WrongUse(option("reference"), " is the case number of one person's request: give exactly one user")
    return [one if isinstance(one, Accepted) else Accepted.of(one, reference) for one in requests]


def _left_to_do(accepted: Sequence[Accepted], finished: Pending) -> list[Accepted]:
    """Return accepted requests, less what is erased already."""
    left = [(one, finished.left_of(one.request)) for one in accepted]
    return [one.model_copy(update={"items": request.items}) for one, request in left if request is not None]


def _refuse_many(requests: Sequence[Request | Accepted], known: Sequence[Accepted], knowledge: Knowledge) -> None:
    """Refuse to erase many people at once by mistake; whoever filed requests elsewhere was asked there."""
    extent = _extent(known, knowledge)
    if extent.large and not all(isinstance(one, Accepted) for one in requests):
        raise Refused(f"this erases {extent}: if that is meant, give forget yes=True; nothing was done")


def _extent(known: Sequence[Accepted], knowledge: Knowledge) -> Extent:
    return Extent(len({one.user for one in known}), knowledge.users)


def _known(asked: Sequence[Accepted], knowledge: Knowledge, ignore_unknown: bool) -> list[Accepted]:
    """Return what is held of what was asked for."""
    return [
        one.model_copy(update={"items": request.items})
        for one in asked
        for request in known_requests([one.request], knowledge, ignore_unknown)
    ]


def _roll(session: Session, outside: Outside, people: Sequence[Accepted]) -> Roll:
    """Return the do-not-learn list; where nobody is erased and nothing is said of it, it is not looked for."""
    if people or outside.listing.is_said:
        return roll_of(session, outside.listing, erasing=True)
    preferences = session.papers().preferences
    places = remembered_places(preferences, session.path)
    return Roll(places=places, without=preferences.without_do_not_learn)


def _carried_out(session: Session, pending: Pending, begun: Pending, rerun: bool, work: Work) -> Done:
    """Accept and erase; what goes wrong before the erasure is current takes back what was not begun earlier."""
    version = session.stamp.version
    try:
        accept(session, pending)
        return erase(session, pending, rerun, work)
    except BaseException:
        if session.stamp.version == version:
            withdraw(session, begun)
        raise


def _certified(session: Session, pending: Pending, outside: Outside, work: Work) -> list[Certificate]:
    try:
        if outside.erased is not None:
            outside.erased(pending)
        return certify(session, pending, outside, work)
    except KeyboardInterrupt:
        if session.path is None:  # in memory nothing of it lasts
            raise
        raise Unfinished(
            "stopped after the erasure and before its certificates: finish with ", resuming(session.path)
        ) from None


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
