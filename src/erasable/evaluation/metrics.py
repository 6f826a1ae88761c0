"""Measures of one user's ranked list, as pure functions; which list is ranked is a protocol's business.

An item counts as relevant or not (binary gains); `relevant` is best given as a set.
"""

import math
from collections.abc import Collection, Hashable, Sequence


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

    IDCG is the same sum over all ranks r ≤ min(k, |relevant|): the best that any list could gain.

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
    """Return Recall@k = relevant items among the first k, over |relevant|.

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


def _discount(rank: int) -> float:
    return 1.0 / math.log2(rank + 1)
