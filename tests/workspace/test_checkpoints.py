import json
from dataclasses import replace

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load, save

from erasable.chain import Checkpoint
from erasable.errors import WorkspaceError
from erasable.models import Parameters
from erasable.workspace.checkpoints import DiskCheckpoints, decode_arrays, encode_checkpoint
from erasable.workspace.folder import CheckedFolder


@pytest.fixture
def store(tmp_path):
    return DiskCheckpoints(CheckedFolder(tmp_path, {}), writable=True)


def checkpoint(name="a", value=1.0, rows=2):
    shared = {"items": np.full((3, 2), value, np.float32)}
    rows_of_users = {"users": np.zeros((rows, 2), np.float32)}
    return Checkpoint(name, "origin", Parameters(shared, rows_of_users), {"numpy": "2.4"})


@pytest.mark.parametrize("rows", [2, 0])
def test_a_checkpoint_comes_back_the_same(store, rows):
    given = checkpoint(rows=rows)
    store.put(given)
    found = store.get("a")
    assert (found.fingerprint, found.parent) == ("a", "origin")
    assert found.parameters.rows["users"].shape == (rows, 2)
    for name, array in given.arrays().items():
        assert found.arrays()[name].tobytes() == array.tobytes()
        assert not found.arrays()[name].flags.writeable


@pytest.mark.parametrize("kind", ["float32", "float64", "int32", "int64"])
def test_arrays_are_read_as_the_library_reads_them_and_not_copied(kind):
    arrays = {"one": np.arange(6, dtype=kind).reshape(2, 3), "none": np.empty((0, 4), kind), "point": np.array(7, kind)}
    content = save(arrays, metadata={"of": "a test"})
    found = decode_arrays(content)
    for name, array in load(content).items():
        assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape)
        assert found[name].tobytes() == array.tobytes()
        assert found[name].flags.aligned
        assert found[name].base is content


def test_a_file_says_what_it_is_in_one_metadata_entry(store, tmp_path):
    store.put(checkpoint())
    with safe_open(tmp_path / "checkpoints/a.safetensors", "numpy") as file:
        metadata = file.metadata()
    assert list(metadata) == ["erasable"]
    facts = {"fingerprint": "a", "parent": "origin", "environment": {"numpy": "2.4"}}
    assert json.loads(metadata["erasable"]) == facts


def test_equal_checkpoints_give_equal_bytes():
    assert encode_checkpoint(checkpoint()) == encode_checkpoint(checkpoint())
    turned = Parameters({"items": np.ones((2, 3), np.float32).T}, checkpoint().parameters.rows)
    turned = replace(checkpoint(), parameters=turned)
    assert encode_checkpoint(turned) == encode_checkpoint(checkpoint())


def test_only_what_was_put_is_there(store):
    store.put(checkpoint())
    assert "a" in store
    assert "b" not in store
    with pytest.raises(WorkspaceError, match="holds no checkpoint b"):
        store.get("b")


@pytest.mark.parametrize("kind", ["f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?"])
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0, 4)])
def test_an_array_of_any_kind_comes_back_as_it_was(kind, shape):
    array = np.ones(shape, kind)
    found = decode_arrays(encode_checkpoint(Checkpoint("a" * 64, "origin", Parameters({"one": array}, {}))))
    (read,) = found.values()
    assert (read.dtype, read.shape, read.tobytes()) == (array.dtype, array.shape, array.tobytes())
