"""Rows with weights and types of events, taken in by HTTP: each counts once, whoever is killed."""

import pyarrow as pa
import pytest

from erasable import Recommender
from erasable.chain import Config
from erasable.operations.learn import learn
from erasable.operations.prepare import Inputs
from erasable.service._worker import Worker, WorkerOptions
from erasable.service.settings import ServiceSettings
from kit.killing import killed_at

EVENTS = {"view": 1, "buy": 5, "glance": 0}


@pytest.fixture
def settings():
    return ServiceSettings(batch_window=0, learn_seconds=0)


@pytest.fixture
def folder(swift_path):
    """A workspace with weights, in place of the usual one."""
    rows = [(user, item) for user, items in {"ann": "ab", "bob": "bc", "cy": "abc"}.items() for item in items]
    users, items = zip(*rows, strict=True)
    table = pa.table({"user": users, "item": items, "n": [1] * len(rows), "kind": ["view"] * len(rows)})
    columns = Inputs().columns.model_copy(update={"weight": "n", "event": "kind"})
    learn(table, swift_path / "shop", Config(model="ease", event_weights=EVENTS), Inputs(columns))
    return swift_path / "shop"


def rows(*given):
    names = ("user_id", "item_id", "event", "weight")
    return {"interactions": [dict(zip(names, one, strict=False)) for one in given]}


def weights(folder, user):
    return {one.item_id: one.rating for one in Recommender.load(folder).show(user).interactions}


def test_weights_taken_in_add_up_with_those_learned(client, folder, shop, worker):
    answer = client("application").post(
        "/v1/interactions", json=rows(("ann", "a", "buy"), ("ann", "a", "view", 2), ("ann", "c", "glance"))
    )
    assert (answer.status_code, answer.json()) == (202, {"accepted": 2, "left_out": 1})
    worker.step()
    assert weights(folder, "ann") == {"a": 8, "b": 1}
    client("application").post("/v1/interactions", json=rows(("ann", "a", "buy")))
    worker.step()
    assert weights(folder, "ann") == {"a": 10, "b": 1}


def test_what_counts_nothing_is_left_out_alone(client, shop):
    answer = client("application").post("/v1/interactions", json=rows(("ann", "c", "glance")))
    assert (answer.json(), shop.intake.count()) == ({"accepted": 0, "left_out": 1}, 0)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"event": "click"}, "its event is none of buy, glance, view"),
        ({}, "types of events are weighed: give one"),
        ({"event": "view", "rating": 3}, "this was learned with weights: leave it out"),
        ({"event": "view", "weight": 0}, "weight"),
        ({"event": "view", "weight": 1.5}, "weight"),
    ],
)
def test_what_can_not_be_weighed_is_refused(client, shop, row, said):
    answer = client("application").post(
        "/v1/interactions", json={"interactions": [{"user_id": "ann", "item_id": "a", **row}]}
    )
    assert answer.status_code == 422
    assert said in answer.text
    assert shop.intake.count() == 0


def test_a_worker_killed_at_any_change_counts_no_weight_twice(
    client, copied, folder, shop, settings, clock, swift_path
):
    client("application").post("/v1/interactions", json=rows(("ann", "a", "buy"), ("zoe", "b", "view", 2)))
    shop.database.close()

    def work_off(path):
        worker = Worker(WorkerOptions(path, settings, threads=1, clock=clock))
        try:
            while worker.step():
                pass
        finally:
            worker.database.close()

    change, died = 0, True
    while died:
        change += 1
        path = copied(folder, swift_path / f"shop-{change}")
        died = killed_at(change, lambda path=path: work_off(path))
        work_off(path)
        assert weights(path, "ann") == {"a": 6, "b": 1}, change
        assert weights(path, "zoe") == {"b": 2}, change
    assert change > 10
