"""Whoever is called like a word of our own files is not found in them: learned, forgotten, verified, and searched."""

import json
import re
from pathlib import Path

import pyarrow as pa
import pytest

from erasable.operations import DiskHome, forget, learn, verify
from erasable.proof.residue import Target, scan_folder
from erasable.proof.residue.vocabulary import FREE_FORM, Vocabulary, is_own_json, is_own_name
from erasable.requests import Request
from erasable.training import Config

USERS = [f"u{number}" for number in range(9)]
# Random, or the time: nobody is called like that.
NOT_WORDS = re.compile(r"[0-9a-f]{12,}|\d{4}-\d\d-\d\d|\.\d+\.\d+")


@pytest.fixture(scope="module")
def shop(tmp_path_factory) -> Path:
    """A workspace that has learned, forgotten somebody and something, and verified; only to be read."""
    rows = [(user, f"i{(place * 3 + step) % 7}", 1 + step) for place, user in enumerate(USERS) for step in range(5)]
    users, items, ratings = zip(*rows, strict=True)
    times = [1_600_000_000.0 + 77 * number for number in range(len(rows))]
    table = pa.table({"user_id": users, "item_id": items, "rating": ratings, "timestamp": times})
    folder = tmp_path_factory.mktemp("vocabulary") / "shop"
    learn(table, folder, Config(model="nmf", groups=2, epochs=2, holdout=0.3, min_interactions=2))
    forget(DiskHome(folder), [Request("u3")])
    with DiskHome(folder).reading() as session:
        items = sorted(session.state().knowledge.items_of("u5"))
    forget(DiskHome(folder), [Request("u5", (items[0],))])
    verify(DiskHome(folder))
    return folder


def words_of(folder: Path) -> set[str]:
    """Return what stands in the files that are text, and in all names, cut up in several ways."""
    texts = [str(path.relative_to(folder)) for path in folder.rglob("*")]
    texts += [path.read_text() for path in folder.rglob("*") if path.suffix in (".json", ".jsonl", ".txt")]
    texts += [re.sub("<[^>]*>|<style>.*</style>", " ", path.read_text()) for path in folder.rglob("*.html")]
    texts += [path.read_bytes().decode("ascii", "ignore") for path in folder.rglob("*.safetensors")]
    found = {word for text in texts for cut in (r"[^\w]+", r"[^\w-]+", r"[^\w.@-]+") for word in re.split(cut, text)}
    return {word for word in found if re.fullmatch(r"\w[\w.@-]*\w|\w", word) and not NOT_WORDS.search(word)}


def test_whoever_is_called_like_a_word_in_them_is_not_found(shop):
    words = words_of(shop) - set(USERS)
    assert {"nmf", "fixed", "fingerprint", "parameters", "config.json", "whole-catalogue", "rows.user", "2"} <= words
    assert scan_folder(shop, [Target(word) for word in sorted(words)]).residues == ()


def test_the_items_and_numbers_in_them_are_nobody(shop):
    people = [Target(text) for text in (*(f"i{number}" for number in range(7)), *map(str, range(100)), "0.1", "5.0")]
    assert scan_folder(shop, people).residues == ()


def test_those_who_are_left_are_found(shop):
    for user in USERS:
        files = {residue.file.split("/")[0] for residue in scan_folder(shop, [Target(user)]).residues}
        assert files <= {"data", "holdout"}
        assert bool(files) is (user != "u3")


def test_every_field_in_them_is_known(shop):
    known = Vocabulary.of(()).fields

    def unknown(value: object) -> set[str]:
        if isinstance(value, list):
            return {key for one in value for key in unknown(one)}
        if not isinstance(value, dict):
            return set()
        inner = {key for name, one in value.items() if name not in FREE_FORM for key in unknown(one)}
        return {key for key in value if key not in known} | inner

    for path in shop.rglob("*"):
        if is_own_json(path.relative_to(shop).as_posix()):
            for line in path.read_text().splitlines() if path.suffix == ".jsonl" else [path.read_text()]:
                assert unknown(json.loads(line)) == set(), path


def test_every_name_in_it_is_known(shop):
    assert [path.name for path in shop.rglob("*") if not is_own_name(path.name)] == []


@pytest.mark.parametrize(
    ("text", "said"), [("policy", True), ("polic", False), ("all data", True), ("customer-1", False)]
)
def test_wording_is_told_by_whole_words(text, said):
    assert Vocabulary.of(("all data of one person",)).says(text) is said
