"""What every model offers: start, train a stage, represent people, score; and abilities that only some models have."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from erasable.data import Ids, Interactions, RatingScale, differing_rows
from erasable.models.declared import check_declared
from erasable.models.parameters import Arrays, Parameters
from erasable.models.settings import Configured, Settings

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
    """All rows of the users whose data change, as they were and as they become; either may hold nobody.

    `taken` is numbered by the items that were known, `given` by those that are known then: items may come and go.
    """

    taken: Interactions
    given: Interactions
    after: Interactions | None = None
    """Everyone's rows after the change, numbered like `given`; erasable always says them."""

    @classmethod
    def between(cls, before: Interactions, after: Interactions) -> "Change":
        """Return the change from one table to another."""
        return cls(*differing_rows(before, after), after)


class Model(Configured[Settings], ABC):
    """A recommender whose state is shared parameters, which many users shape, and user rows, one user's each.

    A model of one's own has the four abstract methods; the others have defaults. What only some models can do stands
    below as protocols: a model that has their methods has the ability.

    Every method is a pure function of its arguments: no clock, no global state, no file, nothing changed in place. All
    interactions that a method is given are numbered by the items that the shared parameters know, and a `catalogue` is
    the list of these. `prepared` stands for the shared parameters: it is what `prepare` made of them, or they
    themselves where a model does not prepare. A model is made from its own settings alone, given as keywords; all that
    reaches a stage names its checkpoint.
    """

    name: ClassVar[str]
    """What it is called in commands and in workspaces."""
    settings_class: ClassVar[type[Settings]]
    """The class of its settings."""
    revision: ClassVar[int]
    """Which revision of its arithmetic this is; it goes up when the same training gives other bytes."""
    uses: ClassVar[tuple[str, ...]]
    """The libraries that its bytes depend on."""
    strategies: ClassVar[tuple[str, ...]] = ("laser", "retrain")
    """The strategies that it can be learned with; the first is the default. `sisa` needs rows that are trained."""
    trains_rows: ClassVar[bool] = False
    """Whether training gives the rows of its users; if not, they are always represented."""
    has_rows: ClassVar[bool] = True
    """Whether a user has a row at all; if not, scores follow from the shared parameters and the user's own items."""

    def __init__(self, **settings: Any) -> None:  # noqa: ANN401 - as the settings class says
        check_declared(type(self))
        super().__init__(**settings)

    @abstractmethod
    def start(self, catalogue: Ids, seed: int) -> Arrays:
        """Return the shared parameters before any stage; an item's row depends on the seed and its id alone."""

    @abstractmethod
    def train(self, shared: Arrays, stage: Stage, effort: Effort) -> Parameters:
        """Train on one stage from these shared parameters; without interactions they stay as they are."""

    @abstractmethod
    def represent(self, prepared: Any, people: Stage, effort: Effort) -> Arrays:  # noqa: ANN401 - the model's own
        """Return a row for each of these people, each from shared parameters, own history, id and seed alone.

        Where the stage is in a chain does not matter. Without people there are rows of length 0.
        """

    @abstractmethod
    def score(self, prepared: Any, row: Arrays, owned: NDArray[np.int32]) -> Scores:  # noqa: ANN401 - the model's own
        """Return one score for each item, higher is better, from a user's row and own items alone."""

    def newcomers(self, prepared: Any, users: Ids, catalogue: Ids, seed: int) -> Arrays:  # noqa: ANN401 - the model's own
        """Return the rows of users of whom nothing is known, each from seed and id alone: zeros by default.

        They are as wide as the rows that `represent` gives nobody. Training may start from other rows, and then this
        returns those.
        """
        nobody = np.empty(0, np.int32)
        none = Interactions(Ids.of([]), catalogue, nobody, nobody, nobody.astype(np.float32))
        like = self.represent(prepared, Stage(none, RatingScale(1, 1), 1, seed, 0), Effort())
        return {name: np.zeros((len(users), *array.shape[1:]), array.dtype) for name, array in like.items()}

    def extended(self, shared: Arrays, catalogue: Ids, seed: int) -> Arrays:
        """Return the shared parameters with the catalogue's further items, which begin as they do at the start."""
        fresh = self.start(catalogue, seed)
        return {name: _with_known(array, shared[name]) for name, array in fresh.items()}

    def by_item(self) -> tuple[str, ...]:
        """Return the names of shared arrays with a row for each item that lie in blocks of items: none by default.

        It pays where a change leaves most of these rows as they are: blocks with the same bytes are not written again.
        """
        return ()

    def samples(self, interactions: Interactions, epochs: int) -> int:
        """Return how many samples training visits; a closed form counts work that takes as long as visiting one."""
        return len(interactions) * epochs


@runtime_checkable
class Prepares(Protocol):
    """Works something out of shared parameters once, for many people."""

    def prepare(self, shared: Arrays) -> Any:  # noqa: ANN401 - the model's own
        """Return what `represent` and `score` are given in place of these shared parameters."""


@runtime_checkable
class Amends(Protocol):
    """Has a short way from what was trained to what training from the start on changed data gives."""

    def amended(self, trained: Arrays, change: Change, effort: Effort) -> Arrays:
        """Return what training from the start on the changed data gives, to the byte."""

    def samples_amended(self, interactions: Interactions, change: Change) -> int:
        """Return how many samples that visits; the interactions are those after the change."""


@runtime_checkable
class Subtracts(Protocol):
    """Can serve at once without what someone taught, before that is trained."""

    def provisional(self, shared: Arrays, change: Change) -> Arrays:
        """Return shared parameters to serve with until a change is trained: rid of it as far as that can be at once."""


@runtime_checkable
class Probabilities(Protocol):
    """Knows what its loss takes scores for."""

    def probability(self, scores: Scores) -> NDArray[np.float64]:
        """Return the share of the highest rating to expect, between 0 and 1."""


@runtime_checkable
class TellsSimilarItems(Protocol):
    """A model that can also tell which items are alike, from its shared parameters alone."""

    def similar(self, shared: Arrays, number: int) -> Scores:
        """Return how much each item is like the one with this number; higher is more alike, above 0 if at all."""


@runtime_checkable
class Explains(Protocol):
    """Can tell which of a user's own items speak for an item."""

    def reasons(self, prepared: Any, owned: NDArray[np.int32], item: int) -> Scores:  # noqa: ANN401 - the model's own
        """Return what each of the owned items adds to the score of one item; below 0 where it speaks against it."""


def prepared_by(model: Model, shared: Arrays) -> Any:  # noqa: ANN401 - the model's own
    """Return what a model is given in place of shared parameters."""
    return model.prepare(shared) if isinstance(model, Prepares) else shared


def probability_by(model: Model, scores: Scores) -> NDArray[np.float64]:
    """Return what a model takes scores for; of one that does not say, their sigmoid."""
    return model.probability(scores) if isinstance(model, Probabilities) else expit(scores.astype(np.float64))


def _with_known(fresh: NDArray[Any], known: NDArray[Any]) -> NDArray[Any]:
    """Return an array with a row for each item in which those that are known stand as they are."""
    whole = known.copy() if fresh.shape == known.shape else np.concatenate([known, fresh[len(known) :]])
    whole.setflags(write=False)
    return whole
