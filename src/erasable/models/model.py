"""What every model offers: start, train a stage, score; the models themselves live beside this file."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from erasable.data import Ids, Interactions, RatingScale
from erasable.models.parameters import Arrays, Parameters

Scores = NDArray[np.float32]


@dataclass(frozen=True)
class Stage:
    """The data of one stage, and all that decides what training on it gives."""

    interactions: Interactions
    scale: RatingScale
    epochs: int
    seed: int
    position: int


@dataclass(frozen=True)
class Effort:
    """How a stage is trained, none of which changes a byte: threads, and whom to tell about samples done."""

    threads: int = 1
    advance: Callable[[int], None] = lambda samples: None


@dataclass(frozen=True)
class Change:
    """All rows of the users whose data change, as they were and as they become; either may hold nobody."""

    taken: Interactions
    given: Interactions


class Scorer(Protocol):
    """Scores the whole catalogue for one user, from that user's personal rows and own items alone."""

    def __call__(self, rows: Arrays, owned: NDArray[np.int32]) -> Scores:
        """Return one score for each item of the catalogue; higher is better."""


class Model(Protocol):
    """A recommender whose state is shared parameters, which many users shape, and personal rows, one user's each.

    Every method is a pure function of its arguments: no clock, no global state, no file, nothing changed in place. All
    interactions that a method is given are numbered by the items that the shared parameters know.
    """

    @property
    def trains_rows(self) -> bool:
        """Whether training gives the rows of its users; if not, they have to be solved."""

    def start(self, catalogue: Ids, seed: int) -> Arrays:
        """Return the shared parameters before any stage; an item's row depends on the seed and its id alone."""

    def extended(self, shared: Arrays, catalogue: Ids, seed: int) -> Arrays:
        """Return the shared parameters with the catalogue's further items, which begin as they do at the start."""

    def train(self, shared: Arrays, stage: Stage, effort: Effort) -> Parameters:
        """Train on one stage from these shared parameters; without interactions they stay as they are."""

    def amended(self, trained: Arrays, change: Change, effort: Effort) -> Arrays | None:
        """Return what training from the start on changed data gives, to the byte, or None if there is no short way."""

    def newcomers(self, shared: Arrays, users: Ids, seed: int) -> Arrays:
        """Return the personal rows of users of whom nothing is known; each depends on the seed and the id alone."""

    def solve(self, shared: Arrays, stage: Stage, effort: Effort) -> Arrays:
        """Return the personal rows of a stage's users, each from these shared parameters and the own data alone."""

    def provisional(self, shared: Arrays, change: Change) -> Arrays:
        """Return shared parameters to serve with until a change is trained: rid of it as far as that can be at once."""

    def scorer(self, shared: Arrays) -> Scorer:
        """Return what scores items for a user under these shared parameters."""

    def probability(self, scores: Scores) -> NDArray[np.float64]:
        """Return what the loss takes scores for: the share of the highest rating to expect, between 0 and 1."""

    def samples(self, interactions: Interactions, epochs: int) -> int:
        """Return how many samples training visits; a closed form counts work that takes as long as visiting one."""

    def samples_amended(self, interactions: Interactions, change: Change) -> int | None:
        """Return the same for `amended`; None if there is no short way."""

    def samples_of_rows(self, interactions: Interactions, epochs: int) -> int:
        """Return the same for `solve`."""
