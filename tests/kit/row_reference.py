"""Solving personal rows in plain NumPy, 64-bit: slow, written from the design and not from the kernels."""

import numpy as np

from erasable.data import Interactions
from erasable.models import Model, Stage
from erasable.models._batches import shuffled
from erasable.seeding import id_keys, mix
from kit.reference import REFERENCES, Arrays, ReferenceAdam, Samples, missing_items, starting_rows

STEPS = 32


def solve_reference(model: Model, shared: Arrays, stage: Stage) -> np.ndarray:
    """Return every user's row, each solved alone."""
    start = starting_rows(REFERENCES[model.name], stage.interactions.users, stage.seed)
    return np.array([_solved(model, shared, stage, user, row) for user, row in enumerate(start)])


def _solved(model: Model, shared: Arrays, stage: Stage, user: int, start: np.ndarray) -> np.ndarray:
    rate, pull = model.row_rate, model.row_pull
    key = id_keys(stage.seed, "rows", [stage.interactions.users[user]])
    adam = ReferenceAdam({"user": start[None, :].astype(np.float64)}, rate)
    owned = int((stage.interactions.user_index == user).sum())
    steps = min(STEPS, owned)
    for number in range(stage.epochs):
        order = shuffled(owned, _draw(key, 2 * number))
        for step in range(steps):
            units = order[owned * step // steps : owned * (step + 1) // steps]
            samples = _samples(stage, user, units, model.settings.negatives, _draw(key, 2 * number + 1))
            values = {name: array.astype(np.float64) for name, array in shared.items()} | adam.values
            slopes = REFERENCES[model.name].slopes(values, samples)["user"]
            towards_0 = pull * len(units) / owned / len(samples.items) * adam.values["user"]
            adam.rate = rate * (1 - (number * steps + step) / (stage.epochs * steps))
            adam.step({"user": slopes + towards_0}, {})
    return adam.values["user"][0]


def _samples(stage: Stage, user: int, units: np.ndarray, negatives: int, key: np.uint64) -> Samples:
    """Return some of a user's interactions, each followed by items that the user has not (none if they have all)."""
    rows: Interactions = stage.interactions
    own, missing = np.flatnonzero(rows.user_index == user), missing_items(rows, user)
    pairs = []
    for unit in units.tolist():
        pairs.append((rows.item_index[own[unit]], rows.rating[own[unit]] / stage.scale.high))
        for negative in range(negatives if missing else 0):
            bits = int(_draw(np.array([key]), unit * negatives + negative))
            pairs.append((missing[(bits >> 32) * len(missing) >> 32], 0.0))
    items, targets = zip(*pairs, strict=True)
    return Samples(np.zeros(len(items), dtype=int), np.array(items), np.array(targets, dtype=np.float64))


def _draw(key: np.ndarray, number: int) -> np.uint64:
    return np.uint64(mix(key, np.array([number], dtype=np.uint64))[0])
