"""Compiled sampling: the order of an epoch and the negatives of each positive, from numbered draws alone."""

import numpy as np
from numpy.typing import NDArray

from erasable.seeding.compiled import below, compiled, draw

HELPERS_REVISION = 1
"""Which revision of what is published for models this is: of `seeding`, of this file, and of what `Model` does by
itself; it goes up when one of them gives other bytes, and stands with the checkpoints of models that are not ours."""


@compiled
def shuffled(count: int, key: np.uint64) -> NDArray[np.int32]:
    """Return 0 … count − 1 in random order (Fisher and Yates)."""
    order = np.empty(count, np.int32)
    for place in range(count):
        order[place] = place
    for last in range(count - 1, 0, -1):
        other = below(draw(key, np.uint64(last)), last + 1)
        order[last], order[other] = order[other], order[last]
    return order


@compiled
def missing_item(owned: NDArray[np.int32], rank: int) -> int:
    """Return item number `rank` among those that are not in `owned`, which is ascending.

    `owned[p] − p` items below `owned[p]` are missing, so the answer is found by bisection, without rejection.
    """
    low, left = 0, len(owned)
    while left > 0:
        half = (left + 1) >> 1  # no branch depends on the data: a mispredicted one costs more than the whole step
        probe = low + half - 1
        low += half * (owned[probe] - probe <= rank)
        left -= half
    return rank + low
