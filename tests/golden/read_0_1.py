"""All that must be known of version 0.1 to make its golden digests: how it is called, and where its arrays lie."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from erasable.store import Workspace
from erasable.training import Knowledge
from safetensors.numpy import load_file

from golden.read_any import call, trained
from golden.reading import Reading, Trained
from golden.ways import Way

__all__ = ["call", "must_equal", "read"]


def read(workspace: Path) -> Reading:
    """Read the chain of a workspace: its stages first, then the rows of each group if they were solved."""
    with Workspace.reading(workspace) as opened:
        state = opened.state()
        knowledge, files = state.knowledge, [opened.checkpoints.file_of(link.fingerprint) for link in state.chain]
        users = [list(group.users) for group in knowledge.groups]
        full = all(_has_every_item(knowledge, position) for position in range(knowledge.stages))
        chain = [array for place, file in enumerate(files) for array in _arrays(workspace / file, place)]
    first_rows = knowledge.stages if knowledge.solves_rows else 0
    rows: dict[str, dict[str, Any]] = {}
    for made in chain:
        if made.kind == "user rows":
            of_group = zip(users[made.position - first_rows], made.array, strict=True)
            rows.setdefault(made.name, {}).update(of_group)
    stages = tuple(made for made in chain if made.position < knowledge.stages)
    return Reading(stages, tuple(chain[len(stages) :]), rows, full)


def must_equal(version: str, way: Way, facts: Mapping[str, Any], step: str) -> bool:
    """Say whether the bytes of a way after a step are promised to be those of an earlier version: here all are."""
    return bool(version and way and facts and step)


def _arrays(file: Path, position: int) -> list[Trained]:
    return trained(load_file(file), position)


def _has_every_item(knowledge: Knowledge, position: int) -> bool:
    return len(set(knowledge.learners(position).item_index.tolist())) == len(knowledge.catalogue.items)
