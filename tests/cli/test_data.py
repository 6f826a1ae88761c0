"""`erasable data get`: a public data set, its terms, and what to do next."""

import pytest

import erasable.cli.data  # noqa: F401 - its help lists the names when it is imported: before they are replaced
from erasable.data import public_sets
from erasable.data.public_sets import PUBLIC_SETS
from kit.file_server import ROWS, Answer, described, lines, serving, sha256, zipped

ARCHIVE = zipped({"tiny/ratings.dat": lines("::")})


@pytest.fixture
def server(monkeypatch):
    """A server with the one data set that the command knows."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with serving({"/tiny.zip": Answer(ARCHIVE)}) as running:
        known = described(f"{running.address}/tiny.zip", ARCHIVE)
        gone = described(f"{running.address}/gone.zip", ARCHIVE, name="gone")
        monkeypatch.setattr(public_sets, "PUBLIC_SETS", {"tiny": known, "gone": gone})
        yield running


def test_words_say_rows_path_terms_and_what_is_next(run, server, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run("data", "get", "tiny")
    assert (result.code, result.err) == (0, "")
    assert result.out.splitlines() == [
        "tiny was downloaded and checked: 4 rows in data/tiny/ratings.csv",
        "its terms: for tests; in full: https://example.org/terms",
        "next: erasable learn data/tiny/ratings.csv --into shop --holdout 0.1",
    ]


def test_what_it_says_is_next_works(run, server, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = run("data", "get", "tiny", "--into", "my data").out.splitlines()[-1]
    assert words.startswith("next: erasable learn 'my data/tiny/ratings.csv' --into shop")
    learned = run(
        "learn",
        "my data/tiny/ratings.csv",
        "--into",
        "shop",
        "--model",
        "nmf",
        "--groups",
        "2",
        "--epochs",
        "1",
        "--json",
    ).json
    assert (learned["users"], learned["items"], learned["interactions"]) == (3, 3, len(ROWS))


def test_json_is_one_object_with_the_terms(run, server, tmp_path):
    result = run("data", "get", "tiny", "--into", tmp_path, "--json")
    assert (result.code, result.err) == (0, "")
    assert result.json == {
        "name": "tiny",
        "path": str(tmp_path / "tiny" / "ratings.csv"),
        "rows": 4,
        "kept": False,
        "checksum": sha256(ARCHIVE),
        "address": f"{server.address}/tiny.zip",
        "licence": "for tests",
        "terms": "https://example.org/terms",
    }


def test_what_is_there_is_kept_and_it_is_said(run, server, tmp_path):
    run("data", "get", "tiny", "--into", tmp_path)
    result = run("data", "get", "tiny", "--into", tmp_path)
    assert result.out.startswith(f"tiny was there already with 4 rows in {tmp_path}/tiny/ratings.csv\n")
    assert run("data", "get", "tiny", "--into", tmp_path, "--json").json["kept"] is True
    assert server.asked == ["/tiny.zip"]


def test_a_failure_is_one_line_on_standard_error(run, server, tmp_path):
    result = run("data", "get", "gone", "--into", tmp_path / "data", "--json")
    assert (result.code, result.out, result.err.count("\n")) == (1, "", 1)
    assert "/gone.zip: the server answered 404 Not Found" in result.err
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_name_is_wrong_use_and_the_names_are_said(run, tmp_path):
    result = run("data", "get", "ml-2m", "--into", tmp_path)
    assert (result.code, result.out) == (2, "")
    assert result.err == f"erasable: there is no data set 'ml-2m': give one of {', '.join(PUBLIC_SETS)}\n"
    assert list(tmp_path.iterdir()) == []


def test_the_help_lists_the_names(run):
    said = " ".join(run("data", "get", "--help").out.split())
    assert f"One of {', '.join(PUBLIC_SETS)}." in said


def test_without_more_words_the_help_is_shown(run):
    result = run("data")
    assert result.code == 2
    said = result.out + result.err
    assert "get   Download a public data set" in said
    assert "make  Make up data of any size" in said
