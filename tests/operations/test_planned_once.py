"""Each change is planned once: what is planned is what an executor carries out, and rows are hashed once for it."""

import sys
from collections import Counter
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest

from erasable.chain import LOCAL, Config, chain, plan_change
from erasable.operations import DiskStorage, Work, forget, learn, learn_more, upgrade, verify
from erasable.requests import Request
from erasable.service._worker import Worker, WorkerOptions
from erasable.service.settings import ServiceSettings
from erasable.workspace import Workspace
from kit import elsewhere

erase = sys.modules["erasable.operations.erase"]
WAYS = {
    "laser": {"model": "nmf", "groups": 3, "epochs": 3, "batch": 16, "holdout": 0.3},
    "sisa": {"model": "nmf", "strategy": "sisa", "groups": 3, "epochs": 3, "holdout": 0.3},
    "anchors": {"model": "als", "epochs": 2, "factors": 4, "anchors": 0.5, "holdout": 0.3},
    "ease": {"model": "ease"},
}


class Watched:
    """An executor that remembers what it was asked to carry out."""

    def __init__(self) -> None:
        self.tasks = []

    def map(self, function, tasks, effort):
        self.tasks += [order.task for order in tasks]
        return LOCAL.map(function, tasks, effort)


@pytest.fixture
def executor():
    return Watched()


@pytest.fixture
def work(executor):
    return Work(1, executor=executor)


@pytest.fixture(params=WAYS)
def shop(request, table, tmp_path):
    learn(table, tmp_path / "shop", Config(**WAYS[request.param]), work=Work(1))
    return DiskStorage(tmp_path / "shop")


@pytest.fixture
def described(monkeypatch):
    """The dataset whose stages are described, as often as they are."""
    found, describe = [], chain.stages_of
    monkeypatch.setattr(chain, "stages_of", lambda dataset: found.append(dataset) or describe(dataset))
    return found


@pytest.mark.parametrize("user", ["ann", "eve"])
def test_an_erasure_carries_out_the_plan_that_it_tells(shop, work, executor, described, user, monkeypatch):
    plans = []
    monkeypatch.setattr(erase, "plan_change", lambda *given: plans.append(plan_change(*given)) or plans[-1])
    done = forget(shop, [Request(user)], work=work)
    (plan,) = plans
    assert tuple(executor.tasks) == plan.tasks
    assert len(executor.tasks) == done.stages_rerun
    with shop.queue() as queue:
        (request,) = queue.history.in_states(["erased"])
        told = queue.history.last_event("planned").facts
    assert [task.position for task in executor.tasks] == told["rerun"]
    assert request.outcome["stages_rerun"] == done.stages_rerun
    assert len(described) == 1


def test_from_request_to_certificate_rows_are_hashed_once(shop, work, hashed):
    forget(shop, [Request("eve")], work=work)
    assert hashed
    assert set(Counter(hashed).values()) == {1}


@pytest.fixture
def opened(monkeypatch):
    """How the workspace was opened, as often as it was."""
    found = []
    for way in ("reading", "writing"):
        whole = getattr(Workspace, way)
        monkeypatch.setattr(
            Workspace, way, lambda *given, whole=whole, way=way, **more: found.append(way) or whole(*given, **more)
        )
    return found


def test_from_request_to_certificate_the_workspace_is_opened_once(shop, work, opened):
    forget(shop, [Request("eve")], work=work)
    assert opened == ["writing"]


def test_the_worker_opens_it_once_too(shop, opened):
    worker = Worker(WorkerOptions(shop.path, ServiceSettings(), threads=1))
    with closing(worker.database):
        opened.clear()  # it has named the queue, once for all
        worker.queue.submit(Request("eve"), True, "application 1", datetime.now(UTC) - timedelta(days=7))
        assert worker.lease.take()
        assert worker.eraser.carry_out_due()
        assert len(worker.queue.history.in_states(["erased"])) == 1
    assert opened == ["writing"]


def test_learning_more_carries_out_one_plan(shop, work, executor, described, as_table):
    done = learn_more(shop, as_table({"ann": {"f": 3}, "gus": {"a": 1, "b": 2}}), work=work)
    assert len(executor.tasks) == done.stages_rerun
    assert len(described) == 1


def test_learning_carries_out_one_plan(table, tmp_path, work, executor, described):
    learn(table, tmp_path / "new", Config(**WAYS["laser"]), work=work)
    assert [task.position for task in executor.tasks] == [0, 1, 2]
    assert len(described) == 1


def test_replays_go_through_the_executor(shop, work, executor):
    assert verify(shop, work=work).identical
    with shop.reading() as session:
        assert [task.name for task in executor.tasks] == [link.fingerprint for link in session.state().chain]


def test_an_upgrade_goes_through_the_executor(shop, work, executor):
    elsewhere.moved(shop.path, numpy="0.0")
    done = upgrade(shop, work)
    assert len(executor.tasks) == done.adopted + done.trained > 0


def test_a_plan_holds_nobody(storage):
    with storage.reading() as session:
        state = session.state()
        planned = plan_change(state, state.dataset.without(["ann"], []))
    assert planned.tasks
    users = {user for group in state.dataset.groups for user in group.users}
    assert not any(repr(one) in repr(planned.schedule) for one in users | set(state.dataset.items))
