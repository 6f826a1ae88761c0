"""`erasable tune`, then `learn --config`, `forget`, and the certificate: the whole walk."""

import json
import shlex
import sys
import tomllib

import pytest

import erasable.operations.tune  # noqa: F401 - the function of that name hides the module

SENTENCE = "The settings were chosen by trying them on data"


@pytest.fixture
def many(tmp_path):
    rows = [f"u{user:03},i{(user * 7 + item * 13) % 40:02}" for user in range(50) for item in range(10)]
    (tmp_path / "many.csv").write_text("\n".join(["user_id,item_id", *rows]))
    return tmp_path / "many.csv"


def certificate(run, folder) -> str:
    assert run("forget", folder, "--user", "u007").code == 0
    (file,) = (folder / "certificates").glob("*.json")
    return file.read_text()


def test_from_tuning_to_a_certificate_that_says_so(run, many, tmp_path):
    out = tmp_path / "settings.toml"
    result = run("tune", many, "--model", "item-knn", "--trials", 3, "--threads", 1, "--out", out)
    assert result.code == 0, result.err
    assert f"trials are in {tmp_path / 'settings.study'}" in result.out
    settings = tomllib.loads(out.read_text())
    assert settings["model"] == "item-knn"
    assert settings["chosen_on"] == "data"
    assert "# It rests on < 1,000 interactions of < 100 people" in out.read_text()
    for name, options, says in (
        ("tuned", ("--config", out), True),
        ("declared", ("--config", out, "--chosen-on", "declared"), False),
        ("usual", ("--model", "item-knn"), False),
    ):
        learned = run("learn", many, "--into", tmp_path / name, *options)
        assert learned.code == 0, learned.err
        assert (SENTENCE in certificate(run, tmp_path / name)) is says
    # It stays with the workspace when more is learned, and when it is learned again.
    again = run("learn", "--again", "--into", tmp_path / "tuned")
    assert again.code == 0, again.err
    assert run("forget", tmp_path / "tuned", "--user", "u008").code == 0
    texts = [file.read_text() for file in (tmp_path / "tuned" / "certificates").glob("*.json")]
    assert len(texts) == 2
    assert all(SENTENCE in text for text in texts)


@pytest.mark.parametrize(
    ("header", "value", "settings", "columns", "held"),
    [
        (
            "who,the item,kind",
            "buy",
            ("--event-weights", "view=1,buy=3", "--max-weight", 5),
            ("--user-column", "who", "--item-column", "the item", "--event-column", "kind"),
            {"event_weights": {"view": 1, "buy": 3}, "max_weight": 5},
        ),
        (
            "user_id,item_id,stars",
            "4",
            ("--rating-scale", 1, 5),
            ("--rating-column", "stars", "--on-bad-row", "skip"),
            {"rating_scale": [1, 5]},
        ),
    ],
    ids=["events", "ratings"],
)
def test_the_command_that_is_named_next_learns_the_same_data(
    run, many, tmp_path, monkeypatch, header, value, settings, columns, held
):
    monkeypatch.chdir(tmp_path)
    rows = [f"{row},{value}" for row in many.read_text().splitlines()[1:]]
    bad = ["u000,i00,"] if "skip" in columns else []
    (tmp_path / "my data.csv").write_text("\n".join([header, *rows, *bad]))
    given = (*settings, *columns, "--min-interactions", 3, "--seed", 7)
    words = ("--model", "als", "--epochs", 2, "--factors", 4, "--threads", 1, "--trials", 1, "--holdout", 0.2)
    done = run("tune", "my data.csv", *words, *given, "--out", "my settings.toml")
    assert done.code == 0, done.err
    (line,) = [line for line in done.out.splitlines() if "next: erasable " in line]
    learned = run(*shlex.split(line.partition("next: erasable ")[2]))
    assert learned.code == 0, learned.err
    assert run("status", "DIR", "--json").json["held_out"] == 0
    found = json.loads((tmp_path / "DIR" / "config.json").read_text())["settings"]
    assert {name: found[name] for name in held} == held
    assert (found["min_interactions"], found["seed"]) == (3, 7)


def test_a_file_that_learn_would_not_read_as_toml_is_refused(run, many, tmp_path):
    for name in ("s.json", "s.study"):
        result = run("tune", many, "--model", "als", "--trials", 1, "--out", tmp_path / name)
        assert (result.code, result.out) == (2, "")
        assert "give --out a name such as settings.toml" in result.err
        assert not (tmp_path / name).exists()


def test_one_json_object_and_the_same_command_goes_on(run, many, tmp_path):
    words = ("tune", many, "--model", "als", "--epochs", 2, "--threads", 1, "--out", tmp_path / "s.toml", "--json")
    first = run(*words, "--trials", 2).json
    assert first["trials"] == 2
    assert json.loads(json.dumps(first["settings"]))["epochs"] == 2
    assert run(*words, "--trials", 3).json["trials"] == 3


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--model", "popular"), "choose als, ease, nmf, dmf or item-knn"),
        (("--model", "als", "--objective", "ndgc@10"), "there is no metric 'ndgc@10'"),
        (("--model", "als", "--factor", "3"), "No such option"),
    ],
)
def test_wrong_use_names_the_remedy(run, many, tmp_path, words, said):
    result = run("tune", many, *words, "--threads", 1, "--out", tmp_path / "s.toml")
    assert (result.code, result.out) == (2, "")
    assert said in result.err
    assert not (tmp_path / "s.toml").exists()


def test_a_settings_file_with_an_unknown_name_is_refused_with_the_nearest(run, many, tmp_path):
    (tmp_path / "s.toml").write_text('model = "als"\nfactor = 3\n')
    result = run("learn", many, "--into", tmp_path / "shop", "--config", tmp_path / "s.toml")
    assert result.code == 2
    assert "there is no setting 'factor': did you mean 'factors'?" in result.err


def test_ctrl_c_leaves_the_trials_and_the_same_command_goes_on(run, many, tmp_path, monkeypatch):
    words = ("tune", many, "--model", "item-knn", "--trials", 3, "--threads", 1, "--out", tmp_path / "s.toml")
    tuning = sys.modules["erasable.operations.tune"]
    score, scored = tuning._score, []

    def stopping(*given):
        scored.append(given)
        if len(scored) == 2:
            raise KeyboardInterrupt
        return score(*given)

    monkeypatch.setattr(tuning, "_score", stopping)
    stopped = run(*words)
    said = f"erasable: stopped; trials are in {tmp_path / 's.study'}: the same command goes on from there\n"
    assert (stopped.code, stopped.out, stopped.err[-len(said) :]) == (130, "", said)
    assert run(*words).code == 0
    assert len(scored) == 4  # the first one is not tried again
