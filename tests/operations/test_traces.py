"""Traces: what must be gone of a person, and what is like theirs but somebody else's."""

import numpy as np
import pytest

from erasable.data import Ids
from erasable.errors import ResidueFound
from erasable.grouping import anchors_among
from erasable.operations import DiskHome, forget, learn, verify
from erasable.store import Workspace
from erasable.training import Config
from erasable.unlearning import Request

CONFIG = Config(model="als", factors=6, regularisation=0.5, anchors=0.5)
TWINS = [f"twin{number}" for number in range(8)]
NO_ANCHORS = [
    user for user, anchor in zip(TWINS, anchors_among(Ids.of(TWINS), 0.5, CONFIG.seed), strict=True) if not anchor
]


@pytest.fixture
def shop(ratings, as_table, tmp_path):
    """A shop in which some people have the very same data, and so the very same rows."""
    likes = {user: {"a": 5, "c": 2} for user in TWINS}
    learn(as_table({**ratings, **likes}), tmp_path / "shop", CONFIG)
    return tmp_path / "shop"


def rows_in(shop):
    with Workspace.reading(shop) as workspace:
        state = workspace.state()
        rows = workspace.checkpoints.get(state.rows_link(0).fingerprint).parameters.rows["user"]
        return dict(zip(state.knowledge.groups[0].users, rows, strict=True))


def test_someone_whose_row_is_also_another_s_is_forgotten_and_certified(shop):
    first, second, *_ = NO_ANCHORS
    rows = rows_in(shop)
    assert np.array_equal(rows[first], rows[second])
    assert len(np.unique(rows[first])) > 3
    assert len(forget(DiskHome(shop), [Request(first)]).certificates) == 1
    assert len(forget(DiskHome(shop), [Request(user) for user in NO_ANCHORS[1:]]).certificates) == len(NO_ANCHORS) - 1
    assert verify(DiskHome(shop)).identical


def test_items_of_someone_whose_row_was_also_another_s_are_forgotten_and_certified(shop):
    first, second, *_ = NO_ANCHORS
    forget(DiskHome(shop), [Request(first, ("c",))])
    rows = rows_in(shop)
    assert not np.array_equal(rows[first], rows[second])
    assert verify(DiskHome(shop)).identical


def test_a_row_that_nobody_else_has_is_still_looked_for(shop):
    own = rows_in(shop)["eve"].tobytes()
    (shop / "forgotten.bin").write_bytes(b"before" + own + b"after")
    with pytest.raises(ResidueFound, match=r"forgotten\.bin"):
        forget(DiskHome(shop), [Request("eve")])
