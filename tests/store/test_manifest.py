import pytest

from erasable.errors import WorkspaceDamaged
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
