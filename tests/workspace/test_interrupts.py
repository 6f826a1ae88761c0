"""Ctrl-C at any disk change is tidied up at once, not only by whoever opens the workspace next."""

from contextlib import suppress
from itertools import count

import pytest

from erasable.workspace import Workspace, files


@pytest.fixture
def interrupted_at(monkeypatch):
    """Run something and interrupt it once, just before its n-th disk change; say whether that happened."""

    def run(change: int, action) -> bool:
        left = [change]

        def interrupt_at_zero(kind, path):
            left[0] -= 1
            if not left[0]:
                raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(files, "before_change", interrupt_at_zero)
            try:
                action()
            except KeyboardInterrupt:
                return True
        return False

    return run


def test_a_learn_interrupted_anywhere_leaves_nothing_behind(versions, swift_path, interrupted_at):
    for change in count(1):
        if not interrupted_at(change, lambda: versions.learn(swift_path / "new" / "shop")):
            break
        assert list(swift_path.iterdir()) == [], f"after an interrupt at change {change}"
    assert change > 40


def test_a_forget_interrupted_anywhere_leaves_the_state_before_or_after_and_nothing_else(
    versions, swift_path, interrupted_at, content_of
):
    seen = []
    for change in count(1):
        path = versions.learn(swift_path / f"shop-{change}")
        before = content_of(path)
        interrupted = interrupted_at(change, lambda path=path: versions.forget(path))
        found = content_of(path)
        with Workspace.reading(path) as workspace:
            assert set(found) == {"manifest.json", *workspace.manifest.files}
            seen.append(workspace.manifest.version)
        assert seen[-1] == 2 or found == before
        if not interrupted:
            break
    assert seen == sorted(seen)
    assert set(seen) == {1, 2}


def test_an_amendment_interrupted_anywhere_leaves_the_documents_before_or_after_and_nothing_else(
    versions, swift_path, interrupted_at, content_of
):
    seen = []
    for change in count(1):
        path = versions.learn(swift_path / f"shop-{change}")
        versions.accept(path)
        before = content_of(path)
        interrupted = interrupted_at(change, lambda path=path: versions.certify(path))
        found = content_of(path)
        with Workspace.reading(path) as workspace:
            assert set(found) == {"manifest.json", *workspace.manifest.files}
            assert workspace.damaged() == []
            seen.append(workspace.erasures)
        assert seen[-1] or found == before
        if not interrupted:
            break
    assert seen == sorted(seen)
    assert set(seen) == {0, 1}


def test_whoever_goes_on_after_an_interrupt_works_on_the_version_that_is_current(
    versions, swift_path, interrupted_at, content_of
):
    """As when forgetting is interrupted: a new version may be in its place, and then documents are put beside it."""

    def forget_and_go_on(path, change):
        with Workspace.writing(path) as workspace:
            versions.put_all(versions.forgotten, workspace)
            interrupted = interrupted_at(
                change, lambda: workspace.commit(versions.forgotten, versions.after_forgetting)
            )
            version = workspace.stamp.version
            # Ctrl-C again: the amendment may be stopped half way, at its first change, at its second, ...
            with suppress(KeyboardInterrupt):
                interrupted_at(change % 7 + 1, lambda: workspace.amend(workspace.documents()))
        return interrupted, version

    seen = []
    for change in count(1):
        path = versions.learn(swift_path / f"shop-{change}")
        interrupted, version = forget_and_go_on(path, change)
        with Workspace.reading(path) as workspace:
            assert set(content_of(path)) == {"manifest.json", *workspace.manifest.files}
            assert (workspace.stamp.version, workspace.damaged()) == (version, [])
        seen.append(version)
        if not interrupted:
            break
    assert seen == sorted(seen)
    assert set(seen) == {1, 2}
