"""Each change is planned once: what is planned is what an executor carries out, and rows are hashed once for it."""

from collections import Counter

import pytest

from erasable.operations import DiskHome, Work, learn, learn_more, upgrade, verify
from erasable.operations.erasure import erase
from erasable.proof import NOTHING_PENDING
from erasable.training import LOCAL, Config, chain
from erasable.unlearning import Request, plan_change
from kit import elsewhere

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
    return DiskHome(tmp_path / "shop")


@pytest.fixture
def described(monkeypatch):
    """The knowledge whose stages are described, as often as they are."""
    found, describe = [], chain.stages_of
    monkeypatch.setattr(chain, "stages_of", lambda knowledge: found.append(knowledge) or describe(knowledge))
    return found


@pytest.mark.parametrize("user", ["ann", "eve"])
def test_an_erasure_carries_out_the_plan_that_it_tells(shop, work, executor, described, user):
    with shop.writing() as session:
        done = erase(session, NOTHING_PENDING.joined_with([Request(user)]), False, work)
    assert tuple(executor.tasks) == done.plan.tasks
    assert [task.position for task in executor.tasks] == list(done.plan.rerun)
    assert len(described) == 1


def test_from_plan_to_commit_rows_are_hashed_once(shop, work, hashed):
    with shop.writing() as session:
        erase(session, NOTHING_PENDING.joined_with([Request("eve")]), False, work)
    assert hashed
    assert set(Counter(hashed).values()) == {1}


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


def test_a_plan_holds_nobody(home):
    with home.reading() as session:
        state = session.state()
        planned = plan_change(state, state.knowledge.without(["ann"], []))
    assert planned.tasks
    users = {user for group in state.knowledge.groups for user in group.users}
    assert not any(repr(one) in repr(planned.schedule) for one in users | set(state.knowledge.items))
