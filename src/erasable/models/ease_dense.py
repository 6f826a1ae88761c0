"""EASE with all items as neighbours (Steck, "Embarrassingly Shallow Autoencoders for Sparse Data", WWW 2019).

The shared parameters are the Gram matrix of 0/1 data, in whole numbers and so without rounding, and the inverse that
follows from it. There are no personal rows: a user's scores follow from the user's own items.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from erasable.data import Ids, Interactions
from erasable.errors import Refused, option
from erasable.models.blas import one_blas_thread
from erasable.models.correction import Correction
from erasable.models.correction_kernel import item_scores
from erasable.models.gram_kernel import (
    add_rows,
    count_pairs,
    rounded_from_upper,
    rows_of_change,
    signed_rows,
)
from erasable.models.memory import refuse_beyond_memory
from erasable.models.model import Change, Effort, Scores
from erasable.models.parameters import Arrays, frozen, read_only

GRAM = "gram"
INVERSE = "inverse"
_INSTEAD = 100  # neighbours, where all are too many for the memory
_CUBES_PER_ADDITION = 32  # measured, one core: 0.75 ns an addition; inverse of 2,000 items 0.21 s, of 3,706 1.04 s
_BYTES_STORED = 4 + 4  # for each pair of items: the Gram matrix and its inverse
_BYTES_NEW = _BYTES_STORED + 8  # a new pair of them, and the work in float64


class DenseEASE:
    """The arithmetic of EASE over all pairs of items; see `Model` for the methods."""

    by_item = ()

    def __init__(self, regularisation: float) -> None:
        self.regularisation = regularisation

    def start(self, catalogue: Ids) -> Arrays:
        """Return a Gram matrix of zeros, which takes no memory while it is untouched, and its inverse."""
        items = len(catalogue)
        _refuse_beyond_memory(items, items**2 * (_BYTES_STORED + _BYTES_NEW))
        return frozen({GRAM: np.zeros((items, items), np.int32), INVERSE: self._inverse_of_nothing(items)})

    def extended(self, shared: Arrays, catalogue: Ids) -> Arrays:
        """Return the Gram matrix with zeros for the further items, and its inverse."""
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
        """Take a change out of the Gram matrix and into it, without rounding, and invert it."""
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
        """Return the same arrays with a correction beside them; a new inverse only if the correction won't do."""
        rows = rows_of_change(change)
        if len(rows.signs) == 0:
            return shared
        correction = Correction.of(shared).enlarged(read_only(shared[INVERSE]), rows)
        if correction is None:
            return self.amended(shared, change, Effort())
        return frozen({GRAM: shared[GRAM], INVERSE: shared[INVERSE], **correction.arrays()})

    def prepare(self, shared: Arrays) -> tuple[NDArray[Any], ...]:
        """Return the inverse and what corrects it, as the kernel that scores wants them."""
        correction = Correction.of(shared)
        sums = (correction.diagonal, correction.vectors, correction.pivots)
        return tuple(read_only(array) for array in (shared[INVERSE], *sums))

    def score(self, prepared: tuple[NDArray[Any], ...], owned: NDArray[np.int32]) -> Scores:
        """Score by −Σ P_ij / P_jj over the items i ≠ j that the user has, P being the inverse, corrected if need be."""
        return item_scores(*prepared, read_only(owned))

    def reasons(self, prepared: tuple[NDArray[Any], ...], owned: NDArray[np.int32], item: int) -> Scores:
        """Return the weight −P_ij / P_jj of each owned item i for one item j, 0 for itself."""
        inverse, diagonal, vectors, pivots = prepared
        corrected = inverse[owned, item] - (vectors[:, item] / pivots) @ vectors[:, owned]
        found: Scores = (-corrected / diagonal[item]).astype(np.float32)
        found[owned == item] = 0
        return found

    def similar(self, shared: Arrays, number: int) -> Scores:
        """Return the weights with which the item speaks for each other one: the scores of who has it alone."""
        return self.score(self.prepare(shared), np.array([number], np.int32))

    def samples(self, interactions: Interactions) -> int:
        """Return the additions to the Gram matrix, and the inverse as so many more."""
        if len(interactions) == 0:
            return 0
        return count_pairs(interactions.user_starts) + _additions_of_inverse(len(interactions.items))

    def samples_amended(self, interactions: Interactions, change: Change) -> int:
        """Return the same for a change."""
        return count_pairs(rows_of_change(change).starts) + _additions_of_inverse(len(interactions.items))

    def _solved(self, gram: NDArray[np.int32], effort: Effort) -> Arrays:
        return frozen({GRAM: gram, INVERSE: self._inverse(gram, effort)})

    def _inverse(self, gram: NDArray[np.int32], effort: Effort) -> NDArray[np.float32]:
        """Return (gram + λI)⁻¹ by Cholesky's factor in float64, symmetric by construction, rounded to float32."""
        items = len(gram)
        if not gram.diagonal().any():
            return self._inverse_of_nothing(items)
        work = gram.astype(np.float64)
        work.ravel()[:: items + 1] += self.regularisation
        whole = _additions_of_inverse(items)
        with one_blas_thread():  # the transpose is what LAPACK calls by columns: it works in place
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
    refuse_beyond_memory(items, needed, option("neighbours", _INSTEAD))


def _additions_of_inverse(items: int) -> int:
    return items**3 // _CUBES_PER_ADDITION


def _settled_gram(shared: Arrays, effort: Effort) -> NDArray[np.int32]:
    """Return a Gram matrix of one's own that what was corrected provisionally has entered."""
    gram = shared[GRAM].copy()
    add_rows(gram, Correction.of(shared).rows, Effort(effort.threads))
    return gram


def _renumbered(gram: NDArray[np.int32], before: Ids, after: Ids) -> NDArray[np.int32]:
    """Return a Gram matrix over other items; one that goes is nobody's by now, and one that comes is nobody's yet."""
    places = after.positions_of(before.array)
    stays = np.flatnonzero(places >= 0)
    moved = np.zeros((len(after), len(after)), np.int32)
    moved[np.ix_(places[stays], places[stays])] = gram[np.ix_(stays, stays)]
    return moved
