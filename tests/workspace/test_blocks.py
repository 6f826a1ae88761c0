"""Arrays by item lie in blocks: cut and joined, written only where they are others, each in its place."""

from dataclasses import replace

import numpy as np
import pytest
from safetensors import safe_open

from erasable.chain import Checkpoint
from erasable.errors import WorkspaceDamaged, WrongUse
from erasable.models import Parameters
from erasable.workspace import checkpoints as blocks
from erasable.workspace import files, folder
from erasable.workspace.checkpoints import DiskCheckpoints, cut, encode_checkpoint, joined
from erasable.workspace.folder import CheckedFolder
from erasable.workspace.manifest import LinkRecord

ROW = 3 * (4 + 4)  # bytes of an item: three numbers and three weights


@pytest.fixture(autouse=True)
def blocks_of_two(monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 2 * ROW + 1)


@pytest.fixture
def store(tmp_path):
    return DiskCheckpoints(CheckedFolder(tmp_path, {}), writable=True)


def arrays(items):
    numbers = np.arange(items * 3, dtype=np.int32).reshape(items, 3)
    return {"near": numbers, "weights": numbers.astype(np.float32) / 8}


def checkpoint(name="a", items=7, rows=2):
    shared = {**arrays(items), "bias": np.ones(4, np.float32)}
    users = {"users": np.zeros((rows, 2), np.float32)}
    return Checkpoint(name, "origin", Parameters(shared, users), {"numpy": "2.4"}, ("near", "weights"))


def with_other_row(old, name, item):
    shared = {one: array.copy() for one, array in old.parameters.shared.items()}
    shared["weights"][item] += 1
    return replace(old, fingerprint=name, parameters=Parameters(shared, old.parameters.rows))


def record_of(store, name, **other):
    """Return the manifest's record of a checkpoint, with something else put in."""
    files_of = {"file": store.file_of(name), "blocks": store.blocks_of(name)}
    return LinkRecord(**{"fingerprint": name, "parent": "origin", "samples": 0, "seconds": 0, **files_of, **other})


@pytest.mark.parametrize("items", [0, 1, 2, 6, 7])
def test_what_is_cut_and_joined_is_the_same(items):
    whole = arrays(items)
    parts = list(cut(whole))
    assert [first for first, _ in parts] == list(range(0, max(1, items), 2))
    assert all(np.shares_memory(part["near"], whole["near"]) for _, part in parts if items)
    found = joined([part for _, part in parts])
    for name, array in whole.items():
        assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape)
        assert found[name].tobytes() == array.tobytes()


def test_a_row_larger_than_a_block_is_a_block():
    assert len(list(cut({"wide": np.zeros((3, 1000))}))) == 3


def test_rows_without_numbers_can_be_cut():
    assert len(list(cut({"none": np.zeros((3, 0))}))) == 1


def test_without_arrays_there_is_no_block():
    assert list(cut({})) == []


def test_arrays_that_do_not_have_a_row_for_each_item_are_refused():
    with pytest.raises(WrongUse, match="a row for each item"):
        list(cut({"one": np.zeros((3, 2)), "other": np.zeros((4, 2))}))


@pytest.mark.parametrize("items", [0, 1, 7])
def test_a_checkpoint_in_blocks_comes_back_the_same(store, items):
    given = checkpoint(items=items)
    store.put(given)
    found = store.get("a")
    assert (found.fingerprint, found.parent, found.environment) == ("a", "origin", {"numpy": "2.4"})
    assert found.by_item == given.by_item
    assert found.arrays().keys() == given.arrays().keys()
    for name, array in given.arrays().items():
        assert (found.arrays()[name].dtype, found.arrays()[name].shape) == (array.dtype, array.shape)
        assert found.arrays()[name].tobytes() == array.tobytes()
        assert not found.arrays()[name].flags.writeable


def test_a_block_says_which_items_it_holds_and_nothing_of_its_checkpoint(store, tmp_path):
    store.put(checkpoint())
    said = []
    for name in store.blocks_of("a"):
        with safe_open(tmp_path / name, "numpy") as file:
            assert set(file.keys()) == {"shared.near", "shared.weights"}
            said.append(file.metadata())
    assert said == [{"erasable": f'{{"items":{place}}}'} for place in ("[0,2]", "[2,4]", "[4,6]", "[6,7]")]
    with safe_open(tmp_path / store.file_of("a"), "numpy") as file:
        assert set(file.keys()) == {"shared.bias", "rows.users"}
        assert '"items":7' in file.metadata()["erasable"]


def test_a_checkpoint_without_arrays_by_item_is_one_file_as_ever(store, tmp_path):
    whole = replace(checkpoint(), by_item=())
    store.put(whole)
    assert store.blocks_of("a") == ()
    assert (tmp_path / store.file_of("a")).read_bytes() == encode_checkpoint(checkpoint())
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == ["a.safetensors"]


def test_only_blocks_with_other_bytes_are_written_and_none_is_read_again(store, monkeypatch):
    store.put(checkpoint())
    store.get("a")
    written, read = [], []
    read_whole = folder.read_whole
    monkeypatch.setattr(
        files, "before_change", lambda kind, path: written.append(path.name) if kind == "create" else None
    )
    monkeypatch.setattr(folder, "read_whole", lambda path: read.append(path.name) or read_whole(path))
    store.put(with_other_row(checkpoint(), "b", 3))
    assert read == []
    before, after = store.blocks_of("a"), store.blocks_of("b")
    assert [one == other for one, other in zip(before, after, strict=True)] == [True, False, True, True]
    assert [f"checkpoints/{name}" for name in written] == [after[1], store.file_of("b")]


@pytest.mark.parametrize("by_item", [("near", "weights"), ()])
def test_what_was_put_is_read_once_and_again_once_someone_has_touched_it(store, tmp_path, monkeypatch, by_item):
    store.put(replace(checkpoint(), by_item=by_item))
    read = []
    read_whole = folder.read_whole
    monkeypatch.setattr(folder, "read_whole", lambda path: read.append(path.name) or read_whole(path))
    assert store.get("a") is store.get("a")
    assert [f"checkpoints/{name}" for name in read] == [store.file_of("a"), *store.blocks_of("a")]
    path = tmp_path / [store.file_of("a"), *store.blocks_of("a")][-1]
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    with pytest.raises(WorkspaceDamaged):
        store.get("a")


def test_blocks_with_zeros_of_another_sign_are_others(store):
    def with_zero(name, zero):
        shared = {one: array.copy() for one, array in checkpoint().parameters.shared.items()}
        shared["weights"][5] = zero
        return replace(checkpoint(), fingerprint=name, parameters=Parameters(shared, {}))

    store.put(with_zero("a", 0.0))
    store.get("a")
    store.put(with_zero("b", -0.0))
    same = [one == other for one, other in zip(store.blocks_of("a"), store.blocks_of("b"), strict=True)]
    assert same == [True, True, False, True]


@pytest.mark.parametrize("damage", [lambda path: path.unlink(), lambda path: path.write_bytes(b"bad")])
def test_a_block_that_was_damaged_since_is_written_again(store, tmp_path, damage):
    store.put(checkpoint())
    store.get("a")
    damage(tmp_path / store.blocks_of("a")[2])
    store.put(with_other_row(checkpoint(), "b", 0))
    assert store.get("b").arrays()["shared.near"].tobytes() == checkpoint().arrays()["shared.near"].tobytes()


def test_blocks_of_any_size_are_read(store, monkeypatch):
    store.put(checkpoint())
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 5 * ROW)
    store.put(checkpoint("b"))
    assert (len(store.blocks_of("a")), len(store.blocks_of("b"))) == (4, 2)
    assert store.get("a").arrays()["shared.near"].tobytes() == store.get("b").arrays()["shared.near"].tobytes()


class TestBlocksInAnotherOrder:
    """What a manifest names that was written by someone who knows how; else its seal tells."""

    @pytest.fixture
    def put(self, store):
        store.put(checkpoint())
        store.put(with_other_row(checkpoint("b"), "b", 6))
        store.put(checkpoint("short", items=6))
        return store

    @pytest.mark.parametrize(
        ("order", "said"),
        [
            ((1, 0, 2, 3), "start at number 2 instead of 0"),
            ((0, 2, 1, 3), "start at number 4 instead of 2"),
            ((0, 1, 3), "start at number 6 instead of 4"),
            ((0, 1, 1, 2, 3), "start at number 2 instead of 4"),
            ((0, 1, 2, 3, 3), "start at number 6 instead of 7"),
            ((0, 1, 2), "it has 7 items, and its blocks hold 6"),
            ((), "it holds more than a checkpoint"),
        ],
    )
    def test_is_told(self, put, order, said):
        blocks = put.blocks_of("a")
        put.adopt([record_of(put, "a", blocks=tuple(blocks[place] for place in order))])
        with pytest.raises(WorkspaceDamaged, match=rf"{said}\): restore it from a copy"):
            put.get("a")

    def test_one_block_too_many_is_told(self, put):
        put.adopt([record_of(put, "short", blocks=(*put.blocks_of("short"), put.blocks_of("a")[3]))])
        with pytest.raises(WorkspaceDamaged, match="it has 6 items, and its blocks hold 7"):
            put.get("short")

    def test_a_checkpoint_in_the_place_of_a_block_is_told(self, put):
        put.adopt([record_of(put, "a", blocks=(put.file_of("b"), *put.blocks_of("a")[1:]))])
        with pytest.raises(WorkspaceDamaged, match="is damaged"):
            put.get("a")

    def test_blocks_for_a_checkpoint_that_has_none_are_told(self, put):
        put.put(replace(checkpoint("whole"), by_item=()))
        put.adopt([record_of(put, "whole", blocks=put.blocks_of("a"))])
        with pytest.raises(WorkspaceDamaged, match="is damaged"):
            put.get("whole")

    def test_arrays_of_another_kind_are_told(self, put):
        other = replace(checkpoint("other"), by_item=("near",))
        put.put(other)
        put.adopt([record_of(put, "a", blocks=(*put.blocks_of("a")[:3], put.blocks_of("other")[-1]))])
        with pytest.raises(WorkspaceDamaged, match="is damaged"):
            put.get("a")
