"""Negatives and Adam's steps, each on its own; how they work together is in test_nmf and test_dmf."""

import numpy as np
import pytest

from erasable.models._batches import Positives, Sizes, make_batch, rates_of, sample_units


def samples(interactions, negatives, key, order=None):
    """Return the samples of an epoch that is one batch: items, targets and weights by (positive, sample)."""
    rows = interactions
    order = np.arange(len(rows), dtype=np.int32) if order is None else order
    positives = Positives(rows.user_starts, rows.user_index, rows.item_index, rows.rating)
    sizes = Sizes(len(rows.items), negatives, len(order), len(order))
    room = make_batch(sizes, width=1, network=1)
    sample_units(room, order, positives, sizes, np.uint64(key), (0, 0, len(order)))
    shape = (len(order), 1 + negatives)
    return room.items.reshape(shape), room.targets.reshape(shape), room.weights.reshape(shape)


@pytest.fixture(scope="module")
def rows(tables):
    return tables.random_table(seed=1, users=30, items=20, ratings=True)


def test_a_unit_is_a_positive_and_then_items_that_the_user_has_not(rows, tables):
    items, targets, _ = samples(rows, negatives=5, key=3)
    assert np.array_equal(items[:, 0], rows.item_index)
    assert np.array_equal(targets[:, 0], rows.rating)
    assert not targets[:, 1:].any()
    for positive, user in enumerate(rows.user_index):
        if user != 0:  # who has every item
            assert not np.isin(items[positive, 1:], tables.items_of(rows, user)).any()


def test_a_user_who_has_every_item_gets_samples_without_weight(rows):
    items, _, weights = samples(rows, negatives=3, key=3)
    everything = rows.user_index == 0
    assert not weights[everything, 1:].any()
    assert np.array_equal(items[everything, 1], rows.item_index[everything])
    assert weights[~everything].all()
    assert weights[:, 0].all()


def test_negatives_are_uniform_over_what_the_user_has_not(tables):
    rows = tables.table({"u": ["b", "d", "e"]}, catalogue="abcdefgh")
    drawn = np.concatenate([samples(rows, negatives=100, key=key)[0][:, 1:].ravel() for key in range(40)])
    counts = np.bincount(drawn, minlength=8)
    assert not counts[[1, 3, 4]].any()
    # Chi-square with 4 degrees of freedom: above 18.5 once in a thousand; the keys are fixed.
    assert ((counts[[0, 2, 5, 6, 7]] - 2400) ** 2 / 2400).sum() < 18.5


def test_negatives_of_a_positive_do_not_depend_on_the_order_of_the_epoch(rows):
    turned = np.arange(len(rows), dtype=np.int32)[::-1].copy()
    straight = samples(rows, negatives=4, key=8)[0]
    assert np.array_equal(samples(rows, negatives=4, key=8, order=turned)[0][::-1], straight)


def test_negatives_follow_the_key(rows):
    first, again, other = (samples(rows, negatives=4, key=key)[0] for key in (8, 8, 9))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_negatives_of_different_positives_are_drawn_apart(tables):
    rows = tables.table({"u": ["a"], "v": ["a"], "w": ["a"]}, catalogue=[f"i{n:04d}" for n in range(2000)])
    drawn = samples(rows, negatives=50, key=0)[0][:, 1:]
    assert len(np.unique(drawn)) > 130  # 150 draws from 2,000 items seldom meet


def test_rates_are_adam_s_bias_corrections_by_hand():
    rates = rates_of(0.5, first_step=0, batches=2)
    # Step 1: 0.5 / (1 − 0.9) and 1 / √(1 − 0.999); step 2: 0.5 / (1 − 0.81) and 1 / √(1 − 0.998001).
    assert rates.step == pytest.approx([5, 0.5 / 0.19], rel=1e-6)
    assert rates.root == pytest.approx([1000**0.5, 0.001999**-0.5], rel=1e-6)


def test_rates_go_on_where_the_last_run_of_batches_ended():
    whole = rates_of(0.001, first_step=0, batches=7)
    end = rates_of(0.001, first_step=4, batches=3)
    assert np.array_equal(whole.step[4:], end.step)
    assert np.array_equal(whole.root[4:], end.root)


def test_after_many_batches_the_rate_is_the_learning_rate():
    rates = rates_of(0.25, first_step=10**6, batches=1)
    assert rates.step[0] == np.float32(0.25)
    assert rates.root[0] == 1
