"""What users who came or went since change about a stored inverse, kept beside it as one vector for each of them."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from erasable.models.correction_kernel import Doubles, add_vectors
from erasable.models.gram_kernel import NO_ROWS, SignedRows, joined
from erasable.models.parameters import Arrays

MOST_ROWS = 2048
# Beyond these, which only a tiny regularisation brings about, scores feel what float32 rounded off the inverse: with
# 150 users, 120 items and 0.0001 to 0.1 they were up to 1e-3 off after 110 forgettings, with these limits up to 3e-5.
_SMALLEST_PIVOT = 0.01
_LARGEST_GROWTH = 100.0
_ROWS = ("changed_starts", "changed_items", "changed_signs")
_SUMS = ("vectors", "pivots", "diagonal")


@dataclass(frozen=True, eq=False)
class Correction:
    """The rows that came or went, their vectors and pivots, and the diagonal of the corrected inverse."""

    rows: SignedRows
    vectors: Doubles
    pivots: Doubles
    diagonal: Doubles

    @classmethod
    def of(cls, shared: Arrays) -> Self:
        """Return the correction among shared parameters, one of no rows if there is none."""
        if _ROWS[0] in shared:
            return cls(SignedRows(*(shared[name] for name in _ROWS)), *(shared[name] for name in _SUMS))
        diagonal = shared["inverse"].diagonal().astype(np.float64)
        return cls(NO_ROWS, np.empty((0, len(diagonal))), np.empty(0), diagonal)

    def arrays(self) -> Arrays:
        """Return the arrays that stand among the shared parameters."""
        sums = (self.vectors, self.pivots, self.diagonal)
        return {**dict(zip(_ROWS, self.rows, strict=True)), **dict(zip(_SUMS, sums, strict=True))}

    def enlarged(self, inverse: NDArray[np.float32], further: SignedRows) -> Self | None:
        """Return the correction with further rows; None if a new inverse is due, for their number or for precision."""
        known, count = len(self.pivots), len(self.pivots) + len(further.signs)
        if count > min(MOST_ROWS, len(inverse)):
            return None
        rows = joined(self.rows, further)
        vectors, pivots = np.empty((count, len(inverse))), np.empty(count)
        vectors[:known], pivots[:known] = self.vectors, self.pivots
        add_vectors(inverse, vectors, pivots, rows, known)
        if not (pivots * rows.signs >= _SMALLEST_PIVOT).all():
            return None
        diagonal = self.diagonal - np.einsum("ki,ki,k->i", vectors[known:], vectors[known:], 1 / pivots[known:])
        if (diagonal > _LARGEST_GROWTH * inverse.diagonal()).any():
            return None
        return type(self)(rows, vectors, pivots, diagonal)
