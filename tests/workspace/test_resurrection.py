"""What was erased does not come back: a file of an earlier version that is put back is refused or swept, not loaded."""

import re
import shutil
from pathlib import Path

import pytest

from erasable.errors import ErasableError, WorkspaceDamaged, WorkspaceError
from erasable.workspace import Workspace
from kit.copies import copy_of


@pytest.fixture
def backup(learned, tmp_path) -> Path:
    """A copy from before the erasure."""
    return copy_of(learned, tmp_path / "backup")


@pytest.fixture
def erased_files(backup, versions, learned, content_of) -> list[str]:
    """The files that the erasure has destroyed, in a workspace that has forgotten."""
    versions.forget(learned)
    return sorted(set(content_of(backup)) - set(content_of(learned)))


def users_of(workspace) -> set[str]:
    dataset = workspace.state().dataset
    return {user for group in (*dataset.groups, dataset.held_out) for user in group.users}


def test_the_erasure_destroys_data_counts_checkpoints_and_records(versions, erased_files, backup, content_of):
    assert [re.split("[/-]", name)[0] for name in erased_files] == [
        *("audit", "checkpoints", "checkpoints", "data", "data", "data", "data"),
    ]
    assert [re.split("[/-]", name)[1] for name in erased_files[3:]] == ["bucket", "histories", "items", "slots"]
    with Workspace.reading(backup) as workspace:
        assert versions.erased in users_of(workspace)


@pytest.mark.parametrize("opened", [Workspace.reading, Workspace.writing])
def test_under_its_own_name_it_is_swept(versions, learned, backup, erased_files, content_of, opened):
    before = content_of(learned)
    for name in erased_files:
        shutil.copy(backup / name, learned / name)
    with opened(learned) as workspace:
        assert content_of(learned) == before
        assert versions.erased not in users_of(workspace)


def test_under_its_own_name_it_is_not_known_even_before_it_is_swept(versions, learned, backup, erased_files):
    for name in erased_files:
        shutil.copy(backup / name, learned / name)
    with Workspace.reading(learned, sweeping=False) as workspace:
        assert versions.erased not in users_of(workspace)
        for link in versions.learned.chain:
            if link not in versions.forgotten.chain:
                assert link.fingerprint not in workspace.checkpoints
                with pytest.raises(WorkspaceError, match="holds no checkpoint"):
                    workspace.checkpoints.get(link.fingerprint)


def test_under_a_name_that_is_current_it_is_damage(versions, learned, backup):
    with Workspace.reading(backup) as old, Workspace.reading(learned) as current:
        assert old.manifest.files == current.manifest.files
    versions.forget(learned)
    with Workspace.reading(learned) as workspace:
        manifest = workspace.manifest
    with Workspace.reading(backup) as workspace:
        before = workspace.manifest
    pairs = [
        *zip((link.file for link in before.chain), (link.file for link in manifest.chain), strict=True),
        *zip((bucket.file for bucket in before.buckets), (bucket.file for bucket in manifest.buckets), strict=True),
        *((getattr(before.counts, name), getattr(manifest.counts, name)) for name in ("items", "slots", "histories")),
        (before.audit, manifest.audit),
    ]
    replaced = sorted(current for old, current in pairs if old != current)
    for old, current in pairs:
        shutil.copy(backup / old, learned / current)
    with Workspace.reading(learned) as workspace:
        assert workspace.damaged() == replaced
        for link in manifest.chain:
            if link.file in replaced:
                with pytest.raises(WorkspaceDamaged, match=re.escape(link.file)):
                    workspace.checkpoints.get(link.fingerprint)
        with pytest.raises(WorkspaceDamaged, match=re.escape(manifest.counts.items)):
            workspace.state()
        with pytest.raises(WorkspaceDamaged, match="audit"):
            workspace.documents()


def test_a_bucket_under_a_name_that_is_current_is_damage(versions, learned, backup):
    versions.forget(learned)
    with Workspace.reading(backup) as old, Workspace.reading(learned) as current:
        (before,), (after,) = old.manifest.buckets, current.manifest.buckets
    shutil.copy(backup / before.file, learned / after.file)
    with Workspace.reading(learned) as workspace:
        assert workspace.damaged() == [after.file]
        state = workspace.state()
        with pytest.raises(WorkspaceDamaged, match=re.escape(after.file)):
            state.dataset.find(versions.erased)


def test_the_old_manifest_is_of_no_use_without_its_files(versions, learned, backup, erased_files):
    """Nor can anything be committed on top of it."""
    shutil.copy(backup / "manifest.json", learned / "manifest.json")
    with Workspace.reading(learned, sweeping=False) as workspace:
        assert workspace.damaged() == erased_files
        for load in (workspace.state, workspace.documents):
            with pytest.raises(
                WorkspaceDamaged, match="is missing: restore it from a copy made after the last erasure"
            ):
                load()
        for link in versions.learned.chain:
            if link not in versions.forgotten.chain:
                with pytest.raises(WorkspaceDamaged, match="is missing"):
                    workspace.checkpoints.get(link.fingerprint)
    with pytest.raises(ErasableError), Workspace.writing(learned) as workspace:
        workspace.commit(workspace.state())


def test_the_old_manifest_is_not_taken_for_one_that_a_killed_command_left(versions, learned, backup, content_of):
    versions.forget(learned)
    before = content_of(learned)
    shutil.copy(backup / "manifest.json", learned / "manifest.json.new")
    with Workspace.reading(learned) as workspace:
        assert workspace.stamp.version == 2
    assert content_of(learned) == before
