"""Metrics of one user's ranked list, of lists with ratings, and of groupings, as pure functions."""

import math
from collections.abc import Collection, Hashable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from erasable.data.interactions import Interactions


def hit_rate(ranked: Sequence[Hashable], relevant: Collection[Hashable], k: int) -> float:
    """Return HR@k = 1 if a relevant item is among the first k, else 0.

    Parameters
    ----------
    ranked : sequence
        Items, best first.
    relevant : collection
        The items to find; best given as a set.
    k : int
        How many of the ranked items count.

    Returns
    -------
    float
        1 or 0.

    Examples
    --------
    >>> hit_rate(["a", "b", "c"], {"b", "z"}, k=2)
    1.0
    """
    return float(any(item in relevant for item in ranked[:k]))


def ndcg(ranked: Sequence[Hashable], relevant: Collection[Hashable], k: int) -> float:
    """Return NDCG@k = DCG/IDCG, DCG = Σ of 1/log₂(r + 1) over the ranks r ≤ k that hold a relevant item.

    IDCG is the same sum over all ranks r ≤ min(k, number of relevant items): the best possible DCG.

    Parameters
    ----------
    ranked : sequence
        Items, best first.
    relevant : collection
        The items to find; best given as a set.
    k : int
        How many of the ranked items count.

    Returns
    -------
    float
        From 0 to 1.

    Examples
    --------
    >>> round(ndcg(["a", "b", "c"], {"b"}, k=3), 4)
    0.6309
    """
    gained = math.fsum(_discount(rank) for rank, item in enumerate(ranked[:k], start=1) if item in relevant)
    ideal = math.fsum(_discount(rank) for rank in range(1, min(k, len(relevant)) + 1))
    return gained / ideal if ideal else 0.0


def recall(ranked: Sequence[Hashable], relevant: Collection[Hashable], k: int) -> float:
    """Return Recall@k = relevant items among the first k, over all relevant ones.

    Parameters
    ----------
    ranked : sequence
        Items, best first.
    relevant : collection
        The items to find; best given as a set.
    k : int
        How many of the ranked items count.

    Returns
    -------
    float
        From 0 to 1.

    Examples
    --------
    >>> recall(["a", "b", "c"], {"b", "z"}, k=2)
    0.5
    """
    found = sum(item in relevant for item in ranked[:k])
    return found / len(relevant) if relevant else 0.0


def precision(ranked: Sequence[Hashable], relevant: Collection[Hashable], k: int) -> float:
    """Return Precision@k = relevant items among the first k, over k, also where fewer than k are ranked.

    Parameters
    ----------
    ranked : sequence
        Items, best first.
    relevant : collection
        The items to find; best given as a set.
    k : int
        How many of the ranked items count.

    Returns
    -------
    float
        From 0 to 1.

    Examples
    --------
    >>> precision(["a", "b", "c"], {"b", "c", "z"}, k=4)
    0.5
    """
    return sum(item in relevant for item in ranked[:k]) / k


def average_precision(ranked: Sequence[Hashable], relevant: Collection[Hashable], k: int) -> float:
    """Return AP@k = Σ of Precision@r over the ranks r ≤ k that hold a relevant item, over all relevant ones.

    Its mean over users is MAP@k, as trec_eval has it (`map_cut`). The divisor is the number of relevant items, also if
    it is above k; some papers divide by k or by the smaller of the two.

    Parameters
    ----------
    ranked : sequence
        Items, best first.
    relevant : collection
        The items to find; best given as a set.
    k : int
        How many of the ranked items count.

    Returns
    -------
    float
        From 0 to 1.

    Examples
    --------
    >>> average_precision(["a", "b", "c", "d"], {"a", "d"}, k=4)
    0.75
    """
    ranks = [rank for rank, item in enumerate(ranked[:k], start=1) if item in relevant]
    return math.fsum(found / rank for found, rank in enumerate(ranks, start=1)) / len(relevant) if relevant else 0.0


def reciprocal_rank(ranked: Sequence[Hashable], relevant: Collection[Hashable], k: int) -> float:
    """Return RR@k = 1/r for the first rank r ≤ k that holds a relevant item, 0 if none does; its mean is MRR@k.

    Parameters
    ----------
    ranked : sequence
        Items, best first.
    relevant : collection
        The items to find; best given as a set.
    k : int
        How many of the ranked items count.

    Returns
    -------
    float
        From 0 to 1.

    Examples
    --------
    >>> reciprocal_rank(["a", "b", "c"], {"b", "c"}, k=3)
    0.5
    """
    return next((1.0 / rank for rank, item in enumerate(ranked[:k], start=1) if item in relevant), 0.0)


def _discount(rank: int) -> float:
    return 1.0 / math.log2(rank + 1)


LIKED = 4 / 5


def liked_share(ranked: Sequence[int], ratings: Mapping[int, float], k: int) -> float:
    """Return HR@k = liked items among the first k, divided by k.

    >>> liked_share([7, 8, 9], {7: 1.0, 8: 0.2, 9: 0.8}, k=2)
    0.5
    """
    return sum(ratings[item] >= LIKED for item in ranked[:k]) / k


def liked_ndcg(ranked: Sequence[int], ratings: Mapping[int, float], k: int) -> float:
    """Return NDCG@k with ratings as gains, relative to k items of the highest rating.

    >>> round(liked_ndcg([7, 8, 9], {7: 1.0, 8: 0.2, 9: 0.8}, k=3), 4)
    0.5719
    """
    first = ranked[:k]
    best = sorted(ratings, key=lambda item: (-ratings[item], item))[:k]
    gained = math.fsum(
        _weight(place) * ratings[item]
        for place, (item, rated) in enumerate(zip(first, best, strict=False), start=1)
        if ratings[item] >= LIKED and rated in first
    )
    return gained / math.fsum(_weight(place) for place in range(1, k + 1))


def _weight(place: int) -> float:
    return 1.0 / math.log2(max(place, 2))


_Labels = NDArray[np.int64]


def adjusted_rand_index(one: _Labels, other: _Labels) -> float:
    """Return how far two groupings agree beyond chance (Hubert and Arabie, 1985).

    Parameters
    ----------
    one, other : array of int64
        A group for each user, from 0, in the same order of users.

    Returns
    -------
    float
        1 if they are equal but for the numbers of groups, about 0 if they are random.

    Examples
    --------
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
    """Return the mean cosine of the item sets of two users of the same group, over all such pairs.

    Parameters
    ----------
    interactions : Interactions
        The rows of all users.
    labels : array of int64
        A group for each user, from 0, in the order of `interactions.users`.

    Returns
    -------
    float
        From 0 to 1; 0 if no group has two users.

    Examples
    --------
    >>> import pyarrow as pa
    >>> rows, _ = Interactions.from_columns(pa.array(["ann", "bob", "cy"]), pa.array(["tea", "tea", "milk"]))
    >>> within_group_cosine(rows, np.array([0, 0, 1]))
    1.0
    """
    sets = interactions.csr()
    sets.data = np.repeat(1 / np.sqrt(np.diff(sets.indptr)), np.diff(sets.indptr))
    members = sparse.csr_array((np.ones(len(labels)), (labels, np.arange(len(labels)))))
    sizes = np.bincount(labels)
    # Rows have norm 1, so the squared norm of a group's sum is its size plus every ordered pair of its users once.
    total = float(np.square((members @ sets).data).sum()) - len(labels)
    return total / max(int((sizes * (sizes - 1)).sum()), 1)


def _pairs(counts: NDArray[np.float64] | NDArray[np.int64]) -> float:
    return float((counts * (counts - 1) / 2).sum())
