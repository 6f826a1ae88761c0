"""Each checkpoint says in which numeric environment it was made, and the manifest keeps each environment once."""

from dataclasses import replace

import pytest

from erasable.chain import State, environment_for
from erasable.errors import WorkspaceDamaged
from erasable.workspace import Workspace
from erasable.workspace.manifest import decode_manifest, encode_manifest
from kit import elsewhere


def test_a_chain_trained_again_elsewhere_replaces_checkpoints_of_the_same_name(versions, learned, content_of):
    """The same fingerprints with other bytes, as `--rerun` on another machine gives them."""
    elsewhere.moved(learned, numpy="0.0")
    old = content_of(learned)
    with Workspace.writing(learned) as workspace:
        for link in versions.learned.chain:
            workspace.checkpoints.put(_shifted(versions.memory.get(link.fingerprint)))
        assert {name: content_of(learned)[name] for name in old} == old
        workspace.commit(State(workspace.state().dataset, versions.learned.chain))
        assert workspace.manifest.environments == (environment_for(versions.learned.dataset.config),)
        assert not set(old) & {name for name in content_of(learned) if "safetensors" in name}
        found = workspace.checkpoints.get(versions.learned.chain[0].fingerprint)
    expected = _shifted(versions.memory.get(versions.learned.chain[0].fingerprint))
    assert all((array == expected.arrays()[name]).all() for name, array in found.arrays().items())


def test_each_checkpoint_keeps_its_own_environment(versions, learned):
    elsewhere.moved(learned, places=[0, 2], numpy="0.0")
    here = environment_for(versions.learned.dataset.config)
    there = {**here, "numpy": "0.0"}
    with Workspace.writing(learned) as workspace:
        assert [link.environment for link in workspace.state().chain] == [there, here, there, here]
        workspace.commit(workspace.state())
        assert workspace.manifest.environments == (there, here)
        assert [link.environment for link in workspace.manifest.chain] == [0, 1, 0, 1]
        assert [link.environment for link in workspace.state().chain] == [there, here, there, here]


def test_many_checkpoints_do_not_repeat_it(versions, learned):
    with Workspace.writing(learned) as workspace:
        state = workspace.state()
        workspace.commit(replace(state, chain=tuple(replace(link, environment={"numpy": "1"}) for link in state.chain)))
    assert (learned / "manifest.json").read_text().count('"numpy"') == 1


def test_a_file_says_in_which_environment_it_was_made(versions, learned):
    with Workspace.reading(learned) as workspace:
        found = workspace.checkpoints.get(versions.learned.chain[0].fingerprint)
    assert found.environment == environment_for(versions.learned.dataset.config)


def test_an_environment_that_is_not_there_is_damage(learned):
    path = learned / "manifest.json"
    manifest = decode_manifest(path.read_bytes(), "manifest.json")
    chain = (manifest.chain[0].model_copy(update={"environment": 1}), *manifest.chain[1:])
    path.write_bytes(encode_manifest(manifest.model_copy(update={"chain": chain}).sealed()))
    with pytest.raises(WorkspaceDamaged):
        decode_manifest(path.read_bytes(), "manifest.json")


def _shifted(checkpoint):
    arrays = {name: array + 1 for name, array in checkpoint.arrays().items()}
    return type(checkpoint).from_arrays(checkpoint.fingerprint, checkpoint.parent, arrays)
