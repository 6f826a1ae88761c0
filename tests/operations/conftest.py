"""A small shop as a table, and a recommender that is learned once."""

from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest

from erasable.chain import Config
from erasable.operations import DiskStorage, MemoryStorage, Work, learn
from erasable.operations.learn import learn_into
from erasable.operations.prepare import NO_INPUTS
from kit.copies import copy_of

RATINGS = {
    "ann": {"a": 5, "b": 4, "c": 1},
    "bob": {"a": 4, "b": 5, "d": 2},
    "cat": {"b": 3, "c": 4, "e": 5},
    "dan": {"c": 2, "d": 5, "e": 4},
    "eve": {"a": 1, "b": 2, "c": 3, "d": 4, "e": 5, "f": 1},
    "fay": {"a": 3, "d": 3, "e": 1},
}


@pytest.fixture(scope="session")
def ratings() -> dict[str, dict[str, int]]:
    return RATINGS


@pytest.fixture(scope="session")
def as_table():
    """Turn {user: {item: rating}} into an Arrow table."""

    def build(ratings: dict[str, dict[str, int]]) -> pa.Table:
        rows = [(user, item, rating) for user, has in ratings.items() for item, rating in has.items()]
        users, items, values = zip(*rows, strict=True)
        return pa.table({"user_id": users, "item_id": items, "rating": values})

    return build


@pytest.fixture(scope="session")
def table(as_table) -> pa.Table:
    return as_table(RATINGS)


@pytest.fixture(scope="session")
def config() -> Config:
    return Config(model="nmf", groups=3, epochs=3, batch=16, holdout=0.3)


@pytest.fixture(scope="session")
def learned(table, config, tmp_path_factory) -> Path:
    """A workspace that has learned; to be read only."""
    folder = tmp_path_factory.mktemp("operations") / "shop"
    learn(table, folder, config)
    return folder


@pytest.fixture(params=["memory", "disk"])
def storage(request, learned, table, config, tmp_path):
    """The same recommender in memory and on disk; it may be changed."""
    if request.param == "disk":
        return DiskStorage(copy_of(learned, tmp_path / "shop"))
    memory = MemoryStorage()
    with memory.writing() as session:
        learn_into(session, table, config, NO_INPUTS, Work(1))
    return memory


@pytest.fixture(scope="session")
def snapshot():
    """What a storage holds: arrays byte by byte, data, and counts."""

    def take(storage) -> SimpleNamespace:
        with storage.reading() as session:
            state = session.state()
            arrays = [
                {name: array.tobytes() for name, array in session.checkpoints.get(link.fingerprint).arrays().items()}
                for link in state.chain
            ]
            return SimpleNamespace(
                names=[link.fingerprint for link in state.chain],
                arrays=arrays,
                groups=[group.digest() for group in state.dataset.groups],
                held_out=state.dataset.held_out.digest(),
                version=session.stamp.version,
                erasures=session.erasures,
                certificates=dict(session.issued()),
            )

    return take
