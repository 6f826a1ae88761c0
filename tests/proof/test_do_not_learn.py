"""The do-not-learn list: whom it knows again, what it tells nobody, and what it refuses to be read as."""

import json
import re
import subprocess
import sys
from contextlib import suppress
from hashlib import blake2b
from itertools import permutations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from erasable.chain import Config
from erasable.data import Ids
from erasable.errors import DataRefused, Refused, WorkspaceError
from erasable.fingerprint import canonical_json
from erasable.operations import DiskStorage, forget, learn
from erasable.proof import _entries
from erasable.proof.do_not_learn import (
    DoNotLearnFiles,
    DoNotLearnList,
    ListedCount,
    add_requests,
    held,
    remove_request,
)
from erasable.requests import Request
from erasable.workspace import files
from kit.copies import copy_of
from kit.listed import is_listed

PERSON = "someone-with-a-long-unmistakable-id"
KEY = bytes(range(32))
IDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6)


@pytest.fixture
def places(tmp_path):
    """Where a list and its key shall lie: two folders, both empty."""
    for folder in ("lists", "keys"):
        (tmp_path / folder).mkdir()
    return DoNotLearnFiles(tmp_path / "lists" / "erased.json", tmp_path / "keys" / "erased.key")


@pytest.fixture
def stopping_at(monkeypatch):
    """Do something while the disk fails from its n-th change on."""

    def attempt(number, action):
        left = iter(range(number))

        def change(kind, path):
            if next(left, None) is None:
                raise OSError(5, "the disk is gone")

        with monkeypatch.context() as patch:
            patch.setattr(files, "before_change", change)
            with suppress(WorkspaceError):
                action()

    return attempt


def keyed(key: bytes, value: object) -> bytes:
    return blake2b(canonical_json(value), key=key, digest_size=32).digest()


def sealed(key: bytes, **changes: object) -> bytes:
    """Write a list by hand, with a seal that fits."""
    body = {"format": 1, "key": keyed(key, ["key"]).hex(), "users": [], "interactions": [], **changes}
    return canonical_json({**body, "seal": keyed(key, body).hex()}) + b"\n"


class TestWhomItKnows:
    def test_a_person_who_was_erased_whole(self, places):
        add_requests(places, [Request(PERSON)])
        found = DoNotLearnList.open(places)
        assert is_listed(PERSON, found)
        assert not is_listed(PERSON.upper(), found)
        assert found.users_among(Ids.of(["ann", PERSON, "bob"])).tolist() == [False, True, False]

    def test_all_rows_of_a_person_and_single_rows_of_others(self, places, tables):
        add_requests(places, [Request("ann"), Request("bob", ("b", "z"))])
        rows = tables.table({"ann": "ab", "bob": "abc", "cat": "b"})
        found, count = DoNotLearnList.open(places).interactions_among(rows)
        assert found.tolist() == [True, True, False, True, False, False]
        assert count == ListedCount(users=1, interactions=1)
        assert (count.total, str(count)) == (2, "people: 1, single interactions: 1")

    def test_a_row_of_an_erased_person_is_not_counted_again_as_a_single_one(self, places, tables):
        add_requests(places, [Request("ann", ("a",))])
        add_requests(places, [Request("ann")])
        found, count = DoNotLearnList.open(places).interactions_among(tables.table({"ann": "ab", "bob": "a"}))
        assert found.tolist() == [True, True, False]
        assert count == ListedCount(users=1, interactions=0)

    def test_whoever_is_erased_whole_needs_no_single_entries(self, places):
        assert add_requests(places, [Request("ann", ("a", "b")), Request("ann")]) == 1
        assert not DoNotLearnList.open(places).interactions

    @given(st.integers(0, 99), st.data())
    def test_it_agrees_with_looking_at_each_row_by_itself(self, tables, seed, data):
        table = tables.random_table(seed)
        rows = sorted((user, item) for user, item, _ in tables.as_rows(table))
        users = data.draw(st.sets(st.sampled_from(table.users.texts()), max_size=4))
        pairs = data.draw(st.sets(st.sampled_from(rows), max_size=6))
        found, count = DoNotLearnList(KEY).naming(users, pairs).interactions_among(table)
        assert found.tolist() == [user in users or (user, item) in pairs for user, item in rows]
        assert count == ListedCount(len(users), sum(user not in users for user, _ in pairs))

    def test_a_list_without_single_interactions_hashes_no_pair(self, tables, monkeypatch):
        def refuse(*_):
            pytest.fail("a pair was hashed")

        monkeypatch.setattr(_entries, "Pairs", refuse)
        DoNotLearnList(KEY).naming(["u0001"], []).interactions_among(tables.random_table(1))


class TestWhatItTells:
    @given(IDS, IDS)
    def test_an_entry_is_the_keyed_hash_of_its_canonical_json(self, user, item):
        found = DoNotLearnList(KEY).naming([user], [(user, item)])
        assert found.users == {keyed(KEY, ["user", user])}
        assert found.interactions == {keyed(KEY, ["interaction", user, item])}

    def test_neither_an_id_nor_an_item_nor_the_key_nor_a_time(self, places):
        add_requests(places, [Request(PERSON), Request("second-unmistakable-id", ("unmistakable-item",))])
        content = places.list.read_bytes()
        assert b"unmistakable" not in content
        assert places.key.read_bytes().strip() not in content
        fields = json.loads(content)
        assert sorted(fields) == ["format", "interactions", "key", "seal", "users"]
        assert (len(fields["users"]), len(fields["interactions"])) == (1, 1)

    def test_nor_does_it_show_them_in_memory(self):
        shown = repr(DoNotLearnList(KEY).naming([PERSON], []))
        assert shown == "DoNotLearnList()"

    def test_the_order_of_adding_does_not_show(self, places):
        contents = set()
        requests = [Request("ann"), Request("bob"), Request("cat", ("a",)), Request("cat", ("b",))]
        for order in permutations(requests):
            places.list.unlink(missing_ok=True)
            for request in order:
                add_requests(places, [request])
            contents.add(places.list.read_bytes())
        assert len(contents) == 1
        together = DoNotLearnList.open(places)
        assert (len(together.users), len(together.interactions)) == (2, 2)

    def test_the_entries_stand_in_their_own_order(self):
        names = [str(number) for number in range(50)]
        fields = json.loads(DoNotLearnList(KEY).naming(names, [(name, "a") for name in names]).encoded())
        for entries in (fields["users"], fields["interactions"]):
            assert len(entries) == 50
            assert entries == sorted(entries)

    def test_another_key_gives_other_entries(self):
        one, other = (DoNotLearnList(key).naming(["ann"], [("ann", "a")]) for key in (KEY, KEY[::-1]))
        assert not one.users & other.users
        assert not one.interactions & other.interactions
        assert json.loads(one.encoded())["key"] != json.loads(other.encoded())["key"]


class TestAddingAndRemoving:
    def test_it_says_how_many_entries_are_new(self, places):
        assert add_requests(places, [Request("ann"), Request("bob", ("a", "b"))]) == 3
        assert add_requests(places, [Request("ann"), Request("bob", ("b", "c"))]) == 1

    def test_who_is_on_it_changes_nothing(self, places):
        add_requests(places, [Request("ann"), Request("bob", ("a",))])
        before = places.list.read_bytes(), places.list.stat().st_ino
        assert add_requests(places, [Request("bob", ("a",)), Request("ann")]) == 0
        assert (places.list.read_bytes(), places.list.stat().st_ino) == before

    def test_a_list_that_is_begun_is_empty_and_stays_what_it_is(self, places):
        begun = DoNotLearnList.open_or_create(places)
        assert (begun.users, begun.interactions) == (frozenset(), frozenset())
        assert DoNotLearnList.open(places) == begun
        add_requests(places, [Request("ann")])
        assert is_listed("ann", DoNotLearnList.open_or_create(places))

    def test_a_person_who_comes_back_is_taken_off(self, places):
        add_requests(places, [Request("bob"), Request("cat", ("a", "b"))])
        without = places.list.read_bytes()
        add_requests(places, [Request("ann")])
        remove_request(places, Request("ann"))
        assert places.list.read_bytes() == without
        remove_request(places, Request("cat", ("a",)))
        left = DoNotLearnList.open(places)
        assert is_listed("bob", left)
        assert left.interactions == left.naming([], [("cat", "b")]).interactions

    @pytest.mark.parametrize("request_", [Request("cat"), Request("bob", ("a",)), Request("cat", ("a", "b"))])
    def test_who_is_not_on_it_can_not_be_taken_off(self, places, request_):
        add_requests(places, [Request("bob"), Request("cat", ("a",))])
        before = places.list.read_bytes()
        with pytest.raises(Refused, match="not on the do-not-learn list: check the id; nothing was changed"):
            remove_request(places, request_)
        assert places.list.read_bytes() == before

    def test_an_id_that_is_no_text_is_refused(self, places):
        with pytest.raises(DataRefused, match="not valid Unicode"):
            add_requests(places, [Request("\udc80")])

    def test_two_processes_that_add_at_once_lose_nobody(self, places):
        code = (
            "import sys; from pathlib import Path; from erasable.requests import Request\n"
            "from erasable.proof.do_not_learn import DoNotLearnFiles, add_requests\n"
            "places = DoNotLearnFiles(Path(sys.argv[1]), Path(sys.argv[2]))\n"
            "for number in range(40): add_requests(places, [Request(sys.argv[3] + str(number))])"
        )
        running = [subprocess.Popen([sys.executable, "-c", code, places.list, places.key, name]) for name in "ab"]
        assert [process.wait() for process in running] == [0, 0]
        ids = Ids.of([name + str(number) for name in "ab" for number in range(40)])
        found = DoNotLearnList.open(places)
        assert np.all(found.users_among(ids))
        assert len(found.users) == 80

    def test_a_change_that_stops_half_way_leaves_the_list_as_before_or_after(self, places, stopping_at):
        add_requests(places, [Request("ann")])
        before, outcomes = DoNotLearnList.open(places), []
        after = before.joined(before.naming(["bob"], []))
        for number in range(20):
            stopping_at(number, lambda: add_requests(places, [Request("bob")]))
            outcomes.append(DoNotLearnList.open(places))
        assert set(outcomes) == {before, after}
        assert sorted(path.name for path in places.list.parent.iterdir()) == ["erased.json", "erased.json.lock"]

    def test_a_first_use_that_stops_half_way_can_be_repeated(self, tmp_path, stopping_at):
        for number in range(20):
            places = DoNotLearnFiles(
                tmp_path / f"list-{number}" / "erased.json", tmp_path / f"key-{number}" / "erased.key"
            )
            places.list.parent.mkdir()
            places.key.parent.mkdir()
            stopping_at(number, lambda places=places: add_requests(places, [Request("ann")]))
            add_requests(places, [Request("ann"), Request("bob")])
            assert len(DoNotLearnList.open(places).users) == 2


class TestWhatIsRefused:
    def test_a_list_that_is_not_there(self, places):
        with pytest.raises(
            Refused, match=r"erased\.json: there is no do-not-learn list: restore it from its newest copy"
        ):
            DoNotLearnList.open(places)
        with pytest.raises(Refused, match="there is no do-not-learn list"):
            remove_request(places, Request("ann"))
        assert not places.key.exists()

    def test_a_list_whose_key_is_gone_gets_no_new_one(self, places):
        add_requests(places, [Request("ann")])
        places.key.unlink()
        for attempt in (DoNotLearnList.open, DoNotLearnList.open_or_create, lambda at: add_requests(at, [])):
            with pytest.raises(Refused, match="the key of the do-not-learn list is missing: restore it"):
                attempt(places)
        assert not places.key.exists()

    def test_another_key(self, places):
        add_requests(places, [Request("ann")])
        before = places.list.read_bytes()
        places.key.write_text("ab" * 32 + "\n")
        for attempt in (DoNotLearnList.open, lambda at: add_requests(at, [Request("bob")])):
            with pytest.raises(Refused, match="made with another key: give its own"):
                attempt(places)
        assert places.list.read_bytes() == before

    @pytest.mark.parametrize("bit", [0, 2, 5, 7])
    def test_each_byte_with_a_bit_flipped(self, places, bit):
        add_requests(places, [Request("ann"), Request("bob", ("a",))])
        content = places.list.read_bytes()
        for place in range(len(content)):
            changed = bytearray(content)
            changed[place] ^= 1 << bit
            places.list.write_bytes(changed)
            with pytest.raises(Refused):
                DoNotLearnList.open(places)

    def test_each_part_of_a_list_and_anything_behind_it(self, places):
        add_requests(places, [Request("ann"), Request("bob", ("a",))])
        content = places.list.read_bytes()
        for changed in (*(content[:length] for length in range(len(content))), content + b"\n", content + b" "):
            places.list.write_bytes(changed)
            with pytest.raises(Refused, match="is damaged: restore it from its newest copy"):
                DoNotLearnList.open(places)

    def test_an_entry_that_was_taken_out_by_someone_without_the_key(self, places):
        add_requests(places, [Request("ann"), Request("bob")])
        fields = json.loads(places.list.read_bytes())
        places.list.write_bytes(canonical_json({**fields, "users": fields["users"][:1]}) + b"\n")
        with pytest.raises(Refused, match="is damaged"):
            DoNotLearnList.open(places)

    @pytest.mark.parametrize(
        "changes",
        [
            {"users": ["ab" * 32, "aa" * 32]},
            {"users": ["aa" * 32, "aa" * 32]},
            {"users": ["AA" * 32]},
            {"users": ["aa" * 31]},
            {"interactions": ["aa" * 33]},
            {"interactions": ["no hexadecimal"]},
            {"interactions": [7]},
            {"users": "aa"},
            {"users": None},
            {"users": {"aa" * 32: 1}},
            {"format": True},
        ],
    )
    def test_entries_that_nobody_would_write_though_the_seal_fits(self, places, changes):
        DoNotLearnList.open_or_create(places)
        key = bytes.fromhex(places.key.read_text())
        places.list.write_bytes(sealed(key, users=["aa" * 32, "ab" * 32]))
        assert len(DoNotLearnList.open(places).users) == 2
        places.list.write_bytes(sealed(key, **changes))
        with pytest.raises(Refused, match="is damaged"):
            DoNotLearnList.open(places)

    @pytest.mark.parametrize("content", [b"", b"[]", b"null", b"{}", b"7", b'"text"', b"[" * 100_000])
    def test_what_is_no_list(self, places, content):
        DoNotLearnList.open_or_create(places)
        places.list.write_bytes(content)
        for attempt in (DoNotLearnList.open, DoNotLearnList.open_or_create):
            with pytest.raises(Refused, match="is damaged"):
                attempt(places)
        assert places.list.read_bytes() == content

    def test_a_list_of_another_format(self, places):
        DoNotLearnList.open_or_create(places)
        for more in ({}, {"users": None}):
            places.list.write_bytes(sealed(bytes.fromhex(places.key.read_text()), format=2, **more))
            with pytest.raises(Refused, match="has the format 2 and this version of erasable reads up to 1: a later"):
                DoNotLearnList.open(places)

    @pytest.mark.parametrize("more", [1, -0.5, "é", None, [1, [2]], {"deep": {"er": 2**70}}], ids=str)
    def test_what_a_newer_version_has_added_stays_and_is_covered(self, places, more):
        DoNotLearnList.open_or_create(places)
        places.list.write_bytes(sealed(bytes.fromhex(places.key.read_text()), colour=more, users=["aa" * 32]))
        add_requests(places, [Request("ann")])
        remove_request(places, Request("ann"))
        add_requests(places, [Request("bob", ("a",))])
        content = places.list.read_bytes()
        assert json.loads(content)["colour"] == more
        assert DoNotLearnList.open(places).size == 2
        for place in range(content.index(b'"colour"'), content.index(b'"format"')):
            changed = bytearray(content)
            changed[place] ^= 1
            places.list.write_bytes(changed)
            with pytest.raises(Refused, match="is damaged"):
                DoNotLearnList.open(places)

    def test_a_name_that_stands_twice_is_damage(self, places):
        DoNotLearnList.open_or_create(places)
        places.list.write_bytes(places.list.read_bytes().replace(b'"users":', b'"users":[],"users":'))
        with pytest.raises(Refused, match="is damaged"):
            DoNotLearnList.open(places)


class TestWhatIsHeld:
    @pytest.fixture
    def shop(self, tmp_path):
        """A workspace with a holdout, and a backup of it."""
        users = [user for user in ("ann", "bob", "cat", "dan") for _ in "abcdef"]
        learn(
            pa.table({"user": users, "item": list("abcdef" * 4)}),
            tmp_path / "shop",
            Config(model="nmf", groups=2, holdout=0.4),
        )
        copy_of(tmp_path / "shop", tmp_path / "backup")
        return tmp_path / "shop"

    @staticmethod
    def held(places, folder):
        with DiskStorage(folder).reading() as session:
            return held(DoNotLearnList.open(places), session.state().dataset)

    def test_nothing_after_an_erasure_and_everything_again_in_an_old_backup(self, places, shop):
        requests = [Request("ann"), Request("bob", ("a", "c"))]
        add_requests(places, requests)
        assert self.held(places, shop) == ListedCount(1, 2)
        forget(DiskStorage(shop), requests)
        assert self.held(places, shop) == ListedCount()
        assert self.held(places, shop.parent / "backup") == ListedCount(1, 2)

    def test_what_is_held_out_counts_too(self, places, shop, tables):
        with DiskStorage(shop).reading() as session:
            dataset = session.state().dataset
            kept = {row[:2] for group in dataset.groups for row in tables.as_rows(group)}
            aside = {row[:2] for row in tables.as_rows(dataset.held_out)}
        assert kept
        assert aside
        add_requests(places, [Request(user, (item,)) for user, item in kept | aside])
        assert self.held(places, shop) == ListedCount(0, len(kept) + len(aside))
        add_requests(places, [Request(user) for user in ("ann", "bob", "cat", "dan")])
        assert self.held(places, shop) == ListedCount(4, 0)


class TestThePageAboutIt:
    @pytest.fixture
    def places(self, tmp_path):
        """Where the page says that they lie."""
        for folder in ("shop.do-not-learn", "shop.do-not-learn.key"):
            (tmp_path / folder).mkdir()
        return DoNotLearnFiles(tmp_path / "shop.do-not-learn" / "list.json", tmp_path / "shop.do-not-learn.key" / "key")

    @pytest.fixture
    def examples(self, places, monkeypatch):
        """The page's Python, and a folder with the files that it names."""
        add_requests(places, [Request("42"), Request("7", ("b",))])
        (places.list.parent.parent / "ratings.csv").write_text("user_id,item_id\n42,a\n7,a\n7,b\n8,c\n")
        monkeypatch.chdir(places.list.parent.parent)
        page = Path(__file__).parents[2] / "docs" / "how-to" / "do-not-learn.md"
        return re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)

    def test_shows_which_rows_to_delete_and_how_to_let_someone_come_back(self, places, examples, capsys):
        show, remove, add = examples
        exec(compile(show, "do-not-learn.md", "exec"), {})
        assert capsys.readouterr().out == "42 a\n7 b\n"
        exec(compile(remove, "do-not-learn.md", "exec"), {})
        left = DoNotLearnList.open(places)
        assert not is_listed("42", left)
        assert len(left.interactions) == 1
        exec(compile(add, "do-not-learn.md", "exec"), {})
        assert is_listed("42", DoNotLearnList.open(places))
