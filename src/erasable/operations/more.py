"""Learn more: new users and new interactions join a recommender, which becomes what learning from all of it gives."""

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from erasable.data import Interactions, RememberedColumns, column_option
from erasable.errors import DataRefused, NotReproducible, Refused, Said, WrongUse, option, said
from erasable.operations.do_not_learn import Roll, readmitting, remember, roll_of
from erasable.operations.home import Home, Session, resuming, upgrading
from erasable.operations.input_facts import InputFacts, remembering
from erasable.operations.prepare import NO_INPUTS, Inputs, Read, declared_catalogue, read_source, risky_users
from erasable.operations.recording import readmission_facts, version_facts
from erasable.operations.recovery import is_left
from erasable.operations.work import QUIET_WORK, Work
from erasable.proof import add_record, read_search
from erasable.proof.suppression import SuppressedCount
from erasable.store import Stamp
from erasable.training import Knowledge, State, grown, made_elsewhere
from erasable.unlearning import Plan, carry_out, plan_change

_FOR_SCALE = said("for another scale learn all anew into another folder, with ", option("rating_scale"))


@dataclass(frozen=True)
class _Listed:
    """The do-not-learn list, what was read without those on it, and how many people come back."""

    roll: Roll
    read: Read
    people: int


@dataclass(frozen=True)
class LearnedMore(InputFacts):
    """What is known after learning more, what of it is new, and what it took."""

    users: int
    items: int
    interactions: int
    groups: int
    seconds: float
    users_added: int
    items_added: int
    items_unknown: int
    """How many items no stage has learned from yet, so that they are recommended to nobody."""
    interactions_added: int
    suppressed: int
    left_out: SuppressedCount
    """The people and single interactions that were left out because they are on the do-not-learn list."""
    readmitted: int
    """How many people came back who were on that list."""
    notes: tuple[str, ...]
    """What is worth knowing about that list."""
    stages_rerun: int
    stages_total: int
    cost_ratio: float


def learn_more(
    home: Home,
    source: Any,  # noqa: ANN401 - a path or any table that data.read_interactions takes
    inputs: Inputs = NO_INPUTS,
    work: Work = QUIET_WORK,
    rerun: bool = False,
) -> LearnedMore:
    """Learn more into a recommender; its settings, groups and rating scale stay. If anything fails nothing changes.

    In a numeric environment other than the one that learned, this is refused; with `rerun` everything is trained again.
    """
    began = time.perf_counter()
    if inputs.groups_from is not None:
        raise WrongUse("existing users keep their group: leave out ", option("groups_from"))
    with home.writing() as session:
        _refuse_unready(home, session, rerun)
        before, roll = _earlier(session, rerun).knowledge, roll_of(session, inputs.listing, erasing=False)
        as_before = _as_before(inputs, session)
        read = read_source(source, as_before, before.scale, work.reporter, 1, _FOR_SCALE, roll.entries)
        _refuse_unlike(read, before)
        after = _grown(before, read, inputs, work) if len(read.interactions) else before
        planned = plan_change(_earlier(session, rerun), after)
        if len(read.interactions):
            _learn(session, after, planned, _Listed(roll, read, len(inputs.readmit)), work, rerun)
        else:  # everyone who comes is on the list
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


def _learned_items(knowledge: Knowledge) -> NDArray[np.int32]:
    """Return the items that someone has in training, not only among what is held out."""
    return np.unique(np.concatenate([group.item_index for group in knowledge.groups]))


def _as_before(inputs: Inputs, session: Session) -> Inputs:
    """Read the columns that were read before, unless others are named."""
    remembered = dict(session.papers().preferences.columns)
    return replace(inputs, columns=RememberedColumns(**inputs.columns.given(), remembered=remembered))


def _refuse_unready(home: Home, session: Session, rerun: bool) -> None:
    """Refuse while something is begun; whoever could not be certified is set aside, and keeps nobody from learning."""
    search = read_search(session.papers().pending)
    begun = search.accepted or any(one.found is None for one in search.people)
    if begun or any(map(is_left, home.asked())):
        raise Refused("an erasure is not finished: finish it with ", resuming(session.path), ", then learn more")
    found = made_elsewhere(session.state())
    if found and not rerun:
        raise NotReproducible(
            f"this was learned {found.how} ({found}): bring it here with ",
            upgrading(session),
            ", then learn more; or learn more there",
        )


def _refuse_unlike(read: Read, before: Knowledge) -> None:
    """Refuse a table that says less than the first one did."""
    if not read.rated and before.scale.low < before.scale.high:
        raise DataRefused(
            f"there is no rating, and ratings go from {before.scale} here: name one with ", column_option("rating")
        )
    if read.risk is not None and before.config.risk_threshold is None:
        given = Said("risk=", "--risk-column")
        raise WrongUse("this was learned without ", option("risk_threshold"), ": leave out ", given)


def _grown(before: Knowledge, read: Read, inputs: Inputs, work: Work) -> Knowledge:
    risky = risky_users(read.risk, before.config) if read.risk is not None else ()
    return grown(_listing(before, read.interactions, inputs), read.interactions, work.grouping, risky)


def _listing(before: Knowledge, coming: Interactions, inputs: Inputs) -> Knowledge:
    """Return the knowledge with the list of items that counts from now on: one that was declared may be extended.

    What 0.1 froze counts as declared until `upgrade`, and as in 0.1 it takes in the items that come.
    """
    if before.catalogue is None and inputs.catalogue is not None:
        raise WrongUse(
            "this was learned without ",
            option("catalogue"),
            ", so items follow the people: leave it out, or learn all anew into another folder with ",
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
    """Return what is there already; with `rerun` nothing of the chain counts."""
    return session.state().untrained() if rerun else session.state()


def _learn(session: Session, after: Knowledge, planned: Plan, listed: _Listed, work: Work, rerun: bool) -> None:
    """Make what is new of the chain, or all of it, and the outcome current."""
    state = _earlier(session, rerun)
    session.refuse_if_full(session.size)
    with work.training("learning", planned.samples) as effort:
        new = carry_out(planned, state, after, session.checkpoints, effort, work.executor)
    with work.reporter.track("saving"):
        papers, stamp = session.papers(), Stamp.after(session.stamp.version)
        facts = {**version_facts(new, stamp), **readmission_facts(listed.people)}
        preferences = remembering(papers.preferences, listed.read.source)
        preferences = listed.roll.remembered_by(preferences, session.path)
        sought = read_search(papers.pending).made_again(planned.rerun)
        audit = add_record(papers.audit, "learn more", facts)
        more = replace(papers, audit=audit, preferences=preferences, pending=sought.encoded())
        with readmitting(session, listed.roll, listed.read.readmitted):
            session.commit(new, more, stamp)
