"""EASE (Steck, "Embarrassingly Shallow Autoencoders for Sparse Data", WWW 2019): item weights in closed form.

Here are its settings and what both ways share; over all items it is computed in `ease_dense`, from each item's nearest
items only (after Steck, "Markov random fields for collaborative filtering", NeurIPS 2019) in `ease_columns`.
"""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from erasable.data import Ids, Interactions
from erasable.models.ease_columns import LEAST_BASE, ColumnEASE
from erasable.models.ease_dense import DenseEASE
from erasable.models.model import Change, Effort, Model, Scores, Stage
from erasable.models.parameters import Arrays, Parameters
from erasable.models.settings import Settings

_OF_ALL = 500.0
_CLAMP = 1e-4


class EASESettings(Settings):
    """What can be set about EASE."""

    earlier: ClassVar[Mapping[str, Any]] = {"neighbours": "all"}

    neighbours: Annotated[int, Field(ge=1, le=10_000)] | Literal["all"] = 200
    """How many of its nearest items an item's weights come from; all of them take memory for each pair of items."""

    regularisation: float | None = Field(None, gt=0, le=1e12)
    """What keeps the item weights small; if none is given, 500 with all neighbours, else by the neighbours' counts."""

    @model_validator(mode="after")
    def _can_be_solved_whoever_leaves(self) -> Self:
        if self.neighbours != "all" and self.regularisation is not None and self.regularisation < LEAST_BASE:
            raise ValueError(f"with neighbours `regularisation` is at least {LEAST_BASE:g}: give a larger one")
        return self


class EASE(Model):
    """Scores an item by the weights of what the user has; see `Model` for the methods.

    Parameters
    ----------
    **settings
        Those of `EASESettings`: `neighbours` and `regularisation`.

    Examples
    --------
    >>> EASE(neighbours=100, regularization=300)
    EASE(neighbours=100, regularisation=300.0)
    """

    name: ClassVar[str] = "ease"
    settings_class: ClassVar[type[Settings]] = EASESettings
    revision: ClassVar[int] = 1
    uses: ClassVar[tuple[str, ...]] = ("blas", "numba")
    strategies: ClassVar[tuple[str, ...]] = ("retrain",)
    settings: EASESettings
    trains_rows = True  # there are none
    has_rows = False

    def __init__(self, **settings: Any) -> None:  # noqa: ANN401 - as the settings class says
        super().__init__(**settings)
        number, given = self.settings.neighbours, self.settings.regularisation
        self._way = DenseEASE(given or _OF_ALL) if number == "all" else ColumnEASE(number, given)

    def start(self, catalogue: Ids, seed: int) -> Arrays:
        """Return what nobody has taught."""
        return self._way.start(catalogue)

    def extended(self, shared: Arrays, catalogue: Ids, seed: int) -> Arrays:
        """Return the same with further items that nobody has."""
        return self._way.extended(shared, catalogue)

    def by_item(self) -> tuple[str, ...]:
        """Return the columns' arrays, of which a change reaches some; with all neighbours it reaches every weight."""
        return self._way.by_item

    def train(self, shared: Arrays, stage: Stage, effort: Effort) -> Parameters:
        """Solve the weights from the Gram matrix with the stage, of nearest items from the stage alone, which is all.

        Epochs and ratings make no difference.
        """
        if len(stage.interactions) == 0:
            return Parameters({name: array.copy() for name, array in shared.items()}, {})
        return Parameters(self._way.train(shared, stage.interactions, effort), {})

    def amended(self, trained: Arrays, change: Change, effort: Effort) -> Arrays:
        """Solve what follows from a change of the counts, which are whole numbers: nothing is rounded on the way."""
        return self._way.amended(trained, change, effort)

    def provisional(self, shared: Arrays, change: Change) -> Arrays:
        """Return what to serve with: amended columns, or with all neighbours the inverse and what corrects it."""
        return self._way.provisional(shared, change)

    def prepare(self, shared: Arrays) -> tuple[NDArray[Any], ...]:
        """Return the weights as the kernel that scores wants them."""
        return self._way.prepare(shared)

    def represent(self, prepared: tuple[NDArray[Any], ...], people: Stage, effort: Effort) -> Arrays:
        """Return no rows: there are none."""
        return {}

    def score(self, prepared: tuple[NDArray[Any], ...], row: Arrays, owned: NDArray[np.int32]) -> Scores:
        """Score by the sum of the weights with which the items that the user has speak for each other one."""
        return self._way.score(prepared, owned)

    def reasons(self, prepared: tuple[NDArray[Any], ...], owned: NDArray[np.int32], item: int) -> Scores:
        """Return with which weight each owned item speaks for an item."""
        return self._way.reasons(prepared, owned, item)

    def similar(self, shared: Arrays, number: int) -> Scores:
        """Return the weights between the item and each other one."""
        return self._way.similar(shared, number)

    def probability(self, scores: Scores) -> NDArray[np.float64]:
        """Return the scores, which come near 0 and 1 by themselves, clamped away from both."""
        return np.clip(scores.astype(np.float64), _CLAMP, 1 - _CLAMP)

    def samples(self, interactions: Interactions, epochs: int) -> int:
        """Return the additions to the Gram matrix, and solving the weights as so many more."""
        return self._way.samples(interactions)

    def samples_amended(self, interactions: Interactions, change: Change) -> int:
        """Return the same for a change."""
        return self._way.samples_amended(interactions, change)
