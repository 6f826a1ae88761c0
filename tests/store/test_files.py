import errno

import pytest

from erasable.errors import WorkspaceError
from erasable.store import files


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


def test_a_change_that_fails_says_where_and_why(tmp_path):
    with pytest.raises(WorkspaceError, match=r"missing/file can't be changed \(No such file"):
        files.write_file(tmp_path / "missing" / "file", b"")


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_told_with_the_remedy(tmp_path, monkeypatch, code):
    def full(kind, path):
        raise OSError(code, "full")

    monkeypatch.setattr(files, "before_change", full)
    with pytest.raises(WorkspaceError, match="free some space"):
        files.write_file(tmp_path / "file", b"")


def test_removing_what_is_gone_is_fine(tmp_path):
    files.remove_file(tmp_path / "gone")
