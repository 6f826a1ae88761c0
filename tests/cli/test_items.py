"""Hiding items and declaring their attributes by command."""

import json

import pytest

from erasable.operations import DiskStorage
from erasable.proof import records_of


@pytest.fixture
def table(tmp_path):
    """Attributes of items, one of which nobody has yet."""
    path = tmp_path / "items.csv"
    path.write_text("item_id,price\na,5\nnew,7\n")
    return path


def changes(shop):
    """Return how often declared items were changed."""
    with DiskStorage(shop).reading() as session:
        return [one["what"] for one in records_of(session.documents().records())].count("items")


def test_an_item_of_the_new_table_is_hidden_in_the_same_change(run, shop, table):
    done = run("items", shop, "--set", table, "--hide", "new,b", "--json")
    assert (done.code, done.err) == (0, "")
    assert done.json == {"items": 6, "declared": 2, "attributes": ["price"], "hidden": ["b", "new"], "unknown": 1}
    assert changes(shop) == 1
    shown = run("items", shop, "--show", "new", "--json").json
    assert (shown["hidden"], shown["attributes"]) == (["b"], ["price"])
    assert run("items", shop, "--json").json == shown
    assert changes(shop) == 2


def test_if_an_item_is_unknown_nothing_is_changed(run, shop, table):
    for words, code, said in (
        (["--hide", "elsewhere"], 1, "no item 'elsewhere'"),
        (["--hide", "a", "--show", "a"], 2, "name it once"),
    ):
        refused = run("items", shop, "--set", table, *words)
        assert refused.code == code
        assert said in refused.err
    assert json.loads(run("items", shop, "--json").out)["attributes"] == []
    assert changes(shop) == 0
