"""Where a split or a model goes by time, rows that are taken in by HTTP need a time."""

import pyarrow as pa
import pytest

from erasable import Recommender
from erasable.chain import Config
from erasable.operations.learn import learn
from erasable.service.settings import ServiceSettings


@pytest.fixture
def settings():
    return ServiceSettings(batch_window=0, learn_seconds=0)


@pytest.fixture
def way():
    return {"model": "ease", "split": "leave-last-out"}


@pytest.fixture
def folder(swift_path, way):
    """A workspace that goes by time, in place of the usual one."""
    rows = [(user, item) for user, items in {"ann": "ab", "bob": "bc", "cy": "abc"}.items() for item in items]
    users, items = zip(*rows, strict=True)
    table = pa.table({"user": users, "item": items, "time": range(len(rows))})
    learn(table, swift_path / "shop", Config(**way))
    return swift_path / "shop"


def held_out(folder):
    return {one.item_id for one in Recommender.load(folder).show("ann").interactions if one.held_out}


def test_a_later_row_is_held_out_in_place_of_the_one_before(client, folder, shop, worker):
    assert held_out(folder) == {"b"}
    row = {"user_id": "ann", "item_id": "c", "time": 99}
    assert client("application").post("/v1/interactions", json={"interactions": [row]}).status_code == 202
    worker.step()
    assert held_out(folder) == {"c"}


def test_a_row_without_a_time_is_refused_at_once(client, shop):
    rows = [{"user_id": "ann", "item_id": "c", "time": 9}, {"user_id": "ann", "item_id": "a"}]
    answer = client("application").post("/v1/interactions", json={"interactions": rows})
    assert answer.status_code == 422
    assert "interactions.1.time: what is held out is decided by time here: give one" in answer.text
    assert shop.intake.count() == 0


@pytest.mark.full
@pytest.mark.parametrize("way", [{"model": "sasrec", "factors": 8, "blocks": 1, "epochs": 1}])
def test_a_model_of_sequences_needs_the_time_of_each_row(client, shop, way):
    answer = client("application").post("/v1/interactions", json={"interactions": [{"user_id": "ann", "item_id": "c"}]})
    assert answer.status_code == 422
    assert "interactions.0.time: sasrec learns from the order in time: give one" in answer.text
    assert shop.intake.count() == 0
