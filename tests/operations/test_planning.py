"""Plans: what forgetting would touch, and how long the whole of it would take."""

import time

import pyarrow as pa
import pytest

from erasable.chain import Config
from erasable.operations import MemoryStorage, Work, forget, plan
from erasable.operations.learn import learn_into
from erasable.operations.prepare import NO_INPUTS
from erasable.requests import Request
from kit.fitting import fitting


def learned(table, **settings):
    storage = MemoryStorage()
    with storage.writing() as session:
        learn_into(session, table, Config(**fitting(settings)), NO_INPUTS, Work(1))
    return storage


def test_the_estimate_is_longer_than_the_plan_itself_took(storage):
    began = time.perf_counter()
    estimated = plan(storage, [Request("ann")]).seconds_estimated
    assert estimated > 0
    assert estimated > 0.2 * (time.perf_counter() - began)


@pytest.mark.parametrize(
    "settings",
    [
        {"groups": 3, "epochs": 3},
        {"groups": 2, "epochs": 3, "rows": "solved", "holdout": 0.3},
        {"groups": 1, "epochs": 2, "anchors": 0.5, "model": "dmf"},
        {"model": "als", "regularisation": 1.0},
        {"model": "ease", "regularisation": 2.0},
    ],
    ids=str,
)
def test_what_is_planned_is_what_forgetting_does(table, settings):
    storage = learned(table, **settings)
    for user in ("bob", "eve"):
        planned = plan(storage, [Request(user)])
        done = forget(storage, [Request(user)])
        same = ("stages_rerun", "stages_total", "chain_ratio", "cost_ratio")
        assert [getattr(planned, name) for name in same] == [getattr(done, name) for name in same]


def test_people_of_one_kind_are_planned_once_and_counted(storage):
    users = ["ann", "bob", "cat", "dan"]
    alone = [plan(storage, [Request(user)]).cost_ratio for user in users]
    apart = plan(storage, [Request(user) for user in users]).apart
    assert apart.requests == 4
    assert apart.cost_ratio == pytest.approx(sum(alone), rel=0.3)


def test_a_model_retrained_whole_costs_what_retraining_costs(table):
    storage = learned(table, model="als", regularisation=1.0)
    assert plan(storage, [Request("bob")]).cost_ratio == pytest.approx(1.0)


def test_ease_saves_what_subtracting_saves(table):
    storage = learned(table, model="ease", neighbours="all", regularisation=2.0)
    assert 0 < plan(storage, [Request("bob")]).cost_ratio < 1


def test_ease_from_neighbourhoods_saves_the_columns_that_stay():
    rows = [(f"{town}-{user}", f"{town}-{item}") for town in range(8) for user in range(9) for item in range(60)]
    users, items = zip(*((user, item) for user, item in rows if user[-1] != item[-1]), strict=True)
    storage = learned(pa.table({"user_id": users, "item_id": items}), model="ease", neighbours=50)
    one, of_each_town = (plan(storage, [Request(f"{town}-1") for town in range(towns)]) for towns in (1, 8))
    assert 0 < one.cost_ratio < of_each_town.cost_ratio <= 1
