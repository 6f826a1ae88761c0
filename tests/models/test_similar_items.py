"""Models that tell which items are alike."""

import numpy as np
import pytest

from erasable.models import ALS, DMF, EASE, NMF, Model, TellsSimilarItems
from erasable.models._dmf import _item_directions
from erasable.models.base import Change
from erasable.models.registry import models_with
from kit.ease_cases import nobody, train


def test_every_model_can_but_popular_for_which_all_items_are_alike_and_those_that_score_for_a_history_of_one_item():
    assert set(models_with(Model)) - set(models_with(TellsSimilarItems)) == {"popular", "sasrec", "two-tower"}


def test_nmf_takes_the_cosine_of_both_embeddings_and_dmf_that_of_the_tower_s_output(tables):
    rows = tables.table({"u": "ab", "v": "abc", "w": "bc"})
    for model, vectors in ((NMF(), lambda shared: shared["item"]), (DMF(), _item_directions)):
        shared = train(model, rows)
        first, other = vectors(shared)[0].astype(float), vectors(shared)[2].astype(float)
        expected = first @ other / np.sqrt((first @ first) * (other @ other))
        assert model.similar(shared, 0)[[0, 2]].tolist() == pytest.approx([1, expected], abs=1e-5)


def test_als_takes_the_cosine_of_factors_and_knows_nothing_of_items_without_any():
    factors = np.array([[3, 4], [30, 40], [4, -3], [-3, -4], [0, 0]], np.float32)
    model = ALS(factors=2, regularisation=1.0)
    assert model.similar({"item": factors}, 0).tolist() == pytest.approx([1, 1, 0, -1, 0])
    assert model.similar({"item": factors}, 4).tolist() == [0, 0, 0, 0, 0]


def test_ease_takes_its_weights(tables):
    """Two items that one user has: the inverse is ⅔ and −⅓, so each speaks for the other with ½."""
    for neighbours in (1, "all"):
        model = EASE(neighbours=neighbours, regularisation=1.0)
        assert model.similar(train(model, tables.table({"u": "ab"})), 0).tolist() == pytest.approx([0, 0.5])


def test_ease_tells_without_what_is_taken_out_before_it_is_settled(tables):
    model = EASE(neighbours="all", regularisation=1.0)
    rows = tables.table({"u": "ab", "v": "abc", "w": "bc"})
    shared, taken = train(model, rows), rows.of_users(["v"])
    provisional = model.provisional(shared, Change(taken, nobody(rows)))
    left = train(model, rows.without(["v"]))
    for number in range(3):
        assert model.similar(provisional, number) == pytest.approx(model.similar(left, number), abs=1e-6)
