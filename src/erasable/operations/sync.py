"""Make a recommender equal to an export: learn what is new, forget what is missing, in one version."""

import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from erasable.chain.arrangement import matched
from erasable.chain.dataset import Dataset, State
from erasable.chain.matching import Difference, difference
from erasable.chain.plan import Plan, carry_out, plan_change
from erasable.errors import Refused, Said, option
from erasable.operations.claims import COMMAND
from erasable.operations.declared_items import also_declaring, declare_held
from erasable.operations.do_not_learn import OpenList, Outside, open_list_of, remember
from erasable.operations.erase import Undertaking, make_current
from erasable.operations.forget import Extent, forget, is_worked_on
from erasable.operations.learn import read_further, refuse_unready, with_catalogue
from erasable.operations.prepare import NO_INPUTS, Inputs, Read, risky_users, with_new_features
from erasable.operations.recording import InputFacts, remembering, version_facts
from erasable.operations.storage import Session, Storage
from erasable.operations.work import QUIET_WORK, Work
from erasable.proof.do_not_learn import ListedCount
from erasable.proof.log import add_record
from erasable.proof.search_file import read_search
from erasable.requests.request import Event, Request
from erasable.requests.tokens import new_receipt_code
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

    Examples
    --------
    >>> SyncRules(forget_missing=True).yes
    False
    """

    forget_missing: bool = False
    yes: bool = False
    expect_rows: int | None = None
    dry_run: bool = False


@dataclass(frozen=True)
class Synced(InputFacts):
    """What differed between an export and what was held, and what it cost to make them equal."""

    users: int
    items: int
    interactions: int
    users_added: int
    interactions_added: int
    interactions_changed: int
    users_missing: int
    """How many people were held whom the export lacks."""
    interactions_missing: int
    """How many interactions it lacks of people whom it has."""
    forgotten: bool
    """Whether those were forgotten; else they stay."""
    asked: int
    """How many people stay as they are because they have asked to be erased, which comes with their own request."""
    certificates: tuple[str, ...]
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
    began = time.perf_counter()
    with storage.writing() as session:
        refuse_unready(storage, session, rerun=False)
        before = session.state().dataset
        open_list = open_list_of(session, inputs.listing, erasing=False)
        read = read_further(source, inputs, before, session, open_list, work)
        _refuse_rows(read.source.rows, before, rules)
        asked = {one.user for one in storage.asked()}
        with work.reporter.track("comparing"):
            found = difference(before, read.interactions, asked)
        _refuse_many(found, before, rules)
        change = found if rules.forget_missing else found.keeping_what_is_missing()
        after = _after(before, read, change, inputs, work)
        planned = plan_change(session.state(), after)
        requests = _requests(change)
        if not rules.dry_run:
            change_made = Undertaking(requests, session.state(), after, planned)
            _commit(session, change_made, replace(read, items=inputs.items), open_list, work, began)
    certificates = () if rules.dry_run else _certify(storage, requests, work, outside or Outside())
    return Synced(
        users=after.users,
        items=len(after.items),
        interactions=after.interactions,
        users_added=found.users_added,
        interactions_added=found.interactions_added,
        interactions_changed=found.interactions_changed,
        users_missing=len(found.missing),
        interactions_missing=found.interactions_vanished,
        forgotten=rules.forget_missing,
        asked=len(asked),
        certificates=certificates,
        suppressed=read.suppressed.total,
        left_out=read.suppressed,
        notes=open_list.notes,
        stages_rerun=planned.stages_rerun,
        stages_total=planned.stages_total,
        cost_ratio=planned.cost_ratio,
        seconds=time.perf_counter() - began,
        dry_run=rules.dry_run,
        **vars(InputFacts.of(read.source, after)),
    )


def _refuse_rows(rows: int, before: Dataset, rules: SyncRules) -> None:
    """Refuse an export that looks cut off."""
    if rules.expect_rows is not None:
        if rows != rules.expect_rows:
            raise Refused(f"the export has {rows:,} rows instead of {rules.expect_rows:,}: nothing was done")
    elif rows < _FEWEST_ROWS * before.interactions:
        raise Refused(
            f"the export has {rows:,} rows, and {before.interactions:,} interactions are held: if it is whole, give ",
            option("expect_rows", rows),
            "; nothing was done",
        )


def _refuse_many(found: Difference, before: Dataset, rules: SyncRules) -> None:
    extent = Extent(len(found.missing.union(found.vanished)), before.users)
    if rules.forget_missing and extent.large and not (rules.yes or rules.dry_run):
        raise Refused(
            f"the export lacks data of {extent}: if they are to be forgotten, give ",
            Said("yes=True", "--yes"),
            "; nothing was done",
        )


def _after(before: Dataset, read: Read, change: Difference, inputs: Inputs, work: Work) -> Dataset:
    renewed = with_new_features(before, inputs)
    if not change.touched:
        return renewed
    risky = risky_users(read.risk, before.config) if read.risk is not None else ()
    return matched(with_catalogue(renewed, read.interactions, inputs), read.interactions, change, work.grouping, risky)


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


def _certify(storage: Storage, requests: Sequence[Request], work: Work, outside: Outside) -> tuple[str, ...]:
    """Certify what was forgotten, or wait until the worker of a service has done so."""
    if not requests:
        return ()
    wanted = {one.request_id for one in requests}
    if is_worked_on(storage):
        with work.reporter.track("waiting for the worker"):
            while is_worked_on(storage) and wanted & _sought(storage):
                time.sleep(_LOOK_SECONDS)
    if wanted & _sought(storage):
        forget(storage, (), work=work, outside=outside)
    with storage.reading() as session:
        issued = session.issued()
    names = sorted(f"{one}.json" for one in wanted if f"{one}.json" in issued)
    return tuple(map(storage.certificate_place, names))


def _sought(storage: Storage) -> set[str]:
    """Return who is erased and not searched for yet."""
    with storage.reading() as session:
        return {one.request_id for one in read_search(session.documents().pending).people if one.found is None}
