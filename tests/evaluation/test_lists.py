"""Coverage, novelty and diversity of recommended lists: worked by hand, and against a plain computation."""

from itertools import combinations
from math import log2, sqrt

import numpy as np
import pyarrow as pa
import pytest

from erasable.chain import Config, Dataset
from erasable.data import Interactions, RatingScale
from erasable.evaluation import _lists
from erasable.evaluation._lists import as_table, coverage, diversity, novelty
from kit.in_buckets import in_buckets_of


def dataset_of(had: dict[str, str]) -> Dataset:
    """Return a dataset in which each person has the items of a text."""
    users, items = zip(*((user, item) for user, items in had.items() for item in items), strict=True)
    rows, _ = Interactions.from_columns(pa.array(users), pa.array(items))
    nothing = rows.select(np.zeros(len(rows), bool))
    return Dataset.of_groups(Config(), None, RatingScale(1, 1), (rows,), nothing)


SHOP = {"ann": "ab", "bob": "ab", "cat": "bc", "dan": "b"}
A, B, C = range(3)


def test_coverage_counts_every_item_once():
    assert coverage(as_table([[A, B], [B], []]), items=8) == 0.25
    assert coverage(as_table([]), items=3) == 0
    assert coverage(as_table([[]]), items=0) == 0


def test_novelty_is_the_mean_of_the_bits_of_what_is_shown():
    had = dataset_of(SHOP).counts.trained
    found = novelty(as_table([[A, B], [C], [B], []]), had, people=4)
    assert found == pytest.approx([(1 + 0) / 2, 2, 0, 0])


def test_an_item_that_nobody_has_counts_as_if_one_had_it():
    assert novelty(np.array([[0]]), np.array([0]), people=8) == pytest.approx([log2(8)])


def test_diversity_is_one_less_the_cosine_of_those_who_have_both():
    # a: ann, bob; b: everyone; c: cat.
    ab, ac, bc = 2 / sqrt(2 * 4), 0, 1 / sqrt(4 * 1)
    found = diversity(dataset_of(SHOP), as_table([[A, B], [B, A, C], [C, A], [B], []]), [2, 3])
    assert found[2] == pytest.approx([1 - ab, 1 - ab, 1 - ac, 0, 0])
    assert found[3] == pytest.approx([1 - ab, 1 - (ab + ac + bc) / 3, 1 - ac, 0, 0])


@pytest.mark.parametrize("in_a_bucket", [10_000, 5])
@pytest.mark.parametrize(("pairs", "cells"), [(10_000, 2**25), (30, 7), (1, 7)])
def test_diversity_is_that_of_a_plain_computation(monkeypatch, in_a_bucket, pairs, cells):
    monkeypatch.setattr(_lists, "_PAIRS_AT_ONCE", pairs)
    monkeypatch.setattr(_lists, "_CELLS_AT_ONCE", cells)
    chance = np.random.default_rng(5)
    had = {f"u{one}": "".join(chance.choice([*"abcdefgh"], chance.integers(1, 8), replace=False)) for one in range(30)}
    with in_buckets_of(in_a_bucket):
        whole = dataset_of(had)
    assert (len(list(whole.buckets)) > 1) == (in_a_bucket == 5)
    shown = [chance.choice(8, chance.integers(0, 7), replace=False).tolist() for _ in range(20)]
    sets = [{user for user, items in had.items() if item in items} for item in whole.items]

    def plain(items: list[int]) -> float:
        pairs = [(sets[one], sets[other]) for one, other in combinations(items, 2)]
        apart = [1 - len(one & other) / sqrt(len(one) * len(other)) for one, other in pairs]
        return sum(apart) / len(apart) if apart else 0.0

    found = diversity(whole, as_table(shown), [2, 5])
    for k in (2, 5):
        assert found[k] == pytest.approx([plain(items[:k]) for items in shown])
