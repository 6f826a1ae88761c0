"""Compiled parts of a corrected inverse: P − Σ w wᵀ / pivot, one vector w for each changed row; and scores from it.

A row x that is added (sign +1) or taken away (−1) changes the inverse P of a Gram matrix into P − w wᵀ / (sign + x·w),
w = P x (Sherman and Morrison, 1950). Here P is never touched: a further row's w is computed from P itself less what the
vectors before it take away, which is the elimination (L D Lᵀ) of Woodbury's block of all rows at once.
"""

import numpy as np
from numpy.typing import NDArray

from erasable.models.gram_kernel import SignedRows
from erasable.seeding.compiled import compiled

_BLOCK = 16  # vectors that stay in the processor's cache together

Doubles = NDArray[np.float64]


@compiled
def _sum_at(values: Doubles, places: NDArray[np.int32]) -> float:
    total = 0.0
    for place in places:
        total += values[place]
    return total


@compiled
def _sum_rows(matrix: NDArray[np.float32], rows: NDArray[np.int32], total: Doubles) -> None:
    """Write the sum of some rows, in their order; four at a time, to touch the total less often."""
    for column in range(len(total)):
        total[column] = 0.0
    fours = len(rows) - len(rows) % 4
    for at in range(0, fours, 4):
        one, two = matrix[rows[at]], matrix[rows[at + 1]]
        three, four = matrix[rows[at + 2]], matrix[rows[at + 3]]
        for column in range(len(total)):
            total[column] = (((total[column] + one[column]) + two[column]) + three[column]) + four[column]
    for row in rows[fours:]:
        for column in range(len(total)):
            total[column] += matrix[row, column]


@compiled
def _take_away(target: Doubles, factor: float, vector: Doubles) -> None:
    for place in range(len(target)):
        target[place] -= factor * vector[place]


@compiled(nogil=True)
def add_vectors(
    inverse: NDArray[np.float32],
    vectors: Doubles,
    pivots: Doubles,
    rows: SignedRows,
    known: int,
) -> None:
    """Fill in, in place, the vectors and pivots from number `known` on, from the rows of all."""
    starts, items, signs = rows.starts, rows.items, rows.signs
    count = len(vectors)
    for number in range(known, count):
        _sum_rows(inverse, items[starts[number] : starts[number + 1]], vectors[number])
    for low in range(0, count, _BLOCK):
        high = min(low + _BLOCK, count)
        for number in range(max(low, known), count):
            own = items[starts[number] : starts[number + 1]]
            for earlier in range(low, min(high, number)):
                _take_away(vectors[number], _sum_at(vectors[earlier], own) / pivots[earlier], vectors[earlier])
            if number < high:
                pivots[number] = signs[number] + _sum_at(vectors[number], own)


@compiled(nogil=True)
def item_scores(
    inverse: NDArray[np.float32],
    diagonal: Doubles,
    vectors: Doubles,
    pivots: Doubles,
    owned: NDArray[np.int32],
) -> NDArray[np.float32]:
    """Return −(Σ of P'_ij over the owned items i ≠ j) / P'_jj for each item j, summed in the order of the items."""
    sums = np.empty(len(diagonal), np.float64)
    _sum_rows(inverse, owned, sums)
    for number in range(len(vectors)):
        _take_away(sums, _sum_at(vectors[number], owned) / pivots[number], vectors[number])
    for item in owned:
        sums[item] -= diagonal[item]
    scores = np.empty(len(diagonal), np.float32)
    for item in range(len(diagonal)):
        scores[item] = -sums[item] / diagonal[item]
    return scores
