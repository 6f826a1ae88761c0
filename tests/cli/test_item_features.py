"""Features of items by command: learning with them, a new table alone, with a sync, and what is refused."""

import pytest

BOOKS = "item_id,author\n" + "".join(f"b{number},{'Ann' if number % 2 else 'Bob'}\n" for number in range(8))


@pytest.fixture
def files(tmp_path):
    """Sales of the books b0 to b5, and a table of books; b6 and b7 nobody has."""
    rows = [f"u{user},b{(user * user + step) % 6}" for user in range(12) for step in range(1 + user % 3)]
    (tmp_path / "sales.csv").write_text("user_id,item_id\n" + "\n".join(rows) + "\n")
    (tmp_path / "books.csv").write_text(BOOKS)
    (tmp_path / "more.csv").write_text(BOOKS + "b8,Ann\n")
    return tmp_path


def checkpoints(folder):
    return {path.name: path.read_bytes() for path in (folder / "checkpoints").iterdir()}


def test_from_learning_to_verifying(run, files):
    a, b, sales = files / "a", files / "b", files / "sales.csv"
    given = ["--items", files / "books.csv", "--features", "author", "--json"]
    assert run("learn", sales, "--into", a, *given).json["items"] == 8
    assert run("status", a, "--json").json["features"] == ["author=3"]
    assert "features      author=3\n" in run("status", a).out
    answer = run("recommend", a, "--user", "u1", "-k", "8", "--json").json
    assert {one["item_id"] for one in answer["recommendations"][0]["items"]} >= {"b7"}
    assert "b7" in run("similar", a, "--item", "b1").out
    run("forget", a, "--user", "u4")
    more = run("learn", "--more", "--into", a, "--items", files / "more.csv", "--json").json
    assert (more["items_added"], more["users_added"], more["stages_rerun"]) == (1, 0, 1)
    left = [line for line in sales.read_text().splitlines() if not line.startswith("u4,")]
    (files / "left.csv").write_text("\n".join(left) + "\n")
    run("learn", files / "left.csv", "--into", b, "--items", files / "more.csv", "--features", "author")
    assert checkpoints(a) == checkpoints(b)
    assert run("verify", a).code == 0
    done = run("sync", files / "left.csv", "--into", a, "--items", files / "books.csv", "--json").json
    assert (done["items"], done["stages_rerun"]) == (8, 1)


def test_what_is_missing_is_named(run, files):
    sales, into = files / "sales.csv", files / "a"
    for words, said in (
        (["--features", "author"], "--items FILE"),
        (["--features", "writer", "--items", files / "books.csv"], "no column 'writer', only author"),
        (["--features", "author=0", "--items", files / "books.csv"], "from 1 to 100"),
    ):
        refused = run("learn", sales, "--into", into, *words)
        assert refused.code != 0
        assert said in refused.err
    run("learn", sales, "--into", into)
    refused = run("learn", "--more", "--into", into, "--items", files / "books.csv")
    assert refused.code == 2
    assert "nothing to learn more from" in refused.err
