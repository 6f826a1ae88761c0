"""JSON: where an id is compared and where it is not, what the vocabulary's files say, deep nesting, texts, tables."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from erasable.operations._vocabulary import own_vocabulary
from erasable.scan import Target, scan_folder
from erasable.scan._texts import Object, list_tables, nested_json, object_tables, parse_json


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


FOUND = {
    "a field of users": {"user_id": "7"},
    "a number of a user": {"user_id": 7},
    "a number that is whole": {"user_id": 7.0},
    "a list under a plural": {"users": [1, 7]},
    "texts under a plural": {"users": ["1", "7"]},
    "any text": {"x": "7"},
    "a text in a list of groups": {"groups": [["1", "7"], ["2"]]},
    "a key": {"x": {"7": 1}},
    "a key above": {"7": {"item": 3}},
    "an id": {"people": [{"id": 7}]},
    "a text that is JSON": {"x": '{"user": "7"}'},
    "JSON twice over": {"x": json.dumps(json.dumps({"user": 7}))[1:-1].replace('\\"', '"')},
    "a list alone": ["7"],
}
NOT_FOUND = {
    "an item": {"item_id": "7", "items": ["7"]},
    "an item as a number": {"item_id": 7},
    "a key under items": {"items": {"7": 1}},
    "a count of users": {"users": 7, "n_users": 7},
    "a measure": {"rating": 7, "rank": "7", "group": "7"},
    "any number": {"x": 7, "y": [7]},
    "the id of an item": {"items": [{"id": "7"}]},
    "an id beside a user": {"user": "ann", "id": 7},
    "a part": {"user": "77", "x": "7-7"},
    "true and null": {"user": True, "x": None},
}


@pytest.mark.parametrize("value", FOUND.values(), ids=FOUND)
def test_ids_are_found(write, scan, value):
    write("notes", json.dumps(value))
    assert [(residue.file, residue.what) for residue in scan("7").residues] == [("notes", "id")]


@pytest.mark.parametrize("value", NOT_FOUND.values(), ids=NOT_FOUND)
def test_what_is_no_id_of_a_user_is_not_taken_for_one(write, scan, value):
    write("notes", json.dumps(value))
    assert scan("7").residues == ()


@pytest.mark.parametrize("user", ["true", "null", "user_id", "user", "item", "rating", "id", "users", "7.0"])
def test_names_of_fields_and_other_values_are_nobody(write, scan, user):
    write("notes", json.dumps([{"user_id": 7, "user": True, "item": None, "rating": 7.0, "id": 3, "users": 2}]))
    assert scan(user).residues == ()


def test_a_key_that_stands_there_twice_is_read_twice(write, scan):
    write("notes", '{"user": "7", "user": "8"}')
    assert not scan("7").clean
    assert not scan("8").clean


def test_a_file_that_is_called_after_users_lists_them(write, scan):
    write("users.json", "[1, 7]")
    assert not scan("7").clean
    write("users.json", "[1, 77]")
    assert scan("7").clean


def test_a_pair_is_found_in_one_object_only(write, places):
    pair = Target("ann", items=("42",))
    write("notes", json.dumps([{"user": "ann", "item": 41}, {"user": "bob", "item": 42}, {"ann": {"40": 5}}]))
    assert places(pair) == set()
    for value in (
        {"user": "ann", "item": 42},
        {"user": "ann", "seen": ["41", "42"]},
        {"user": "ann", "rows": [{"item_id": "42", "rating": 3}]},
        {"kept": {"ann": {"42": 5}}},
    ):
        write("notes", json.dumps([value]))
        assert places(pair) == {("an object", "interactions")}
    assert places(Target("ann", items=("5", "3"))) == set()


def test_the_same_items_under_somebodys_name_are_theirs(write, scan, short):
    erased, _ = short
    rows = [{"item": item, "rating": rating} for item, rating in zip(erased.items, erased.ratings, strict=True)]
    write("notes", json.dumps([{"user": "bob", "rows": rows}]))
    assert scan(erased.target).clean
    write("notes", json.dumps([{"user": "bob"}, {"rows": rows}]))
    assert not scan(erased.target).clean


def test_where_it_was_found_names_nobody_else(write, places):
    write("notes", json.dumps({"ann": {"friend": "7", "bob": "7"}}))
    assert places("7") == {("under friend", "id"), ("a text", "id")}


@pytest.mark.parametrize("value", [["customer-12"], {"customer-12": 1}, {"note": "as customer-12 said"}])
def test_only_who_is_really_held_explains_hits(write, scan, value):
    write("a.bin", b"\x00\xffcustomer-12\x00")
    write("notes", json.dumps(value))
    assert {residue.file for residue in scan("customer-1").residues} == {"a.bin", "notes"}
    assert scan("customer-1", held=("customer-12",)).residues == ()


class TestOurOwnFiles:
    @pytest.mark.parametrize(
        "name", ["manifest.json", "config.json", "config-0123456789ab.json", "certificates/x.json"]
    )
    @pytest.mark.parametrize(
        "user", ["nmf", "fixed", "3", "config.json", "independent", "interactions", "numpy", "2.4"]
    )
    def test_words_of_ours_are_nobody(self, write, scan, name, user):
        value = {
            "version": 3,
            "config": "config.json",
            "settings": {"model": "nmf", "policy": "fixed", "groups": 3},
            "groups": [{"users": 3, "interactions": 3, "file": "independent"}],
            "environment": {"numpy": "2.4"},
            "files": {"config.json": "ab"},
            "policy": "independent",
            "proves": "that interactions are gone",
        }
        write(name, json.dumps(value))
        assert scan(user).residues == ()

    def test_the_same_words_in_another_file_are_somebody(self, write, scan):
        write("notes.json", json.dumps({"model": "nmf"}))
        assert not scan("nmf").clean

    @pytest.mark.parametrize(
        "value", [{"user": "nmf"}, {"users": ["nmf"]}, {"x": "nmf"}, {"nmf": 1}, {"chain": {"y": "nmf"}}]
    )
    def test_what_is_no_field_of_ours_is_compared(self, write, scan, value):
        write("manifest.json", json.dumps(value))
        assert not scan("nmf").clean

    def test_pending_requests_name_people(self, write, scan):
        write("pending-0123456789ab.json", json.dumps({"accepted": [{"user": "7", "items": ["8"], "received": "9"}]}))
        assert not scan("7").clean
        assert scan("8", "9", "accepted").clean


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text("abc7", max_size=3),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc7", max_size=3), inner, max_size=3),
    ),
    st.booleans(),
)
def test_a_text_is_found_wherever_it_stands_and_only_then(tmp_path_factory, value, nested):
    folder = tmp_path_factory.mktemp("json")
    held = {"x": json.dumps(value)} if nested else {"x": value}
    (folder / "notes").write_text(json.dumps(held))
    assert scan_folder(folder, [Target("7")], own_vocabulary()).clean is ("7" not in texts_in(value, nested))


def texts_in(value: object, nested: bool) -> set[str]:
    """Return the texts and keys; plain JSON in a text is a text."""
    if isinstance(value, str):
        return {json.dumps(value)} if nested else {value}
    if isinstance(value, list):
        return {text for one in value for text in texts_in(one, False)}
    if isinstance(value, dict):
        return set(value) | {text for one in value.values() for text in texts_in(one, False)}
    return {json.dumps(value)} if nested else set()


def test_half_a_letter_is_no_reason_to_stop(write, scan):
    write("notes.json", '{"a": "\\ud800", "by": "as customer-1 said"}')
    assert not scan("customer-1").clean
    assert scan("customer-2").clean
