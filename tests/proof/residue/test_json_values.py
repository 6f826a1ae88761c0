"""JSON as it stands in a file: nested deeply, in texts, as tables."""

import pytest

from erasable.proof.residue.json_values import Object, list_tables, nested_json, object_tables, parse_json


def test_all_keys_of_an_object_are_kept():
    assert parse_json('{"a": 1, "a": 2}') == Object([("a", 1), ("a", 2)])


@pytest.mark.parametrize("depth", [300, 100_000])
def test_what_is_nested_too_deeply_is_not_read(depth):
    with pytest.raises(ValueError, match="nested too deeply"):
        parse_json("[" * depth + "]" * depth)


def test_what_is_nested_too_deeply_is_text(write, scan):
    write("f", "[" * 300 + '"eve"' + "]" * 300)
    found = scan("eve")
    assert (found.kinds["text"], found.clean) == (1, False)


@pytest.mark.parametrize(
    ("text", "is_json"), [('{"a": 1}', True), (" [1]", True), ("7", False), ('"7"', False), ("{x", False)]
)
def test_only_objects_and_lists_are_json_inside_a_text(text, is_json):
    assert (nested_json(text) is not None) is is_json


def columns(tables) -> list[dict]:
    return [{column.name: list(column.values) for column in table.columns} for table in tables]


def test_lists_are_tables():
    rows = [Object([("a", 1), ("b", 2)]), Object([("a", 3)])]
    assert columns(list_tables(rows, "x")) == [{"a": [1, 3], "b": [2, None]}]
    assert columns(list_tables([1, 2], "x")) == [{"x": [1, 2]}]
    assert [[list(c.values) for c in table.columns] for table in list_tables([["a", 1], ["b", 2]], None)] == [
        [["a", "b"], [1, 2]]
    ]
    assert columns(list_tables([], "x")) == columns(list_tables([[1], [1, 2]], "x")) == []


def test_objects_are_tables_if_they_are_long_enough():
    pairs = [("items", ["a", "b", "c"]), ("ratings", [1, 2, 3]), ("x", "y"), ("few", [1])]
    assert columns(object_tables(pairs, None)) == [{"items": ["a", "b", "c"], "ratings": [1, 2, 3]}]
    (table,) = object_tables([("a", 5), ("b", 4), ("c", 1.5)], None)
    assert [list(column.values) for column in table.columns] == [["a", "b", "c"], [5, 4, 1.5]]
    assert list(object_tables([("a", 5), ("b", 4)], None)) == []
