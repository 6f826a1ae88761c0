"""Learn more: new users and new interactions join a recommender, which becomes what learning from all of it gives."""

import time
from dataclasses import dataclass, replace
from typing import Any

from erasable.data import Catalogue, Interactions, read_catalogue
from erasable.errors import NotReproducible, Refused, WrongUse
from erasable.operations.home import Home, Session
from erasable.operations.prepare import NO_INPUTS, Inputs, read_source
from erasable.operations.recording import version_facts
from erasable.operations.work import QUIET_WORK, Work
from erasable.proof import add_record
from erasable.store import Stamp
from erasable.training import Earlier, Knowledge, differences, grown, train_chain
from erasable.unlearning import Plan, plan_change


@dataclass(frozen=True)
class LearnedMore:
    """What is known after learning more, what of it is new, and what it took."""

    users: int
    items: int
    interactions: int
    groups: int
    seconds: float
    users_added: int
    items_added: int
    interactions_added: int
    suppressed: int
    stages_rerun: int
    stages_total: int
    cost_ratio: float


def learn_more(
    home: Home,
    source: Any,  # noqa: ANN401 - a path or any table that data.read_interactions takes
    inputs: Inputs = NO_INPUTS,
    work: Work = QUIET_WORK,
) -> LearnedMore:
    """Learn more into a recommender; its settings, groups and rating scale stay. If anything fails nothing changes."""
    began = time.perf_counter()
    if inputs.groups_from is not None:
        raise WrongUse("who is known stays in the own group: leave out --groups-from")
    with home.writing() as session:
        _refuse_unready(session)
        before = session.state().knowledge
        read = read_source(source, inputs, before.scale, work.reporter, fewest_users=1)
        after = _grown(before, read.interactions, inputs, work)
        planned = _learned(session, after, work)
    return LearnedMore(
        users=after.users,
        items=len(after.catalogue.items),
        interactions=after.interactions,
        groups=len(after.groups),
        seconds=time.perf_counter() - began,
        users_added=after.users - before.users,
        items_added=len(after.catalogue.items) - len(before.catalogue.items),
        interactions_added=after.interactions - before.interactions,
        suppressed=read.suppressed,
        stages_rerun=planned.stages_rerun,
        stages_total=planned.stages_total,
        cost_ratio=planned.cost_ratio,
    )


def _refuse_unready(session: Session) -> None:
    if session.papers().pending:
        raise Refused("an erasure is not finished: finish it with erasable forget --resume, then learn more")
    found = differences(session.environment)
    if found:
        raise NotReproducible(
            f"this was learned in another numeric environment ({'; '.join(found)}): learn more there, or learn all "
            "again here"
        )


def _grown(before: Knowledge, coming: Interactions, inputs: Inputs, work: Work) -> Knowledge:
    catalogue = _catalogue(before.catalogue, coming, inputs)
    return grown(before.over(catalogue), coming.with_items(catalogue.items), work.grouping)


def _catalogue(catalogue: Catalogue, coming: Interactions, inputs: Inputs) -> Catalogue:
    """Return the catalogue with new items: those of a new list if it is declared, else those that come."""
    if inputs.catalogue is not None:
        return catalogue.grown(read_catalogue(inputs.catalogue).items)
    return catalogue if catalogue.declared else catalogue.grown(coming.items)


def _learned(session: Session, after: Knowledge, work: Work) -> Plan:
    """Make what is new of the chain, and the outcome current."""
    state = session.state()
    planned = plan_change(state, after)
    session.refuse_if_full(session.size)
    with work.training("learning", planned.samples) as effort:
        new = train_chain(after, session.checkpoints, effort, Earlier.of(state))
    with work.reporter.track("saving"):
        papers, stamp = session.papers(), Stamp.after(session.stamp.version)
        record = add_record(papers.audit, "learn more", version_facts(new, stamp))
        session.commit(new, replace(papers, audit=record), stamp)
    return planned
