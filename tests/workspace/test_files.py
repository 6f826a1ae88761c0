import errno
import os
import re
import shutil
from pathlib import Path

import pytest

from erasable.errors import DiskFull, WorkspaceError
from erasable.workspace import files


def test_every_change_is_announced(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(files, "before_change", lambda kind, path: seen.append((kind, path.name)))
    files.make_folder(tmp_path / "folder")
    files.write_file(tmp_path / "new", b"content")
    files.replace_file(tmp_path / "new", tmp_path / "old")
    files.create_empty(tmp_path / "lock")
    files.remove_file(tmp_path / "old")
    files.remove_folder(tmp_path / "folder")
    top = ("flush folder", tmp_path.name)
    assert seen == [
        ("make folder", "folder"),
        top,
        ("create", "new"),
        ("write", "new"),
        ("flush", "new"),
        top,
        ("replace", "old"),
        top,
        ("create", "lock"),
        ("remove", "old"),
        ("remove folder", "folder"),
    ]
    assert [path.name for path in tmp_path.iterdir()] == ["lock"]


@pytest.mark.parametrize("count", [3, 100])
def test_many_files_are_durable_before_their_names_are(tmp_path, monkeypatch, count):
    seen = []
    monkeypatch.setattr(files, "before_change", lambda kind, path: seen.append((kind, path.name)))
    contents = {f"{number}.json": b"%d" % number for number in range(count)}
    files.write_files(tmp_path, contents)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == contents
    assert sorted(name for kind, name in seen if kind == "flush") == sorted(contents)
    assert [kind for kind, _ in seen].count("flush folder") == 1
    assert seen[-1] == ("flush folder", tmp_path.name)
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {files.OWNER_ONLY}


def test_one_of_many_that_fails_is_told(tmp_path, monkeypatch):
    contents = {f"{number}.json": b"" for number in range(100)}

    def fail(kind, path):
        if (kind, path.name) == ("flush", "50.json"):
            raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(files, "before_change", fail)
    with pytest.raises(DiskFull):
        files.write_files(tmp_path, contents)


def test_a_change_that_fails_says_where_and_why(tmp_path):
    with pytest.raises(WorkspaceError, match=r"missing/file can't be changed \(No such file"):
        files.write_file(tmp_path / "missing" / "file", b"")


@pytest.mark.parametrize("mask", [0, 0o77])
@pytest.mark.parametrize(("mode", "folder"), [(files.OWNER_ONLY, 0o700), (files.OWNER_AND_GROUP, 0o750)])
def test_files_are_for_their_owner_or_for_the_group_too_whatever_is_usual(tmp_path, mask, mode, folder):
    (tmp_path / "file").write_bytes(b"the rest of a killed command")
    before = os.umask(mask)
    try:
        files.make_folder(tmp_path / "folder", mode)
        files.write_file(tmp_path / "file", b"content", mode)
    finally:
        os.umask(before)
    assert (tmp_path / "file").stat().st_mode & 0o777 == mode
    assert (tmp_path / "folder").stat().st_mode & 0o777 == folder


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_told_with_the_sizes_and_the_remedy(tmp_path, monkeypatch, code):
    def full(kind, path):
        if kind == "write":
            raise OSError(code, "full")

    monkeypatch.setattr(files, "before_change", full)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(free=1_250_000))
    said = (
        f"the disk is full at {tmp_path / 'file'} (2.4 MB are needed and 1.3 MB are free): what was there before stays"
    )
    with pytest.raises(DiskFull, match=f"^{re.escape(said)}; free some space and run this again$"):
        files.write_file(tmp_path / "file", bytes(2_345_678))


def test_what_fits_is_not_refused_and_what_does_not_is(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(free=1_000_000))
    files.refuse_if_full(tmp_path, 1_000_000)
    said = f"the disk is full at {tmp_path} (about 1.1 MB are needed and 1.0 MB are free)"
    with pytest.raises(DiskFull, match=re.escape(said)):
        files.refuse_if_full(tmp_path, 1_000_001)


def test_room_is_looked_for_where_a_new_folder_would_come(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(shutil, "disk_usage", lambda path: asked.append(path) or usage(free=10))
    files.refuse_if_full(tmp_path / "not" / "yet" / "there", 10)
    monkeypatch.chdir(tmp_path)
    files.refuse_if_full(Path("shop"), 10)
    assert asked == [tmp_path, Path()]


def usage(free):
    return shutil._ntuple_diskusage(total=2 * free, used=free, free=free)


def test_removing_what_is_gone_is_fine(tmp_path):
    files.remove_file(tmp_path / "gone")
