"""Who has which item and how strongly, from both sides: items of users and users of items."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from erasable.data import Interactions, RatingScale


class BipartiteGraph(NamedTuple):
    """The user-item graph with positive weights, as two row-compressed tables; numbers ascend in both."""

    item_starts: NDArray[np.int64]
    """Where each user's items begin."""
    items: NDArray[np.int32]
    item_weights: NDArray[np.float64]
    user_starts: NDArray[np.int64]
    """Where each item's users begin."""
    users: NDArray[np.int32]
    user_weights: NDArray[np.float64]

    @property
    def user_count(self) -> int:
        """How many users there are."""
        return len(self.item_starts) - 1

    @property
    def item_count(self) -> int:
        """How many items there are, with or without a user."""
        return len(self.user_starts) - 1


def bipartite_graph(interactions: Interactions, scale: RatingScale) -> BipartiteGraph:
    """Build the graph; a weight is rating − scale minimum + 1, so that the lowest rating still counts."""
    weights = interactions.rating.astype(np.float64) - scale.low + 1
    by_item = np.argsort(interactions.item_index, kind="stable")
    counts = np.bincount(interactions.item_index, minlength=len(interactions.items))
    return BipartiteGraph(
        item_starts=interactions.user_starts,
        items=interactions.item_index,
        item_weights=weights,
        user_starts=starts_of(counts),
        users=interactions.user_index[by_item],
        user_weights=weights[by_item],
    )


def starts_of(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where each row begins in a table of rows of these lengths, then the length of the table."""
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
