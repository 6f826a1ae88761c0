"""Compiled code that finds each user's nearest others by a cosine of item sets; `hypergraph` says which."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from erasable.grouping.bipartite import BipartiteGraph
from erasable.seeding.compiled import compiled


class Nearest(NamedTuple):
    """Room for each user's nearest, the user first and then by descending cosine, ties by number; −1 is nobody."""

    users: NDArray[np.int32]
    cosines: NDArray[np.float64]
    weights: NDArray[np.float64]  # the paper's w of each in the user's hyperedge


@compiled(nogil=True)
def collect_nearest(
    begin: int, end: int, graph: BipartiteGraph, shares: tuple[NDArray[np.float64], NDArray[np.float64]], out: Nearest
) -> None:
    """Write the nearest of each user in a range; only someone who shares an item is near.

    `shares` holds what sharing an item adds to the product of two users, and the length of each user's row.
    """
    of_item, lengths = shares
    users = len(graph.item_starts) - 1
    met = np.empty(users, np.int32)
    products = np.zeros(users)
    for user in range(begin, end):
        found = _meet(user, graph, of_item, met, products)
        out.users[user, 0] = user
        kept = 1
        for number in range(found):
            other = met[number]
            cosine = products[other] / (lengths[user] * lengths[other])
            products[other] = 0.0
            if other != user and (kept < out.users.shape[1] or cosine >= out.cosines[user, kept - 1]):
                kept = _insert(other, cosine, out.users[user], out.cosines[user], kept)
        for place in range(kept):
            out.weights[user, place] = _shared_weight(user, out.users[user, place], graph)
        out.users[user, kept:] = -1


@compiled(nogil=True)
def _meet(
    user: int,
    graph: BipartiteGraph,
    of_item: NDArray[np.float64],
    met: NDArray[np.int32],
    products: NDArray[np.float64],
) -> int:
    """List everyone who shares an item with a user, with the product of the two; return how many they are."""
    found = 0
    for place in range(graph.item_starts[user], graph.item_starts[user + 1]):
        item = graph.items[place]
        for position in range(graph.user_starts[item], graph.user_starts[item + 1]):
            other = graph.users[position]
            if products[other] == 0.0:
                met[found] = other
                found += 1
            products[other] += of_item[item]
    return found


@compiled(nogil=True)
def _insert(other: int, cosine: float, users: NDArray[np.int32], cosines: NDArray[np.float64], kept: int) -> int:
    """Put someone into a short list in its order, dropping the last if it is full; return how many it holds."""
    place = kept
    while place > 1 and (cosines[place - 1] < cosine or (cosines[place - 1] == cosine and users[place - 1] > other)):
        place -= 1
    if place == len(users):
        return kept
    kept = min(kept + 1, len(users))
    for later in range(kept - 1, place, -1):
        users[later] = users[later - 1]
        cosines[later] = cosines[later - 1]
    users[place] = other
    cosines[place] = cosine
    return kept


@compiled(nogil=True)
def _shared_weight(user: int, other: int, graph: BipartiteGraph) -> float:
    """Return w: the other's mean weight over the items that both have, of which there is one at least."""
    left, right = graph.item_starts[user], graph.item_starts[other]
    total, count = 0.0, 0
    while left < graph.item_starts[user + 1] and right < graph.item_starts[other + 1]:
        if graph.items[left] == graph.items[right]:
            total += graph.item_weights[right]
            count += 1
            left += 1
            right += 1
        elif graph.items[left] < graph.items[right]:
            left += 1
        else:
            right += 1
    return total / count
