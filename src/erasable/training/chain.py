"""The paper's SeqTrain module: a chain of stages, one for each group, with a checkpoint after each.

A checkpoint is named by a fingerprint of everything that made it. So learning and forgetting are the same function:
work out the names along the chain, keep every checkpoint whose name is already there, and train from the first one that
is not.
"""

import time
from collections.abc import Sequence

from erasable import fingerprint
from erasable.errors import Refused
from erasable.models import Arrays, Effort, Parameters, Stage, make_model
from erasable.training.checkpoint import Checkpoint, CheckpointStore
from erasable.training.state import Knowledge, Link, State

ORIGIN = "origin"


def stage_names(knowledge: Knowledge) -> list[str]:
    """Return the fingerprint of each stage's checkpoint: parent, the group's rows, catalogue, settings and seed."""
    names: list[str] = []
    for position, group in enumerate(knowledge.groups):
        facts = {
            "parent": names[-1] if names else ORIGIN,
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
    links: list[Link] = []
    for position, name in enumerate(names):
        if position in to_run:
            parent = names[position - 1] if position else ORIGIN
            links.append(_train_stage(knowledge, position, (name, parent), store, effort))
        else:
            links.append(trained[position])
    return State(knowledge, tuple(links))


def _train_stage(
    knowledge: Knowledge, position: int, names: tuple[str, str], store: CheckpointStore, effort: Effort
) -> Link:
    """Train one stage from its parent's checkpoint, which has not seen the stage's data, and keep the result."""
    name, parent = names
    model, stage = make_model(knowledge.config), stage_of(knowledge, position)
    shared = _start(knowledge) if parent == ORIGIN else store.get(parent).parameters.shared
    began = time.perf_counter()
    parameters = model.train(shared, stage, effort)
    seconds = time.perf_counter() - began
    _check_finite(parameters, position)
    store.put(Checkpoint(name, parent, parameters))
    return Link(name, parent, model.samples(stage.interactions, stage.epochs), seconds)


def _start(knowledge: Knowledge) -> Arrays:
    return make_model(knowledge.config).start(knowledge.catalogue.items, knowledge.config.seed)


def _check_finite(parameters: Parameters, position: int) -> None:
    if not parameters.all_finite():
        raise Refused(f"training diverged at stage {position + 1}: give a smaller --learning-rate")
