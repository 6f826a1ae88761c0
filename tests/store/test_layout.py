import pytest

from erasable.errors import WorkspaceError
from erasable.store.layout import foreign_entries, own_files


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
