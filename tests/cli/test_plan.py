"""`erasable plan`: what forgetting would touch and cost, without touching anything."""

import pytest

from erasable.workspace import Workspace


def users_at(folder, position):
    with Workspace.reading(folder) as workspace:
        return workspace.state().dataset.groups[position].users.texts()


@pytest.mark.parametrize("position", [0, 1, 2])
def test_stages_from_the_users_group_on_are_trained_again(run, learned, position):
    found = run("plan", learned, "--user", users_at(learned, position)[0], "--json").json
    assert (found["stages_rerun"], found["stages_total"]) == (3 - position, 3)
    assert 0 < found["cost_ratio"] < 1
    assert found["seconds_estimated"] > 0


def test_the_cost_is_the_share_of_samples_that_a_full_retraining_visits(run, learned, facts):
    user = users_at(learned, 2)[0]
    # Each interaction brings four negatives, but a user who has every item gets none.
    samples = {
        other: len(has) * (1 if other == facts.every_item else 5)
        for other, has in facts.ratings.items()
        if other != user
    }
    # The three groups share the six epochs.
    again = sum(samples[other] for other in users_at(learned, 2)[1:]) * 2
    everyone = sum(samples.values()) * 6
    assert run("plan", learned, "--user", user, "--json").json["cost_ratio"] == pytest.approx(again / everyone)


def test_the_plan_is_what_forgetting_then_does(run, shop):
    user = users_at(shop, 1)[0]
    planned = run("plan", shop, "--user", user, "--json").json
    done = run("forget", shop, "--user", user, "--json").json
    same = ("stages_rerun", "stages_total", "cost_ratio")
    assert {name: planned[name] for name in same} == {name: done[name] for name in same}


def test_nothing_is_changed(run, shop, content_of):
    before = content_of(shop)
    assert run("plan", shop, "--user", "ann").code == 0
    assert run("plan", shop, "--random", 3).code == 0
    assert content_of(shop) == before


def test_requests_together_cost_what_the_earliest_group_costs(run, learned, tmp_path):
    users = [users_at(learned, position)[0] for position in (2, 1)]
    (tmp_path / "users").write_text("\n".join(users))
    found = run("plan", learned, "--users-file", tmp_path / "users", "--json").json
    assert found["stages_rerun"] == 2
    assert (found["people"], found["people_total"]) == (2, 8)


def test_users_may_be_chosen_at_random_and_the_choice_repeats(run, learned):
    first, second = (run("plan", learned, "--random", 2, "--json").json for _ in range(2))
    same = ("stages_rerun", "stages_total", "chain_ratio", "cost_ratio")
    assert [first[name] for name in same] == [second[name] for name in same]
    assert first["one_by_one"]["cost_ratio"] == second["one_by_one"]["cost_ratio"]
    assert run("plan", learned, "--random", 8, "--json").json["stages_rerun"] == 3


def test_words_say_the_same(run, learned):
    user = users_at(learned, 1)[0]
    people, until_then, first, second = run("plan", learned, "--user", user).out.splitlines()
    assert people == "would erase data of 1 of 8 people"
    assert until_then == "until that is done: not served"
    assert first == "would train 2 of 3 stages again"
    assert "% of the work of the whole chain, " in second


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        ((), 2, "say who: give --user U (may be repeated) or --users-file F"),
        (("--user", "zoe"), 1, "nothing is held about the user 'zoe'"),
        (("--user", "ann", "--item", "f"), 1, "user 'ann' has no interaction with item 'f'"),
        (("--user", "ann", "--item", "zz"), 1, "user 'ann' has no interaction with item 'zz'"),
        (("--user", "ann", "--user", "bob", "--item", "a"), 2, "--item needs exactly one --user"),
        (("--random", 9), 1, "there are only 8 users: give --random a smaller number"),
        (("--random", 2, "--user", "ann"), 2, "--random chooses the users"),
        (("--random", 0), 2, "Invalid value for '--random'"),
    ],
)
def test_what_can_not_be_planned_is_refused(run, learned, options, code, said):
    result = run("plan", learned, *options, "--json")
    assert (result.code, result.out) == (code, "")
    assert said in result.err


def test_several_people_are_also_planned_one_by_one(run, learned):
    found = run("plan", learned, "--random", 3, "--json").json
    apart = found["one_by_one"]
    assert apart["requests"] == 3
    assert apart["cost_ratio"] >= found["cost_ratio"]
    assert apart["seconds_estimated"] > found["seconds_estimated"]
    assert "one after the other, 3 requests would take about" in run("plan", learned, "--random", 3).out


def test_one_person_is_not(run, learned):
    assert run("plan", learned, "--user", "ann", "--json").json["one_by_one"] is None
