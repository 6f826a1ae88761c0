"""A disk that is full at any change: the version before stays whole, and the message names the sizes."""

import errno
import re
import shutil
from dataclasses import replace
from itertools import count

import pytest

from erasable.errors import DiskFull, WorkspaceError
from erasable.workspace import Workspace, files

TAKES_ROOM = {"make folder", "create", "write", "flush", "replace"}
SAID = re.compile(
    r"the disk is full at .* \([\d,]+\.\d MB are needed and [\d,]+\.\d MB are free\): "
    r"what was there before stays; free some space and run this again"
)


@pytest.fixture(params=["once", "from then on"])
def full_at(request, monkeypatch):
    """Run something on a disk that is full at the n-th change that takes room; return what is said, if anything."""

    def run(change: int, action) -> str | None:
        left = [change]

        def full(kind, path):
            if kind not in TAKES_ROOM:
                return
            left[0] -= 1
            if left[0] == 0 or (left[0] < 0 and request.param == "from then on"):
                raise OSError(errno.ENOSPC, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(files, "before_change", full)
            try:
                action()
            except DiskFull as error:
                return str(error)
        return None

    return run


def commit(versions, path):
    versions.forget(path)


def amend(versions, path):
    versions.certify(path)


@pytest.mark.parametrize("action", [commit, amend])
def test_at_any_change_it_is_said_and_the_version_before_stays_whole(versions, swift_path, content_of, full_at, action):
    path = versions.learn(swift_path / "shop")
    versions.accept(path)
    before = content_of(path)
    for change in count(1):
        said = full_at(change, lambda: action(versions, path))
        if said is None:
            break
        assert SAID.fullmatch(said)
        assert content_of(path) == before
        with Workspace.reading(path) as workspace:
            assert workspace.damaged() == []
            assert (workspace.stamp.version, workspace.documents().pending) == (1, b"who asked")
        with Workspace.writing(path):
            pass
        assert content_of(path) == before
    # It went through in the end, and was stopped at each change on the way.
    assert content_of(path) != before
    assert change > 10


def test_a_learn_on_a_full_disk_leaves_nothing_behind(versions, swift_path, full_at):
    for change in count(1):
        said = full_at(change, lambda: versions.learn(swift_path / "new" / "shop"))
        if said is None:
            break
        assert SAID.fullmatch(said)
        assert list(swift_path.iterdir()) == []
    assert change > 20


@pytest.mark.parametrize("action", [commit, amend])
def test_the_same_block_can_go_on_once_there_is_room(versions, swift_path, content_of, full_at, action):
    undisturbed = versions.learn(swift_path / "undisturbed")
    action(versions, undisturbed)
    documents = versions.after_forgetting
    for change in count(1):
        path = versions.learn(swift_path / f"shop-{change}")
        with Workspace.writing(path) as workspace:

            def step(workspace=workspace):
                if action is commit:
                    versions.put_all(versions.forgotten, workspace)
                    workspace.commit(versions.forgotten, documents)
                else:
                    workspace.amend(documents)

            if full_at(change, step) is None:
                break
            step()
        found, expected = content_of(path), content_of(undisturbed)
        assert found.keys() == expected.keys()
        assert all(found[name] == expected[name] for name in found if name != "manifest.json")
    assert change > 10


def test_a_commit_is_taken_back_by_an_amendment_on_a_disk_that_stays_full(
    versions, swift_path, content_of, monkeypatch
):
    """As when forgetting fails: the requests are taken back, and there is room for what that takes."""
    path = versions.learn(swift_path / "shop")
    versions.accept(path)

    def full(kind, path):
        if kind == "write" and path.name.startswith("histories"):
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(files, "before_change", full)
    with Workspace.writing(path) as workspace:
        versions.put_all(versions.forgotten, workspace)
        with pytest.raises(DiskFull):
            workspace.commit(versions.forgotten, versions.after_forgetting)
        workspace.amend(replace(workspace.documents(), pending=b""))
    with Workspace.reading(path) as workspace:
        assert (workspace.stamp.version, workspace.damaged()) == (1, [])
        assert workspace.documents() == versions.after_learning
        assert workspace.state().chain == versions.learned.chain


def test_after_an_amendment_that_failed_what_it_swept_is_not_taken_for_there(
    versions, learned, content_of, monkeypatch
):
    def full(kind, path):
        if path.name.startswith("manifest.json"):
            raise OSError(errno.ENOSPC, "No space left on device")

    with Workspace.writing(learned) as workspace:
        versions.put_all(versions.forgotten, workspace)
        with monkeypatch.context() as patch:
            patch.setattr(files, "before_change", full)
            with pytest.raises(DiskFull):
                workspace.amend(replace(versions.after_learning, certificates={"a.json": b"the first try"}))
        with pytest.raises(WorkspaceError, match="holds no checkpoint"):
            workspace.commit(versions.forgotten)
        workspace.amend(replace(versions.after_learning, certificates={"a.json": b"the second try"}))
    with Workspace.reading(learned) as workspace:
        assert workspace.damaged() == []
        assert workspace.issued() == {"a.json": b"the second try"}


def test_what_would_not_fit_is_refused_before_anything_is_written(learned, content_of, monkeypatch):
    before, seen = content_of(learned), []
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(10**9, 10**9 - 999, 999))
    with Workspace.writing(learned) as workspace:
        monkeypatch.setattr(files, "before_change", lambda kind, path: seen.append(kind))
        workspace.refuse_if_full(999)
        with pytest.raises(DiskFull, match=r"about 0\.1 MB are needed and 0\.1 MB are free"):
            workspace.refuse_if_full(1000)
    assert seen == []
    assert content_of(learned) == before
