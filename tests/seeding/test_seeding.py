import json
import os
import subprocess
import sys
from hashlib import blake2b

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from erasable.seeding import child_key, id_keys, mix, normals

ids = st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=12, unique=True)


def test_a_key_is_the_blake2b_of_seed_and_purpose_each_with_its_length():
    parts = b"\x01\0\0\x007" + b"\x05\0\0\0stage" + b"\x02\0\0\x0012"
    expected = int.from_bytes(blake2b(parts, digest_size=8).digest(), "little")
    assert child_key(7, "stage", 12) == expected


def test_keys_of_different_seeds_and_purposes_differ():
    keys = {child_key(seed, *purpose) for seed in range(4) for purpose in (("a", "bc"), ("ab", "c"), ("abc",), ())}
    assert len(keys) == 16


def test_a_boundary_between_seed_and_purpose_can_t_be_faked():
    assert child_key(1, "2", "x") != child_key(12, "x") != child_key(1, "2x")


@given(ids, st.integers(0, 2**63 - 1), st.data())
@settings(deadline=None, max_examples=50)
def test_the_key_of_an_id_does_not_depend_on_who_else_is_in_the_list(texts, seed, data):
    chosen = data.draw(st.lists(st.sampled_from(texts), min_size=1, unique=True))
    keys = dict(zip(texts, id_keys(seed, "user", texts).tolist(), strict=True))
    assert id_keys(seed, "user", chosen).tolist() == [keys[text] for text in chosen]


def test_keys_depend_on_seed_purpose_and_the_exact_text():
    texts = ["7", "007", "a", "A", "é", "e\u0301"]
    lists = [id_keys(0, "user", texts), id_keys(1, "user", texts), id_keys(0, "item", texts)]
    assert len(set(np.concatenate(lists).tolist())) == 18


def test_no_ids_have_no_keys():
    assert id_keys(0, "user", []).shape == (0,)
    assert normals(id_keys(0, "user", []), 16).shape == (0, 16)


def test_draws_are_those_of_splitmix64():
    # The published test vector of Vigna's splitmix64.c with the state 1234567.
    expected = [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]
    drawn = mix(np.array([1234567], dtype=np.uint64), np.arange(5, dtype=np.uint64))
    assert drawn.tolist() == expected


def test_a_draw_does_not_depend_on_the_draws_before_it():
    key = np.array([99], dtype=np.uint64)
    assert mix(key, np.arange(20, dtype=np.uint64))[17] == mix(key, np.array([17], dtype=np.uint64))[0]


@given(ids, st.integers(0, 9), st.integers(1, 40), st.data())
@settings(deadline=None, max_examples=50)
def test_the_row_of_an_id_does_not_depend_on_its_place_in_the_table(texts, seed, width, data):
    chosen = data.draw(st.lists(st.sampled_from(texts), min_size=1, unique=True))
    rows = dict(zip(texts, normals(id_keys(seed, "user", texts), width), strict=True))
    for text, row in zip(chosen, normals(id_keys(seed, "user", chosen), width), strict=True):
        assert row.tobytes() == rows[text].tobytes()


def test_a_wider_row_begins_with_the_narrower_one():
    keys = id_keys(0, "user", ["a", "b"])
    assert np.array_equal(normals(keys, 32)[:, :16], normals(keys, 16))


def test_normals_have_mean_0_deviation_1_and_the_tails_of_a_gaussian():
    values = normals(id_keys(0, "user", map(str, range(4000))), 50).astype(np.float64).ravel()
    assert abs(values.mean()) < 0.01
    assert abs(values.std() - 1) < 0.01
    assert abs((values**3).mean()) < 0.03
    # A sum of twelve uniforms has kurtosis 2.9, a Gaussian 3.
    assert 2.85 < (values**4).mean() < 2.95
    assert np.abs(values).max() < 6
    assert abs((np.abs(values) < 1).mean() - 0.6827) < 0.01
    assert values.dtype == np.float64


def test_normals_in_different_places_of_a_row_and_of_different_ids_are_not_correlated():
    values = normals(id_keys(0, "user", map(str, range(4000))), 6).astype(np.float64)
    places = np.corrcoef(values.T) - np.eye(6)
    neighbours = np.corrcoef(values[:-1, 0], values[1:, 0])[0, 1]
    assert np.abs(places).max() < 0.06
    assert abs(neighbours) < 0.06


_PRINT_DRAWS = """
import json
from erasable.seeding import child_key, id_keys, normals
keys = id_keys(3, "user", ["anna", "björn", "7"])
print(json.dumps([child_key(3, "stage", 1), keys.tolist(), normals(keys, 4).tobytes().hex()]))
"""


@pytest.mark.parametrize("hash_seed", ["0", "1", "4242"])
def test_another_process_with_another_hash_seed_draws_the_same(hash_seed):
    keys = id_keys(3, "user", ["anna", "björn", "7"])
    here = [child_key(3, "stage", 1), keys.tolist(), normals(keys, 4).tobytes().hex()]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    answer = subprocess.run([sys.executable, "-c", _PRINT_DRAWS], env=environment, capture_output=True, check=True)
    assert json.loads(answer.stdout) == here
