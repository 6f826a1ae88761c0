"""Learn: from an input to a recommender that can forget."""

import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from erasable.models import Arrays, make_model
from erasable.operations.home import Session
from erasable.operations.prepare import NO_INPUTS, Inputs, prepare
from erasable.operations.recording import first_papers
from erasable.operations.work import QUIET_WORK, Work
from erasable.store import Stamp, Workspace
from erasable.training import Config, Knowledge, steps_of, train_chain

_BYTES_PER_USER = 128
_NOTHING = 1e-6


@dataclass(frozen=True)
class Learned:
    """What was learned, and how long it took."""

    users: int
    items: int
    interactions: int
    groups: int
    seconds: float
    held_out: int
    rating_scale: str
    suppressed: int
    """How many people and single interactions were left out because they are on the suppression list."""


def learn(
    source: Any,  # noqa: ANN401 - a path or any table that data.read_interactions takes
    into: Path,
    config: Config,
    inputs: Inputs = NO_INPUTS,
    work: Work = QUIET_WORK,
) -> Learned:
    """Learn from a file or table into a new workspace; if anything fails nothing is left behind."""
    with Workspace.creating(into) as workspace:
        return learn_into(workspace, source, config, inputs, work)


def learn_into(session: Session, source: Any, config: Config, inputs: Inputs, work: Work) -> Learned:  # noqa: ANN401
    """Learn into a home that is open for writing."""
    began = time.perf_counter()
    make_model(config)  # refuses a model that is not there before any work
    if config.strategy == "retrain" and "groups" in config.model_fields_set:
        work.reporter.note("retrain trains everyone in one group: the number of groups given is not used")
    prepared = prepare(source, config, inputs, work)
    knowledge = prepared.knowledge
    session.refuse_if_full(_room_for(knowledge))
    with work.training("learning", samples_of(knowledge)) as effort:
        state = train_chain(knowledge, session.checkpoints, effort)
    if _vanished(session.checkpoints.get(state.stages[-1].fingerprint).parameters.shared):
        work.reporter.note(
            "next to nothing was learned from so little data: give a smaller --regularisation, like 1"
        )
    with work.reporter.track("saving"):
        stamp = Stamp.after(0)
        session.commit(state, first_papers(state, stamp), stamp)
    return Learned(
        users=knowledge.users,
        items=len(knowledge.catalogue.items),
        interactions=knowledge.interactions,
        groups=len(knowledge.groups),
        seconds=time.perf_counter() - began,
        held_out=len(knowledge.held_out),
        rating_scale=str(knowledge.scale),
        suppressed=prepared.suppressed,
    )


def _room_for(knowledge: Knowledge) -> int:
    """Return about how many bytes a workspace takes: shared parameters for each stage, rows, interactions."""
    shared = make_model(knowledge.config).start(knowledge.catalogue.items, knowledge.config.seed)
    each_stage = sum(array.nbytes for array in shared.values())
    return each_stage * len(knowledge.groups) + _BYTES_PER_USER * knowledge.users + 8 * knowledge.interactions


def _vanished(shared: Arrays) -> bool:
    """Whether regularisation has made everything that people share vanish."""
    return all(np.max(np.abs(array), initial=0) < _NOTHING for array in shared.values())


def samples_of(knowledge: Knowledge, places: Iterable[int] | None = None) -> int:
    """Return how many samples making the whole chain visits, or the steps at some places."""
    steps = steps_of(knowledge)
    return sum(steps[place].samples for place in (range(len(steps)) if places is None else places))
