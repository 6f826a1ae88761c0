"""Digests of many messages at once: the bytes of hashlib, whatever the lengths, the key and the number of threads."""

import subprocess
import sys
from hashlib import blake2b

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from erasable.data import Ids
from erasable.seeding import hashing, id_keys
from erasable.seeding.hashing import FEW, Pairs, Texts, digests

# Around the ends of blocks, where a last block is full or a further one begins.
LENGTHS = st.one_of(st.integers(0, 600), st.sampled_from([0, 1, 127, 128, 129, 255, 256, 257, 384, 512]))
MESSAGES = LENGTHS.flatmap(lambda length: st.binary(min_size=length, max_size=length))
KEYS = st.binary(max_size=64)
SIZES = st.integers(1, 64)


@pytest.fixture(autouse=True, params=["compiled", "hashlib"])
def way(request, monkeypatch):
    """Hash by compiled code, however few there are, or by hashlib."""
    monkeypatch.setattr(hashing, "FEW", 0 if request.param == "compiled" else FEW)
    return request.param


def texts(messages):
    return Texts.of(b"".join(messages), np.cumsum([len(message) for message in messages], dtype=np.int64))


def by_hashlib(messages, size, prefix=b"", key=b""):
    return [blake2b(prefix + message, key=key, digest_size=size).digest() for message in messages]


def rows(found):
    return [row.tobytes() for row in found]


# The fixture's setting holds for all examples of a test.
checked = settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])


@given(st.lists(MESSAGES, max_size=20), SIZES, MESSAGES, KEYS)
@checked
def test_digests_are_those_of_hashlib(messages, size, prefix, key):
    assert rows(digests(texts(messages), size, prefix, key)) == by_hashlib(messages, size, prefix, key)


@given(st.lists(st.tuples(MESSAGES, MESSAGES), min_size=1, max_size=20), SIZES, KEYS, st.data())
@checked
def test_digests_of_pairs_are_those_of_both_parts_together(parts, size, key, data):
    firsts, seconds = ([part[place] for part in parts] for place in (0, 1))
    numbers = st.lists(st.tuples(*[st.integers(0, len(parts) - 1)] * 2), max_size=30)
    chosen = np.array(data.draw(numbers), dtype=np.int32).reshape(-1, 2)
    pairs = Pairs(texts(firsts), texts(seconds), chosen[:, 0], chosen[:, 1])
    whole = [firsts[one] + seconds[other] for one, other in chosen.tolist()]
    assert rows(digests(pairs, size, b"prefix", key)) == by_hashlib(whole, size, b"prefix", key)


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=40), max_size=30, unique=True))
@checked
def test_keys_of_ids_are_those_of_their_text(ids):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("erasable.seeding.FEW", 0)
        assert id_keys(5, "user", Ids.of(ids)).tolist() == id_keys(5, "user", iter(ids)).tolist()


@pytest.mark.parametrize("length", [*range(12), *range(120, 140), 256, 1000])
def test_the_length_of_a_message_does_not_matter_to_its_neighbours(length):
    messages = [b"x" * length, b"", b"y" * 128, b"z" * 500, *[b"a"] * 5]
    assert rows(digests(texts(messages), 32)) == by_hashlib(messages, 32)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_many_messages_on_any_number_of_threads(threads):
    messages = [b"%d" % number for number in range(150_000)]
    found = digests(texts(messages), 16, b"many ", b"key", threads)
    assert found.tobytes() == b"".join(by_hashlib(messages, 16, b"many ", b"key"))


def test_keys_of_as_many_ids_as_are_hashed_by_compiled_code():
    ids = [f"person {number} é" for number in range(FEW)]
    assert np.array_equal(id_keys(0, "user", Ids.of(ids)), id_keys(0, "user", ids))


def test_part_of_a_list_of_ids_has_the_keys_of_its_own_texts():
    ids = [str(number) for number in range(FEW + 100)]
    assert np.array_equal(id_keys(0, "user", Ids(Ids.of(ids).array[50:-50])), id_keys(0, "user", ids[50:-50]))


def test_the_published_digest_of_abc():
    """RFC 7693, appendix A."""
    assert digests(texts([b"abc"]), 64).tobytes().hex().startswith("ba80a53f981c4d0d6a2797b69f12f6e94c212f14685ac4b7")


@pytest.mark.parametrize(("size", "key"), [(0, b""), (65, b""), (32, b"k" * 65)])
def test_a_size_or_a_key_that_there_can_t_be_is_refused(size, key):
    with pytest.raises(ValueError, match=r"digest_size|maximum key length"):
        digests(texts([b"abc"]), size, key=key)


def test_few_ids_load_no_compiled_code():
    program = """
from erasable.seeding import hashing, id_keys
id_keys(0, "user", map(str, range(100)))
print(len(hashing._hash_all.signatures))
"""
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["0"]


def test_arrays_of_any_kind_are_hashed_by_the_same_compiled_code(way):
    table = texts([b"ann", b"bob"])
    writable = Texts(table.content.copy(), table.ends)
    numbers = np.array([0, 9, 1, 9], dtype=np.int32)[::2]
    for pairs in (Pairs(table, writable, numbers, numbers), Pairs(writable, table, numbers.copy(), numbers)):
        assert rows(digests(pairs, 8)) == by_hashlib([b"annann", b"bobbob"], 8)
    assert way == "hashlib" or len(hashing._hash_all.signatures) == 1
