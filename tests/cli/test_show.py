"""`erasable show`: everything that is held about a person."""

import pytest


def test_json_holds_every_interaction_the_group_and_the_personal_row(run, learned, facts):
    found = run("show", learned, "--user", "bob", "--json").json
    assert found["user_id"] == "bob"
    assert found["group"] in (0, 1, 2)
    assert found["interactions"] == [
        {"item_id": "a", "rating": 4.0, "time": 1000.0, "held_out": False},
        {"item_id": "b", "rating": 5.0, "time": 1001.0, "held_out": False},
        {"item_id": "d", "rating": 2.0, "time": 1002.0, "held_out": False},
    ]
    assert list(found["personal_rows"]) == ["user"]
    assert len(found["personal_rows"]["user"]) == 32


def test_what_is_held_out_is_shown_as_such(run, measured, facts):
    held_out = 0
    for user, has in facts.ratings.items():
        found = run("show", measured, "--user", user, "--json").json["interactions"]
        assert {one["item_id"]: one["rating"] for one in found} == has
        held_out += sum(one["held_out"] for one in found)
    assert held_out == run("status", measured, "--json").json["held_out"] > 0


def test_words_say_the_same(run, learned):
    lines = run("show", learned, "--user", "bob").out.splitlines()
    assert lines[0].startswith("user bob: 3 interactions, in group ")
    assert [line.split() for line in lines[1:5]] == [
        ["item", "rating", "time", "training"],
        ["a", "4", "1000", "used"],
        ["b", "5", "1001", "used"],
        ["d", "2", "1002", "used"],
    ]
    assert lines[5].startswith("personal row (user): ")
    assert len(lines[5].split()) == 3 + 32


def test_an_unknown_user_is_refused(run, learned):
    result = run("show", learned, "--user", "zoe", "--json")
    assert (result.code, result.out) == (1, "")
    assert result.err == "erasable: nothing is held about the user 'zoe': check the id, exactly as in the data\n"


def test_after_forgetting_nothing_is_held(run, shop):
    assert run("forget", shop, "--user", "bob").code == 0
    assert run("show", shop, "--user", "bob").code == 1


def test_after_forgetting_some_items_the_rest_is_held(run, shop):
    assert run("forget", shop, "--user", "bob", "--item", "a", "--item", "d").code == 0
    found = run("show", shop, "--user", "bob", "--json").json
    assert [one["item_id"] for one in found["interactions"]] == ["b"]


@pytest.mark.parametrize("command", ["show", "plan", "forget", "scan"])
def test_near_ids_are_told_without_naming_anyone(run, learned, command):
    result = run(command, learned, "--user", "Bob")
    assert result.code == 1
    said = result.out + result.err
    assert "nothing under this id; ids that differ only in upper and lower case are held: 1." in said
    assert "bob" not in said


@pytest.mark.parametrize("command", ["show", "plan", "forget", "scan"])
def test_without_near_ids_none_are_told(run, learned, command):
    result = run(command, learned, "--user", "zoe")
    assert result.code == (0 if command == "scan" else 1)
    assert "differ only" not in result.out + result.err
