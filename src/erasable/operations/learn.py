"""Learn: from an input to a recommender that can forget."""

import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from erasable.data import Ids
from erasable.errors import option, said
from erasable.models import Arrays, calls, make_model
from erasable.operations.do_not_learn import Roll, beginning, readmitting
from erasable.operations.home import Session
from erasable.operations.input_facts import InputFacts, remembering
from erasable.operations.prepare import NO_INPUTS, Inputs, Prepared, prepare
from erasable.operations.recording import first_papers
from erasable.operations.work import QUIET_WORK, Work
from erasable.proof.suppression import NONE_SUPPRESSED, SuppressedCount
from erasable.store import Preferences, Stamp, Workspace
from erasable.training import Config, Knowledge, carry_out, scheduled

_BYTES_PER_USER = 32
_BYTES_PER_INTERACTION = 8
_NOTHING = 1e-6
_NOBODY_SHAPES = said(
    "nobody shapes what people share: give a larger ", option("anchors"), ", or a higher ", option("risk_threshold")
)
_VANISHED = said(
    "next to nothing was learned from so little data: give a smaller ", option("regularisation"), ", like 1"
)


@dataclass(frozen=True)
class Learned(InputFacts):
    """What was learned, and how long it took."""

    users: int
    items: int
    interactions: int
    groups: int
    seconds: float
    held_out: int
    suppressed: int
    """How many people and single interactions were left out because they are on the do-not-learn list."""
    left_out: SuppressedCount = NONE_SUPPRESSED
    """The same, apart."""
    readmitted: int = 0
    """How many people came back who were on that list."""
    notes: tuple[str, ...] = ()
    """What is worth knowing about that list."""


def learn(
    source: Any,  # noqa: ANN401 - a path or any table that data.read_interactions takes
    into: Path,
    config: Config,
    inputs: Inputs = NO_INPUTS,
    work: Work = QUIET_WORK,
) -> Learned:
    """Learn from a file or table into a new workspace; if anything fails nothing is left behind."""
    with Workspace.creating(into, inputs.readable_by_group) as workspace:
        return learn_into(workspace, source, config, inputs, work)


def learn_into(session: Session, source: Any, config: Config, inputs: Inputs, work: Work) -> Learned:  # noqa: ANN401
    """Learn into a home that is open for writing."""
    began = time.perf_counter()
    with beginning(session, inputs.listing) as roll:
        return _learned(session, prepare(source, config, inputs, work, roll.entries), roll, inputs, work, began)


def _learned(session: Session, prepared: Prepared, roll: Roll, inputs: Inputs, work: Work, began: float) -> Learned:
    knowledge = prepared.knowledge
    if not any(len(knowledge.learners(position)) for position in range(knowledge.stages)):
        work.reporter.doubt(_NOBODY_SHAPES)
    session.refuse_if_full(_room_for(knowledge))
    schedule = scheduled(knowledge)
    with work.training("learning", schedule.visits) as effort:
        state = carry_out(schedule, knowledge, session.checkpoints, effort, executor=work.executor)
    if _vanished(session.checkpoints.get(state.stages[-1].fingerprint).parameters.shared):
        work.reporter.doubt(_VANISHED)
    with work.reporter.track("saving"):
        stamp = Stamp.after(0)
        papers = first_papers(state, stamp, len(inputs.readmit))
        # Nothing was learned before that speaks against whole numbers.
        preferences = Preferences(
            readable_by_group=inputs.readable_by_group, users_are_numbers=True, items_are_numbers=True
        )
        preferences = roll.remembered_by(remembering(preferences, prepared.source), session.path)
        with readmitting(session, roll, prepared.readmitted):
            session.commit(state, replace(papers, preferences=preferences), stamp)
    return Learned(
        users=knowledge.users,
        items=len(knowledge.items),
        interactions=knowledge.interactions,
        groups=len(knowledge.groups),
        seconds=time.perf_counter() - began,
        held_out=len(knowledge.held_out),
        suppressed=prepared.suppressed.total,
        left_out=prepared.suppressed,
        readmitted=len(inputs.readmit),
        notes=roll.notes,
        **vars(InputFacts.of(prepared.source, knowledge)),
    )


def _room_for(knowledge: Knowledge) -> int:
    """Return about how many bytes a workspace takes: shared parameters for each stage, trained rows, interactions."""
    model, seed = make_model(knowledge.config), knowledge.config.seed
    items, someone = knowledge.items, Ids.of(["someone"])
    shared = calls.started(model, items, seed)
    solved = knowledge.solves_rows
    row = {} if solved else calls.newcomers(model, calls.prepared(model, shared), someone, items, seed)
    each_stage, each_user = (sum(array.nbytes for array in arrays.values()) for arrays in (shared, row))
    users = (_BYTES_PER_USER + each_user) * knowledge.users
    return each_stage * knowledge.stages + users + _BYTES_PER_INTERACTION * knowledge.interactions


def _vanished(shared: Arrays) -> bool:
    """Whether regularisation has made everything that people share vanish."""
    return all(np.max(np.abs(array), initial=0) < _NOTHING for array in shared.values())


def samples_of(knowledge: Knowledge, places: Iterable[int] | None = None) -> int:
    """Return how many samples making the whole chain visits, or the stages at some places; nothing is hashed."""
    model, epochs = make_model(knowledge.config), knowledge.config.stage_epochs
    wanted = range(knowledge.stages) if places is None else places
    return sum(calls.counted(model, knowledge.learners(place), epochs) for place in wanted)
