"""Whoever is called like a word of our own files is not found in them: learned, forgotten, verified, and searched."""

import json
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from erasable.chain import Config
from erasable.operations import DiskStorage, forget, learn, verify
from erasable.operations._vocabulary import own_vocabulary
from erasable.proof import Erased, Search, Sought
from erasable.requests import Request
from erasable.scan import Target, scan_folder

RELEASED = Path(__file__).parent.parent / "fixtures" / "workspaces"
NAMING_PEOPLE = {"user", "people", "personal", "found", "shown", "texts", "own_items", "suppression"}
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
    forget(DiskStorage(folder), [Request("u3")])
    with DiskStorage(folder).reading() as session:
        items = sorted(session.state().dataset.items_of("u5"))
    forget(DiskStorage(folder), [Request("u5", (items[0],))])
    verify(DiskStorage(folder))
    return folder


def words_of(folder: Path) -> set[str]:
    """Return what stands in the files that are text, and in all names, cut up in several ways."""
    texts = [str(path.relative_to(folder)) for path in folder.rglob("*")]
    texts += [path.read_text() for path in folder.rglob("*") if path.suffix in (".json", ".jsonl", ".txt")]
    texts += [re.sub("<[^>]*>|<style>.*</style>", " ", path.read_text()) for path in folder.rglob("*.html")]
    texts += [path.read_bytes().decode("ascii", "ignore") for path in folder.rglob("*.safetensors")]
    texts += [name for path in folder.rglob("*.parquet") for name in pq.read_schema(path).names]
    found = {word for text in texts for cut in (r"[^\w]+", r"[^\w-]+", r"[^\w.@-]+") for word in re.split(cut, text)}
    return {word for word in found if re.fullmatch(r"\w[\w.@-]*\w|\w", word) and not NOT_WORDS.search(word)}


def test_whoever_is_called_like_a_word_in_them_is_not_found(shop):
    words = words_of(shop) - set(USERS)
    assert {"nmf", "fixed", "fingerprint", "parameters", "config.json", "whole-catalogue", "rows.user", "2"} <= words
    assert {"slot", "slot_number", "anchor_count", "stage_no_0", "held_out"} <= words
    assert scan_folder(shop, [Target(word) for word in sorted(words)], own_vocabulary()).residues == ()


def test_the_items_and_numbers_in_them_are_nobody(shop):
    people = [Target(text) for text in (*(f"i{number}" for number in range(7)), *map(str, range(100)), "0.1", "5.0")]
    assert scan_folder(shop, people, own_vocabulary()).residues == ()


def test_those_who_are_left_are_found(shop):
    for user in USERS:
        files = {residue.file.split("/")[0] for residue in scan_folder(shop, [Target(user)], own_vocabulary()).residues}
        assert files <= {"data"}
        assert bool(files) is (user != "u3")


def unknown_fields(folder: Path) -> dict[str, set[str]]:
    """Return the fields that are not known in documents of a workspace, by document."""
    vocabulary = own_vocabulary()

    def unknown(value: object) -> set[str]:
        if isinstance(value, list):
            return {key for one in value for key in unknown(one)}
        if not isinstance(value, dict):
            return set()
        inner = {key for name, one in value.items() if name not in vocabulary.free_form for key in unknown(one)}
        return {key for key in value if key not in vocabulary.fields} | inner

    found = {}
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        if vocabulary.documents.fullmatch(name):
            lines = path.read_text().splitlines() if path.suffix == ".jsonl" else [path.read_text()]
            found[name] = {key for line in lines for key in unknown(json.loads(line))}
    return found


def test_every_field_in_them_is_known(shop):
    found = unknown_fields(shop)
    assert "manifest.json" in found
    assert set().union(*found.values()) == set()


@pytest.mark.parametrize("folder", sorted(RELEASED.glob("*/*/workspace")), ids=lambda path: path.parent.name)
def test_every_field_in_those_of_released_versions_is_known_but_those_that_name_people(folder):
    found = unknown_fields(folder)
    assert "manifest.json" in found
    assert set().union(*found.values()) <= NAMING_PEOPLE | {"traces"}
    assert not any(fields for name, fields in found.items() if not name.startswith("pending"))


def test_a_field_in_which_people_stand_is_searched():
    assert own_vocabulary().fields.isdisjoint(NAMING_PEOPLE)


def test_whether_a_field_of_the_search_file_names_people_was_decided():
    # Whoever adds a field: if people can stand in it, it belongs to those that name people.
    fields = {*Search.model_fields, *Erased.model_fields, *Sought.model_fields}
    assert fields - NAMING_PEOPLE == {
        *("format", "erasures", "accepted", "version", "at", "seconds", "threads", "rerun", "cost_ratio"),
        *("cost_at_most", "seconds_at_most", "data_before", "utility_before", "may_return"),
        *("request_id", "received", "items", "salt", "reference", "rows"),
    }


def test_every_name_in_it_is_known(shop):
    assert [path.name for path in shop.rglob("*") if not own_vocabulary().names.fullmatch(path.name)] == []


@pytest.mark.parametrize(
    ("text", "said"), [("policy", True), ("polic", False), ("all data", True), ("customer-1", False)]
)
def test_wording_is_told_by_whole_words(text, said):
    assert own_vocabulary().saying(("all data of one person",)).says(text) is said
