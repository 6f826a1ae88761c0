"""A small recommender before and after one erasure, computed once; tests only move it to and from disk."""

import os
import warnings
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pytest

from erasable.data import Catalogue, Interactions, RatingScale, SyntheticSettings, split_holdout, synthesise
from erasable.grouping.groups import random_labels
from erasable.models import Effort
from erasable.store import Workspace, files
from erasable.training import Config, Knowledge, MemoryStore, State, numeric_environment, train_chain
from erasable.unlearning import Erasure, Request, forget

ERASED = "someone-with-a-long-unmistakable-id"
CERTIFICATE = {"request-1": b'{"erased": 1}'}


@dataclass(frozen=True)
class Versions:
    """The state before and after `erased` is forgotten, with the checkpoints of both."""

    learned: State
    forgotten: State
    memory: MemoryStore
    erased: str = ERASED

    def put_all(self, state: State, workspace: Workspace) -> None:
        for link in state.chain:
            if link.fingerprint not in workspace.checkpoints:
                workspace.checkpoints.put(self.memory.get(link.fingerprint))

    def learn(self, path: Path) -> Path:
        with Workspace.creating(path) as workspace:
            self.put_all(self.learned, workspace)
            workspace.commit(self.learned)
        return path

    def forget(self, path: Path) -> None:
        with Workspace.writing(path) as workspace:
            self.put_all(self.forgotten, workspace)
            workspace.commit(self.forgotten, CERTIFICATE)


def _interactions() -> Interactions:
    made_up = synthesise(SyntheticSettings(users=40, items=30, groups=2, per_user=8, ratings=True)).interactions
    users = made_up.users.texts()
    users[7] = ERASED
    texts = np.array(users)[made_up.user_index]
    items = np.array(made_up.items.texts())[made_up.item_index]
    time = np.arange(len(made_up), dtype=np.float64)
    time[3] = np.nan
    return Interactions.from_columns(pa.array(texts.tolist()), pa.array(items.tolist()), made_up.rating, time)[0]


def _knowledge() -> Knowledge:
    interactions = _interactions()
    config = Config(groups=4, grouping="random", order="number", epochs=4, holdout=0.2)
    position = random_labels(interactions, config.groups, config.seed)
    # The erased user stands in the third of four groups, so that some stages are kept and some are not.
    position[interactions.users.positions([ERASED])[0]] = 2
    training, held_out = split_holdout(interactions, config.holdout, config.seed)
    groups = tuple(training.select(position[training.user_index] == place) for place in range(config.groups))
    catalogue = Catalogue.from_items(interactions.items)
    return Knowledge(config, catalogue, RatingScale(1, 5), groups, held_out)


@pytest.fixture(scope="session")
def versions() -> Versions:
    memory = MemoryStore()
    learned = train_chain(_knowledge(), memory, Effort(1))
    forgotten = forget(learned, Erasure.of([Request(ERASED)]).apply(learned.knowledge), memory, Effort(1))
    numeric_environment()
    return Versions(learned, forgotten, memory)


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
def swift_path(tmp_path):
    """A folder in memory, where there is one: thousands of flushes take long on a busy disk."""
    if not os.access("/dev/shm", os.W_OK):
        yield tmp_path
        return
    with TemporaryDirectory(dir="/dev/shm") as folder:
        yield Path(folder)


@pytest.fixture(scope="session")
def content_of():
    """All files below a folder with their bytes, the locks apart."""

    def read(root: Path) -> dict[str, bytes]:
        paths = (path for path in root.rglob("*") if path.is_file() and path.suffix != ".lock")
        return {path.relative_to(root).as_posix(): path.read_bytes() for path in paths}

    return read


@pytest.fixture(scope="session")
def killed_at():
    """Run something in a child process that dies just before its n-th disk change; say whether it died."""

    def run(change: int, action) -> bool:
        with warnings.catch_warnings():
            # From 3.12 on Python warns of threads; none of them holds a lock that the child needs.
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            try:
                files.before_change = _dying_at(change)
                action()
                os._exit(0)
            except BaseException:
                os._exit(99)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert code in (0, 77), f"the child failed at change {change}"
        return code == 77

    return run


def _dying_at(change: int):
    left = [change]

    def die_at_zero(kind: str, path: Path) -> None:
        left[0] -= 1
        if not left[0]:
            os._exit(77)

    return die_at_zero
