"""A state made by hand with ratings from 1 to 5: four items, three users in two groups, scores to read off."""

from collections.abc import Mapping

import numpy as np

from erasable.chain import ORIGIN, Checkpoint, Config, Dataset, Link, MemoryStore, State
from erasable.data import Catalogue, RatingScale
from erasable.models import Parameters
from erasable.models._nmf import ROW
from kit.fitting import fitting
from kit.handmade import Learned, shared_parameters
from kit.tables import table

ITEMS = ["a", "b", "c", "d"]
SCORES = {"ann": [9, 2, 3, 1], "bob": [1, 4, 2, 3], "cat": [-1, 1, -2, 2]}
TRAINING = [{"ann": {"a": 5.0}, "bob": {"b": 3.0}}, {"cat": {"a": 2.0}}]
HELD_OUT = {"ann": {"b": 5.0, "c": 2.0, "d": 4.0}, "cat": {"d": 1.0}}


def rated_shop(items: list[str] = ITEMS, scores: Mapping[str, list[float]] = SCORES, **settings: object) -> Learned:
    """Return the shop; under sisa both models are the same, and so are their scores."""
    catalogue = Catalogue.from_items(items)
    groups = tuple(table(rows, items) for rows in TRAINING)
    config = Config(**fitting({"groups": 2, "negatives": 1, **settings}))
    dataset = Dataset.of_groups(config, catalogue, RatingScale(1, 5), groups, table(HELD_OUT, items))
    shared = {**shared_parameters(1.0), "item": np.eye(len(items), ROW, dtype=np.float32)}
    store, names = MemoryStore(), [ORIGIN, "one", "two"]
    for name, parent, group in zip(names[1:], names[:-1], groups, strict=True):
        rows = np.zeros((len(group.users), ROW), np.float32)
        rows[:, : len(items)] = [scores[user] for user in group.users]
        store.put(Checkpoint(name, parent, Parameters(shared, {"user": rows})))
    return Learned(State(dataset, (Link("one", ORIGIN, 1, 1.0), Link("two", "one", 1, 1.0))), store)
