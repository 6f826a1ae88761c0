"""`erasable scan`: what it says in words and as JSON, and how it ends."""

import json
import sys

import pytest
import typer

from erasable.cli import scan as scan_command


@pytest.fixture
def run_scan(monkeypatch, capsys):
    """Run the command by itself and return its exit code with what it said."""

    def call(*words: object) -> tuple[int, str]:
        app = typer.Typer()
        app.command(scan_command.NAME)(scan_command.command)
        monkeypatch.setattr(sys, "argv", ["erasable", *map(str, words)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            app()
        return int(end.value.code or 0), capsys.readouterr().out

    return call


def test_somebody_who_is_held_is_found_with_the_remedy(run_scan, shop, facts):
    code, said = run_scan(shop, "--user", facts.long)
    assert code == 1
    lines = said.splitlines()
    assert lines[0].startswith("searched ")
    assert any("column user_id" in line and line.startswith("data/") for line in lines)
    assert lines[-1].startswith(f"next: if the person was not erased yet, run erasable forget {shop}")


def test_json_says_the_same(run_scan, shop, facts):
    code, said = run_scan(shop, "--user", facts.long, "--json")
    found = json.loads(said)
    assert code == 1
    assert list(found) == ["clean", "files", "bytes", "kinds", "searched", "residues", "near", "queue_fault"]
    assert found["clean"] is False
    assert {"file", "place", "what"} == set(found["residues"][0])
    assert {one["what"] for one in found["residues"]} == {"id", "personal row"}
    assert sum(found["kinds"].values()) == found["files"]


def test_after_they_were_forgotten_nothing_is_found(run, run_scan, shop, facts):
    assert run("forget", shop, "--user", facts.long).code == 0
    code, said = run_scan(shop, "--user", facts.long)
    assert code == 0
    assert said.splitlines()[-1].startswith("nothing of the person was found (--how ")
    told = run_scan(shop, "--user", facts.long, "--how")[1].splitlines()
    assert told[-1] == "nothing of the person was found"
    assert sum(line.startswith("- ") for line in told) > 3
    assert facts.long not in said
    code, said = run_scan(shop, "--user", facts.long, "--json")
    assert (code, json.loads(said)["clean"], json.loads(said)["residues"]) == (0, True, [])


def test_a_table_that_still_has_them_may_be_given(run, run_scan, shop, ratings_file, tmp_path):
    run("forget", shop, "--user", "eve")
    rows = [line.split(",") for line in ratings_file.read_text().splitlines() if line.startswith("eve,")]
    (shop / "kept.csv").write_text("item,stars\n" + "".join(f"{row[1]},{row[2]}\n" for row in rows))
    assert run_scan(shop, "--user", "eve")[0] == 0
    code, said = run_scan(shop, "--user", "eve", "--data", ratings_file)
    assert code == 1
    assert "kept.csv" in said
    renamed = ratings_file.read_text().replace("user_id,item_id", "who,what")
    (tmp_path / "all.csv").write_text(renamed)
    options = ("--data", tmp_path / "all.csv", "--user-column", "who", "--item-column", "what")
    assert run_scan(shop, "--user", "eve", *options)[0] == 1


class TestNoVerdict:
    """What keeps a scan from a verdict ends with 2, since 1 says that the person was found."""

    def test_refusals_name_their_remedy(self, run, shop, ratings_file, tmp_path):
        (tmp_path / "bad.csv").write_text("user_id,item_id,rating\neve,a,1\nbob,b,x\n")
        cases = {
            "gone": ((tmp_path / "gone", "--user", "eve"), "there is no folder"),
            "nobody": ((shop, "--user", " "), "give --user an id"),
            "unknown": ((shop, "--user", "zoe", "--data", ratings_file), "leave out --data"),
            "a bad row": ((shop, "--user", "eve", "--data", tmp_path / "bad.csv"), "line 3: 'x' is not a rating"),
            "no file": ((shop, "--user", "eve", "--data", tmp_path / "nowhere.csv"), "does not exist"),
        }
        for name, (words, said) in cases.items():
            result = run("scan", *words)
            assert (result.code, result.out) == (2, ""), name
            assert result.err.startswith("erasable: "), name
            assert said in result.err, name

    def test_a_file_of_one_person_is_enough(self, run, shop, tmp_path):
        (tmp_path / "alone.csv").write_text("user_id,item_id\neve,a\neve,b\n")
        assert run("scan", shop, "--user", "eve", "--data", tmp_path / "alone.csv").code in (0, 1)

    def test_a_damaged_workspace_is_no_finding(self, run, shop):
        (shop / "manifest.json").write_text("{")
        result = run("scan", shop, "--user", "eve")
        assert (result.code, result.out) == (2, "")

    def test_nor_is_a_fault_of_ours(self, run, shop, monkeypatch):
        monkeypatch.setattr("erasable.cli.scan.scan", lambda *_: 1 / 0)
        result = run("scan", shop, "--user", "eve")
        assert result.code == 2
        assert "ZeroDivisionError" in result.err


def test_a_user_must_be_named(run_scan, shop):
    assert run_scan(shop)[0] == 2


def test_json_counts_near_ids(run, learned):
    result = run("scan", learned, "--user", "BOB ", "--json")
    assert result.code == 1
    assert result.json["clean"] is False
    assert result.json["residues"] == []
    assert result.json["near"] == {"held": 1, "differ_in": ["surrounding blanks", "upper and lower case"]}


@pytest.mark.parametrize(
    "words",
    [("scan", "--user", "ann"), ("verify",), ("forget", "--user", "ann"), ("status",)],
    ids=lambda words: words[0],
)
def test_nothing_is_said_or_done_where_the_data_lie_behind_a_link(run, shop, words):
    elsewhere = (shop / "data").rename(shop.with_name("elsewhere"))
    (elsewhere / "letter.txt").write_text("mine")
    (shop / "data").symlink_to(elsewhere)
    before = sorted(elsewhere.iterdir())
    done = run(words[0], shop, *words[1:])
    assert done.code == (2 if words[0] == "scan" else 1)  # to verify, a damaged workspace is different
    assert (
        "data is a link, and what lies elsewhere is not erased: replace it by what it points to" in done.out + done.err
    )
    assert sorted(elsewhere.iterdir()) == before
    assert not list(shop.glob("certificates/*"))
