from contextlib import suppress

import pytest

from erasable.errors import WorkspaceBusy, WorkspaceError
from erasable.workspace import Workspace


def test_an_interrupted_learn_leaves_nothing_behind_not_even_the_parents(versions, tmp_path):
    with suppress(KeyboardInterrupt), Workspace.creating(tmp_path / "a" / "b" / "shop") as workspace:
        versions.put_all(versions.learned, workspace)
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_learn_into_an_empty_folder_leaves_it_empty(versions, tmp_path):
    (tmp_path / "shop").mkdir()
    with suppress(KeyboardInterrupt), Workspace.creating(tmp_path / "shop") as workspace:
        versions.put_all(versions.learned, workspace)
        workspace.commit(versions.learned)
        raise KeyboardInterrupt
    assert list((tmp_path / "shop").iterdir()) == []


def test_a_learn_that_never_commits_leaves_nothing_behind(versions, tmp_path):
    with Workspace.creating(tmp_path / "shop") as workspace:
        versions.put_all(versions.learned, workspace)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["notes.txt", ".hidden", "data/table.csv", "certificates/kept.json"])
def test_a_folder_that_is_not_empty_is_refused_and_untouched(tmp_path, content_of, name):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("mine")
    with pytest.raises(WorkspaceError, match="is not empty: give a new folder"), Workspace.creating(tmp_path):
        pass
    assert content_of(tmp_path) == {name: b"mine"}
    assert not (tmp_path / "writer.lock").exists()


def test_a_workspace_is_never_learned_over(learned, content_of):
    before = content_of(learned)
    with pytest.raises(WorkspaceError, match="holds a workspace already"), Workspace.creating(learned):
        pass
    assert content_of(learned) == before


def test_a_file_is_no_place_for_a_workspace(tmp_path):
    (tmp_path / "file").write_text("mine")
    for path in (tmp_path / "file", tmp_path / "file" / "shop"):
        with pytest.raises(WorkspaceError), Workspace.creating(path):
            pass
    assert (tmp_path / "file").read_text() == "mine"


def test_the_rest_of_a_killed_learn_is_taken_over_and_swept(versions, tmp_path, content_of):
    shop = tmp_path / "shop"
    (shop / "checkpoints").mkdir(parents=True)
    for name in ("writer.lock", "reader.lock", "gate.lock", "config.json", "checkpoints/half.safetensors"):
        (shop / name).write_bytes(b"")
    versions.learn(shop)
    assert "checkpoints/half.safetensors" not in content_of(shop)


def test_the_rest_of_a_killed_learn_beside_something_else_is_refused(tmp_path):
    for name in ("writer.lock", "config.json", "notes.txt"):
        (tmp_path / name).write_bytes(b"")
    with pytest.raises(WorkspaceError, match="not empty"), Workspace.creating(tmp_path):
        pass


def test_two_learns_into_one_folder_do_not_mix(versions, tmp_path):
    with Workspace.creating(tmp_path / "shop") as workspace:
        with pytest.raises(WorkspaceBusy), Workspace.creating(tmp_path / "shop"):
            pass
        versions.put_all(versions.learned, workspace)
        workspace.commit(versions.learned)
    with Workspace.reading(tmp_path / "shop") as workspace:
        assert workspace.manifest.version == 1
