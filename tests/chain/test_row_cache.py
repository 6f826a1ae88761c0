"""The cache of rows: bounded, and without those who are barred."""

import threading

import numpy as np
import pytest

from erasable.chain.scoring import RowCache


def row(number):
    return {"user": np.full(3, number, np.float32)}


@pytest.fixture
def cache():
    return RowCache(2)


def test_the_least_recently_used_row_goes_first(cache):
    cache.put("a", row(1))
    cache.put("b", row(2))
    assert cache.get("a")["user"].tolist() == [1, 1, 1]
    cache.put("c", row(3))
    assert [user in cache for user in "abc"] == [True, False, True]


def test_a_cache_of_size_0_keeps_nothing():
    cache = RowCache()
    cache.put("a", row(1))
    assert cache.get("a") is None


def test_whoever_is_barred_is_dropped_and_not_kept_again_until_others_are(cache):
    cache.put("a", row(1))
    cache.put("b", row(2))
    cache.bar({"a"})
    assert (cache.get("a"), len(cache)) == (None, 1)
    cache.put("a", row(1))
    assert "a" not in cache
    cache.bar(())
    cache.put("a", row(1))
    assert "a" in cache


def test_a_row_without_arrays_is_a_row(cache):
    cache.put("a", {})
    assert cache.get("a") == {}


def test_many_threads_never_make_it_larger():
    cache = RowCache(10)

    def work(start):
        for number in range(500):
            cache.put(str((start * 7 + number) % 40), row(number))
            cache.get(str(number % 40))
            assert len(cache) <= 10

    threads = [threading.Thread(target=work, args=(start,)) for start in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(cache) == 10


def test_whoever_is_barred_too_is_dropped_and_others_stay_barred(cache):
    cache.bar({"a"})
    cache.put("b", row(2))
    cache.bar_also({"b"})
    for user in "abc":
        cache.put(user, row(1))
    assert [user in cache for user in "abc"] == [False, False, True]
