"""How good a grouping is, apart from what is learned from it: agreement of two groupings, likeness inside groups."""

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from erasable.data import Interactions

_Labels = NDArray[np.int64]


def adjusted_rand_index(one: _Labels, other: _Labels) -> float:
    """Return how far two groupings agree beyond chance (Hubert and Arabie, 1985): 1 for equal ones, about 0 by chance.

    >>> adjusted_rand_index(np.array([0, 0, 1, 1]), np.array([1, 1, 0, 0]))
    1.0
    """
    table = np.zeros((int(one.max(initial=0)) + 1, int(other.max(initial=0)) + 1))
    np.add.at(table, (one, other), 1)
    together, in_one, in_other = (_pairs(counts) for counts in (table, table.sum(axis=1), table.sum(axis=0)))
    by_chance = in_one * in_other / max(_pairs(np.array([len(one)])), 1.0)
    most = (in_one + in_other) / 2
    return 1.0 if most == by_chance else (together - by_chance) / (most - by_chance)


def within_group_cosine(interactions: Interactions, labels: _Labels) -> float:
    """Return the mean cosine of the item sets of two users of the same group, over all such pairs."""
    sets = interactions.csr()
    sets.data = np.repeat(1 / np.sqrt(np.diff(sets.indptr)), np.diff(sets.indptr))
    members = sparse.csr_array((np.ones(len(labels)), (labels, np.arange(len(labels)))))
    sizes = np.bincount(labels)
    # Rows have length 1, so the square of a group's sum is its size and every ordered pair of its users once.
    total = float(np.square((members @ sets).data).sum()) - len(labels)
    return total / max(int((sizes * (sizes - 1)).sum()), 1)


def _pairs(counts: NDArray[np.float64] | NDArray[np.int64]) -> float:
    return float((counts * (counts - 1) / 2).sum())
