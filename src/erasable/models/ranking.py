"""The best items of a list of scores, in an order without chance; what scores them lives elsewhere."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

ItemNumbers = NDArray[np.int64]


def top_items(scores: NDArray[Any], k: int, excluded: NDArray[np.integer[Any]]) -> ItemNumbers:
    """Return the k best items by descending score, ties by ascending number, never an excluded one.

    >>> top_items(np.array([0.5, 0.9, 0.5, 0.1]), 2, excluded=np.array([1]))
    array([0, 2])
    """
    # Of 100,000 items most have no score above 0: where enough have, the best are among these.
    allowed = scores > 0
    allowed[excluded] = False
    items = np.flatnonzero(allowed)
    if len(items) < k:
        allowed = np.ones(len(scores), dtype=bool)
        allowed[excluded] = False
        items = np.flatnonzero(allowed)
    values = scores[items]
    if 0 < k < len(items):
        chosen = _best(values, k)
        items, values = items[chosen], values[chosen]
    # Both lists ascend by item number, which a stable sort keeps among equal scores.
    return items[np.argsort(-values, kind="stable")][: max(k, 0)]


def _best(values: NDArray[Any], k: int) -> ItemNumbers:
    """Return the ascending positions of the k largest values; at the border the first of equal ones win."""
    border = np.partition(values, len(values) - k)[len(values) - k]
    above = values > border
    at_border = np.flatnonzero(values == border)[: k - int(above.sum())]
    above[at_border] = True
    return np.flatnonzero(above)
