"""BPR-MF (Rendle et al., "BPR: Bayesian Personalized Ranking from Implicit Feedback", 2009), as a model for erasable.

A user's score of an item is the product of two rows of factors. Training looks at triples (user, an item that the user
has, an item that the user has not) and takes a step that ranks the first item above the second. What is kept are the
item factors; a user's row is solved from them and the own history when it is needed. Ratings are not looked at.
"""

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from erasable.data import Ids
from erasable.models import Arrays, Effort, Model, Parameters, Scores, Settings, Stage, missing_item, shuffled
from erasable.seeding import child_key, id_keys, normals
from erasable.seeding.compiled import below, compiled, draw

Floats = NDArray[np.float32]


class BPRSettings(Settings):
    """What can be set about BPR."""

    only_for_rows = frozenset({"row_epochs"})  # they reach no stage, so they are no part of its name

    factors: int = Field(32, ge=1, le=1024)
    """How many numbers stand for a user and for an item."""

    epochs: int = Field(20, ge=1, le=10_000)
    """How often training goes through the interactions."""

    learning_rate: float = Field(0.05, gt=0, le=1)
    """The size of a step."""

    regularisation: float = Field(0.01, ge=0, le=1)
    """What keeps the factors small."""

    row_epochs: int = Field(10, ge=1, le=10_000)
    """How often solving a user row goes through the user's own interactions."""


class BPR(Model):
    """Factors that rank what a user has above what the user has not; see `Model` for the methods."""

    name: ClassVar[str] = "bpr"
    settings_class: ClassVar[type[Settings]] = BPRSettings
    revision: ClassVar[int] = 1
    uses: ClassVar[tuple[str, ...]] = ("blas", "numba")
    strategies: ClassVar[tuple[str, ...]] = ("retrain", "laser")
    settings: BPRSettings

    def start(self, catalogue: Ids, seed: int) -> Arrays:
        """Return small random item factors, each from the seed and the item's id alone."""
        return {"item": self._starting_rows("item", catalogue, seed)}

    def train(self, shared: Arrays, stage: Stage, effort: Effort) -> Parameters:
        """Take a step for each interaction in each epoch, in random order; the users' rows are left to `represent`."""
        data, items = stage.interactions, shared["item"].copy()
        users = self._starting_rows("user", data.users, stage.seed)
        for epoch in range(stage.epochs):
            key = child_key(stage.seed, "stage", stage.position, epoch)
            order = shuffled(len(data), np.uint64(key))
            train_epoch(
                order, data.user_starts, data.user_index, data.item_index, np.uint64(key), users, items, *self._step()
            )
            effort.advance(len(data))
        return Parameters({"item": items}, {})

    def represent(self, prepared: Arrays, people: Stage, effort: Effort) -> Arrays:
        """Return a row for each person, by steps of the same loss on the own history with items fixed."""
        data = people.interactions
        rows = np.zeros((len(data.users), self.settings.factors), np.float32)
        keys = id_keys(people.seed, "bpr rows", data.users)
        solve_rows(data.user_starts, data.item_index, keys, people.epochs, rows, prepared["item"], *self._step())
        rows.setflags(write=False)
        return {"user": rows}

    def score(self, prepared: Arrays, row: Arrays, owned: NDArray[np.int32]) -> Scores:
        """Score an item by the product of its factors and the user's row."""
        scores: Scores = prepared["item"] @ row["user"]
        return scores

    def _starting_rows(self, table: str, ids: Ids, seed: int) -> Floats:
        return normals(id_keys(seed, f"bpr {table}", ids), self.settings.factors) * np.float32(0.1)

    def _step(self) -> tuple[np.float32, np.float32]:
        return np.float32(self.settings.learning_rate), np.float32(self.settings.regularisation)


@compiled
def train_epoch(order, starts, user_of, item_of, key, users, items, rate, regularisation):
    """Take one step for each interaction in the order given; whoever has every item is passed over."""
    for place in order:
        user, had = users[user_of[place]], items[item_of[place]]
        owned = item_of[starts[user_of[place]] : starts[user_of[place] + 1]]
        lacking = len(items) - len(owned)
        if lacking:
            lacked = items[missing_item(owned, below(draw(key, np.uint64(len(order) + place)), lacking))]
            slope = slope_of(user, had, lacked)
            for factor in range(len(user)):
                own, one, other = user[factor], had[factor], lacked[factor]
                user[factor] += rate * (slope * (one - other) - regularisation * own)
                had[factor] += rate * (slope * own - regularisation * one)
                lacked[factor] += rate * (-slope * own - regularisation * other)


@compiled
def solve_rows(starts, item_of, keys, epochs, rows, items, rate, regularisation):
    """Solve each person's row from the own history alone; draws are numbered under the own key."""
    for person in range(len(rows)):
        row, owned = rows[person], item_of[starts[person] : starts[person + 1]]
        lacking = len(items) - len(owned)
        for number in range(epochs * len(owned) if lacking else 0):
            had = items[owned[number % len(owned)]]
            lacked = items[missing_item(owned, below(draw(keys[person], np.uint64(number)), lacking))]
            slope = slope_of(row, had, lacked)
            for factor in range(len(row)):
                row[factor] += rate * (slope * (had[factor] - lacked[factor]) - regularisation * row[factor])


@compiled
def slope_of(user, had, lacked):
    """Return the slope of ln σ(x) at x = user · (had − lacked)."""
    score = np.float32(0)
    for factor in range(len(user)):
        score += user[factor] * (had[factor] - lacked[factor])
    return np.float32(1) / (np.float32(1) + np.exp(score))
