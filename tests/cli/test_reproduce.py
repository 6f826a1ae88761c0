"""`erasable reproduce` as a user meets it; what it measures is tested beside the experiments."""

import json
import signal
import time

import pytest

from erasable.cli.reproduce import progress_table
from erasable.paper import EXPERIMENTS, RunProgress

ROWS = "\n".join(f"user{u},item{(u * 7 + n * 3) % 23},{1 + n % 5}" for u in range(40) for n in range(8))


@pytest.fixture
def data(tmp_path):
    file = tmp_path / "small.csv"
    file.write_text("user_id,item_id,rating\n" + ROWS + "\n")
    return file


@pytest.mark.full
def test_a_report_and_its_verdicts_in_words_and_as_json(run, data, tmp_path):
    words = ("reproduce", "balance", "--data", data, "--out", tmp_path / "out", "--seeds", 1, "--workers", 1)
    said = run(*words)
    assert said.code == 0
    assert "balance" in said.out
    assert "balance.md" in said.out.splitlines()[-1]
    answer = json.loads(run(*words, "--json").out)
    assert answer["cells"] > 0
    assert {"experiment", "said", "rule", "measured", "verdict"} == set(answer["claims"][0])
    assert (tmp_path / "out" / "small" / "balance.md").exists()


def test_every_experiment_can_be_named(run):
    help_text = " ".join(run("reproduce", "--help").out.split())
    assert f"One of {', '.join(EXPERIMENTS)}, or all." in help_text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("nothing",), "nothing"),
        (("utility", "--seeds", 0), "wrong setting seeds"),
        (("utility", "--name", "cells"), "can't name a folder"),
        (("utility", "--config", "missing.toml"), "missing.toml: can't be read"),
        (("utility", "--name", "../up"), "can't name a folder"),
    ],
)
def test_wrong_use_is_refused_with_exit_code_2(run, data, tmp_path, words, said):
    result = run("reproduce", *words, "--data", data, "--out", tmp_path / "out")
    assert result.code == 2
    assert said in result.err
    assert not (tmp_path / "out").exists()


def test_a_setting_that_is_not_there_is_named_with_those_that_are(run, data, tmp_path):
    (tmp_path / "c.toml").write_text("epoch = 3\n")
    result = run("reproduce", "utility", "--data", data, "--out", tmp_path / "out", "--config", tmp_path / "c.toml")
    assert result.code == 2
    assert "there is no setting 'epoch'" in result.err
    assert "epochs" in result.err


def test_more_groups_than_users_are_refused_before_any_work(run, data, tmp_path):
    (tmp_path / "c.toml").write_text("groups = [1, 5000]\n")
    result = run("reproduce", "utility", "--data", data, "--out", tmp_path / "out", "--config", tmp_path / "c.toml")
    assert (result.code, result.out) == (1, "")
    assert result.err == "erasable: there are only 40 users for 5000 groups: set groups to 40 or fewer\n"
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_made_is_refused(run, data, tmp_path):
    result = run("reproduce", "utility", "--data", data, "--out", data)
    assert result.code == 2
    assert f"--out {data} can't be made or written to" in result.err


@pytest.mark.full
def test_a_result_of_another_kind_names_the_file_to_delete(run, data, tmp_path):
    words = ("reproduce", "balance", "--data", data, "--out", tmp_path / "out", "--seeds", 1, "--workers", 1)
    run(*words)
    file = next((tmp_path / "out" / "cells").glob("*.json"))
    kept = json.loads(file.read_text())
    file.write_text(json.dumps({**kept, "result": {"something": "else"}}))
    result = run(*words)
    assert result.code == 1
    assert f"cells/{file.name} is none of balance: delete the file" in result.err


def test_missing_data_are_refused_before_any_work(run, tmp_path):
    result = run("reproduce", "utility", "--data", tmp_path / "no.csv", "--out", tmp_path / "out")
    assert result.code == 1
    assert "no.csv" in result.err


@pytest.mark.full
def test_ctrl_c_keeps_what_is_finished(start_apart, data, tmp_path):
    out = tmp_path / "out"
    words = ("utility", "--data", data, "--out", out, "--epochs", 200, "--workers", 1)
    process = start_apart("reproduce", *words)
    while not list(out.glob("cells/*.json")):
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate()
    assert (process.returncode, said) == (130, "erasable: stopped; nothing is left half done\n")
    kept = list(out.glob("cells/*.json"))
    assert kept
    assert all(json.loads(file.read_text())["result"] for file in kept)


def test_the_live_table_says_what_is_done_what_runs_and_the_time_left():
    table = progress_table(RunProgress({"utility": (3, 1200)}, ("utility nmf [x]",), 4_000.0))
    cells = [list(column.cells) for column in table.columns]
    assert cells[0][0] == "utility"
    assert (cells[1][0], cells[2][0]) == ("3", "1,200")
    assert any("1 h 6 min" in cell for cell in cells[0])
