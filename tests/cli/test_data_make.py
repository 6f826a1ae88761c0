"""`erasable data make`: made-up data of any size, and what to do next."""

import os
import signal
import time

import pytest
from pyarrow import parquet

from erasable.interrupts import STOPPED

SMALL = ("--users", "300", "--items", "80", "--interactions", "3000")


def test_words_say_how_much_and_what_is_next(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run("data", "make", "made.parquet", *SMALL)
    rows = parquet.read_table("made.parquet").num_rows
    assert (result.code, result.err) == (0, "")
    assert result.out.splitlines() == [
        f"made up 300 users and 80 items, {rows:,} interactions: made.parquet",
        "next: erasable learn made.parquet --into shop --holdout 0.1",
    ]


def test_what_it_says_is_next_works(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = run("data", "make", "made.csv", *SMALL, "--ratings", "--times", "--json").json
    learned = run("learn", "made.csv", "--into", "shop", "--holdout", "0.1", "--json").json
    assert (learned["users"], learned["interactions"]) == (300, made["interactions"])


def test_json_is_one_object(run, tmp_path):
    path = tmp_path / "made.csv.gz"
    result = run("data", "make", path, *SMALL, "--clusters", "4", "--seed", "9", "--json")
    rows = result.json["interactions"]
    assert (result.code, result.err) == (0, "")
    assert result.json == {
        "path": str(path),
        "files": 1,
        "users": 300,
        "items": 80,
        "interactions": rows,
        "clusters": 4,
        "seed": 9,
        "bytes": path.stat().st_size,
    }
    assert rows == pytest.approx(3000, rel=0.1)


def test_files_makes_a_folder(run, tmp_path):
    result = run("data", "make", tmp_path / "parts", *SMALL, "--files", "3")
    assert result.code == 0
    assert " interactions in 3 files: " in result.out
    assert len(list((tmp_path / "parts").iterdir())) == 3


def test_what_is_there_is_refused_in_one_line(run, tmp_path):
    (tmp_path / "made.csv").write_text("mine")
    result = run("data", "make", tmp_path / "made.csv", *SMALL, "--json")
    assert (result.code, result.out) == (1, "")
    assert result.err == f"erasable: {tmp_path}/made.csv is there already: move it away, or give another name\n"
    assert (tmp_path / "made.csv").read_text() == "mine"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--users", "0"), "wrong setting --users: give at least 1"),
        (("--interactions", "5"), "give at least as many --interactions as --users"),
        (("--users", "10", "--items", "3", "--interactions", "99"), "give at most 30 --interactions"),
        (("--clusters", "5000"), "give at least as many --items as --clusters"),
        (("--files", "0"), "give 1 to 10,000 with --files"),
    ],
)
def test_wrong_use_is_said_with_its_remedy(run, tmp_path, options, said):
    result = run("data", "make", tmp_path / "made.csv", *options)
    assert (result.code, result.out) == (2, "")
    assert said in result.err
    assert list(tmp_path.iterdir()) == []


def test_an_object_store_is_not_written_to(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run("data", "make", "s3://bucket/made.csv", *SMALL)
    assert (result.code, result.out) == (2, "")
    assert "give a path" in result.err
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_leaves_no_half_file(start_apart, tmp_path):
    process = start_apart("data", "make", tmp_path / "made.parquet", "--users", 10**8, "--interactions", 10**9)
    until = time.monotonic() + 60
    while not list(tmp_path.iterdir()):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (130, "", f"erasable: {STOPPED}\n")
    assert list(tmp_path.iterdir()) == []
