"""Make a recommender equal to an export: learn what is new, forget what is missing, in one version."""

import secrets
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from erasable.chain.arrangement import matched
from erasable.chain.dataset import Dataset, State
from erasable.chain.matching import Difference, difference
from erasable.chain.plan import Plan, carry_out, plan_change
from erasable.errors import Refused, ResidueFound, Said, Unfinished, WrongUse, option
from erasable.operations.claims import COMMAND, NOT_CERTIFIED, RequestClaims, is_left, take_over
from erasable.operations.declared_items import also_declaring, declare_held
from erasable.operations.do_not_learn import OpenList, Outside, open_list_of, prepare_outside, remember, write_receipts
from erasable.operations.erase import Carried, Manner, Undertaking, erase, make_current
from erasable.operations.forget import LEASE_SECONDS, Extent, Fence, forget, is_worked_on, not_certified
from erasable.operations.learn import is_begun, items_unknown, read_further, refuse_elsewhere, with_catalogue
from erasable.operations.prepare import NO_INPUTS, Inputs, Read, risky_users, with_new_features
from erasable.operations.recording import InputFacts, remembering, version_facts
from erasable.operations.storage import Session, Storage, resuming
from erasable.operations.work import QUIET_WORK, Work
from erasable.proof.do_not_learn import ListedCount
from erasable.proof.issuing import FORMAT as RECEIPT_FORMAT
from erasable.proof.issuing import Receipt
from erasable.proof.log import add_record
from erasable.proof.search_file import Sought, read_search
from erasable.requests.lease import Lease, renewed
from erasable.requests.request import Event, Request
from erasable.requests.tokens import new_receipt_code, salt_of_code
from erasable.wording import counted
from erasable.workspace.manifest import Documents, Stamp

_FEWEST_ROWS = 0.5  # of those that are held
_LOOK_SECONDS = 0.5


@dataclass(frozen=True)
class SyncRules:
    """What a sync may do.

    Parameters
    ----------
    forget_missing : bool, default False
        Whether people and interactions that the export lacks are forgotten; else they stay.
    yes : bool, default False
        Needed to forget more than 1 % of the people, if that is more than 10.
    expect_rows : int, optional
        How many rows the export must have. Without it, one with less than half of the rows held is refused.
    dry_run : bool, default False
        Whether nothing is changed.
    certify : bool, default True
        Whether those who are forgotten are certified too; the worker of a service does that afterwards.

    Examples
    --------
    >>> SyncRules(forget_missing=True).yes
    False
    """

    forget_missing: bool = False
    yes: bool = False
    expect_rows: int | None = None
    dry_run: bool = False
    certify: bool = True


class ExportDoubted(Refused):
    """Refused because the export may be cut off or wrong; `why` names nobody."""

    def __init__(self, why: str, rows: int, *remedy: str, needs_yes: bool = False) -> None:
        super().__init__(why, *remedy, "; nothing was done")
        self.why = why
        self.rows = rows
        self.can_be_confirmed = bool(remedy)
        self.needs_yes = needs_yes


@dataclass(frozen=True)
class Synced(InputFacts):
    """What differed between an export and what was held, and what it cost to make them equal."""

    users: int
    items: int
    interactions: int
    items_unknown: int
    """How many items no stage has learned yet, so that they are recommended to nobody."""
    users_added: int
    interactions_added: int
    interactions_changed: int
    users_missing: int
    """How many people were held whom the export lacks."""
    interactions_missing: int
    """How many interactions it lacks of people whom it has."""
    users_lacking: int
    """How many people it lacks data of, all of it or some."""
    users_before: int
    """How many people were held before."""
    forgotten: bool
    """Whether those were forgotten; else they stay."""
    asked: int
    """How many people stay as they are because they have asked to be erased, which comes with their own request."""
    needs_yes: bool
    """Whether so many lack data that forgetting them needs `yes`."""
    certificates: tuple[str, ...]
    set_aside: tuple[str, ...]
    """Why some are forgotten but not certified, now or by an earlier sync: where something is left of them."""
    suppressed: int
    left_out: ListedCount
    """How many people and single interactions were left out because they are on the do-not-learn list."""
    notes: tuple[str, ...]
    stages_rerun: int
    stages_total: int
    cost_ratio: float
    seconds: float
    dry_run: bool


def sync(
    storage: Storage,
    source: Any,  # noqa: ANN401 - a path or any table that data.read_interactions takes
    inputs: Inputs = NO_INPUTS,
    rules: SyncRules = SyncRules(),  # noqa: B008 - frozen
    work: Work = QUIET_WORK,
    outside: Outside | None = None,
) -> Synced:
    """Make a recommender equal to an export, less those on the do-not-learn list, in one version.

    New and changed interactions are learned. With `forget_missing` what the export lacks is forgotten and certified;
    nobody is put on the do-not-learn list for it, so whoever is in a later export is learned again. People who have
    asked to be erased stay as they are: their own request erases them.
    """
    began, outside = time.perf_counter(), outside or Outside()
    _refuse_unfit(inputs)
    if rules.certify and not rules.dry_run:
        _finish_earlier(storage, work, outside)
    fence = Fence()
    with storage.fenced(fence).writing() as session:
        if is_begun(session) and not rules.dry_run:
            raise Refused("an erasure is not finished: finish it with ", resuming(session.path), ", then sync")
        refuse_elsewhere(session)
        if not rules.dry_run:
            prepare_outside(outside, session.path)
        found = _compared(storage, session, source, inputs, rules, work)
        requests = _requests(found.change)
        carried: Carried | None = Carried()
        if not rules.dry_run:
            made = Undertaking(requests, session.state(), found.after, found.plan)
            _commit(session, made, replace(found.read, items=inputs.items), found.open_list, work, began)
            if requests and rules.certify:
                carried = _certify(storage, session, fence, Manner(found.open_list, outside), work)
    certificates, set_aside = _certified(storage, requests, carried, work, outside)
    set_aside += _set_aside_earlier(storage, requests) if rules.certify else ()
    return found.synced(rules, certificates, set_aside, began)


@dataclass(frozen=True)
class _Comparison:
    """An export beside what is held, and what makes both equal."""

    read: Read
    asked: int
    """How many people are left alone because they have asked to be erased."""
    everything: Difference
    """All that differs."""
    extent: Extent
    """How many lack data."""
    change: Difference
    """What of the difference is carried out: without leave to forget, what is missing stays."""
    after: Dataset
    plan: Plan
    open_list: OpenList

    def synced(
        self, rules: SyncRules, certificates: tuple[str, ...], set_aside: tuple[str, ...], began: float
    ) -> Synced:
        """Return what differed, and what it cost."""
        read, everything, after, plan = self.read, self.everything, self.after, self.plan
        return Synced(
            users=after.users,
            items=len(after.items),
            interactions=after.interactions,
            items_unknown=items_unknown(after),
            users_added=everything.users_added,
            interactions_added=everything.interactions_added,
            interactions_changed=everything.interactions_changed,
            users_missing=len(everything.missing),
            interactions_missing=everything.interactions_vanished,
            users_lacking=self.extent.people,
            users_before=self.extent.people_total,
            forgotten=rules.forget_missing,
            asked=self.asked,
            needs_yes=self.extent.large,
            certificates=certificates,
            set_aside=set_aside,
            suppressed=read.suppressed.total,
            left_out=read.suppressed,
            notes=(*read.source.notices, *read.notes, *self.open_list.notes),
            stages_rerun=plan.stages_rerun,
            stages_total=plan.stages_total,
            cost_ratio=plan.cost_ratio,
            seconds=time.perf_counter() - began,
            dry_run=rules.dry_run,
            **vars(InputFacts.of(read.source, after)),
        )


def _compared(
    storage: Storage,
    session: Session,
    source: Any,  # noqa: ANN401 - path or table
    inputs: Inputs,
    rules: SyncRules,
    work: Work,
) -> _Comparison:
    """Read an export and compare it with what is held; refuse one that looks cut off."""
    before = session.state().dataset
    open_list = open_list_of(session, inputs.listing, erasing=False)
    read = read_further(source, inputs, before, session, open_list, work)
    _refuse_rows(read, before, rules)
    asked = {one.user for one in storage.asked()}  # also who has asked while the export was read
    with work.reporter.track("comparing"):
        found = difference(before, read.interactions, asked)
    extent = Extent(len(found.missing.union(found.vanished)), before.users)
    if not rules.dry_run:
        _refuse_many(extent, read.source.rows, rules)
    change = found if rules.forget_missing else found.keeping_what_is_missing()
    after = _after(before, read, change, inputs, work)
    return _Comparison(read, len(asked), found, extent, change, after, plan_change(session.state(), after), open_list)


def _refuse_unfit(inputs: Inputs) -> None:
    """Refuse inputs that a sync has no use for."""
    if inputs.groups_from is not None:
        raise WrongUse("existing users keep their group: leave out ", option("groups_from"))
    if inputs.readmit:
        raise WrongUse(
            "a sync takes nobody off the do-not-learn list: leave out ",
            option("readmit"),
            ", or learn those who come back first, with ",
            Said("learn_more(table, readmit=ids)", "learn --more --readmit U"),
        )


def _finish_earlier(storage: Storage, work: Work, outside: Outside) -> None:
    """Finish what a killed command began or a sync could not certify, unless a worker does."""
    with storage.reading() as session:
        begun, uncertified = is_begun(session), any(_forgotten_by_syncs(session))
    if is_worked_on(storage):
        _wait_for_worker(storage, _sought(storage), work)
    elif begun or any(map(is_left, storage.asked())):
        forget(storage, (), work=work, outside=outside)
    elif uncertified:
        with suppress(ResidueFound):  # said at the end
            forget(storage, (), work=work, outside=outside)


def _refuse_rows(read: Read, before: Dataset, rules: SyncRules) -> None:
    """Refuse an export that looks cut off; what is left of it without bad rows and those on the list counts."""
    rows, usable = read.source.rows, len(read.interactions)
    if rules.expect_rows is not None and rows != rules.expect_rows:
        raise ExportDoubted(f"the export has {rows:,} rows instead of {rules.expect_rows:,}", rows)
    if not usable:
        raise ExportDoubted("nothing is left of the export without what is on the do-not-learn list", rows)
    if rules.expect_rows is None and usable < _FEWEST_ROWS * before.interactions:
        held = f"the export has {usable:,} interactions in {rows:,} rows, and {before.interactions:,} are held"
        raise ExportDoubted(held, rows, ": if it is whole, give ", option("expect_rows", rows))


def _refuse_many(extent: Extent, rows: int, rules: SyncRules) -> None:
    if rules.forget_missing and extent.large and not rules.yes:
        lacking, yes = f"the export lacks data of {extent}", Said("yes=True", "--yes")
        raise ExportDoubted(lacking, rows, ": if they are to be forgotten, give ", yes, needs_yes=True)


def _after(before: Dataset, read: Read, change: Difference, inputs: Inputs, work: Work) -> Dataset:
    renewed = with_new_features(before, inputs)
    wider = with_catalogue(renewed, read.interactions, inputs)
    if not change.touched and wider.catalogue == renewed.catalogue:
        return renewed
    risky = risky_users(read.risk, before.config) if read.risk is not None else ()
    return matched(wider, read.interactions, change, work.grouping, risky)


def _requests(change: Difference) -> list[Request]:
    """Return a request for each person whose data is missing, with an id and a code of its own."""
    now, whole = datetime.now(UTC), dict.fromkeys(sorted(change.missing))
    return [
        Request(user, items, number, new_receipt_code(), (Event(0, number, now, "received", "received", COMMAND, {}),))
        for user, items in (whole | dict(sorted(change.vanished.items()))).items()
        for number in [secrets.token_hex(16)]
    ]


def _commit(session: Session, change: Undertaking, read: Read, open_list: OpenList, work: Work, began: float) -> None:
    """Train, and make the result current, with a search for those who are forgotten."""
    if change.after is change.before.dataset:
        remember(session, open_list)
        declare_held(session, read.items)
        return
    recorded = partial(_recorded, session=session, read=read, open_list=open_list, plan=change.plan)
    if change.requests:
        make_current(session, change, None, None, work, began, recorded)
        return
    session.refuse_if_full(session.size)
    with work.tasks_of(session) as executor, work.training("learning", change.plan.samples) as effort:
        new = carry_out(change.plan, change.before, change.after, session.checkpoints, effort, executor)
    with work.reporter.track("saving"):
        stamp = Stamp.after(session.stamp.version)
        session.commit(new, recorded(session.documents(), new, stamp), stamp)


def _recorded(
    documents: Documents, state: State, stamp: Stamp, session: Session, read: Read, open_list: OpenList, plan: Plan
) -> Documents:
    """Return the documents of the new version: one record in the log, and what is remembered of the input."""
    preferences = open_list.remembered_by(remembering(documents.preferences, read.source), session.path)
    sought = read_search(documents.pending).made_again(plan.rerun)
    log = add_record(documents.log, "sync", version_facts(state, stamp))
    documents = replace(documents, log=log, preferences=preferences, pending=sought.encoded())
    return also_declaring(documents, session.declared_items(), read.items, stamp)


def _certify(storage: Storage, session: Session, fence: Fence, manner: Manner, work: Work) -> Carried | None:
    """Certify in the same session what was forgotten; None if the worker of a service holds the lease, who does it."""
    with storage.queue(session) as queue:
        lease = Lease(queue.database, LEASE_SECONDS)
        if not lease.take():
            return None
        with renewed(lease):
            fence.lease = lease
            claims = RequestClaims(queue, lease, COMMAND)
            take_over(session, claims)
            try:
                carried = erase(session, claims, (), (), manner, work)
            except KeyboardInterrupt:
                if session.path is None:
                    raise
                ways = resuming(session.path), ", or with the next sync"
                raise Unfinished("interrupted between forgetting and certificates: finish with ", *ways) from None
            claims.end(carried.outcomes, carried.rejected)
            claims.fail(sorted(carried.set_aside), NOT_CERTIFIED)
            fence.lease = None
    return carried


def _certified(
    storage: Storage, requests: Sequence[Request], carried: Carried | None, work: Work, outside: Outside
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the certificates, and why some are missing; if the worker of a service makes them, wait for it."""
    wanted = {one.request_id: one for one in requests}
    if carried is not None:
        names = [*carried.outcomes]
        set_aside = tuple(not_certified(why, storage.path) for one, why in carried.set_aside.items() if one in wanted)
        return tuple(storage.certificate_place(f"{one}.json") for one in names if one in wanted), set_aside
    _wait_for_worker(storage, wanted, work)
    if wanted.keys() & _sought(storage):  # it has ended
        forget(storage, (), work=work, outside=outside)
    with storage.reading() as session:
        issued = session.issued()
    names = [one for one in wanted if f"{one}.json" in issued]
    if outside.receipts is not None:
        write_receipts([_receipt(wanted[one]) for one in names], outside.receipts)
    left = counted(len(wanted) - len(names), "person", "people")
    set_aside = (not_certified(f"something is left of {left}", storage.path),) if len(names) < len(wanted) else ()
    return tuple(storage.certificate_place(f"{one}.json") for one in names), set_aside


def _set_aside_earlier(storage: Storage, requests: Sequence[Request]) -> tuple[str, ...]:
    """Return why some whom an earlier sync forgot are still not certified: each night says so until they are."""
    ours = {one.request_id for one in requests}
    with storage.reading() as session:
        left = [one.found for one in _forgotten_by_syncs(session) if one.request_id not in ours]
    return tuple(not_certified(found, storage.path) for found in left if found is not None)


def _forgotten_by_syncs(session: Session) -> Iterator[Sought]:
    """Return whom a sync forgot and nobody certified yet."""
    erasures = read_search(session.documents().pending).erasures
    return (one for erased in erasures if erased.may_return for one in erased.people)


def _wait_for_worker(storage: Storage, request_ids: Collection[str], work: Work) -> None:
    """Wait as long as a worker is there and has these to certify."""
    with work.reporter.track("waiting for the worker"):
        while is_worked_on(storage) and _sought(storage).intersection(request_ids):
            time.sleep(_LOOK_SECONDS)


def _receipt(request: Request) -> Receipt:
    return Receipt(
        format=RECEIPT_FORMAT,
        request_id=request.request_id,
        user_id=request.user,
        items=request.items,
        salt=salt_of_code(request.receipt_code or ""),
    )


def _sought(storage: Storage) -> set[str]:
    """Return who is erased and not searched for yet."""
    with storage.reading() as session:
        return {one.request_id for one in read_search(session.documents().pending).people if one.found is None}
