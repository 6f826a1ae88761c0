import pytest

from erasable.errors import WorkspaceError
from erasable.workspace import Workspace


@pytest.mark.parametrize("opened", [Workspace.reading, Workspace.writing])
def test_what_is_no_workspace_is_refused_with_the_remedy_and_untouched(tmp_path, opened):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("mine")
    reasons = {"missing": "there is no folder", "folder": "is not a workspace", "file": "is not a folder"}
    for name, reason in reasons.items():
        with (
            pytest.raises(WorkspaceError, match=rf"{reason}.*that save made|{reason}.*make one with Recommender"),
            opened(tmp_path / name),
        ):
            pass
    assert list((tmp_path / "folder").iterdir()) == []
    assert not (tmp_path / "missing").exists()


def test_a_learn_that_is_still_running_can_not_be_read(versions, tmp_path):
    with Workspace.creating(tmp_path / "shop") as workspace:
        versions.put_all(versions.learned, workspace)
        with pytest.raises(WorkspaceError, match="wait for it"), Workspace.reading(tmp_path / "shop"):
            pass
