import json

import pytest

from erasable import fingerprint
from erasable.errors import WorkspaceDamaged, WorkspaceError
from erasable.workspace import Workspace
from erasable.workspace.manifest import decode_manifest, encode_manifest


@pytest.fixture
def manifest(learned):
    with Workspace.reading(learned) as workspace:
        return workspace.manifest


def test_a_manifest_comes_back_the_same(manifest):
    assert decode_manifest(encode_manifest(manifest), "manifest.json") == manifest


def test_a_manifest_can_not_be_changed_in_place(manifest):
    with pytest.raises(ValueError, match="frozen"):
        manifest.version = 7


def test_a_changed_field_breaks_the_seal(manifest):
    changed = manifest.model_copy(update={"version": 7})
    with pytest.raises(WorkspaceDamaged, match="is damaged"):
        decode_manifest(encode_manifest(changed), "manifest.json")
    assert decode_manifest(encode_manifest(changed.sealed()), "manifest.json").version == 7


def test_the_same_words_written_otherwise_are_noticed(manifest):
    with pytest.raises(WorkspaceDamaged):
        decode_manifest(encode_manifest(manifest) + b" ", "manifest.json")


def test_a_scale_is_written_as_it_is_read(manifest):
    # A stage's fingerprint covers it, and JSON tells 5 from 5.0.
    assert repr(manifest.scale.high) == "5.0"


def written(fields) -> bytes:
    return (json.dumps(fields, indent=2, ensure_ascii=False) + "\n").encode()


def as_0_1_wrote_it(manifest, **changes) -> bytes:
    """Format 3: no preferences, one environment, sealed over the canonical form of what it says."""
    fields = json.loads(encode_manifest(manifest)) | {"format": 3} | changes
    fields["environment"] = fields.pop("environments")[0]
    for link in fields["chain"]:
        link.pop("environment")
    for name in ("fingerprint", "preferences", "segments"):
        fields.pop(name)
    return written(fields | {"fingerprint": fingerprint.of_value(fields)})


def test_a_manifest_of_0_1_says_the_same(manifest):
    read = decode_manifest(as_0_1_wrote_it(manifest), "manifest.json")
    assert (read.written_in, manifest.written_in, read.sealed().written_in) == (3, 4, 4)
    assert read.names == "0.1"
    assert read.model_copy(update={"names": None}).sealed() == manifest


def test_a_changed_byte_of_0_1_is_noticed(manifest):
    content = as_0_1_wrote_it(manifest)
    for changed in (content + b" ", content.replace(b'"version": 1', b'"version": 2'), content[:-1]):
        assert changed != content
        with pytest.raises(WorkspaceDamaged):
            decode_manifest(changed, "manifest.json")


def test_a_field_of_a_newer_version_is_kept_and_covered(manifest):
    fields = json.loads(encode_manifest(manifest))
    fields.pop("fingerprint")
    content = written(fields | {"colour": "green", "fingerprint": ""})
    sealed = content.replace(b'"fingerprint": ""', b'"fingerprint": "%s"' % fingerprint.of_bytes(content).encode())
    newer = decode_manifest(sealed, "manifest.json")
    assert encode_manifest(newer) == sealed
    with pytest.raises(WorkspaceDamaged):
        decode_manifest(sealed.replace(b"green", b"brown"), "manifest.json")


@pytest.mark.parametrize("found", [2, 0, -1, True, "4", 4.0, None, [4], {}])
def test_another_format_is_refused_by_name(manifest, found):
    with pytest.raises(WorkspaceDamaged, match="which no release wrote: restore it from a copy"):
        decode_manifest(written({"format": found}), "manifest.json")


@pytest.mark.parametrize("found", [5, 2**70])
def test_a_newer_format_is_told_as_such(found):
    with pytest.raises(WorkspaceError, match=f"format {found} and this version .* up to 4: a later version wrote it"):
        decode_manifest(written({"format": found}), "manifest.json")


def sealed(fields) -> bytes:
    """Write a manifest as a newer version would: only its bytes are sealed."""
    fields.pop("fingerprint")
    content = written(fields | {"fingerprint": ""})
    return content.replace(b'"fingerprint": ""', b'"fingerprint": "%s"' % fingerprint.of_bytes(content).encode())


@pytest.mark.parametrize("more", [1, -0.5, "é", None, [1, [2]], {"deep": {"er": 2**70}}], ids=str)
def test_fields_of_a_newer_version_outlive_a_commit(learned, versions, more):
    fields = json.loads((learned / "manifest.json").read_bytes())
    records = ("scale", "catalogue", "preferences")
    for part in (fields, *(fields[name] for name in records), *fields["groups"], *fields["chain"]):
        part["more"] = more
    note = learned / "data" / "note.json"
    note.write_bytes(b"{}")
    fields["files"]["data/note.json"] = fingerprint.of_bytes(b"{}")
    (learned / "manifest.json").write_bytes(sealed(fields))
    with Workspace.writing(learned) as workspace:
        assert workspace.newer
        workspace.state()
        versions.put_all(versions.forgotten, workspace)
        workspace.commit(versions.forgotten, workspace.documents())
        workspace.amend(workspace.documents())
    found = json.loads((learned / "manifest.json").read_bytes())
    assert [part["more"] for part in (found, *(found[name] for name in records))] == [more] * 4
    # What is about a group, or a step, that is another now goes with it.
    same = [one for one in found["groups"] if one["file"] in {old["file"] for old in fields["groups"]}]
    kept = [one for one in found["chain"] if one["file"] in {old["file"] for old in fields["chain"]}]
    assert 0 < len(same) < len(found["groups"])
    assert 0 < len(kept) < len(found["chain"])
    for part in (*found["groups"], *found["chain"]):
        assert ("more" in part) == (part in same or part in kept)
    assert found["files"]["data/note.json"] == fields["files"]["data/note.json"]
    assert note.exists()


def test_nothing_is_newer_in_what_this_version_writes(learned):
    with Workspace.reading(learned) as workspace:
        assert not workspace.newer


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace('"version": 1', '"version": 2, "version": 1'),
        lambda text: text.replace('"version": 1', '"version": 1, "more": NaN'),
        lambda text: text.replace('"version": 1', '"version": 1, "more": 1e999'),
        lambda text: text.replace('"version": 1', '"version": 1, "more": "\\ud800"'),
        lambda text: text.replace('"version": 1', '"version": 1, "more": ' + "9" * 5000),
        lambda text: text.replace('"version": 1', f'"version": 1, "more": {"[" * 400}{"]" * 400}'),
        lambda text: "\ufeff" + text,
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text + "\n",
    ],
)
def test_what_two_readers_may_read_differently_is_damage_though_its_seal_is_right(manifest, change):
    text = change(encode_manifest(manifest.model_copy(update={"fingerprint": ""})).decode())
    seal = fingerprint.of_bytes(text.encode())
    content = text.replace('"fingerprint": ""', f'"fingerprint": "{seal}"').encode()
    with pytest.raises(WorkspaceDamaged):
        decode_manifest(content, "manifest.json")
