"""A vocabulary of anybody's: what it names is nobody's, and everything else is searched as without it."""

import json
import re
import sqlite3
from contextlib import closing

import numpy as np
import pyarrow as pa
import pytest
import safetensors.numpy

from erasable.scan import Held, Rows, Target, Vocabulary, scan_folder

NOTHING = Vocabulary()


def found_in(folder, user: str, vocabulary: Vocabulary, **others: Held) -> set[str]:
    return {residue.file for residue in scan_folder(folder, [Target(user)], vocabulary, **others).residues}


def test_a_field_of_a_document_holds_nobody_unless_it_is_named_like_a_user(write, tmp_path):
    write("state.json", json.dumps({"mode": "quick", "user": "ann", "more": "bob"}))
    known = Vocabulary(fields=frozenset({"mode", "user"}), documents=re.compile(r"state\.json"))
    for user, without in (("quick", {"state.json"}), ("ann", {"state.json"}), ("bob", {"state.json"})):
        assert found_in(tmp_path, user, NOTHING) == without
    assert found_in(tmp_path, "quick", known) == set()
    assert found_in(tmp_path, "ann", known) == found_in(tmp_path, "bob", known) == {"state.json"}


def test_another_document_with_the_same_field_is_searched(write, tmp_path):
    write("copy.json", json.dumps({"mode": "quick"}))
    known = Vocabulary(fields=frozenset({"mode"}), documents=re.compile(r"state\.json"))
    assert found_in(tmp_path, "quick", known) == {"copy.json"}


def test_a_name_of_the_vocabulary_is_nobodys(write, tmp_path):
    write("current", b"")
    assert found_in(tmp_path, "current", NOTHING) == {"current"}
    assert found_in(tmp_path, "current", Vocabulary(names=re.compile("current|next"))) == set()


def test_a_word_is_looked_for_in_fields_only(write, tmp_path):
    write("a.bin", b"\0checkpoint\0")
    write("b.csv", "user,item\ncheckpoint,tea\n")
    assert found_in(tmp_path, "checkpoint", NOTHING) == {"a.bin", "b.csv"}
    assert found_in(tmp_path, "checkpoint", Vocabulary(wording="one checkpoint each")) == {"b.csv"}


def test_a_declared_name_is_nobodys_where_it_is_declared(write, tmp_path):
    for name in ("state.json", "copy.json"):
        write(name, json.dumps({"issuer": "Tea & Sons"}))
    known = Vocabulary(
        fields=frozenset({"issuer"}), documents=re.compile(".*json"), declaring=re.compile(r"state\.json")
    )
    held = Held(declared=("Tea & Sons",))
    assert found_in(tmp_path, "Tea & Sons", known, held=held) == {"copy.json"}


def test_tensors_and_their_metadata_may_be_known(write, tmp_path):
    facts = {"ours": json.dumps({"mode": "quick"})}
    write("a.safetensors", safetensors.numpy.save({"rows.first": np.zeros(4)}, metadata=facts))
    known = Vocabulary(fields=frozenset({"mode"}), tensors=re.compile(r"rows\.\w+"), metadata="ours")
    for user in ("first", "quick"):
        assert found_in(tmp_path, user, NOTHING) == {"a.safetensors"}
        assert found_in(tmp_path, user, known) == set()


@pytest.mark.parametrize(("user", "known"), [("zora", True), ("quick", False), ("typed in", True)])
def test_a_database_is_searched_where_people_stand_and_where_somebody_typed(tmp_path, user, known):
    with closing(sqlite3.connect(tmp_path / "queue.sqlite")) as connection, connection:
        connection.execute("CREATE TABLE people (user TEXT)")
        connection.execute("CREATE TABLE events (kind TEXT, note TEXT)")
        connection.execute("INSERT INTO people VALUES ('zora')")
        connection.execute("INSERT INTO events VALUES ('quick', 'typed in')")
    vocabulary = Vocabulary(
        databases=re.compile(r"queue\.sqlite"),
        people_tables=frozenset({"people"}),
        free_text_columns=frozenset({"note"}),
    )
    assert (found_in(tmp_path, user, vocabulary) == {"queue.sqlite"}) is known


@pytest.mark.parametrize(
    "held",
    [
        ["customer-12"],
        ("customer-12", "x"),
        pa.array(["x", "customer-12"]),
        pa.array(["x", "customer-12", "y"]).slice(1, 1),
        pa.array(["customer-12"], pa.large_string()),
        pa.chunked_array([["x"], ["customer-12"]]),
    ],
    ids=["list", "tuple", "array", "slice", "large", "chunked"],
)
def test_ids_that_are_held_come_as_texts_or_as_any_array(write, tmp_path, held):
    write("notes", "as customer-12 said")
    assert found_in(tmp_path, "customer-1", NOTHING) == {"notes"}
    assert found_in(tmp_path, "customer-1", NOTHING, held=Held(users=(held,))) == set()
    assert found_in(tmp_path, "customer-12", NOTHING, held=Held(items=(held,))) == set()


def test_interactions_are_found_in_whatever_order_they_are_given(write, tmp_path):
    write("a.csv", "item,rating\napple,2\nberry,3\ncherry,5\n")
    items, ratings = ("cherry", "apple", "berry"), (5.0, 2.0, 3.0)
    for order in ((0, 1, 2), (1, 2, 0), (2, 1, 0)):
        rows = Rows([items[place] for place in order], [ratings[place] for place in order])
        assert scan_folder(tmp_path, [Target("ann", rows=rows)], NOTHING).residues
    other = Rows(items, (5.0, 2.0, 4.0))
    assert not scan_folder(tmp_path, [Target("ann", rows=other)], NOTHING).residues
