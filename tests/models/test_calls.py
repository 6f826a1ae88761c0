"""A model that returns what it must not is told with its name, the method and what was expected."""

import numpy as np
import pyarrow as pa
import pytest

from erasable import EASE, Recommender, WrongModel
from erasable.data import Ids
from erasable.models import ALS, Change, Effort, Parameters, calls
from kit.counts import Counts
from kit.tables import stage, table

TABLE = pa.table({"user": [1, 1, 2, 2, 3], "item": ["a", "b", "a", "c", "b"]})


def mine(base=Counts, **methods):
    """Return a model with some methods of another kind."""
    return type("Mine", (base,), {"name": "mine", "__module__": __name__, **methods})


def shared_as(change):
    """Return a way to train whose shared parameters are changed at the end."""
    return lambda self, shared, stage, effort: Parameters(change(dict(shared)), {})


TRAINING = {
    "nothing": (lambda self, shared, stage, effort: None, "nothing (None), expected Parameters(shared, rows)"),
    "arrays alone": (lambda self, shared, stage, effort: shared, "a dict, expected Parameters(shared, rows)"),
    "no dictionary": (lambda self, *_: Parameters([1.0], {}), "a list, expected a dictionary of named arrays"),
    "a list": (shared_as(lambda one: one | {"counts": [0, 1, 2]}), "'counts' as a list, expected an array of numbers"),
    "objects": (
        shared_as(lambda one: one | {"counts": one["counts"].astype(object)}),
        "'counts' as object of shape (3,), expected an array of numbers",
    ),
    "another type": (
        shared_as(lambda one: one | {"counts": one["counts"].astype(np.float64)}),
        "'counts' as float64 of shape (3,), expected 1-dimensional float32, as it was given",
    ),
    "another name": (
        shared_as(lambda one: {"count": one["counts"]}),
        "arrays named ['count'], expected ['counts', 'total'], as they were given",
    ),
    "rows of others": (
        lambda self, shared, stage, effort: Parameters(shared, {"own": np.zeros((7, 2), np.float32)}),
        "'own' as float32 of shape (7, 2), expected one row for each of 3 users",
    ),
}


@pytest.mark.parametrize(("train", "said"), TRAINING.values(), ids=TRAINING)
def test_training(train, said):
    with pytest.raises(WrongModel) as raised:
        Recommender(mine(train=train)(), groups=1).fit(TABLE)
    assert f"train of the model 'mine' returned {said}" in str(raised.value)
    assert "correct the model; the suites of erasable.testing show what is wrong" in str(raised.value)


def test_numbers_that_are_not_finite():
    train = shared_as(lambda one: one | {"counts": one["counts"] * np.float32("nan")})
    with pytest.raises(Exception, match="training mine diverged at stage 1: change the model's settings"):
        Recommender(mine(train=train)(), groups=1).fit(TABLE)


OTHERS = {
    "start": (lambda self, catalogue, seed: None, "start of the model 'mine' returned nothing (None), expected a dict"),
    "samples": (lambda self, rows, epochs: None, "samples of the model 'mine' returned None, expected a whole number"),
    "by_item": (
        lambda self: ["counts", "total"],
        "by_item of the model 'mine' returned 'total', expected names of arrays with a row for each item, ['counts']",
    ),
    "represent": (
        lambda self, prepared, people, effort: {"own": np.zeros((1, 9), np.float32)[:0]},
        "represent of the model 'mine' returned 'own' as float32 of shape (0, 9), expected one row for each of 1 users",
    ),
    "score": (
        lambda self, prepared, row, owned: prepared["counts"][1:],
        "score of the model 'mine' returned float32 of shape (2,), expected float32 of shape (3,), a score for each",
    ),
}


@pytest.mark.parametrize("method", OTHERS)
def test_other_methods(method):
    replaced, said = OTHERS[method]
    with pytest.raises(WrongModel) as raised:
        Recommender(mine(**{method: replaced})(), groups=1).fit(TABLE).recommend(1)
    assert said in str(raised.value)


def test_a_method_that_fails_is_named_with_the_row_that_it_was_given():
    """Rows of another width than the item factors."""

    def represent(self, prepared, people, effort):
        return {"user": np.zeros((len(people.interactions.users), 5), np.float32)}

    kind = mine(ALS, represent=represent)
    with pytest.raises(
        WrongModel, match=r"score of the model 'mine' failed with a row of .*\(5,\).*\(ValueError: "
    ) as one:
        Recommender(kind(factors=4, epochs=1)).fit(TABLE).recommend(1)
    assert isinstance(one.value.__cause__, ValueError)


def test_training_that_changes_its_start_in_place():
    def train(self, shared, stage, effort):
        shared["counts"][:] += 1
        return Parameters(shared, {})

    with pytest.raises(WrongModel, match=r"train of the model 'mine' failed \(.*read-only\): .*let it work on a copy"):
        Recommender(mine(train=train)(), groups=1).fit(TABLE)


def test_rows_that_are_said_to_be_trained_and_are_not():
    with pytest.raises(WrongModel, match=r"score of the model 'mine' failed with a row of \{\} \(KeyError: 'own'\)"):
        Recommender(mine(trains_rows=True)(), groups=1).fit(TABLE).recommend(1)


def test_an_error_in_a_model_of_ours_is_a_fault_of_ours():
    with pytest.raises(KeyError):
        calls.trained(ALS(), {}, stage(table({"u": "a"})), Effort())


def test_rows_that_are_solved_are_like_those_of_strangers():
    strangers, solved = {"user": np.zeros((3, 2), np.float32)}, {"user": np.ones((1, 4), np.float32)}
    with pytest.raises(
        WrongModel, match=r"represent of the model 'als' returned rows of .*\(4,\).* newcomers, .*\(2,\)"
    ):
        calls.joined(ALS(), strangers, np.array([1]), solved)
    found = calls.joined(ALS(), strangers, np.array([1]), {"user": solved["user"][:, :2]})
    assert found["user"].tolist() == [[0, 0], [1, 1], [0, 0]]
    assert not strangers["user"].any()


def test_abilities():
    kind = mine(
        EASE,
        similar=lambda self, shared, number: [number],
        provisional=lambda self, shared, change: None,
        amended=lambda self, trained, change, effort: {"weights": trained["weights"]},
    )
    model, shared = kind(), EASE().start(Ids.of("abc"), 0)
    rows = table({"u": ["a"]})
    change = Change.between(rows, rows)
    with pytest.raises(
        WrongModel, match=r"similar of the model 'mine' returned a list, expected float32 of shape \(3,\)"
    ):
        calls.similar(model, shared, 0, 3)
    with pytest.raises(WrongModel, match="provisional of the model 'mine' returned nothing"):
        calls.provisional(model, shared, change)
    with pytest.raises(WrongModel, match=r"amended of the model 'mine' returned arrays named \['weights'\]"):
        calls.amended(model, shared, change, Effort())
