"""Where a do-not-learn list and its key may lie, who may read them, and how they are replaced."""

import os
import stat

import pytest

from erasable.errors import Refused
from erasable.proof.do_not_learn import DoNotLearnFiles, DoNotLearnList, add_requests
from erasable.requests import Request


@pytest.fixture
def folders(tmp_path):
    for name in ("lists", "keys"):
        (tmp_path / name).mkdir()
    return tmp_path / "lists", tmp_path / "keys"


@pytest.fixture
def everyone_may_read():
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def attempts(list_path, key_path):
    """Every way to use a list and its key."""
    yield lambda: DoNotLearnList.open(DoNotLearnFiles(list_path, key_path))
    yield lambda: DoNotLearnList.open_or_create(DoNotLearnFiles(list_path, key_path))
    yield lambda: add_requests(DoNotLearnFiles(list_path, key_path), [Request("ann")])


class TestThePlaces:
    @pytest.mark.parametrize("key", ["erased.key", "../lists/erased.key", "erased.json"])
    def test_one_folder_for_both_is_refused(self, folders, key):
        for attempt in attempts(folders[0] / "erased.json", folders[0] / key):
            with pytest.raises(Refused, match=r"in the same folder, .*lists: keep the key apart"):
                attempt()
        assert list(folders[0].iterdir()) == []

    def test_a_link_does_not_hide_that_they_lie_together(self, folders):
        lists, keys = folders
        (keys / "erased.key").symlink_to(lists / "erased.key")
        with pytest.raises(Refused, match="in the same folder"):
            DoNotLearnList.open_or_create(DoNotLearnFiles(lists / "erased.json", keys / "erased.key"))
        assert list(lists.iterdir()) == []

    @pytest.mark.parametrize("place", ["list", "key"])
    @pytest.mark.parametrize("depth", ["", "deep", "deep/er"])
    def test_a_workspace_is_no_place_for_either(self, folders, place, depth):
        lists, keys = folders
        inside = (lists if place == "list" else keys) / depth
        inside.mkdir(parents=True, exist_ok=True)
        for name in ("manifest.json", "writer.lock"):
            ((lists if place == "list" else keys) / name).write_text("{}")
        list_path = (inside if place == "list" else lists) / "erased.json"
        key_path = (inside if place == "key" else keys) / "erased.key"
        for attempt in attempts(list_path, key_path):
            with pytest.raises(Refused, match="lies inside a workspace: keep the do-not-learn list and its key out"):
                attempt()
        assert not list_path.exists()
        assert not key_path.exists()

    def test_a_folder_is_no_file(self, folders):
        lists, keys = folders
        for list_path, key_path in ((lists, keys / "erased.key"), (lists / "erased.json", keys)):
            for attempt in attempts(list_path, key_path):
                with pytest.raises(Refused, match="is a folder: name a file"):
                    attempt()

    def test_a_folder_that_is_not_there_is_named(self, folders, tmp_path):
        lists, keys = folders
        for list_path, key_path in (
            (tmp_path / "nowhere" / "erased.json", keys / "erased.key"),
            (lists / "erased.json", tmp_path / "nowhere" / "erased.key"),
        ):
            with pytest.raises(Refused, match=r"there is no folder .*nowhere: make it first"):
                add_requests(DoNotLearnFiles(list_path, key_path), [Request("ann")])
            assert not list_path.exists()
            assert not key_path.exists()

    def test_a_link_to_a_list_stays_a_link(self, folders, tmp_path):
        lists, keys = folders
        link = tmp_path / "link.json"
        link.symlink_to(lists / "erased.json")
        add_requests(DoNotLearnFiles(link, keys / "erased.key"), [Request("ann")])
        add_requests(DoNotLearnFiles(link, keys / "erased.key"), [Request("bob")])
        assert link.is_symlink()
        assert len(DoNotLearnList.open(DoNotLearnFiles(lists / "erased.json", keys / "erased.key")).users) == 2


class TestTheFiles:
    def test_both_are_their_owners_alone_at_first(self, folders, everyone_may_read):
        lists, keys = folders
        add_requests(DoNotLearnFiles(lists / "erased.json", keys / "erased.key"), [Request("ann")])
        assert (mode(lists / "erased.json"), mode(keys / "erased.key")) == (0o600, 0o600)

    def test_a_list_that_others_were_allowed_to_read_stays_readable_for_them(self, folders):
        lists, keys = folders
        add_requests(DoNotLearnFiles(lists / "erased.json", keys / "erased.key"), [Request("ann")])
        (lists / "erased.json").chmod(0o664)
        add_requests(DoNotLearnFiles(lists / "erased.json", keys / "erased.key"), [Request("bob")])
        assert mode(lists / "erased.json") == 0o664

    def test_a_key_is_random_and_made_once(self, folders):
        lists, keys = folders
        for name in ("one", "two"):
            DoNotLearnList.open_or_create(DoNotLearnFiles(lists / name, keys / name))
        one, two = ((keys / name).read_text() for name in ("one", "two"))
        assert one != two
        assert len(bytes.fromhex(one)) == 32
        assert one == bytes.fromhex(one).hex() + "\n"
        DoNotLearnList.open_or_create(DoNotLearnFiles(lists / "three", keys / "one"))
        assert (keys / "one").read_text() == one

    @pytest.mark.parametrize("content", ["", "ab" * 31, "ab" * 33, "AB" * 32, "zz" * 32, "ab" * 32 + "\nmore"])
    def test_what_is_no_key_is_refused(self, folders, content):
        lists, keys = folders
        (keys / "erased.key").write_text(content)
        with pytest.raises(Refused, match=r"erased\.key is not a key of a do-not-learn list"):
            add_requests(DoNotLearnFiles(lists / "erased.json", keys / "erased.key"), [Request("ann")])
        assert not (lists / "erased.json").exists()

    def test_a_key_may_end_as_an_editor_leaves_it(self, folders):
        lists, keys = folders
        (keys / "erased.key").write_bytes(b"ab" * 32 + b"\r\n")
        assert add_requests(DoNotLearnFiles(lists / "erased.json", keys / "erased.key"), [Request("ann")]) == 1

    def test_the_rest_of_a_change_that_was_killed_is_removed(self, folders):
        lists, keys = folders
        add_requests(DoNotLearnFiles(lists / "erased.json", keys / "erased.key"), [Request("ann")])
        (lists / "erased.json.new").write_text("half a list")
        add_requests(DoNotLearnFiles(lists / "erased.json", keys / "erased.key"), [Request("ann")])
        assert sorted(path.name for path in lists.iterdir()) == ["erased.json", "erased.json.lock"]

    def test_a_file_that_can_not_be_read_is_named(self, folders, tmp_path):
        (tmp_path / "file").write_text("")
        for attempt in attempts(tmp_path / "file" / "erased.json", folders[1] / "erased.key"):
            with pytest.raises(Refused, match=r"erased\.json can't be read|there is no folder"):
                attempt()
