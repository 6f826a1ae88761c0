"""`erasable groups`: the groups in the order in which they are trained."""

import pytest


def test_json_counts_users_and_interactions_by_position(run, learned, facts):
    found = run("groups", learned, "--json").json["groups"]
    assert [group["position"] for group in found] == [1, 2, 3]
    assert sorted(group["users"] for group in found) == [2, 3, 3]
    assert sum(group["interactions"] for group in found) == sum(map(len, facts.ratings.values()))
    assert all(group["cohesion"] > 0 for group in found)


def test_words_are_a_table(run, learned):
    lines = run("groups", learned).out.splitlines()
    assert lines[0].split() == ["position", "users", "interactions", "cohesion"]
    assert [line.split()[0] for line in lines[1:4]] == ["1", "2", "3"]
    assert all(float(line.split()[3]) > 0 for line in lines[1:4])
    assert lines[4:] == [
        "cohesion: higher where the users of a group are more alike; comparable within one table, not between tables"
    ]


def test_someone_who_is_forgotten_is_no_longer_counted(run, shop, facts):
    run("forget", shop, "--user", facts.every_item)
    found = run("groups", shop, "--json").json["groups"]
    assert sum(group["users"] for group in found) == 7
    assert sum(group["interactions"] for group in found) == sum(map(len, facts.ratings.values())) - 6


@pytest.fixture
def by_likeness(run, ratings_file, tmp_path):
    assert (
        run(
            "learn", ratings_file, "--into", tmp_path / "alike", "--model", "nmf", "--groups", 2, "--grouping", "bkm"
        ).code
        == 0
    )
    return tmp_path / "alike"


def test_groups_by_likeness_go_from_the_most_cohesive_to_the_least(run, by_likeness):
    found = run("groups", by_likeness, "--json").json["groups"]
    assert found[0]["cohesion"] >= found[1]["cohesion"] > 0
    assert [group["cohesion_error"] for group in found] == [0, 0]


def test_after_someone_is_forgotten_cohesion_is_that_of_who_is_left(run, by_likeness, facts):
    before = run("groups", by_likeness, "--json").json["groups"]
    run("forget", by_likeness, "--user", facts.every_item)
    found = run("groups", by_likeness, "--json").json["groups"]
    assert all(group["cohesion"] > 0 for group in found)
    assert [group["cohesion"] for group in found] != [group["cohesion"] for group in before]


def test_cohesion_between_vectors_is_gone_with_someone_who_shaped_them(run, ratings_file, facts, tmp_path):
    run("learn", ratings_file, "--into", tmp_path / "near", "--model", "nmf", "--groups", 2, "--grouping", "cbkm-near")
    assert all(group["cohesion"] > 0 for group in run("groups", tmp_path / "near", "--json").json["groups"])
    run("forget", tmp_path / "near", "--user", facts.every_item)
    assert {group["cohesion"] for group in run("groups", tmp_path / "near", "--json").json["groups"]} == {None}
    words = run("groups", tmp_path / "near").out
    assert "–" in words
    assert words.endswith("cohesion was computed with someone who was forgotten, and was deleted with them\n")


@pytest.mark.parametrize("place", ["groups.png", "data/groups.png"])
def test_a_figure_in_the_workspace_would_outlive_whom_it_shows(run, by_likeness, place):
    result = run("groups", by_likeness, "--plot", by_likeness / place)
    assert (result.code, result.out) == (2, "")
    assert "would outlive the people it shows: name a file elsewhere" in result.err


def test_a_plot_is_drawn_into_the_file_that_is_named(run, by_likeness, tmp_path):
    result = run("groups", by_likeness, "--plot", tmp_path / "groups.png")
    assert (result.code, result.err) == (0, "")
    assert result.out.splitlines()[-1] == f"the figure is {tmp_path / 'groups.png'}"
    assert (tmp_path / "groups.png").read_bytes().startswith(b"\x89PNG")


def test_with_json_the_plot_is_drawn_and_nothing_but_json_is_said(run, by_likeness, tmp_path):
    result = run("groups", by_likeness, "--plot", tmp_path / "groups.svg", "--json")
    assert len(result.json["groups"]) == 2
    assert result.json["figure"] == str(tmp_path / "groups.svg")
    assert (tmp_path / "groups.svg").exists()


def test_a_file_that_is_no_picture_is_refused_before_any_work(run, by_likeness, tmp_path):
    result = run("groups", by_likeness, "--plot", tmp_path / "groups.doc")
    assert (result.code, result.out) == (2, "")
    assert result.err == f"erasable: {tmp_path / 'groups.doc'}: a figure ends in .png, .svg or .pdf: name it so\n"
