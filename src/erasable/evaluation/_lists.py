"""What recommended lists are like, whatever they find: coverage, novelty and intra-list diversity."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from erasable.chain.dataset import Dataset
from erasable.models.machine import ItemNumbers

_Counts = NDArray[np.int64]
_Values = NDArray[np.float64]
_PAIRS_AT_ONCE = 2_000_000  # of people's lists, in memory together
_CELLS_AT_ONCE = 2**25  # of the items that someone has together, as a dense matrix

NONE = -1
"""Stands in a table of lists for an item that is not there, where a list is shorter than the longest."""


def as_table(lists: Sequence[Sequence[int]]) -> ItemNumbers:
    """Return lists as the rows of a table, filled up with `NONE`."""
    table = np.full((len(lists), max(map(len, lists), default=0)), NONE, np.int64)
    for row, items in zip(table, lists, strict=True):
        row[: len(items)] = items
    return table


def coverage(lists: ItemNumbers, items: int) -> float:
    """Return Coverage@k = the items that are in somebody's list, over all items of the catalogue.

    >>> coverage(np.array([[0, 1], [1, 3]]), items=4)
    0.75
    """
    return len(np.unique(lists[lists != NONE])) / items if items else 0.0


def novelty(lists: ItemNumbers, had: _Counts, people: int) -> _Values:
    """Return Novelty@k of each list: the mean over its items of −log₂(people who have it in training / all people).

    It is the mean self-information in bits: an item that everyone has counts 0, one that half of the people have
    counts 1. An item that nobody has counts as if one person had it; an empty list counts 0.

    >>> novelty(np.array([[0, 1], [1, -1]]), had=np.array([4, 2]), people=4)
    array([0.5, 1. ])
    """
    there = lists != NONE
    bits = -np.log2(np.maximum(had, 1) / max(people, 1))
    sums = np.where(there, bits[np.where(there, lists, 0)], 0.0).sum(axis=1)
    return sums / np.maximum(there.sum(axis=1), 1)


def diversity(dataset: Dataset, lists: ItemNumbers, cutoffs: Sequence[int]) -> dict[int, _Values]:
    """Return Diversity@k of each list, by k: the mean over pairs of its items of 1 − their cosine.

    The cosine of two items is that of the sets of people who have them in training: those who have both, over the root
    of the product of those who have either. A list with fewer than two items counts 0.
    """
    longest = min(max(cutoffs, default=0), lists.shape[1])
    earlier, later = np.triu_indices(longest, 1)
    people = max(1, _PAIRS_AT_ONCE // max(1, len(earlier)))
    parts = [lists[start : start + people, :longest] for start in range(0, len(lists), people)]
    pairs = [np.unique(_codes(dataset, part, earlier, later)) for part in parts]
    codes = np.unique(np.concatenate([np.empty(0, np.int64), *pairs]))
    codes = codes[codes != NONE]
    apart = np.append(_apart(dataset, codes // len(dataset.items), codes % len(dataset.items)), 0.0)
    found: dict[int, list[_Values]] = {k: [] for k in cutoffs}
    for part in parts:
        own = _codes(dataset, part, earlier, later)
        there = own != NONE
        distances = apart[np.where(there, np.searchsorted(codes, own), len(codes))]
        for k, values in found.items():
            inside = later < k
            values.append(distances[:, inside].sum(axis=1) / np.maximum(there[:, inside].sum(axis=1), 1))
    return {k: np.concatenate([np.empty(0), *values]) for k, values in found.items()}


def _codes(dataset: Dataset, lists: ItemNumbers, earlier: _Counts, later: _Counts) -> ItemNumbers:
    """Return a number for each pair of items of a list, whichever comes first; `NONE` where one is not there."""
    one, other = lists[:, earlier], lists[:, later]
    codes = np.minimum(one, other) * len(dataset.items) + np.maximum(one, other)
    return np.where((one == NONE) | (other == NONE), NONE, codes)


def _apart(dataset: Dataset, one: ItemNumbers, other: ItemNumbers) -> _Values:
    """Return 1 − the cosine of pairs of items; nobody has both of two items if nobody has one of them."""
    had = dataset.counts.trained
    both = _having_both(dataset, one, other)
    return 1.0 - both / np.sqrt(np.maximum(had[one] * had[other], 1).astype(np.float64))


def _having_both(dataset: Dataset, one: ItemNumbers, other: ItemNumbers) -> _Counts:
    """Return how many people have both items of each pair in training; `one` ascends, and buckets are read in turn."""
    items = np.unique(np.concatenate([one, other]))
    rows, columns = np.searchsorted(items, one), np.searchsorted(items, other)
    counts = np.zeros(len(one), np.int64)
    for bucket in dataset.buckets:
        training = bucket.training
        shape = (len(training.users), len(training.items))
        arrays = np.ones(len(training), np.int32), training.item_index.copy(), training.user_starts.copy()
        sets = sparse.csr_array(arrays, shape=shape).tocsc()[:, items]
        for start, end in _blocks(len(items)):
            mine = slice(*np.searchsorted(rows, [start, end]))
            together = (sets[:, start:end].T @ sets).toarray()
            counts[mine] += together[rows[mine] - start, columns[mine]]
    return counts


def _blocks(items: int) -> Iterator[tuple[int, int]]:
    step = max(1, _CELLS_AT_ONCE // max(items, 1))
    return ((start, min(start + step, items)) for start in range(0, items, step))
