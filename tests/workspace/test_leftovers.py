"""What a killed command left is swept by whoever opens the workspace next and may write there."""

import errno
import os
from contextlib import contextmanager

import pytest

from erasable.errors import WorkspaceError
from erasable.workspace import Workspace, files
from erasable.workspace.folder import NamedFiles
from erasable.workspace.workspace import sweep, sweep_as_reader, unnamed_files

LEFTOVERS = (
    "audit-0123456789ab.jsonl",
    "certificates/old.html",
    "checkpoints/old.safetensors",
    "data/group-000-0123456789ab.parquet",
    "manifest.json.new",
    "pending-0123456789ab.json",
    "signing-key-0123456789ab.txt",
)
NOBODY = 65534


@pytest.fixture
def littered(learned):
    """A workspace in which a killed command left something."""
    (learned / "certificates").mkdir()
    for leftover in LEFTOVERS:
        (learned / leftover).write_bytes(b"left over")
    return learned


@contextmanager
def as_nobody():
    """Be a user who owns no file."""
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


def test_sweeping_removes_our_files_that_are_not_named(tmp_path):
    (tmp_path / "data").mkdir()
    for name in ("data/a.parquet", "data/b.parquet", "notes.txt"):
        (tmp_path / name).write_bytes(b"")
    assert unnamed_files(tmp_path, NamedFiles({"data/a.parquet"})) == ("data/b.parquet",)
    sweep(tmp_path, NamedFiles({"data/a.parquet"}))
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == ["a.parquet", "notes.txt"]


def test_the_manifest_is_made_durable_before_anything_goes(littered, monkeypatch):
    seen = []
    monkeypatch.setattr(files, "before_change", lambda kind, path: seen.append((kind, path.name)))
    with Workspace.reading(littered):
        pass
    assert seen[:2] == [("flush folder", littered.name), ("remove", "audit-0123456789ab.jsonl")]


@pytest.mark.parametrize("opened", [Workspace.reading, Workspace.writing])
def test_whoever_opens_a_workspace_sweeps_what_a_killed_command_left_and_nothing_else(littered, content_of, opened):
    before = content_of(littered)
    (littered / "notes.txt").write_text("somebody's own")
    with opened(littered) as workspace:
        assert workspace.leftovers == ()
        left = content_of(littered)
    assert left == {name: before[name] for name in before if name not in LEFTOVERS} | {"notes.txt": b"somebody's own"}


def test_whoever_reads_without_sweeping_leaves_everything_as_it_lies(littered, content_of):
    before = content_of(littered)
    with Workspace.reading(littered, sweeping=False) as workspace:
        assert workspace.leftovers == ()
        assert workspace.damaged() == []
        list(workspace.state().dataset.groups)
        assert content_of(littered) == before
    assert content_of(littered) == before


def test_a_reader_leaves_the_files_of_a_writer_at_work_alone(versions, learned, content_of):
    with Workspace.writing(learned) as writer:
        versions.put_all(versions.forgotten, writer)
        (learned / "manifest.json.new").write_bytes(b"half")
        before = content_of(learned)
        with Workspace.reading(learned) as reader:
            assert reader.leftovers == ()
        assert content_of(learned) == before
        writer.commit(versions.forgotten)
    with Workspace.reading(learned) as reader:
        assert set(content_of(learned)) == {"manifest.json", *reader.manifest.files}


def test_a_reader_goes_by_the_manifest_that_is_current_when_it_sweeps(versions, learned, content_of):
    with Workspace.reading(learned) as reader:
        old = reader.manifest.files
    versions.forget(learned)
    before = content_of(learned)
    assert sweep_as_reader(learned, NamedFiles(old)) == ()
    assert content_of(learned) == before


def test_where_nothing_can_be_removed_a_reader_reads_and_names_the_leftovers(littered, content_of, monkeypatch):
    def read_only(kind, path):
        raise OSError(errno.EROFS, "Read-only file system")

    before = content_of(littered)
    for lock in littered.glob("*.lock"):
        lock.unlink()
    with monkeypatch.context() as patch:
        patch.setattr(files, "before_change", read_only)
        with Workspace.reading(littered) as workspace:
            assert workspace.leftovers == LEFTOVERS
            assert len(workspace.state().dataset.groups) == 4
    assert content_of(littered) == before


def test_only_what_could_not_be_removed_is_named(littered, monkeypatch):
    def stuck(kind, path):
        if (kind, path.suffix) == ("remove", ".parquet"):
            raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(files, "before_change", stuck)
    with Workspace.reading(littered) as workspace:
        assert workspace.leftovers == LEFTOVERS[3:]


@pytest.mark.skipif(os.geteuid() != 0 or not os.access("/dev/shm", os.W_OK), reason="only root can be somebody else")
def test_a_user_who_may_only_read_names_the_leftovers_unless_a_writer_is_at_work(littered, content_of):
    for path in (littered.parent, littered, *littered.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    before = content_of(littered)
    with as_nobody(), Workspace.reading(littered) as workspace:
        assert workspace.leftovers == LEFTOVERS
        assert len(workspace.state().dataset.groups) == 4
    assert content_of(littered) == before
    with Workspace.writing(littered):
        (littered / "data/new.parquet").write_bytes(b"")
        with as_nobody(), Workspace.reading(littered) as workspace:
            assert workspace.leftovers == ()


@pytest.mark.skipif(os.geteuid() != 0 or not os.access("/dev/shm", os.W_OK), reason="only root can be somebody else")
def test_a_user_who_may_not_read_is_told_what_would_help(littered):
    littered.parent.chmod(0o755)
    with as_nobody(), pytest.raises(WorkspaceError, match="readable_by_group=True"), Workspace.reading(littered):
        pass
