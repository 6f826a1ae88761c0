"""Learn: from an input to a recommender that can forget."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from erasable.models import make_model
from erasable.operations.home import Session
from erasable.operations.prepare import NO_INPUTS, Inputs, prepare
from erasable.operations.work import QUIET_WORK, Work
from erasable.store import Workspace
from erasable.training import Config, Knowledge, train_chain


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
    knowledge = prepare(source, config, inputs, work)
    with work.training("learning", samples_of(knowledge)) as effort:
        state = train_chain(knowledge, session.checkpoints, effort)
    with work.reporter.track("saving"):
        session.commit(state)
    return Learned(
        users=knowledge.users,
        items=len(knowledge.catalogue.items),
        interactions=knowledge.interactions,
        groups=len(knowledge.groups),
        seconds=time.perf_counter() - began,
        held_out=len(knowledge.held_out),
        rating_scale=str(knowledge.scale),
    )


def samples_of(knowledge: Knowledge) -> int:
    """Return how many samples training the whole chain visits."""
    model, epochs = make_model(knowledge.config), knowledge.config.stage_epochs
    return sum(model.samples(group, epochs) for group in knowledge.groups)
