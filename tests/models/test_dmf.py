import numpy as np
import pytest

from erasable.data import Ids
from erasable.models import DMF
from kit.model_suite import scorer


def by_row(scorer):
    """Score from a user's one row; these models do not look at what the user has."""
    return lambda row: scorer({"user": row}, np.empty(0, np.int32))


@pytest.fixture(scope="module")
def model():
    return DMF()


def wide_values(items, seed=0):
    """Return parameters wide enough that relus open and close, by array."""
    generator = np.random.default_rng(seed)
    shared = {"item": (items, 16), **DMF.shapes}
    return {name: generator.normal(0, 0.4, shape).astype(np.float32) for name, shape in shared.items()}


def test_training_agrees_with_the_reference(tables, reference, agreement, case):
    model = agreement.model_of("dmf", case)
    assert agreement.largest_difference(tables, reference, model, case, widen=1) < 1e-5


def test_rows_start_at_0_1_layers_as_he_et_al_say_and_biases_at_0(model):
    shared = model.start(Ids.of(map(str, range(500))), seed=0)
    deviations = {"item": 0.1, "user_first": (2 / 16) ** 0.5, "item_second": (2 / 64) ** 0.5}
    for name, deviation in deviations.items():
        assert shared[name].std() == pytest.approx(deviation, rel=0.05)
        assert abs(shared[name].mean()) < 0.1 * deviation
    assert not any(array.any() for name, array in shared.items() if "bias" in name)


def test_each_side_has_a_tower_from_16_over_64_to_32(model):
    shapes = {name: array.shape for name, array in model.start(Ids.of("abc"), seed=0).items()}
    tower = {"first": (16, 64), "first_bias": (64,), "second": (64, 32), "second_bias": (32,)}
    expected = {f"{side}_{name}": shape for side in ("user", "item") for name, shape in tower.items()}
    assert shapes == {"item": (3, 16), **expected}


def test_the_towers_do_not_start_alike(model):
    shared = model.start(Ids.of("abc"), seed=0)
    assert not np.array_equal(shared["user_first"], shared["item_first"])


def test_a_score_by_hand(model):
    shared = {name: np.zeros(shape, np.float32) for name, shape in {"item": (3, 16), **DMF.shapes}.items()}
    row = np.zeros(16, np.float32)
    for side in ("user", "item"):  # place p of a row goes straight through to place p of the output
        for place in range(2):
            shared[f"{side}_first"][place, place] = shared[f"{side}_second"][place, place] = 1
    row[:2] = 3, 4
    shared["item"][:, :2] = [[4, 3], [-1, 2], [-1, -1]]
    # cos((3, 4), (4, 3)) = 24 / 25; the relu makes (−1, 2) (0, 2), so 8 / 10; (−1, −1) has none left.
    assert by_row(scorer(model, shared))(row) == pytest.approx([0.96, 0.8, 0.0], rel=1e-6)


@pytest.mark.parametrize("items", [1, 7, 4096, 4097, 9000])
def test_scores_are_the_reference_s_cosines_however_many_items_there_are(model, reference, items):
    shared = wide_values(items)
    row = np.random.default_rng(1).normal(0, 0.4, 16).astype(np.float32)
    values = {name: array.astype(np.float64) for name, array in {**shared, "user": row[None, :]}.items()}
    expected = reference.REFERENCES["dmf"].cosines(values, np.zeros(items, int), np.arange(items))
    found = by_row(scorer(model, shared))(row)
    assert found.dtype == np.float32
    assert found == pytest.approx(expected, abs=1e-5)


def test_scores_lie_between_0_and_1(model):
    rows = np.random.default_rng(2).normal(0, 1, (50, 16)).astype(np.float32)
    scores = np.array([by_row(scorer(model, wide_values(40)))(row) for row in rows])
    assert scores.min() >= 0
    assert scores.max() <= 1 + 1e-6


def test_a_probability_is_the_cosine_clamped_as_in_training(model):
    found = model.probability(np.array([0, 0.5, 1, 1 + 1e-6], np.float32))
    assert found.dtype == np.float64
    assert found == pytest.approx([1e-4, 0.5, 1 - 1e-4, 1 - 1e-4])
