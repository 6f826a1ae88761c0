import json

import pytest

from erasable import fingerprint
from erasable.errors import WorkspaceDamaged, WorkspaceError
from erasable.store import Workspace
from erasable.store.manifest import decode_manifest, encode_manifest


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
    assert not changed.is_sealed()
    with pytest.raises(WorkspaceDamaged, match="is damaged"):
        decode_manifest(encode_manifest(changed), "manifest.json")
    assert changed.sealed().is_sealed()


def test_the_same_words_written_otherwise_are_noticed(manifest):
    with pytest.raises(WorkspaceDamaged):
        decode_manifest(encode_manifest(manifest) + b" ", "manifest.json")


def test_a_scale_is_written_as_it_is_read(manifest):
    # A stage's fingerprint covers it, and JSON tells 5 from 5.0.
    assert repr(manifest.scale.high) == "5.0"


def written(fields) -> bytes:
    return (json.dumps(fields, indent=2, ensure_ascii=False) + "\n").encode()


def as_0_1_wrote_it(manifest, **changes) -> bytes:
    """Format 3: no preferences, sealed over the canonical form of what it says."""
    fields = json.loads(encode_manifest(manifest)) | {"format": 3} | changes
    for name in ("fingerprint", "preferences", "segments"):
        fields.pop(name)
    return written(fields | {"fingerprint": fingerprint.of_value(fields)})


def test_a_manifest_of_0_1_says_the_same(manifest):
    read = decode_manifest(as_0_1_wrote_it(manifest), "manifest.json")
    assert read.sealed() == manifest


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


@pytest.mark.parametrize("found", [2, 5, "4", None, [4], {}])
def test_another_format_is_refused_by_name(manifest, found):
    with pytest.raises(WorkspaceError, match="reads 3 to 4"):
        decode_manifest(written({"format": found}), "manifest.json")


def test_a_field_of_a_newer_version_outlives_a_commit(learned, versions):
    with Workspace.writing(learned) as workspace:
        workspace._manifest = workspace.manifest.model_copy(update={"colour": "green"})
        versions.put_all(versions.forgotten, workspace)
        workspace.commit(versions.forgotten, workspace.papers())
    assert json.loads((learned / "manifest.json").read_bytes())["colour"] == "green"
