"""Plan and forget, in memory and on disk."""

import json

import pytest

from erasable.errors import Refused, UnknownInteraction, UnknownUser
from erasable.operations import DiskHome, MemoryHome, Work, forget, learn, plan, plan_random
from erasable.operations.learn import learn_into
from erasable.operations.prepare import Inputs
from erasable.unlearning import Request


def users_at(home, position):
    with home.reading() as session:
        return session.state().knowledge.groups[position].users.texts()


def test_what_is_left_is_what_learning_without_the_person_gives(home, learned, as_table, ratings, config, snapshot):
    user = users_at(home, 1)[0]
    forget(home, [Request(user)])
    scratch = MemoryHome()
    table = as_table({other: has for other, has in ratings.items() if other != user})
    with scratch.writing() as session:
        learn_into(session, table, config, Inputs(groups_from=learned, catalogue=learned), Work(1))
    found, expected = snapshot(home), snapshot(scratch)
    assert (found.names, found.arrays) == (expected.names, expected.arrays)
    assert (found.groups, found.held_out) == (expected.groups, expected.held_out)


def test_one_call_and_several_lead_to_the_same(table, config, tmp_path, snapshot):
    ways = {
        "together": [[Request("ann"), Request("bob", ("a", "d")), Request("cat")]],
        "apart": [[Request("cat")], [Request("bob", ("d",))], [Request("ann")], [Request("bob", ("a",))]],
    }
    found = {}
    for name, calls in ways.items():
        learn(table, tmp_path / name, config)
        for requests in calls:
            forget(DiskHome(tmp_path / name), requests)
        found[name] = snapshot(DiskHome(tmp_path / name))
    assert found["together"].arrays == found["apart"].arrays
    assert found["together"].names == found["apart"].names
    assert (found["together"].version, found["apart"].version) == (2, 5)


def test_forgetting_does_what_was_planned(home):
    requests = [Request(users_at(home, 2)[0]), Request(users_at(home, 1)[0])]
    planned = plan(home, requests)
    done = forget(home, requests)
    assert (planned.rerun, planned.stages_total) == ((1, 2), 3)
    assert (done.stages_rerun, done.stages_total, done.cost_ratio) == (2, 3, planned.cost_ratio)
    assert len(done.certificates) == 2


@pytest.mark.parametrize(
    ("requests", "error"),
    [
        ([Request("zoe")], UnknownUser),
        ([Request("ann"), Request("zoe")], UnknownUser),
        ([Request("ann", ("a", "f"))], UnknownInteraction),
        ([Request("bob"), Request("ann", ("nothing",))], UnknownInteraction),
    ],
)
def test_what_is_refused_changes_nothing(home, snapshot, requests, error):
    before = snapshot(home)
    with pytest.raises(error):
        forget(home, requests)
    with pytest.raises(error):
        plan(home, requests)
    assert snapshot(home) == before


def test_unknown_people_may_be_left_out(home, snapshot):
    some = forget(home, [Request("zoe"), Request("ann"), Request("yan")], ignore_unknown=True)
    assert (len(some.certificates), some.left_out) == (1, 2)
    before = snapshot(home)
    nothing = forget(home, [Request("zoe"), Request("bob", ("f",))], ignore_unknown=True)
    assert (nothing.certificates, nothing.left_out) == ((), 2)
    assert (nothing.stages_rerun, nothing.stages_total, nothing.cost_ratio) == (0, 3, 0.0)
    assert snapshot(home) == before


def test_items_that_are_not_held_may_be_left_out(home):
    forget(home, [Request("bob", ("a", "f", "nothing"))], ignore_unknown=True)
    with home.reading() as session:
        assert session.state().knowledge.items_of("bob") == {"b", "d"}


def test_a_certificate_says_which_stages_were_kept(home, snapshot):
    done = forget(home, [Request(users_at(home, 1)[0])])
    (content,) = snapshot(home).certificates.values()
    facts = json.loads(content)
    assert [link["kept"] for link in facts["chain"]] == [True, False, False]
    assert (facts["stages_rerun"], facts["cost_ratio"]) == (2, done.cost_ratio)


def test_a_random_plan_is_for_that_many_users_and_repeats(home):
    assert plan_random(home, 2) == plan_random(home, 2)
    everyone = plan_random(home, 6)
    assert (everyone.samples, everyone.samples_retrain, everyone.cost_ratio) == (0, 0, 0.0)
    with pytest.raises(Refused, match="there are only 6 users"):
        plan_random(home, 7)
