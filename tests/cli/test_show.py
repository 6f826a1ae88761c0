"""`erasable show`: everything that is held about a person."""

import pyarrow as pa
import pytest

from erasable.recommender import Recommender


def test_json_holds_every_interaction_the_group_and_the_personal_row(run, learned, facts):
    found = run("show", learned, "--user", "bob", "--json").json
    assert found["user_id"] == "bob"
    assert found["group"] in (1, 2, 3)
    assert found["interactions"] == [
        {"item_id": "a", "rating": 4.0, "time": 1000.0, "held_out": False},
        {"item_id": "b", "rating": 5.0, "time": 1001.0, "held_out": False},
        {"item_id": "d", "rating": 2.0, "time": 1002.0, "held_out": False},
    ]
    assert list(found["personal_rows"]) == ["user"]
    assert len(found["personal_rows"]["user"]) == 32


def test_the_group_is_that_of_the_list_of_groups(run, learned, facts):
    shown = [run("show", learned, "--user", user, "--json").json["group"] for user in facts.ratings]
    listed = {group["position"]: group["users"] for group in run("groups", learned, "--json").json["groups"]}
    assert {position: shown.count(position) for position in set(shown)} == listed


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


@pytest.mark.parametrize(
    ("times", "shown"),
    [
        (("2020-01-02", ""), ["2020-01-02", None]),
        (("2020-01-02T10:30:00", "2020-01-03 00:00:00"), ["2020-01-02T10:30:00", "2020-01-03T00:00:00"]),
        (("2020-01-02T10:30:00+01:00", "2020-01-03T00:00:00Z"), ["2020-01-02T09:30:00Z", "2020-01-03T00:00:00Z"]),
        (("1577959800", "1577959800.5"), [1577959800.0, 1577959800.5]),
    ],
)
def test_times_come_back_as_they_came_in(run, tmp_path, times, shown):
    rows = [f"{user},{item},{time}\n" for user in ("ann", "bob") for item, time in zip("ab", times, strict=True)]
    (tmp_path / "r.csv").write_text("user,item,time\n" + "".join(rows))
    assert run("learn", tmp_path / "r.csv", "--into", tmp_path / "shop", "--model", "als").code == 0
    found = run("show", tmp_path / "shop", "--user", "ann", "--json").json["interactions"]
    assert [one["time"] for one in found] == shown
    words = [line.split() for line in run("show", tmp_path / "shop", "--user", "ann").out.splitlines()[2:4]]
    written = [f"{time:.15g}" if isinstance(time, float) else time for time in shown]
    assert [line[2] for line in words] == [time or "used" for time in written]


def test_times_of_a_table_with_timestamps_come_back_as_iso(run, tmp_path):
    moments = pa.array([0, 86_400_000_000] * 2, pa.timestamp("us", "UTC"))
    table = pa.table({"user": ["ann", "ann", "bob", "bob"], "item": ["a", "b", "a", "b"], "time": moments})
    recommender = Recommender(model="als").fit(table)
    shown = ["1970-01-01T00:00:00Z", "1970-01-02T00:00:00Z"]
    assert [one.time for one in recommender.show("ann").interactions] == shown
    recommender.save(tmp_path / "shop")
    found = run("show", tmp_path / "shop", "--user", "ann", "--json").json["interactions"]
    assert [one["time"] for one in found] == shown


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
