"""EASE (Steck, "Embarrassingly Shallow Autoencoders for Sparse Data", WWW 2019): item weights in closed form."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from erasable.data.ids import Ids
from erasable.data.interactions import Interactions
from erasable.errors import Refused, option
from erasable.models._columns import change_counted, rows_counted, with_features
from erasable.models._ease_columns import (
    LEAST_BASE,
    ColumnEASE,
    Correction,
    add_rows,
    count_pairs,
    item_scores,
    rounded_from_upper,
    rows_of_change,
    signed_rows,
)
from erasable.models.base import Arrays, Change, Effort, Model, Parameters, Scores, Size, Stage, frozen, read_only
from erasable.models.machine import one_blas_thread, refuse_beyond_memory
from erasable.models.settings import Settings

GRAM = "gram"
INVERSE = "inverse"
_INSTEAD = 100  # neighbours to suggest, where all need too much memory
_CUBES_PER_ADDITION = 32  # measured, one core: 0.75 ns an addition; inverse of 2,000 items 0.21 s, of 3,706 1.04 s
_BYTES_STORED = 4 + 4  # for each pair of items: the Gram matrix and its inverse
_BYTES_NEW = _BYTES_STORED + 8  # new ones of both, and the float64 matrix that is inverted


class DenseEASE:
    """EASE over all pairs of items; see `Model` for the methods."""

    by_item = ()

    def __init__(self, regularisation: float) -> None:
        self.regularisation = regularisation

    def start(self, catalogue: Ids) -> Arrays:
        """Return a Gram matrix of zeros, which takes no memory until it is written, and its inverse."""
        items = len(catalogue)
        _refuse_beyond_memory(items, items**2 * (_BYTES_STORED + _BYTES_NEW))
        return frozen({GRAM: np.zeros((items, items), np.int32), INVERSE: self._inverse_of_nothing(items)})

    def extended(self, shared: Arrays, catalogue: Ids) -> Arrays:
        """Return the Gram matrix with zeros for new items, and its inverse."""
        items = len(catalogue)
        _refuse_beyond_memory(items, items**2 * _BYTES_NEW)
        known = _settled_gram(shared, Effort())
        gram = np.zeros((items, items), np.int32)
        gram[: len(known), : len(known)] = known
        return self._solved(gram, Effort())

    def train(self, shared: Arrays, interactions: Interactions, effort: Effort) -> Arrays:
        """Add people to the Gram matrix and invert it."""
        _refuse_beyond_memory(len(shared[GRAM]), shared[GRAM].size * _BYTES_NEW)
        gram = _settled_gram(shared, effort)
        add_rows(gram, signed_rows(interactions, 1), effort)
        return self._solved(gram, effort)

    def amended(self, trained: Arrays, change: Change, effort: Effort) -> Arrays:
        """Subtract and add the changed rows, in whole numbers, and invert the Gram matrix."""
        items = change.given.items
        _refuse_beyond_memory(len(items), max(len(items), len(trained[GRAM])) ** 2 * _BYTES_NEW)
        gram = _settled_gram(trained, effort)
        if change.taken.items == items:
            add_rows(gram, rows_of_change(change), effort)
        else:
            add_rows(gram, signed_rows(change.taken, -1), effort)
            gram = _renumbered(gram, change.taken.items, items)
            add_rows(gram, signed_rows(change.given, 1), effort)
        return self._solved(gram, effort)

    def provisional(self, shared: Arrays, change: Change) -> Arrays:
        """Return the same arrays with a correction, or a new inverse if a correction is too large or imprecise."""
        rows = rows_of_change(change)
        if len(rows.signs) == 0:
            return shared
        correction = Correction.of(shared).enlarged(read_only(shared[INVERSE]), rows)
        if correction is None:
            return self.amended(shared, change, Effort())
        return frozen({GRAM: shared[GRAM], INVERSE: shared[INVERSE], **correction.arrays()})

    def prepare(self, shared: Arrays) -> tuple[NDArray[Any], ...]:
        """Return the inverse and its correction, as the scoring kernel reads them."""
        correction = Correction.of(shared)
        sums = (correction.diagonal, correction.vectors, correction.pivots)
        return tuple(read_only(array) for array in (shared[INVERSE], *sums))

    def score(self, prepared: tuple[NDArray[Any], ...], owned: NDArray[np.int32]) -> Scores:
        """Score by −Σ P_ij / P_jj over the items i ≠ j that the user has, P being the (corrected) inverse."""
        return item_scores(*prepared, read_only(owned))

    def reasons(self, prepared: tuple[NDArray[Any], ...], owned: NDArray[np.int32], item: int) -> Scores:
        """Return the weight −P_ij / P_jj of each owned item i for one item j, 0 for itself."""
        inverse, diagonal, vectors, pivots = prepared
        corrected = inverse[owned, item] - (vectors[:, item] / pivots) @ vectors[:, owned]
        found: Scores = (-corrected / diagonal[item]).astype(np.float32)
        found[owned == item] = 0
        return found

    def similar(self, shared: Arrays, number: int) -> Scores:
        """Return the item's weight for each other item: the scores of a user who has only this item."""
        return self.score(self.prepare(shared), np.array([number], np.int32))

    def samples(self, size: Size) -> int:
        """Return the number of additions to the Gram matrix, plus the inverse in the same unit."""
        return size.pairs + _additions_of_inverse(size.items) if len(size) else 0

    def samples_amended(self, interactions: Interactions, change: Change) -> int:
        """Return the same for amending by a change."""
        return count_pairs(rows_of_change(change).starts) + _additions_of_inverse(len(interactions.items))

    def _solved(self, gram: NDArray[np.int32], effort: Effort) -> Arrays:
        return frozen({GRAM: gram, INVERSE: self._inverse(gram, effort)})

    def _inverse(self, gram: NDArray[np.int32], effort: Effort) -> NDArray[np.float32]:
        """Return (gram + λI)⁻¹ by a Cholesky factorisation in float64, symmetric by construction, as float32."""
        from scipy.linalg import lapack

        items = len(gram)
        if not gram.diagonal().any():
            return self._inverse_of_nothing(items)
        work = gram.astype(np.float64)
        work.ravel()[:: items + 1] += self.regularisation
        whole = _additions_of_inverse(items)
        with one_blas_thread():  # the transpose is column-major, so LAPACK works in place
            factor, failed = lapack.dpotrf(work.T, lower=1, clean=0, overwrite_a=1)
            effort.advance(whole // 3)
            solved, failed_too = lapack.dpotri(factor, lower=1, overwrite_c=1)
            effort.advance(whole - whole // 3)
        if failed or failed_too:
            raise self._too_small()
        return rounded_from_upper(solved.T)

    def _inverse_of_nothing(self, items: int) -> NDArray[np.float32]:
        if 1 / self.regularisation > float(np.finfo(np.float32).max):
            raise self._too_small()
        inverse = np.zeros((items, items), np.float32)
        np.fill_diagonal(inverse, 1 / self.regularisation)
        return inverse

    def _too_small(self) -> Refused:
        return Refused(
            f"regularisation {self.regularisation:g} is too small to invert: give a larger ",
            option("regularisation"),
        )


def _refuse_beyond_memory(items: int, needed: int) -> None:
    refuse_beyond_memory("ease", items, needed, option("neighbours", _INSTEAD))


def _additions_of_inverse(items: int) -> int:
    return items**3 // _CUBES_PER_ADDITION


def _settled_gram(shared: Arrays, effort: Effort) -> NDArray[np.int32]:
    """Return a copy of the Gram matrix that includes the rows of a provisional correction."""
    gram = shared[GRAM].copy()
    add_rows(gram, Correction.of(shared).rows, Effort(effort.threads))
    return gram


def _renumbered(gram: NDArray[np.int32], before: Ids, after: Ids) -> NDArray[np.int32]:
    """Return a Gram matrix over another list of items; nobody has an item that is removed or new."""
    places = after.positions_of(before.array)
    stays = np.flatnonzero(places >= 0)
    moved = np.zeros((len(after), len(after)), np.int32)
    moved[np.ix_(places[stays], places[stays])] = gram[np.ix_(stays, stays)]
    return moved


_OF_ALL = 500.0
_CLAMP = 1e-4


class EASESettings(Settings):
    """The settings of EASE."""

    earlier: ClassVar[Mapping[str, Any]] = {"neighbours": "all"}
    searched: ClassVar[Mapping[str, Any]] = {"neighbours": (50, 1000), "regularisation": [None, 30.0, 100.0, 300.0]}

    neighbours: Annotated[int, Field(ge=1, le=10_000)] | Literal["all"] = 200
    """How many nearest items an item's weights come from; all of them take memory for each pair of items."""

    regularisation: float | None = Field(None, gt=0, le=1e12)
    """The L2 regularisation of item weights; by default 500 with all neighbours, else from the neighbours' counts."""

    @model_validator(mode="after")
    def _stays_solvable(self) -> Self:
        if self.neighbours != "all" and self.regularisation is not None and self.regularisation < LEAST_BASE:
            raise ValueError(f"with neighbours `regularisation` is at least {LEAST_BASE:g}: give a larger one")
        return self


class EASE(Model):
    """Scores an item by the sum of its weights for the user's items; see `Model` for the methods.

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
    by_slot = True  # counts are whole numbers, so their order makes no difference
    has_rows = False
    uses_weights = True
    uses_features = True

    def __init__(self, **settings: Any) -> None:  # noqa: ANN401 - as the settings class says
        super().__init__(**settings)
        number, given = self.settings.neighbours, self.settings.regularisation
        self._form = DenseEASE(given or _OF_ALL) if number == "all" else ColumnEASE(number, given)

    def start(self, catalogue: Ids, seed: int) -> Arrays:
        """Return the parameters before anything is learned."""
        return self._form.start(catalogue)

    def extended(self, shared: Arrays, catalogue: Ids, seed: int) -> Arrays:
        """Add new items, which nobody has yet."""
        return self._form.extended(shared, catalogue)

    def by_item(self) -> tuple[str, ...]:
        """Return the columns' arrays, few of which a change reaches; with all neighbours it reaches every weight."""
        return self._form.by_item

    def train(self, shared: Arrays, stage: Stage, effort: Effort) -> Parameters:
        """Solve the weights in closed form; epochs and ratings make no difference, weights of interactions do.

        A feature counts like as many people as its weight says, who have its items (Jeunen, Van Balen and Goethals,
        "Closed-Form Models for Collaborative Filtering with Side-Information", RecSys 2020). With all neighbours the
        stage is added to the Gram matrix. Otherwise the stage holds all data there is.
        """
        rows = with_features(stage.interactions, stage.features, stage.weights)
        if len(rows) == 0:
            return Parameters({name: array.copy() for name, array in shared.items()}, {})
        counted = rows_counted(rows, stage)
        if counted is rows:
            return Parameters(self._form.train(shared, rows, effort), {})
        found = self._form.train(shared, counted, Effort(effort.threads))
        effort.advance(self.samples(rows, stage.epochs))  # which counts people, and not their levels
        return Parameters(found, {})

    def amended(self, trained: Arrays, change: Change, effort: Effort) -> Arrays:
        """Solve what a change reaches; counts are whole numbers, so nothing is rounded before that."""
        if not change.weights and change.features is None:
            return self._form.amended(trained, change, effort)
        found = self._form.amended(trained, change_counted(change), Effort(effort.threads))
        effort.advance(self.samples_amended(change.given if change.after is None else change.after, change))
        return found

    def provisional(self, shared: Arrays, change: Change) -> Arrays:
        """Return amended columns, or with all neighbours the inverse and its correction."""
        return self._form.provisional(shared, change_counted(change))

    def prepare(self, shared: Arrays) -> tuple[NDArray[Any], ...]:
        """Return the weights as the scoring kernel reads them."""
        return self._form.prepare(shared)

    def represent(self, prepared: tuple[NDArray[Any], ...], people: Stage, effort: Effort) -> Arrays:
        """Return no rows: EASE has none."""
        return {}

    def score(self, prepared: tuple[NDArray[Any], ...], row: Arrays, owned: NDArray[np.int32]) -> Scores:
        """Score each item by the sum of its weights for the user's items."""
        return self._form.score(prepared, owned)

    def reasons(self, prepared: tuple[NDArray[Any], ...], owned: NDArray[np.int32], item: int) -> Scores:
        """Return the weight of each owned item for one item."""
        return self._form.reasons(prepared, owned, item)

    def similar(self, shared: Arrays, number: int) -> Scores:
        """Return the weights between this item and each other item."""
        return self._form.similar(shared, number)

    def probability(self, scores: Scores) -> NDArray[np.float64]:
        """Return the scores, which are close to 0 or 1 as they are, clamped away from both."""
        return np.clip(scores.astype(np.float64), _CLAMP, 1 - _CLAMP)

    def samples(self, interactions: Interactions | Size, epochs: int) -> int:
        """Return the number of additions to the Gram matrix, plus solving the weights in the same unit."""
        return self._form.samples(Size.of(interactions))

    def samples_amended(self, interactions: Interactions, change: Change) -> int:
        """Return the same for amending by a change."""
        return self._form.samples_amended(with_features(interactions, change.features), change)
