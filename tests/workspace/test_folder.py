from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Barrier, BrokenBarrierError

import pytest

from erasable.errors import WorkspaceDamaged, WorkspaceError
from erasable.workspace import files
from erasable.workspace.folder import CheckedFolder


@pytest.fixture
def folder(tmp_path):
    return CheckedFolder(tmp_path, {})


def test_what_is_written_can_be_read(folder):
    assert folder.write("data/a.parquet", b"one") == "data/a.parquet"
    assert folder.read("data/a.parquet") == b"one"


def test_what_can_name_no_file_is_missing(tmp_path):
    with pytest.raises(WorkspaceDamaged, match="is missing"):
        CheckedFolder(tmp_path, {"data/\0": "ab"}).read("data/\0")


def test_other_content_never_overwrites_but_goes_by_another_name(folder):
    folder.write("config.json", b"one")
    second = folder.write("config.json", b"two")
    assert second.startswith("config-")
    assert (folder.read("config.json"), folder.read(second)) == (b"one", b"two")


def test_the_same_content_is_not_written_again(folder):
    folder.write("config.json", b"one")
    written = (folder.root / "config.json").stat().st_mtime_ns
    folder.write("config.json", b"one")
    assert (folder.root / "config.json").stat().st_mtime_ns == written


@pytest.mark.parametrize("damage", [lambda path: path.unlink(), lambda path: path.write_bytes(b"bad")])
def test_the_same_content_repairs_a_damaged_file(folder, damage):
    folder.write("config.json", b"one")
    damage(folder.root / "config.json")
    with pytest.raises(WorkspaceDamaged):
        folder.read("config.json")
    folder.write("config.json", b"one")
    assert folder.read("config.json") == b"one"


def test_a_file_that_is_not_known_is_not_read(folder):
    (folder.root / "config.json").write_bytes(b"one")
    with pytest.raises(WorkspaceError, match="no longer current"):
        folder.read("config.json")


def test_a_folder_in_the_place_of_a_file_is_told(folder):
    folder.write("config.json", b"one")
    (folder.root / "config.json").unlink()
    (folder.root / "config.json").mkdir()
    with pytest.raises(WorkspaceError, match="can't be read"):
        folder.read("config.json")


def test_two_threads_may_write_the_first_files_of_a_folder_at_once(folder, monkeypatch):
    """As models do that are trained side by side; both would make the folder if neither waited for the other."""
    meeting, make_folder = Barrier(2), files.make_folder

    def meet_and_make(path, mode):
        with suppress(BrokenBarrierError):
            meeting.wait(timeout=0.3)
        make_folder(path, mode)

    monkeypatch.setattr(files, "make_folder", meet_and_make)
    with ThreadPoolExecutor(2) as pool:
        written = list(pool.map(lambda name: folder.write(f"checkpoints/{name}", b"one"), ("a", "b")))
    assert [folder.read(name) for name in written] == [b"one", b"one"]
