"""Safetensors: metadata, names, whole numbers of users, arrays; our own checkpoints among them."""

import json

import numpy as np
import pytest
import safetensors.numpy


@pytest.fixture
def tensors(write):
    def call(arrays: dict, metadata: dict | None = None) -> None:
        write("f", safetensors.numpy.save(arrays, metadata=metadata))

    return call


@pytest.mark.parametrize("kind", [np.int8, np.uint16, np.int32, np.int64])
@pytest.mark.parametrize("name", ["user_ids", "users", "index.user"])
def test_whole_numbers_under_a_name_of_users_are_ids(tensors, places, kind, name):
    tensors({name: np.array([[1, 7], [3, 4]], dtype=kind), "items": np.array([9], dtype=kind)})
    assert places("7") == {(f"tensor {name}", "id")}
    assert places("9") == set()


def test_a_name_may_hold_an_id_after_a_dot(tensors, places):
    tensors({"embedding.eve": np.zeros(1), "rows.user": np.zeros(1)})
    assert places("eve") == {("the name of a tensor", "id")}
    assert places("user") == places("rows") == places("embedding.zoe") == set()


@pytest.mark.parametrize(
    "user", ["rows", "shared", "item", "erasable", "fingerprint", "numpy", "2.4", "abc", "F64", "dtype", "data_offsets"]
)
def test_words_of_our_checkpoints_are_nobody(tensors, scan, user):
    facts = {"fingerprint": "abc", "parent": "abc", "environment": {"numpy": "2.4"}}
    tensors({"rows.user": np.zeros(2), "shared.item": np.zeros(2)}, {"erasable": json.dumps(facts)})
    assert scan(user).residues == ()


def test_what_is_no_field_of_ours_is_compared(tensors, places):
    tensors({"rows.user": np.zeros(2)}, {"erasable": json.dumps({"parent": "abc", "for": "eve"})})
    assert places("eve") == {("metadata, a text", "id")}


def test_a_row_is_found_at_any_place_of_any_array(tensors, scan, short):
    erased, other = short
    for kind in (np.float16, np.float32, np.float64):
        rows = np.stack([other.vector, erased.vector, other.vector]).astype(kind)
        tensors({"x": np.zeros(3, np.int8), "y": rows})
        assert {residue.what for residue in scan(erased.target).residues} == {"personal row"}
        tensors({"y": rows[[0, 2]]})
        assert scan(erased.target).residues == ()


def test_rows_that_tell_nobody_apart_are_not_searched(tensors, scan, short):
    erased, _ = short
    tensors({"x": np.zeros(64), "y": np.ones(64, np.float32)})
    for vector in (np.zeros(16), np.ones(16), np.array([1.0, 0.5, 0.0]), np.full(4, np.nan)):
        assert scan(type(erased.target)("7", personal=(vector,))).clean


def test_bytes_that_look_like_a_header_are_bytes(write, scan):
    write("f", (2).to_bytes(8, "little") + b"{]")
    write("g", (50).to_bytes(8, "little") + b"{}")
    assert scan("eve").kinds["other"] == 2
