import numpy as np
import pytest

from erasable.data import Ids
from erasable.models import NMF
from kit.model_suite import scorer


def by_row(scorer):
    """Score from a user's one row; these models do not look at what the user has."""
    return lambda row: scorer({"user": row}, np.empty(0, np.int32))


@pytest.fixture(scope="module")
def model():
    return NMF()


def wide_values(items, seed=0):
    """Return parameters wide enough that relus open and close, by array."""
    generator = np.random.default_rng(seed)
    shared = {"item": (items, 32), **NMF.shapes}
    return {name: generator.normal(0, 0.4, shape).astype(np.float32) for name, shape in shared.items()}


def test_training_agrees_with_the_reference(tables, reference, agreement, case):
    model = agreement.model_of("nmf", case)
    assert agreement.largest_difference(tables, reference, model, case, widen=20) < 1e-5


@pytest.mark.parametrize("negatives", [0, 4])
def test_training_agrees_with_the_reference_from_the_model_s_own_start(tables, reference, agreement, negatives):
    case = agreement.Case(batch=100_000, negatives=negatives, ratings=True)
    model = agreement.model_of("nmf", case)
    assert agreement.largest_difference(tables, reference, model, case, widen=1) < 1e-6


def test_rows_and_weights_start_at_the_paper_s_deviation_and_biases_at_0(model):
    shared = model.start(Ids.of(map(str, range(500))), seed=0)
    for name in ("item", "user_in", "item_in", "hidden"):
        assert shared[name].std() == pytest.approx(0.01, rel=0.05)
        assert abs(shared[name].mean()) < 0.001
    for name in ("first_bias", "second_bias", "bias_out"):
        assert not shared[name].any()


def test_a_product_of_16_and_layers_of_64_and_32_are_joined_into_one_output(model):
    shapes = {name: array.shape for name, array in model.start(Ids.of("abc"), seed=0).items()}
    assert shapes == {
        "item": (3, 32),
        "user_in": (16, 64),
        "item_in": (16, 64),
        "first_bias": (64,),
        "hidden": (64, 32),
        "second_bias": (32,),
        "product_out": (16,),
        "hidden_out": (32,),
        "bias_out": (1,),
    }


def test_a_score_by_hand(model):
    shared = {name: np.zeros(shape, np.float32) for name, shape in {"item": (2, 32), **NMF.shapes}.items()}
    row = np.zeros(32, np.float32)
    row[0], shared["item"][0, 0], shared["product_out"][0] = (
        2,
        3,
        0.5,
    )  # the product gives item 0: 0.5 · 2 · 3
    row[16], shared["user_in"][0, 7] = 2, 1  # first unit 7 gets 1 · 2 from the user …
    shared["item"][1, 16], shared["item_in"][0, 7] = 1, -5  # … and −5 · 1 from item 1, which closes it
    shared["first_bias"][7] = 1
    shared["hidden"][7, 3], shared["second_bias"][3], shared["hidden_out"][3] = 10, 4, 0.1
    shared["bias_out"][0] = 0.25
    # Item 0: 3 + 0.1 · (10 · (2 + 1) + 4) + 0.25. Item 1: 0 + 0.1 · (10 · 0 + 4) + 0.25.
    assert by_row(scorer(model, shared))(row) == pytest.approx([6.65, 0.65], rel=1e-6)


def test_a_probability_is_the_sigmoid_of_the_score(model):
    found = model.probability(np.array([0, np.log(3), -np.log(3), 30], np.float32))
    assert found.dtype == np.float64
    assert found == pytest.approx([0.5, 0.75, 0.25, 1], rel=1e-6)
    assert found[3] < 1


@pytest.mark.parametrize("items", [1, 7, 2048, 2049, 5000])
def test_scores_are_the_reference_s_logits_however_many_items_there_are(model, reference, items):
    shared = wide_values(items)
    row = np.random.default_rng(1).normal(0, 0.4, 32).astype(np.float32)
    values = {name: array.astype(np.float64) for name, array in {**shared, "user": row[None, :]}.items()}
    expected = reference.REFERENCES["nmf"].logits(values, np.zeros(items, int), np.arange(items))
    found = by_row(scorer(model, shared))(row)
    assert found.dtype == np.float32
    assert found == pytest.approx(expected, rel=1e-4, abs=1e-4)
