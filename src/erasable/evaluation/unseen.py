"""Items that a user does not have, drawn at random from seed, user and item ids alone."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from erasable.data import Ids
from erasable.models.ranking import ItemNumbers
from erasable.seeding import id_keys, mix


class UnseenItems:
    """Draws items of the catalogue for a user; whom else it is asked about never matters.

    Each pair of user and item has a hash, and the items with the smallest ones are drawn, each at most once. So one
    item more that the user has replaces at most one of those drawn.
    """

    def __init__(self, catalogue: Ids, seed: int, purpose: str) -> None:
        self._seed = seed
        self._purpose = purpose
        self._item_keys = id_keys(seed, f"{purpose} item", catalogue)

    def draw(self, user: str, count: int, seen: NDArray[np.integer[Any]]) -> ItemNumbers:
        """Return `count` items that are not seen, or those there are, ascending."""
        unseen = np.ones(len(self._item_keys), dtype=bool)
        unseen[seen] = False
        items = np.flatnonzero(unseen)
        if count >= len(items):
            return items
        hashes = mix(id_keys(self._seed, f"{self._purpose} user", [user]), self._item_keys[items])
        return np.sort(items[np.argpartition(hashes, count)[:count]])
