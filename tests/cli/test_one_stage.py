"""What commands say of a model that is learned at once: nothing of stages, chains and groups."""

import re

import pytest

OF_A_CHAIN = re.compile(r"stage|chain|roll|\bin \d+ group|grouping|\b0 ?%")


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    rows = (f"u{user},i{(3 * user + step * step) % 11}" for user in range(30) for step in range(4))
    path = tmp_path_factory.mktemp("one-stage") / "table.csv"
    path.write_text("\n".join(["user_id,item_id", *dict.fromkeys(rows)]) + "\n")
    return path


@pytest.mark.parametrize("model", ["ease", "als"])
def test_commands_speak_of_the_model(run, file, tmp_path, model):
    shop = tmp_path / "shop"
    said = {"learn": run("learn", file, "--into", shop, "--model", model).out}
    said["plan"] = run("plan", shop, "--user", "u3").out
    said["plan of several"] = run("plan", shop, "--random", 2).out
    said["groups"] = run("groups", shop).out
    said["status"] = run("status", shop).out
    said["forget"] = run("forget", shop, "--user", "u3").out
    assert not [(name, text) for name, text in said.items() if OF_A_CHAIN.search(text)]
    assert "would rebuild the model without it\n" in said["plan"]
    assert re.search(r"^[\d.]+ % of the work of learning it; about ", said["plan"], re.MULTILINE)
    assert " of the work of learning the model\n" in said["plan of several"]
    assert said["groups"].startswith("30 users with ")
    assert said["groups"].endswith("are learned all at once: there are no groups to put in order\n")
    assert "\nanchors       100 %\n" in said["status"]
    assert re.match(
        r"erased data of 1 person: rebuilt the model without it, [\d.]+ % of the work of learning it \(",
        said["forget"],
    )


def test_someone_from_whom_nothing_was_learned_costs_no_work(run, file, tmp_path):
    shop = tmp_path / "shop"
    assert run("learn", file, "--into", shop, "--model", "als", "--anchors", 0.2).code == 0
    plans = {f"u{user}": run("plan", shop, "--user", f"u{user}").out for user in range(30)}
    apart = [user for user, said in plans.items() if "would rebuild the model" not in said]
    assert 0 < len(apart) < 30
    assert plans[apart[0]].endswith("the model has learned nothing from it: would train nothing again\n")
    said = run("forget", shop, "--user", apart[0]).out
    assert said.startswith("erased data of 1 person: the model had learned nothing from it and stays as it is (")


def test_too_many_groups_to_draw_are_refused_with_what_this_command_can_do(run, learned, tmp_path, monkeypatch):
    monkeypatch.setattr("erasable.grouping.groups.MOST_CELLS", 1)
    found = run("groups", learned, "--plot", tmp_path / "groups.png")
    assert (found.code, found.out) == (1, "")
    assert found.err == (
        "erasable: 3 groups of 8 users and 6 items are too many to be compared and drawn: leave out --plot, and see "
        "the table\n"
    )
    assert run("groups", learned).code == 0
