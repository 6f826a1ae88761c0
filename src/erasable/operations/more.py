"""Learn more: add users and interactions; the result is the same as learning from all of them at once."""

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from erasable.chain.arrangement import grown
from erasable.chain.chain import made_elsewhere
from erasable.chain.dataset import Dataset, State
from erasable.chain.plan import Plan, carry_out, plan_change
from erasable.data.columns import RememberedColumns, column_option
from erasable.data.interactions import Interactions
from erasable.errors import DataRefused, NotReproducible, Refused, Said, WrongUse, option, said
from erasable.operations.do_not_learn import Roll, readmitting, remember, roll_of
from erasable.operations.prepare import NO_INPUTS, Inputs, Read, declared_catalogue, read_source, risky_users
from erasable.operations.recording import InputFacts, readmission_facts, remembering, version_facts
from erasable.operations.recovery import is_left
from erasable.operations.storage import Session, Storage, resuming, upgrading
from erasable.operations.work import QUIET_WORK, Work
from erasable.proof.do_not_learn import SuppressedCount
from erasable.proof.log import add_record
from erasable.proof.search_file import read_search
from erasable.workspace.manifest import Stamp

_FOR_SCALE = said("for another scale learn everything again into another folder, with ", option("rating_scale"))


@dataclass(frozen=True)
class _Listed:
    """The do-not-learn list, what was read without the people on it, and how many come back."""

    roll: Roll
    read: Read
    people: int


@dataclass(frozen=True)
class LearnedMore(InputFacts):
    """Sizes after learning more, what of them is new, and what it cost."""

    users: int
    items: int
    interactions: int
    groups: int
    seconds: float
    users_added: int
    items_added: int
    items_unknown: int
    """How many items no stage has learned yet, so that they are recommended to nobody."""
    interactions_added: int
    suppressed: int
    left_out: SuppressedCount
    """How many people and single interactions were left out because they are on the do-not-learn list."""
    readmitted: int
    """How many people came back who were on that list."""
    notes: tuple[str, ...]
    """What is worth knowing about that list."""
    stages_rerun: int
    stages_total: int
    cost_ratio: float


def learn_more(
    storage: Storage,
    source: Any,  # noqa: ANN401 - a path or any table that data.read_interactions takes
    inputs: Inputs = NO_INPUTS,
    work: Work = QUIET_WORK,
    rerun: bool = False,
) -> LearnedMore:
    """Add data to a recommender; settings, groups and rating scale stay. If anything fails nothing changes.

    In another numeric environment than the one that learned, this is refused; with `rerun` everything is trained again.
    """
    began = time.perf_counter()
    if inputs.groups_from is not None:
        raise WrongUse("existing users keep their group: leave out ", option("groups_from"))
    with storage.writing() as session:
        _refuse_unready(storage, session, rerun)
        before, roll = _earlier(session, rerun).dataset, roll_of(session, inputs.listing, erasing=False)
        as_before = _as_before(inputs, session)
        read = read_source(source, as_before, before.scale, work.reporter, 1, _FOR_SCALE, roll.entries)
        _refuse_unlike(read, before)
        after = _grown(before, read, inputs, work) if len(read.interactions) else before
        planned = plan_change(_earlier(session, rerun), after)
        if len(read.interactions):
            _learn(session, after, planned, _Listed(roll, read, len(inputs.readmit)), work, rerun)
        else:  # everyone in the table is on the list
            remember(session, roll)
    return LearnedMore(
        users=after.users,
        items=len(after.items),
        interactions=after.interactions,
        groups=len(after.groups),
        seconds=time.perf_counter() - began,
        users_added=after.users - before.users,
        items_added=len({*after.items} - {*before.items}),
        items_unknown=int(np.count_nonzero(~after.known_to_some[_learned_items(after)])),
        interactions_added=after.interactions - before.interactions,
        suppressed=read.suppressed.total,
        left_out=read.suppressed,
        readmitted=len(inputs.readmit),
        notes=roll.notes,
        stages_rerun=planned.stages_rerun,
        stages_total=planned.stages_total,
        cost_ratio=planned.cost_ratio,
        **vars(InputFacts.of(read.source, after)),
    )


def _learned_items(dataset: Dataset) -> NDArray[np.int32]:
    """Return the items that someone has in training, not only in the holdout."""
    return np.unique(np.concatenate([group.item_index for group in dataset.groups]))


def _as_before(inputs: Inputs, session: Session) -> Inputs:
    """Return inputs that read the same columns as before, unless others are named."""
    remembered = dict(session.documents().preferences.columns)
    return replace(inputs, columns=RememberedColumns(**inputs.columns.given(), remembered=remembered))


def _refuse_unready(storage: Storage, session: Session, rerun: bool) -> None:
    """Refuse while an erasure is unfinished; one that can't be certified is set aside and does not block learning."""
    search = read_search(session.documents().pending)
    begun = search.accepted or any(one.found is None for one in search.people)
    if begun or any(map(is_left, storage.asked())):
        raise Refused("an erasure is not finished: finish it with ", resuming(session.path), ", then learn more")
    found = made_elsewhere(session.state())
    if found and not rerun:
        raise NotReproducible(
            f"this was learned {found.how} ({found}): bring it here with ",
            upgrading(session),
            ", then learn more; or learn more there",
        )


def _refuse_unlike(read: Read, before: Dataset) -> None:
    """Refuse a table that lacks ratings, or has risks, unlike the first one."""
    if not read.rated and before.scale.low < before.scale.high:
        raise DataRefused(
            f"there is no rating, and ratings go from {before.scale} here: name one with ", column_option("rating")
        )
    if read.risk is not None and before.config.risk_threshold is None:
        given = Said("risk=", "--risk-column")
        raise WrongUse("this was learned without ", option("risk_threshold"), ": leave out ", given)


def _grown(before: Dataset, read: Read, inputs: Inputs, work: Work) -> Dataset:
    risky = risky_users(read.risk, before.config) if read.risk is not None else ()
    return grown(_listing(before, read.interactions, inputs), read.interactions, work.grouping, risky)


def _listing(before: Dataset, coming: Interactions, inputs: Inputs) -> Dataset:
    """Return the dataset with its new catalogue: a declared one may be extended.

    A catalogue that 0.1 froze counts as declared until `upgrade`, and as in 0.1 new items join it.
    """
    if before.catalogue is None and inputs.catalogue is not None:
        raise WrongUse(
            "this was learned without ",
            option("catalogue"),
            ", so items follow the people: leave it out, or learn everything again into another folder with ",
            option("catalogue"),
        )
    if before.catalogue is None:
        return before
    if inputs.catalogue is not None:
        return replace(before, catalogue=before.catalogue.grown(declared_catalogue(inputs.catalogue)[0].items))
    if before.catalogue.declared:
        return before
    return replace(before, catalogue=before.catalogue.grown(coming.items))


def _earlier(session: Session, rerun: bool) -> State:
    """Return the current state; with `rerun` as if no stage were trained."""
    return session.state().untrained() if rerun else session.state()


def _learn(session: Session, after: Dataset, planned: Plan, listed: _Listed, work: Work, rerun: bool) -> None:
    """Train the stages that changed, or all, and make the result current."""
    state = _earlier(session, rerun)
    session.refuse_if_full(session.size)
    with work.training("learning", planned.samples) as effort:
        new = carry_out(planned, state, after, session.checkpoints, effort, work.executor)
    with work.reporter.track("saving"):
        documents, stamp = session.documents(), Stamp.after(session.stamp.version)
        facts = {**version_facts(new, stamp), **readmission_facts(listed.people)}
        preferences = remembering(documents.preferences, listed.read.source)
        preferences = listed.roll.remembered_by(preferences, session.path)
        sought = read_search(documents.pending).made_again(planned.rerun)
        log = add_record(documents.log, "learn more", facts)
        more = replace(documents, log=log, preferences=preferences, pending=sought.encoded())
        with readmitting(session, listed.roll, listed.read.readmitted):
            session.commit(new, more, stamp)
