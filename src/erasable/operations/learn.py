"""Learn: train a recommender that can forget, from a file or table."""

import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from erasable.chain.chain import carry_out_schedule, scheduled
from erasable.chain.dataset import Dataset
from erasable.chain.settings import Config
from erasable.data.ids import Ids
from erasable.errors import option, said
from erasable.models import calls
from erasable.models.base import Arrays
from erasable.models.registry import make_model
from erasable.operations.do_not_learn import Roll, beginning, readmitting
from erasable.operations.prepare import NO_INPUTS, Inputs, Prepared, prepare
from erasable.operations.recording import InputFacts, first_documents, remembering
from erasable.operations.storage import Session
from erasable.operations.work import QUIET_WORK, Work
from erasable.proof.do_not_learn import NONE_SUPPRESSED, SuppressedCount
from erasable.workspace.manifest import Preferences, Stamp
from erasable.workspace.workspace import Workspace

_BYTES_PER_USER = 32
_BYTES_PER_INTERACTION = 8
_NOTHING = 1e-6
_NOBODY_SHAPES = said(
    "nobody shapes the shared parameters: give a larger ", option("anchors"), ", or a higher ", option("risk_threshold")
)
_VANISHED = said(
    "next to nothing was learned from so little data: give a smaller ", option("regularisation"), ", like 1"
)


@dataclass(frozen=True)
class Learned(InputFacts):
    """What was learned, and how long training took."""

    users: int
    items: int
    interactions: int
    groups: int
    seconds: float
    held_out: int
    suppressed: int
    """How many people and single interactions were left out because they are on the do-not-learn list."""
    left_out: SuppressedCount = NONE_SUPPRESSED
    """The same, people and interactions apart."""
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
    """Learn into a session that is open for writing."""
    began = time.perf_counter()
    with beginning(session, inputs.listing) as roll:
        return _learned(session, prepare(source, config, inputs, work, roll.entries), roll, inputs, work, began)


def _learned(session: Session, prepared: Prepared, roll: Roll, inputs: Inputs, work: Work, began: float) -> Learned:
    dataset = prepared.dataset
    if not any(len(dataset.learners(position)) for position in range(dataset.stages)):
        work.reporter.doubt(_NOBODY_SHAPES)
    session.refuse_if_full(_room_for(dataset))
    schedule = scheduled(dataset)
    with work.training("learning", schedule.visits) as effort:
        state = carry_out_schedule(schedule, dataset, session.checkpoints, effort, executor=work.executor)
    if _vanished(session.checkpoints.get(state.stages[-1].fingerprint).parameters.shared):
        work.reporter.doubt(_VANISHED)
    with work.reporter.track("saving"):
        stamp = Stamp.after(0)
        documents = first_documents(state, stamp, len(inputs.readmit))
        # All ids count as whole numbers until a table says otherwise.
        preferences = Preferences(
            readable_by_group=inputs.readable_by_group, users_are_numbers=True, items_are_numbers=True
        )
        preferences = roll.remembered_by(remembering(preferences, prepared.source), session.path)
        with readmitting(session, roll, prepared.readmitted):
            session.commit(state, replace(documents, preferences=preferences), stamp)
    return Learned(
        users=dataset.users,
        items=len(dataset.items),
        interactions=dataset.interactions,
        groups=len(dataset.groups),
        seconds=time.perf_counter() - began,
        held_out=len(dataset.held_out),
        suppressed=prepared.suppressed.total,
        left_out=prepared.suppressed,
        readmitted=len(inputs.readmit),
        notes=roll.notes,
        **vars(InputFacts.of(prepared.source, dataset)),
    )


def _room_for(dataset: Dataset) -> int:
    """Return about how many bytes a workspace takes: shared parameters for each stage, trained rows, interactions."""
    model, seed = make_model(dataset.config), dataset.config.seed
    items, someone = dataset.items, Ids.of(["someone"])
    shared = calls.started(model, items, seed)
    solved = dataset.solves_rows
    row = {} if solved else calls.newcomers(model, calls.prepared(model, shared), someone, items, seed)
    each_stage, each_user = (sum(array.nbytes for array in arrays.values()) for arrays in (shared, row))
    users = (_BYTES_PER_USER + each_user) * dataset.users
    return each_stage * dataset.stages + users + _BYTES_PER_INTERACTION * dataset.interactions


def _vanished(shared: Arrays) -> bool:
    """Whether regularisation has shrunk all shared parameters to nothing."""
    return all(np.max(np.abs(array), initial=0) < _NOTHING for array in shared.values())


def samples_of(dataset: Dataset, places: Iterable[int] | None = None) -> int:
    """Return how many samples training the whole chain visits, or some of its stages; nothing is hashed."""
    model, epochs = make_model(dataset.config), dataset.config.stage_epochs
    wanted = range(dataset.stages) if places is None else places
    return sum(calls.counted(model, dataset.learners(place), epochs) for place in wanted)
