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


def stages_to_run(names: Sequence[str], chain: Sequence[Link]) -> range:
    """Return the positions whose checkpoints differ from a chain trained earlier: none, or all from some point on."""
    kept = 0
    while kept < min(len(names), len(chain)) and names[kept] == chain[kept].fingerprint:
        kept += 1
    return range(kept, len(names))


def stage_of(knowledge: Knowledge, position: int) -> Stage:
    """Return the data of the stage at a position, and all that decides what training on it gives."""
    config = knowledge.config
    return Stage(knowledge.groups[position], knowledge.scale, config.stage_epochs, config.seed, position)


def train_chain(knowledge: Knowledge, store: CheckpointStore, effort: Effort, trained: Sequence[Link] = ()) -> State:
    """Train the stages that a chain trained earlier does not already hold, and return the state with the new chain."""
    model = make_model(knowledge.config)
    names = stage_names(knowledge)
    to_run = stages_to_run(names, trained)
    links = list(trained[: to_run.start])
    shared = _shared_before(to_run.start, knowledge, store, links)
    for position in to_run:
        began = time.perf_counter()
        stage = stage_of(knowledge, position)
        parameters = model.train(shared, stage, effort)
        _check_finite(parameters, position)
        parent = links[-1].fingerprint if links else ORIGIN
        store.put(Checkpoint(names[position], parent, parameters))
        samples = model.samples(stage.interactions, stage.epochs)
        links.append(Link(names[position], parent, samples, time.perf_counter() - began))
        shared = parameters.shared
    return State(knowledge, tuple(links))


def _shared_before(position: int, knowledge: Knowledge, store: CheckpointStore, links: Sequence[Link]) -> Arrays:
    """Roll back: return the shared parameters of the last checkpoint that has not seen what is to be trained."""
    if position == 0:
        return make_model(knowledge.config).start(knowledge.catalogue.items, knowledge.config.seed)
    return store.get(links[position - 1].fingerprint).parameters.shared


def _check_finite(parameters: Parameters, position: int) -> None:
    if not parameters.all_finite():
        raise Refused(f"training diverged at stage {position + 1}: give a smaller --learning-rate")
