from hashlib import blake2b

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from erasable.fingerprint import canonical_json, of_arrays, of_bytes, of_value

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
documents = st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8)


def test_canonical_json_is_sorted_without_spaces_and_in_utf_8():
    assert canonical_json({"é": 1, "b": [1.5, "x y"], "a": None}) == '{"a":null,"b":[1.5,"x y"],"é":1}'.encode()


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_what_json_can_t_say_has_no_fingerprint(number):
    with pytest.raises(ValueError, match="Out of range"):
        of_value({"rate": number})


def test_a_fingerprint_is_blake2b_with_32_bytes():
    assert of_bytes(b"abc") == blake2b(b"abc", digest_size=32).hexdigest()
    assert of_value([1]) == of_bytes(b"[1]")
    assert len(of_bytes(b"")) == 64


@given(st.dictionaries(st.text(), documents, min_size=2, max_size=6))
@settings(deadline=None, max_examples=50)
def test_the_order_of_keys_does_not_matter(document):
    turned = dict(reversed(document.items()))
    assert of_value(document) == of_value(turned)


@pytest.mark.parametrize(
    "other",
    [
        {"b": np.arange(6, dtype=np.int32)},
        {"a": np.arange(6, dtype=np.int64)},
        {"a": np.arange(6, dtype=np.uint32)},
        {"a": np.arange(6, dtype=">i4")},
        {"a": np.arange(6, dtype=np.int32).reshape(2, 3)},
        {"a": np.array([0, 1, 2, 3, 4, 6], dtype=np.int32)},
        {"a": np.arange(5, dtype=np.int32)},
        {"a": np.arange(6, dtype=np.int32), "b": np.empty(0, dtype=np.int32)},
        {},
    ],
    ids=["name", "width", "sign", "byte order", "shape", "value", "length", "one more", "one less"],
)
def test_arrays_that_differ_in_anything_have_different_fingerprints(other):
    assert of_arrays({"a": np.arange(6, dtype=np.int32)}) != of_arrays(other)


def test_the_sign_of_zero_is_a_difference():
    assert of_arrays({"a": np.array([0.0])}) != of_arrays({"a": np.array([-0.0])})


def test_how_arrays_lie_in_memory_or_in_the_mapping_is_no_difference():
    array, other = np.arange(12.0).reshape(3, 4), np.ones(2)
    spread = np.zeros((6, 8))
    spread[::2, ::2] = array
    one = of_arrays({"a": array, "b": other})
    assert one == of_arrays({"b": other, "a": np.asfortranarray(array)})
    assert one == of_arrays({"a": spread[::2, ::2], "b": other})


def test_a_value_can_t_move_from_one_array_to_the_next():
    left = {"a": np.array([1, 2], np.uint8), "b": np.array([3], np.uint8)}
    right = {"a": np.array([1], np.uint8), "b": np.array([2, 3], np.uint8)}
    assert of_arrays(left) != of_arrays(right)


def test_arrays_without_elements_have_a_fingerprint_by_shape():
    assert of_arrays({"a": np.empty((0, 3))}) != of_arrays({"a": np.empty((0, 4))})
