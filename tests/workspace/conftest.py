"""A small recommender before and after one erasure, computed once; tests only move it to and from disk."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from erasable.chain import (
    Config,
    Dataset,
    Erasure,
    MemoryStore,
    State,
    buckets,
    forget,
    numeric_environment,
    train_chain,
)
from erasable.data import Catalogue, Interactions, RatingScale, SyntheticSettings, split_holdout, synthesise
from erasable.grouping.groups import random_labels
from erasable.models import Effort
from erasable.requests import Request
from erasable.workspace import Documents, Workspace

ERASED = "someone-with-a-long-unmistakable-id"
AFTER_LEARNING = Documents(log=b"learned\n", key=b"a secret key")
AFTER_FORGETTING = Documents(
    log=b"learned\nforgotten\n",
    key=b"a secret key",
    certificates={"request-1.json": b'{"erased": 1}', "request-1.html": b"<p>erased</p>"},
)


@dataclass(frozen=True)
class Versions:
    """The state before and after `erased` is forgotten, with the checkpoints of both."""

    learned: State
    forgotten: State
    memory: MemoryStore
    erased: str = ERASED
    after_learning: Documents = AFTER_LEARNING
    after_forgetting: Documents = AFTER_FORGETTING

    def put_all(self, state: State, workspace: Workspace) -> None:
        for link in state.chain:
            if link.fingerprint not in workspace.checkpoints:
                workspace.checkpoints.put(self.memory.get(link.fingerprint))

    def learn(self, path: Path) -> Path:
        with Workspace.creating(path) as workspace:
            self.put_all(self.learned, workspace)
            workspace.commit(self.learned, self.after_learning)
        return path

    def forget(self, path: Path) -> None:
        with Workspace.writing(path) as workspace:
            self.put_all(self.forgotten, workspace)
            workspace.commit(self.forgotten, self.after_forgetting)

    def accept(self, path: Path) -> None:
        with Workspace.writing(path) as workspace:
            workspace.amend(replace(workspace.documents(), pending=b"who asked"))

    def certify(self, path: Path) -> None:
        """Put documents beside the same state, while a checkpoint lies there that was never committed."""
        with Workspace.writing(path) as workspace:
            workspace.checkpoints.put(self.memory.get(self.forgotten.chain[-1].fingerprint))
            workspace.amend(self.after_forgetting)


def _interactions() -> Interactions:
    made_up = synthesise(SyntheticSettings(users=40, items=30, groups=2, per_user=8, ratings=True)).interactions
    users = made_up.users.texts()
    users[7] = ERASED
    texts = np.array(users)[made_up.user_index]
    items = np.array(made_up.items.texts())[made_up.item_index]
    time = np.arange(len(made_up), dtype=np.float64)
    time[3] = np.nan
    return Interactions.from_columns(pa.array(texts.tolist()), pa.array(items.tolist()), made_up.rating, time)[0]


def _dataset() -> Dataset:
    interactions = _interactions()
    config = Config(model="nmf", groups=4, grouping="random", order="number", epochs=4, holdout=0.2)
    position = random_labels(interactions, config.groups, config.seed)
    # The erased user stands in the third of four groups, so that some stages are kept and some are not.
    position[interactions.users.positions([ERASED])[0]] = 2
    training, held_out = split_holdout(interactions, config.holdout, config.seed)
    groups = tuple(training.select(position[training.user_index] == place) for place in range(config.groups))
    catalogue = Catalogue.from_items(interactions.items)
    return Dataset.of_groups(config, catalogue, RatingScale(1, 5), groups, held_out)


@pytest.fixture(scope="session")
def versions() -> Versions:
    memory = MemoryStore()
    learned = train_chain(_dataset(), memory, Effort(1))
    forgotten = forget(learned, Erasure.of([Request(ERASED)]).apply(learned.dataset), memory, Effort(1))
    numeric_environment()
    return Versions(learned, forgotten, memory)


@pytest.fixture
def dealt_out(versions, monkeypatch) -> Versions:
    """The same, with people in eight buckets."""
    monkeypatch.setattr(buckets, "PEOPLE_IN_A_BUCKET", 5)
    learned = State(versions.learned.dataset.with_groups(), versions.learned.chain)
    forgotten = State(learned.dataset.without([ERASED], []), versions.forgotten.chain)
    return replace(versions, learned=learned, forgotten=forgotten)


@pytest.fixture
def learned(versions, swift_path) -> Path:
    """A workspace that has learned."""
    return versions.learn(swift_path / "shop")


@pytest.fixture
def forgotten(versions, learned) -> Path:
    """A workspace that has forgotten."""
    versions.forget(learned)
    return learned


@pytest.fixture
def every_kind(versions, forgotten) -> Path:
    """A workspace with a file of every kind: it has a filter, and a request that is being carried out."""
    with Workspace.writing(forgotten) as workspace:
        state = workspace.state()
        dataset = replace(state.dataset, kept_items=frozenset(state.dataset.items.texts()))
        workspace.commit(replace(state, dataset=dataset), replace(workspace.documents(), pending=b"who asked"))
    return forgotten


@pytest.fixture(scope="session")
def content_of():
    """All files below a folder with their bytes, the locks apart."""

    def read(root: Path) -> dict[str, bytes]:
        paths = (path for path in root.rglob("*") if path.is_file() and path.suffix != ".lock")
        return {path.relative_to(root).as_posix(): path.read_bytes() for path in paths}

    return read
