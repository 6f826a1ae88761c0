"""The paper's SeqTrain module: a chain of stages, one for each group, with a checkpoint after each.

A checkpoint is named by a fingerprint of everything that made it. So learning and forgetting are the same function:
work out the names along the chain, keep every checkpoint whose name is already there, and train those that are not.
Under the strategy sisa every stage begins at the origin, so that one does not follow from another.
"""

import time
from collections.abc import Sequence
from typing import NamedTuple

from erasable import fingerprint
from erasable.errors import Refused
from erasable.models import Arrays, Effort, Parameters, Stage, make_model
from erasable.training.checkpoint import Checkpoint, CheckpointStore
from erasable.training.side_by_side import side_by_side
from erasable.training.state import Knowledge, Link, State

ORIGIN = "origin"


def stage_names(knowledge: Knowledge) -> list[str]:
    """Return the fingerprint of each stage's checkpoint: parent, the group's rows, catalogue, settings and seed."""
    names: list[str] = []
    for position, group in enumerate(knowledge.groups):
        facts = {
            "parent": _parent(names, position, knowledge),
            "position": position,
            "rows": group.digest(),
            "catalogue": knowledge.catalogue.digest(),
            "scale": knowledge.scale.high,
            "settings": knowledge.config.stage_facts(),
            "seed": knowledge.config.seed,
        }
        names.append(fingerprint.of_value(facts))
    return names


def stages_to_run(names: Sequence[str], chain: Sequence[Link]) -> tuple[int, ...]:
    """Return the positions whose checkpoints differ from those of a chain trained earlier."""
    trained = [link.fingerprint for link in chain]
    return tuple(place for place, name in enumerate(names) if trained[place : place + 1] != [name])


def stage_of(knowledge: Knowledge, position: int) -> Stage:
    """Return the data of the stage at a position, and all that decides what training on it gives."""
    config = knowledge.config
    return Stage(knowledge.groups[position], knowledge.scale, config.stage_epochs, config.seed, position)


def train_chain(knowledge: Knowledge, store: CheckpointStore, effort: Effort, trained: Sequence[Link] = ()) -> State:
    """Train the stages that a chain trained earlier does not already hold, and return the state with the new chain."""
    names = stage_names(knowledge)
    to_run = stages_to_run(names, trained)

    def train(position: int, effort: Effort) -> _Trained:
        parent = _parent(names, position, knowledge)
        shared = _start(knowledge) if parent == ORIGIN else store.get(parent).parameters.shared
        return _train_stage(knowledge, position, shared, effort)

    def keep(position: int, stage: _Trained) -> Link:
        name, parent = names[position], _parent(names, position, knowledge)
        store.put(Checkpoint(name, parent, stage.parameters))
        return Link(name, parent, stage.samples, stage.seconds)

    in_turn = ((position, train(position, effort)) for position in to_run)
    stages = side_by_side(train, to_run, effort) if knowledge.config.strategy == "sisa" else in_turn
    new = {position: keep(position, stage) for position, stage in stages}
    return State(knowledge, tuple(new.get(position) or trained[position] for position in range(len(names))))


class _Trained(NamedTuple):
    """What a stage gave, and what it took."""

    parameters: Parameters
    samples: int
    seconds: float


def _train_stage(knowledge: Knowledge, position: int, shared: Arrays, effort: Effort) -> _Trained:
    """Train one stage from its parent's shared parameters, which have not seen the stage's data."""
    model, stage = make_model(knowledge.config), stage_of(knowledge, position)
    began = time.perf_counter()
    parameters = model.train(shared, stage, effort)
    seconds = time.perf_counter() - began
    _check_finite(parameters, position)
    return _Trained(parameters, model.samples(stage.interactions, stage.epochs), seconds)


def _parent(names: Sequence[str], position: int, knowledge: Knowledge) -> str:
    return ORIGIN if position == 0 or knowledge.config.strategy == "sisa" else names[position - 1]


def _start(knowledge: Knowledge) -> Arrays:
    return make_model(knowledge.config).start(knowledge.catalogue.items, knowledge.config.seed)


def _check_finite(parameters: Parameters, position: int) -> None:
    if not parameters.all_finite():
        raise Refused(f"training diverged at stage {position + 1}: give a smaller --learning-rate")
