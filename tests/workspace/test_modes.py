from dataclasses import replace

import pytest

from erasable.workspace import Preferences, Workspace


@pytest.mark.parametrize(("readable", "mode", "folder"), [(False, 0o600, 0o700), (True, 0o640, 0o750)])
def test_files_are_for_the_owner_or_also_for_the_group(tmp_path, versions, readable, mode, folder):
    place = tmp_path / "parent" / "shop"
    documents = replace(versions.after_learning, key=b"", preferences=Preferences(readable_by_group=readable))
    with Workspace.creating(place, readable) as workspace:
        versions.put_all(versions.learned, workspace)
        workspace.commit(versions.learned, documents)
    with Workspace.writing(place) as workspace:  # what comes later is as what was there at first
        versions.put_all(versions.forgotten, workspace)
        workspace.commit(versions.forgotten, replace(documents, certificates={"request-1.json": b"{}"}))
    files = [path for path in place.rglob("*") if path.is_file() and path.suffix != ".lock"]
    assert len(files) > 4
    assert {path.stat().st_mode & 0o777 for path in files} == {mode}
    assert {path.stat().st_mode & 0o777 for path in (place, *place.rglob("*")) if path.is_dir()} == {folder}


def test_keys_and_requests_are_for_the_owner_alone(tmp_path, versions):
    documents = replace(versions.after_learning, pending=b"{}", preferences=Preferences(readable_by_group=True))
    with Workspace.creating(tmp_path / "shop", readable_by_group=True) as workspace:
        versions.put_all(versions.learned, workspace)
        workspace.commit(versions.learned, documents)
        private = [workspace.manifest.key, workspace.manifest.pending]
    assert {(tmp_path / "shop" / name).stat().st_mode & 0o777 for name in private} == {0o600}
