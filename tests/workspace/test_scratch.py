"""Scratch folders: their files, and commands that make, sweep and remove them at the same time."""

import os
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from erasable.errors import WorkspaceDamaged, WorkspaceError
from erasable.workspace import files
from erasable.workspace import scratch as module
from erasable.workspace.folder import CheckedFolder
from erasable.workspace.scratch import (
    ScratchGone,
    folders_in_use,
    is_held,
    locked,
    remove_scratch,
    remove_unused,
    scratch_below,
    scratch_folders,
)


@pytest.fixture
def root(tmp_path):
    (tmp_path / files.DATA).mkdir()
    return tmp_path


@pytest.mark.parametrize("size", [0, 1, 15, 16, 17, 32, 33])
def test_a_file_is_read_as_it_was_written(root, monkeypatch, size):
    monkeypatch.setattr(module, "_PIECE", 16)
    with scratch_below(root) as scratch:
        assert scratch.get(scratch.put("rows.json", b"x" * size)) == b"x" * size
    assert os.listdir(root / files.DATA) == []


def turned(content):
    return content[:30] + bytes([content[30] ^ 1]) + content[31:]


CHANGES = {
    "a bit": turned,
    "cut off": lambda content: content[:-1],
    "a piece less": lambda content: content[:44],
    "pieces in another order": lambda content: content[44:88] + content[:44],
    "nothing": lambda content: b"",
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_another_content_is_refused(root, monkeypatch, change):
    monkeypatch.setattr(module, "_PIECE", 16)
    with scratch_below(root) as scratch:
        path = scratch.folder / scratch.put("rows.json", b"0123456789abcdef" * 2)
        path.write_bytes(change(path.read_bytes()))
        with pytest.raises(WorkspaceError, match="is damaged"):
            scratch.get(path.name)


def test_a_file_in_the_place_of_another_is_refused(root):
    with scratch_below(root) as scratch:
        one, other = (scratch.put("rows.json", content) for content in (b"[1]", b"[2]"))
        (scratch.folder / one).write_bytes((scratch.folder / other).read_bytes())
        with pytest.raises(WorkspaceError, match="is damaged"):
            scratch.get(one)


def test_nobody_can_read_it_without_the_key_which_lies_nowhere(root):
    with scratch_below(root) as scratch:
        scratch.put_facts("sought.json", {"user": "somebody"})
        written = [path.read_bytes() for path in root.rglob("*") if path.is_file()]
        assert len(written) == 2  # with the lock
        assert not any(b"somebody" in content or scratch.key in content for content in written)


def removed_meanwhile(root, then):
    with scratch_below(root) as scratch:
        remove_scratch(scratch.folder)
        then(scratch)


def find_damage(scratch):
    raise WorkspaceDamaged("a bucket is missing")


class TestWhatAnotherCommandRemoves:
    @pytest.mark.parametrize("name", ["config.json", "data/items.parquet"])
    def test_is_not_made_again_by_what_is_written_afterwards(self, root, name):
        with pytest.raises(ScratchGone):
            removed_meanwhile(root, lambda scratch: CheckedFolder(scratch.folder, {}).write(name, b"{}"))
        assert os.listdir(root / files.DATA) == []

    def test_is_told_as_a_change_and_not_as_damage(self, root):
        with pytest.raises(ScratchGone, match="run this again"):
            removed_meanwhile(root, find_damage)

    def test_while_damage_stays_damage(self, root):
        with pytest.raises(WorkspaceDamaged), scratch_below(root) as scratch:
            find_damage(scratch)


def test_a_lock_that_may_not_be_opened_counts_as_held(tmp_path, monkeypatch):
    assert not is_held(tmp_path / "none")
    handle = locked(tmp_path / "lock")
    assert is_held(tmp_path / "lock")
    os.close(handle)
    assert not is_held(tmp_path / "lock")

    def forbidden(*words):
        raise PermissionError

    monkeypatch.setattr("os.open", forbidden)  # the tests may run as root, who may open everything
    assert is_held(tmp_path / "lock")


def test_a_folder_that_is_half_removed_is_used_by_nobody_though_its_lock_is_held(root):
    with scratch_below(root) as scratch:
        assert folders_in_use(root) == (f"{scratch.below}/",)
        scratch.folder.rename(scratch.folder.with_name(scratch.folder.name + ".gone"))
        assert folders_in_use(root) == ()
        assert len(scratch_folders(root)) == 1


def test_who_finds_the_folder_locked_or_gone_makes_another_one(root, monkeypatch):
    lock, tried = module.locked, []

    def unlucky(path):
        tried.append(path.parent.name)
        if len(tried) == 1:
            remove_scratch(path.parent)
        return None if len(tried) == 2 else lock(path)

    monkeypatch.setattr(module, "locked", unlucky)
    with scratch_below(root) as scratch:
        assert len(set(tried)) == 3
        assert scratch.folder.name == tried[2]


def make(root):
    with suppress(ScratchGone), scratch_below(root) as scratch:
        scratch.put("rows.json", b"[]")


def again_and_again(work, root, seconds=2):
    end, times = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        work(root)
        times += 1
    return times


def test_commands_that_make_and_remove_beside_one_that_sweeps_never_fail(root):
    with ThreadPoolExecutor(3) as pool:
        running = [pool.submit(again_and_again, work, root) for work in (make, make, remove_unused)]
    assert min(one.result() for one in running) > 10
    remove_unused(root)
    assert os.listdir(root / files.DATA) == []
