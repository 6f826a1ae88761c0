"""`erasable status`: what a workspace holds."""

from erasable.proof import public_key_of


def test_json_after_learning(run, shop):
    assert run("status", shop, "--json").json == {
        "users": 8,
        "items": 6,
        "interactions": 27,
        "held_out": 0,
        "model": "nmf",
        "strategy": "laser",
        "rows": "stage",
        "anchors": 1.0,
        "grouping": "random",
        "policy": "fixed",
        "groups": 3,
        "rating_scale": "1–5",
        "features": [],
        "erasures": 0,
        "version": 1,
        "pending": 0,
        "suppressed": 0,
        "queue_fault": None,
        "records": 1,
        "public_key": public_key_of((shop / "signing-key.txt").read_bytes()),
        "do_not_learn": {
            "kept": "in files",
            "list": str(shop.with_name("shop.do-not-learn") / "list.json"),
            "key": str(shop.with_name("shop.do-not-learn.key") / "key"),
        },
        "leftovers": [],
    }


def test_every_learning_has_its_own_key_and_keeps_it(run, shop, ratings_file, tmp_path):
    key = run("status", shop, "--json").json["public_key"]
    run("forget", shop, "--user", "ann")
    run("verify", shop)
    assert run("status", shop, "--json").json["public_key"] == key
    assert bytes.fromhex(key) != bytes.fromhex((shop / "signing-key.txt").read_text())
    run("learn", ratings_file, "--into", tmp_path / "other", "--model", "nmf", "--groups", 3, "--epochs", 1)
    assert run("status", tmp_path / "other", "--json").json["public_key"] != key


def test_each_learn_forget_and_verify_is_a_record_and_a_refusal_is_none(run, shop):
    run("forget", shop, "--user", "ann", "--user", "bob")
    run("verify", shop)
    run("forget", shop, "--user", "zoe")
    run("forget", shop, "--user", "zoe", "--ignore-unknown")
    run("forget", shop, "--resume")
    assert run("status", shop, "--json").json["records"] == 3


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
    options = ("--model", "nmf", "--grouping", "independent", "--groups", 3, "--epochs", 1)
    run("learn", ratings_file, "--into", tmp_path / "shop", *options)
    found = run("status", tmp_path / "shop", "--json").json
    assert (found["grouping"], found["policy"]) == ("independent", "independent")


def test_words_say_one_thing_a_line_and_begin_at_once(run, learned):
    lines = run("status", learned).out.splitlines()
    assert lines[0] == "users         8"
    assert "rating scale  1–5" in lines
    assert "pending       0" in lines
    assert [line.split()[:2] for line in lines[-3:-1]] == [["records", "1"], ["public", "key"]]
    list_file = learned.with_name("shop.do-not-learn") / "list.json"
    key_file = learned.with_name("shop.do-not-learn.key") / "key"
    assert lines[-1] == f"do not learn  {list_file} (its key: {key_file})"
    assert len(lines) == 19
