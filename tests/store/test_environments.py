"""Checkpoints of one chain come from one numeric environment."""

import pytest

from erasable.errors import NotReproducible
from erasable.store import Workspace
from erasable.store.manifest import encode_manifest
from erasable.training import numeric_environment


def test_a_chain_trained_again_elsewhere_replaces_checkpoints_of_the_same_name(versions, learned, content_of):
    """The same fingerprints with other bytes, as `--rerun` on another machine gives them."""
    _pretend_learned_elsewhere(learned)
    old = content_of(learned)
    with Workspace.writing(learned) as workspace:
        for link in versions.learned.chain:
            workspace.checkpoints.put(_shifted(versions.memory.get(link.fingerprint)))
        assert {name: content_of(learned)[name] for name in old} == old
        workspace.commit(workspace.state())
        assert workspace.manifest.environment == numeric_environment()
        assert not set(old) & {name for name in content_of(learned) if "safetensors" in name}
        found = workspace.checkpoints.get(versions.learned.chain[0].fingerprint)
    expected = _shifted(versions.memory.get(versions.learned.chain[0].fingerprint))
    assert all((array == expected.arrays()[name]).all() for name, array in found.arrays().items())


def test_a_chain_never_mixes_two_environments(versions, learned):
    _pretend_learned_elsewhere(learned)
    with pytest.raises(NotReproducible, match="train every stage again"):
        versions.forget(learned)
    with Workspace.writing(learned) as workspace:
        workspace.commit(workspace.state())
        assert workspace.manifest.environment["numpy"] == "0.0"


def _pretend_learned_elsewhere(path) -> None:
    with Workspace.reading(path) as workspace:
        environment = workspace.manifest.environment | {"numpy": "0.0"}
        elsewhere = workspace.manifest.model_copy(update={"environment": environment}).sealed()
    (path / "manifest.json").write_bytes(encode_manifest(elsewhere))


def _shifted(checkpoint):
    arrays = {name: array + 1 for name, array in checkpoint.arrays().items()}
    return type(checkpoint).from_arrays(checkpoint.fingerprint, checkpoint.parent, arrays)
