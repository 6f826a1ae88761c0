"""Features in models: small cases worked by hand."""

import numpy as np
import pytest

from erasable.data import RatingScale
from erasable.data.ids import Ids
from erasable.models import ALS, EASE, Effort, ItemKNN, Stage
from erasable.testing._suite import table

ITEMS = Ids.of(["a1", "a2", "b1", "b2"])
PEOPLE = table({"ann": {"a1": 1}, "bob": {"a1": 1, "b1": 1}, "cleo": {"b1": 1}}, catalogue=ITEMS).with_items(ITEMS)


def by_author(weight):
    """Two books of each of two authors; nobody has the second ones."""
    have = {"A": {"a1": weight, "a2": weight}, "B": {"b1": weight, "b2": weight}}
    return table(have, catalogue=ITEMS).with_items(ITEMS)


def trained(model, features, rows=PEOPLE, weights=False):
    stage = Stage(rows, RatingScale(1, 5 if weights else 1), 5, 0, 0, weights, features)
    return model.train(model.start(ITEMS, 0), stage, Effort()).shared


@pytest.mark.parametrize("weight", [1, 3])
def test_the_gram_matrix_of_ease_is_that_of_people_plus_the_weight_times_that_of_features(weight):
    people = np.array([[1, 0, 0, 0], [1, 0, 1, 0], [0, 0, 1, 0]])
    features = np.array([[1, 1, 0, 0], [0, 0, 1, 1]])
    gram = trained(EASE(neighbours="all"), by_author(weight))["gram"]
    assert gram.tolist() == (people.T @ people + weight * features.T @ features).tolist()


def test_weights_of_interactions_and_of_features_add_up():
    rows = table({"ann": {"a1": 2, "b1": 1}, "bob": {"b1": 3}}, catalogue=ITEMS).with_items(ITEMS)
    gram = trained(EASE(neighbours="all"), by_author(2), rows, weights=True)["gram"]
    assert gram.tolist() == [[4, 2, 1, 0], [2, 2, 0, 0], [1, 0, 6, 2], [0, 0, 2, 2]]


@pytest.mark.parametrize("weight", [1, 4])
def test_item_knn_counts_features_like_people(weight):
    shared = trained(ItemKNN(neighbours=2), by_author(weight))
    assert shared["counts"].tolist() == [2 + weight, weight, 2 + weight, weight]
    assert shared["neighbours"].tolist() == [[1, 2], [0, -1], [0, 3], [2, -1]]
    assert shared["joint_counts"].tolist() == [[weight, 1], [weight, 0], [1, weight], [weight, 0]]


def test_columns_of_ease_give_a_cold_item_the_weight_of_its_author_s_other_book():
    model = EASE(neighbours=2, regularisation=1.0)
    shared = trained(model, by_author(3))
    assert shared["neighbours"][1].tolist() == [0, -1]
    assert shared["weights"][1, 0] == np.float32(3 / (2 + 3 + 1.0))  # together / (owners + regularisation)
    assert model.score(model.prepare(shared), {}, np.array([0], np.int32))[1] == np.float32(0.5)


@pytest.mark.parametrize("model", [EASE(regularisation=1), ItemKNN(shrinkage=0), ALS(factors=2, regularisation=0.1)])
def test_without_features_an_item_that_nobody_has_gets_nothing(model):
    rows = Stage(PEOPLE, RatingScale(1, 1), 5, 0, 0)
    for features, found in ((None, False), (by_author(3), True)):
        prepared = model.prepare(trained(model, features))
        row = {name: array[0] for name, array in model.represent(prepared, rows, Effort()).items()}
        assert (model.score(prepared, row, np.array([0], np.int32))[1] > 0) == found


def test_the_reasons_for_a_cold_item_add_up_to_its_score():
    for model in (EASE(regularisation=1), EASE(neighbours="all", regularisation=1), ItemKNN(shrinkage=0)):
        prepared, owned = model.prepare(trained(model, by_author(2))), np.array([0, 2], np.int32)
        assert model.reasons(prepared, owned, 3).sum() == pytest.approx(model.score(prepared, {}, owned)[3], rel=1e-6)
