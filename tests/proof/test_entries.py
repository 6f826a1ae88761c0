"""Which of many users and rows are on a do-not-learn list: the same answers as encoding and hashing each by itself."""

import json
from hashlib import blake2b

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from erasable.data import Ids, Interactions
from erasable.fingerprint import canonical_json
from erasable.proof import _entries
from erasable.proof.do_not_learn import DoNotLearnList
from erasable.seeding import hashing

KEY = bytes(range(32))
ODD = [
    "",
    " ",
    "\0",
    '"',
    "\\",
    '\\"',
    "\n",
    "\x1f",
    "\x7f",
    "\x80",
    "\u2028",
    "é",
    "e\u0301",
    "👩\u200d🚀",
    "null",
    "[",
    '","',
]
CHARACTERS = st.one_of(st.characters(exclude_categories=["Cs"]), st.sampled_from('"\\/\b\f\n\r\t\0\x1f\x7f,[]'))
IDS = st.one_of(st.text(CHARACTERS, max_size=6), st.sampled_from(ODD), st.text("ab", min_size=100, max_size=300))
ROWS = st.lists(st.tuples(IDS, IDS), min_size=1, max_size=25, unique=True)


@pytest.fixture(autouse=True, params=["compiled", "hashlib"])
def way(request, monkeypatch):
    """Look through pieces of few rows, by compiled code or by hashlib."""
    monkeypatch.setattr(_entries, "_PIECE", 7)
    monkeypatch.setattr(hashing, "FEW", 0 if request.param == "compiled" else hashing.FEW)


def digest(*value):
    """Hash one entry, as it is defined."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return blake2b(text.encode(), key=KEY, digest_size=32).digest()


def table_of(rows):
    users, items = (pa.array([row[place] for row in rows], pa.string()) for place in (0, 1))
    return Interactions.from_columns(users, items)[0]


def one_by_one(found, table):
    """Return which users and which rows of others are on a list, hashing each by itself."""
    users, items = table.users.texts(), table.items.texts()
    whole = [digest("user", user) in found.users for user in users]
    rows = zip(table.user_index.tolist(), table.item_index.tolist(), strict=True)
    single = [
        not whole[user] and digest("interaction", users[user], items[item]) in found.interactions for user, item in rows
    ]
    return whole, single


checked = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@given(ROWS, st.data())
@checked
def test_users_and_rows_are_found_as_if_each_was_hashed_by_itself(rows, data):
    users = data.draw(st.sets(st.sampled_from([user for user, _ in rows]), max_size=3))
    pairs = data.draw(st.sets(st.sampled_from(rows), max_size=8))
    others = data.draw(st.sets(st.tuples(IDS, IDS), max_size=3))
    found, table = DoNotLearnList(KEY).naming(users, pairs | others), table_of(rows)
    whole, single = one_by_one(found, table)
    assert found.users_among(table.users).tolist() == whole
    listed, count = found.interactions_among(table, threads=data.draw(st.integers(1, 3)))
    assert listed.tolist() == (np.array(whole)[table.user_index] | single).tolist()
    assert (count.users, count.interactions) == (sum(whole), sum(single))


@given(st.lists(IDS, max_size=20, unique=True), st.sampled_from(["]", ',"']))
@example(ODD, "]")
@checked
def test_the_json_of_ids_is_canonical(ids, ending):
    content, ends = _entries._json_of(Ids.of(ids), ending)
    found = [content[begin:end].tobytes() for begin, end in zip([0, *ends.tolist()], ends.tolist(), strict=False)]
    assert found == [canonical_json(text)[1:] + ending.encode() for text in ids]


def test_every_character_up_to_the_end_of_latin_1():
    ids = [f"a{chr(code)}b" for code in range(256)]
    table = table_of([(text, text) for text in ids])
    found = DoNotLearnList(KEY).naming(ids[::2], [(text, text) for text in ids[1::4]])
    listed, count = found.interactions_among(table)
    assert (count.users, count.interactions) == (128, 64)
    expected = {*ids[::2], *ids[1::4]}
    assert listed.tolist() == [text in expected for text in table.users]


def test_a_part_of_a_list_of_ids():
    ids = Ids(Ids.of(ODD).array[3:9])
    assert DoNotLearnList(KEY).naming(ODD[4:6], []).users_among(ids).tolist() == [
        False,
        True,
        True,
        False,
        False,
        False,
    ]


def test_rows_of_people_who_are_listed_whole_are_not_hashed(monkeypatch):
    hashed = []

    def counting(messages, *others):
        hashed.append(len(messages.first))
        return hashing.digests(messages, *others)

    monkeypatch.setattr(_entries, "digests", counting)
    table = table_of([("ann", "a"), ("ann", "b"), ("bob", "a")])
    DoNotLearnList(KEY).naming(["ann"], [("ann", "b")]).interactions_among(table)
    assert hashed == [2, 1]


def test_a_digest_that_begins_like_an_entry_is_not_one():
    first = digest("user", "ann")
    found = DoNotLearnList(KEY, frozenset({first[:-1] + bytes([first[-1] ^ 1])}))
    assert found.users_among(Ids.of(["ann"])).tolist() == [False]


def test_nobody_is_found_in_an_empty_table():
    table = table_of([("ann", "a")]).without(users=["ann"])
    listed, count = DoNotLearnList(KEY).naming(["ann"], [("ann", "a")]).interactions_among(table)
    assert (listed.tolist(), count.total) == ([], 0)
