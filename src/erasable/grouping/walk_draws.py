"""Compiled draws that walks share: a fraction, and a choice in proportion to weights by their running sum."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from erasable.seeding.compiled import compiled, draw


@compiled(nogil=True)
def fraction(key: np.uint64, counter: int) -> float:
    """Return draw number `counter` under a key as a fraction in [0, 1)."""
    return np.float64(draw(key, np.uint64(counter)) >> np.uint64(11)) * 2.0**-53


@compiled(nogil=True)
def first_above(sums: NDArray[Any], target: float) -> int:
    """Return the first place where an ascending running sum exceeds a target; the last one if none does."""
    low, high = 0, len(sums) - 1
    while low < high:
        middle = (low + high) >> 1
        if sums[middle] > target:
            high = middle
        else:
            low = middle + 1
    return low
