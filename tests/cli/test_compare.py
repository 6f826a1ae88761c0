"""`erasable compare`: words, JSON, files and a picture; Ctrl-C, and nothing left behind by a process that is killed."""

import csv
import json
import os
import time
from pathlib import Path

import pytest

from kit.interrupting import press, started

MODELS = ("--models", "ease,popular,nmf:groups=2:epochs=2", "--holdout", "0.4", "--threads", "1")
FIGURES = ["ndcg@10", "hr@10", "recall@10", "learn_seconds", "forget_cost", "forget_seconds", "memory_bytes"]


def test_one_json_object(run, ratings_file):
    found = run("compare", ratings_file, *MODELS, "--json").json
    assert [one["model"] for one in found["models"]] == ["ease", "popular", "nmf:groups=2:epochs=2"]
    assert list(found["models"][0]) == ["model", *FIGURES, "failed"]
    assert found["users"] == 8
    assert found["people_forgotten"] == 8
    assert 0 < found["held_out"] < 27
    assert all(0 < one["ndcg@10"] <= 1 for one in found["models"])


def test_a_table_files_and_a_picture(run, ratings_file, tmp_path):
    out, picture = tmp_path / "found.csv", tmp_path / "found.svg"
    result = run("compare", ratings_file, *MODELS, "--out", out, "--picture", picture)
    lines = result.out.splitlines()
    assert lines[0].startswith("8 users, 6 items, 27 interactions, of which ")
    assert lines[1].split()[:4] == ["model", "NDCG@10", "HR@10", "recall@10"]
    assert [line.split()[0] for line in lines[2:5]] == ["ease", "popular", "nmf:groups=2:epochs=2"]
    assert [line.split(":")[0] for line in lines[5:]] == ["quality", "forgetting", "memory"]
    rows = list(csv.DictReader(out.read_text().splitlines()))
    assert [row["model"] for row in rows] == ["ease", "popular", "nmf:groups=2:epochs=2"]
    assert picture.read_bytes().startswith(b"<?xml")


def test_a_model_that_fails_is_named_and_the_others_are_shown(run, ratings_file, tmp_path):
    models = ("--models", "popular,nmf:groups=50:grouping=random", "--holdout", "0.4")
    out = tmp_path / "found.json"
    result = run("compare", ratings_file, *models, "--out", out)
    assert result.code == 0
    (said,) = [line for line in result.out.splitlines() if "could not be measured" in line]
    assert said.startswith("nmf:groups=50:grouping=random could not be measured: there are only 8 users for 50 groups")
    assert said.endswith("give --groups 8 or fewer")
    assert [one["failed"] is None for one in json.loads(out.read_text())["models"]] == [True, False]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--out", "found.txt"), "the table is written as .csv or .json"),
        (("--out", "no-such-folder/found.csv"), "can't be written: name a file in a folder that is there"),
        (("--picture", "found.txt"), "a figure ends in .png, .svg or .pdf"),
        (("--models", "ease,ease"), "the model ease is given twice"),
    ],
)
def test_wrong_use_is_said_before_anything_is_measured(run, ratings_file, words, said):
    result = run("compare", ratings_file, *words)
    assert (result.code, result.out) == (2, "")
    assert said in result.err


def children_of(pid: int) -> list[int]:
    return [int(one) for path in Path(f"/proc/{pid}/task").glob("*/children") for one in path.read_text().split()]


def until(is_so, seconds=20.0) -> bool:
    end = time.monotonic() + seconds
    while not is_so() and time.monotonic() < end:
        time.sleep(0.05)
    return bool(is_so())


@pytest.fixture
def comparing(tmp_path):
    """A command that is measuring a model in another process; its temporary folder is one of its own."""
    rows = [f"u{user},i{(user * 7 + item * 13) % 400}" for user in range(600) for item in range(60)]
    (tmp_path / "many.csv").write_text("\n".join(["user_id,item_id", *rows]))
    (tmp_path / "temporary").mkdir()
    words = ("compare", tmp_path / "many.csv", "--models", "nmf:epochs=5000")
    process = started(words, {"TMPDIR": str(tmp_path / "temporary")})
    assert until(lambda: children_of(process.pid))
    yield process, children_of(process.pid)
    process.kill()
    process.communicate()


def is_gone(pid: int) -> bool:
    try:
        return "State:\tZ" in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return True


@pytest.mark.parametrize("everyone", [True, False])
def test_ctrl_c_ends_both_processes(comparing, everyone, tmp_path):
    process, children = comparing
    time.sleep(0.5)
    press(process, everyone)
    _, err = process.communicate(timeout=10)
    assert process.returncode == 130
    assert err == "erasable: stopped; nothing is left half done\n"
    assert until(lambda: all(map(is_gone, children)))
    assert os.listdir(tmp_path / "temporary") == []


def test_a_process_whose_parent_is_killed_ends_and_leaves_no_file(comparing, tmp_path):
    process, children = comparing
    time.sleep(2.0)
    process.kill()
    process.communicate()
    assert until(lambda: all(map(is_gone, children)))
    assert os.listdir(tmp_path / "temporary") == []
