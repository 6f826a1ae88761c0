"""Cases in which compiled training is compared with the reference, and the comparison."""

from dataclasses import dataclass

import numpy as np

from erasable.models import Effort, Model, find_model


@dataclass(frozen=True)
class Case:
    """One table, and how it is trained."""

    batch: int
    negatives: int
    ratings: bool
    users: int = 12
    items: int = 9

    def __str__(self) -> str:
        scale = "1–5" if self.ratings else "1"
        return f"batch {self.batch}, {self.negatives} negatives, scale {scale}, {self.users} users"


BATCHES = {"less than a unit": 1, "some units": 13, "many units": 64, "more than the data": 100_000}
SMALL = [Case(b, n, ratings) for b in BATCHES.values() for n in (0, 1, 4) for ratings in (False, True)]
# More samples in a batch than one gradient task takes, and a last batch and a last task that are not full.
LARGER = [Case(700, 4, True, users=50, items=30), Case(100_000, 4, False, users=50, items=30)]
CASES = SMALL + LARGER


def largest_difference(tables, reference, model: Model, case: Case, widen: float) -> float:
    """Train a case both ways for three epochs and return the largest difference between any two numbers.

    Adam's first steps have the size of the learning rate whatever the slope, so where slopes cancel to nearly
    0 the last bits decide. `widen` scales the start so that scores are not all one half and nothing cancels.
    """
    rows = tables.random_table(0, case.users, case.items, case.ratings)
    stage = tables.stage(rows, epochs=3, seed=0, position=2)
    shared = {name: array * np.float32(widen) for name, array in model.start(rows.items, 0).items()}
    trained = model.train(shared, stage, Effort(2))
    expected = reference.train_reference(model, shared, stage)
    found = {**trained.shared, **trained.rows}
    assert found.keys() == expected.keys()
    return max(float(np.abs(found[name] - expected[name]).max()) for name in expected)


def model_of(name: str, case: Case) -> Model:
    """Return the model with the settings of a case."""
    return find_model(name)(batch=case.batch, negatives=case.negatives, learning_rate=0.001)
