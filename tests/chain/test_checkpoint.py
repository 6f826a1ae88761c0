import numpy as np
import pytest

from erasable.chain import Checkpoint, MemoryStore
from erasable.models import Parameters


def checkpoint(name, value=0.0):
    shared = {"item": np.full((2, 3), value), "bias": np.full(1, value)}
    return Checkpoint(name, "origin", Parameters(shared, {"user": np.full((1, 3), value)}))


def test_arrays_carry_one_name_each_in_order_and_build_the_same_checkpoint_again():
    before = checkpoint("a", 2.0)
    arrays = before.arrays()
    assert list(arrays) == ["rows.user", "shared.bias", "shared.item"]
    after = Checkpoint.from_arrays("a", "origin", arrays)
    assert after.parameters.shared.keys() == before.parameters.shared.keys()
    assert after.parameters.rows.keys() == before.parameters.rows.keys()
    assert all(array.tobytes() == arrays[name].tobytes() for name, array in after.arrays().items())


def test_a_shared_array_and_rows_of_the_same_name_stay_apart():
    both = Checkpoint("a", "origin", Parameters({"x": np.zeros(1)}, {"x": np.ones(1)}))
    assert both.arrays()["shared.x"] == 0
    assert both.arrays()["rows.x"] == 1


def test_a_store_gives_back_what_was_put():
    store = MemoryStore()
    first, second = checkpoint("a"), checkpoint("b")
    store.put(first)
    store.put(second)
    assert store.get("a") is first
    assert store.get("b") is second
    assert "a" in store
    assert "c" not in store


def test_keep_only_destroys_all_others_and_ignores_names_it_has_not():
    store = MemoryStore()
    for name in "abc":
        store.put(checkpoint(name))
    store.keep_only(["b", "z"])
    assert [name in store for name in "abcz"] == [False, True, False, False]
    with pytest.raises(KeyError):
        store.get("a")


def test_a_kept_checkpoint_can_t_be_changed():
    store = MemoryStore()
    store.put(checkpoint("a"))
    with pytest.raises(ValueError, match="read-only"):
        store.get("a").parameters.shared["item"][0, 0] = 1
