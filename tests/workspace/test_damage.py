"""Every damage is named, with what to do about it."""

import json
import re

import pytest

from erasable import fingerprint
from erasable.errors import WorkspaceDamaged, WorkspaceError
from erasable.workspace import Workspace
from erasable.workspace.manifest import decode_manifest, encode_manifest

KINDS = [
    "config.json",
    "catalogue-*",
    "kept-items-*",
    "data/bucket-*",
    "data/items-*",
    "data/slots-*",
    "data/histories-*",
    "checkpoints/*",
    "certificates/*.json",
    "certificates/*.html",
    "audit-*",
    "signing-key*",
    "pending-*",
    "manifest.json",
]


def read_everything(path) -> None:
    with Workspace.reading(path) as workspace:
        state = workspace.state()
        list(state.dataset.groups)
        for link in state.chain:
            workspace.checkpoints.get(link.fingerprint)
        dict(workspace.issued())
        workspace.documents()


def damaged(path) -> list[str]:
    with Workspace.reading(path) as workspace:
        return workspace.damaged()


def test_every_kind_of_file_is_looked_at(every_kind, content_of):
    found = {name for kind in KINDS for name in (file.relative_to(every_kind) for file in every_kind.glob(kind))}
    assert {str(name) for name in found} == set(content_of(every_kind))


@pytest.mark.parametrize("kind", KINDS)
def test_a_changed_byte_anywhere_in_a_file_is_noticed_and_the_file_named(every_kind, kind):
    file = sorted(every_kind.glob(kind))[0]
    good = file.read_bytes()
    for place in {0, len(good) // 3, len(good) // 2, len(good) - 1}:
        bad = bytearray(good)
        bad[place] ^= 1
        file.write_bytes(bytes(bad))
        with pytest.raises(WorkspaceDamaged, match=re.escape(f"{file} is damaged: restore it from a copy made after")):
            read_everything(every_kind)
    file.write_bytes(good)
    read_everything(every_kind)


@pytest.mark.parametrize("kind", KINDS)
def test_a_missing_file_is_named(every_kind, kind):
    file = sorted(every_kind.glob(kind))[0]
    file.unlink()
    with pytest.raises(WorkspaceDamaged, match=re.escape(f"{file} is missing")):
        read_everything(every_kind)


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_was_cut_short_is_named(every_kind, kind):
    file = sorted(every_kind.glob(kind))[0]
    file.write_bytes(file.read_bytes()[:-3])
    with pytest.raises(WorkspaceDamaged, match=re.escape(str(file))):
        read_everything(every_kind)


def test_each_file_that_changed_or_is_missing_is_named_and_no_other(every_kind, content_of):
    assert damaged(every_kind) == []
    for name, good in content_of(every_kind).items():
        if name == "manifest.json":
            continue
        for bad in (bytes([good[0] ^ 1]) + good[1:], good[:-1] + bytes([good[-1] ^ 128]), good[:-1], good + b" ", b""):
            (every_kind / name).write_bytes(bad)
            assert damaged(every_kind) == [name]
        (every_kind / name).unlink()
        assert damaged(every_kind) == [name]
        (every_kind / name).write_bytes(good)
    assert damaged(every_kind) == []


def test_all_that_is_damaged_is_named_at_once(every_kind, content_of):
    names = sorted(set(content_of(every_kind)) - {"manifest.json"})
    for number, name in enumerate(names):
        if number % 2:
            (every_kind / name).unlink()
        else:
            (every_kind / name).write_bytes(b"bad")
    assert damaged(every_kind) == names


def test_the_audit_chain_can_be_read_as_it_lies_there(every_kind):
    (audit,) = every_kind.glob("audit-*")
    audit.write_bytes(b"learned\nforged\n")
    with Workspace.reading(every_kind) as workspace:
        assert workspace.unchecked_log() == b"learned\nforged\n"
        with pytest.raises(WorkspaceDamaged, match=re.escape(str(audit))):
            workspace.documents()


@pytest.mark.parametrize("text", ["", "no JSON", "[]", "null", "{", '{"format": 2}', "\xff"])
def test_a_manifest_that_is_none_is_named(learned, text):
    (learned / "manifest.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(WorkspaceError, match=r"manifest\.json"):
        read_everything(learned)


def test_another_format_is_refused_and_left_alone(learned, content_of):
    fields = json.loads((learned / "manifest.json").read_bytes())
    (learned / "manifest.json").write_text(json.dumps({**fields, "format": 1}))
    before = content_of(learned)
    for opened in (Workspace.reading, Workspace.writing):
        with pytest.raises(WorkspaceError, match="format 1"), opened(learned):
            pass
    assert content_of(learned) == before


def test_every_changed_byte_of_the_manifest_is_noticed(learned):
    good = (learned / "manifest.json").read_bytes()
    assert encode_manifest(decode_manifest(good, "manifest.json")) == good
    for place in range(0, len(good), 7):
        bad = bytearray(good)
        bad[place] ^= 1
        with pytest.raises(WorkspaceError, match=r"manifest\.json"):
            decode_manifest(bytes(bad), "manifest.json")


def test_a_writer_does_not_sweep_when_the_manifest_is_damaged(learned, content_of):
    (learned / "manifest.json").write_bytes(b"{}")
    before = content_of(learned)
    with pytest.raises(WorkspaceError), Workspace.writing(learned):
        pass
    assert content_of(learned) == before


def test_a_config_of_another_version_is_refused_in_words(learned):
    with Workspace.reading(learned) as workspace:
        manifest = workspace.manifest
    config = json.loads((learned / "config.json").read_bytes())
    config["settings"]["setting_of_the_future"] = 1
    content = json.dumps(config).encode()
    (learned / "config.json").write_bytes(content)
    files = manifest.files | {"config.json": fingerprint.of_bytes(content)}
    changed = manifest.model_copy(update={"files": files}).sealed()
    (learned / "manifest.json").write_bytes(encode_manifest(changed))
    with pytest.raises(WorkspaceError, match="use the version that wrote it"):
        read_everything(learned)
