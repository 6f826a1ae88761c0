"""`erasable status`: what a workspace holds."""


def test_json_after_learning(run, learned):
    assert run("status", learned, "--json").json == {
        "users": 8,
        "items": 6,
        "interactions": 27,
        "held_out": 0,
        "model": "nmf",
        "strategy": "laser",
        "grouping": "random",
        "policy": "fixed",
        "groups": 3,
        "rating_scale": "1–5",
        "erasures": 0,
        "version": 1,
        "leftovers": [],
    }


def test_forgetting_is_counted_by_people_and_by_versions(run, shop):
    run("forget", shop, "--user", "ann", "--user", "bob")
    run("forget", shop, "--user", "cat", "--item", "b")
    found = run("status", shop, "--json").json
    assert {name: found[name] for name in ("users", "items", "interactions", "erasures", "version")} == {
        "users": 6,
        "items": 6,
        "interactions": 27 - 3 - 3 - 1,
        "erasures": 3,
        "version": 3,
    }


def test_independent_groups_imply_their_policy(run, ratings_file, tmp_path):
    options = ("--grouping", "independent", "--groups", 3, "--epochs", 1)
    run("learn", ratings_file, "--into", tmp_path / "shop", *options)
    found = run("status", tmp_path / "shop", "--json").json
    assert (found["grouping"], found["policy"]) == ("independent", "independent")


def test_words_say_one_thing_a_line_and_begin_at_once(run, learned):
    lines = run("status", learned).out.splitlines()
    assert lines[0] == "users         8"
    assert "rating scale  1–5" in lines
    assert len(lines) == 12
