"""A state made by hand: five items, three users in two groups, and scores that anyone can read off."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from erasable.chain import ORIGIN, Checkpoint, Config, Dataset, Link, MemoryStore, State
from erasable.data import Catalogue, Interactions, RatingScale
from erasable.models import Parameters
from erasable.models._nmf import ROW, SHAPES, WIDTH

ITEMS = ["a", "b", "c", "d", "e"]
OWNED = [{"ann": ["a"], "bob": ["b"]}, {"cat": ["c"]}]
SCORES = {"ann": [5, 4, 3, 2, 1], "bob": [0, 9, -1, 3, 3], "cat": [1, 0, 9, 2, 0]}


def interactions(items_of: dict[str, list[str]]) -> Interactions:
    pairs = [(user, item) for user, items in items_of.items() for item in items]
    users, items = (pa.array([pair[side] for pair in pairs], pa.string()) for side in (0, 1))
    return Interactions.from_columns(users, items)[0]


def shared_parameters(product_weight: float) -> dict[str, np.ndarray]:
    """Return an NMF whose score is the product of the rows alone, and whose items are unit vectors."""
    shared = {name: np.zeros(shape, np.float32) for name, shape in SHAPES.items()}
    shared["product_out"][:] = product_weight
    return {"item": np.eye(len(ITEMS), ROW, dtype=np.float32), **shared}


def personal_rows(users: list[str]) -> np.ndarray:
    rows = np.zeros((len(users), ROW), np.float32)
    for row, user in zip(rows, users, strict=True):
        row[: len(ITEMS)] = SCORES[user]
        row[WIDTH:] = 7  # the part for the layers, whose weights are zero
    return rows


@dataclass(frozen=True)
class Learned:
    state: State
    checkpoints: MemoryStore


def handmade() -> Learned:
    catalogue = Catalogue.from_items(ITEMS)
    groups = tuple(interactions(owned).with_items(catalogue.items) for owned in OWNED)
    held_out = interactions({"ann": ["b", "e"], "cat": ["e"]}).with_items(catalogue.items)
    dataset = Dataset.of_groups(Config(model="nmf", groups=2), catalogue, RatingScale(1, 1), groups, held_out)
    store = MemoryStore()
    # The first stage's shared parameters would score everything 0: whoever uses them is found out.
    for name, parent, weight, group in (("one", ORIGIN, 0.0, groups[0]), ("two", "one", 1.0, groups[1])):
        rows = personal_rows(group.users.texts())
        store.put(Checkpoint(name, parent, Parameters(shared_parameters(weight), {"user": rows})))
    return Learned(State(dataset, (Link("one", ORIGIN, 1, 1.0), Link("two", "one", 1, 1.0))), store)
