"""The measures of the LASER authors' public code: a user's held-out items ranked among themselves, by their ratings.

The rule was read off the code that the authors published (the history of ZhangYizhao/UltraRE). A rating is divided by
the scale's highest; an item is liked from 4/5 on. Both measures differ from what their names say elsewhere:

- HR@k is the share of the k places that hold a liked item. A user with fewer than k liked items can't reach 1.
- NDCG@k adds up weight · rating over the first k places that hold a liked item and divides by the sum of all k weights,
  whatever the user could reach. The weights are 1, 1, 1/log₂3, 1/log₂4, …: the first two places count the same. Place p
  counts only if the item that the user rated p-th best is itself among the first k: that code compares two lists place
  by place, though they are ordered differently. It matters only with more than k items.

There, equal ratings and equal scores stand in the order of a shuffled file; here the lower item number comes first.
"""

import math
from collections.abc import Mapping, Sequence

LIKED = 4 / 5


def liked_share(ranked: Sequence[int], ratings: Mapping[int, float], k: int) -> float:
    """Return HR@k = liked items among the first k, over k.

    >>> liked_share([7, 8, 9], {7: 1.0, 8: 0.2, 9: 0.8}, k=2)
    0.5
    """
    return sum(ratings[item] >= LIKED for item in ranked[:k]) / k


def liked_ndcg(ranked: Sequence[int], ratings: Mapping[int, float], k: int) -> float:
    """Return NDCG@k with ratings as gains, against k places full of the highest rating.

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
