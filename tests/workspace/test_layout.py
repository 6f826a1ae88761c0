import time

import pytest

from erasable.errors import WorkspaceError
from erasable.workspace import files
from erasable.workspace.files import foreign_entries, own_files


def test_our_files_are_told_from_those_of_others(tmp_path):
    ours = [
        "audit-0123456789ab.jsonl",
        "catalogue-0123456789ab.parquet",
        "checkpoints/x.safetensors",
        "config.json",
        "manifest.json.new",
        "pending-0123456789ab.json",
        "signing-key-0123456789ab.txt",
        "signing-key.txt",
    ]
    others = ["audit.jsonl", "catalogue.parquet", "config-mine.json", "notes.txt", "pending.json", "signing-key.pem"]
    (tmp_path / "checkpoints").mkdir()
    for name in [*ours, *others, "manifest.json", "writer.lock", "reader.lock", "gate.lock"]:
        (tmp_path / name).write_bytes(b"")
    assert own_files(tmp_path) == ours
    assert foreign_entries(tmp_path) == others


def test_a_folder_that_can_not_be_read_is_told(tmp_path):
    with pytest.raises(WorkspaceError, match="can't be read"):
        own_files(tmp_path / "missing")


def test_what_is_put_among_sealed_certificates_is_seen_at_once(tmp_path):
    folder = tmp_path / "certificates"
    folder.mkdir()
    (folder / "sealed.json").touch()
    sealed = {"sealed.json": "its hash"}
    time.sleep(0.2)  # what was listed is used again once the folder has not changed for a while
    for number in range(200):
        assert len(own_files(tmp_path, sealed)) == number
        (folder / f"another-{number}.json").touch()
    time.sleep(0.2)
    assert len(own_files(tmp_path, sealed)) == 200
    assert len(own_files(tmp_path, sealed)) == 200
    (folder / "another-7.json").unlink()
    assert len(own_files(tmp_path, sealed)) == 199
    assert len(own_files(tmp_path, {"another-8.json": "its hash"})) == 199


def test_sealed_certificates_are_not_listed_again_while_nothing_has_changed(tmp_path, monkeypatch):
    folder = tmp_path / "certificates"
    folder.mkdir()
    (folder / "sealed.json").touch()
    sealed, looked = {"sealed.json": "its hash"}, []
    time.sleep(0.2)
    monkeypatch.setattr(files, "_entries", lambda path: looked.append(path.name) or [])
    own_files(tmp_path, sealed)
    own_files(tmp_path, sealed)
    assert looked.count("certificates") == 1
