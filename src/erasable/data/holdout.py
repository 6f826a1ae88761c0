"""The holdout: which interactions are kept from training, decided for each user alone; no evaluation."""

import numpy as np
from numpy.typing import NDArray

from erasable.data.interactions import Interactions
from erasable.errors import WrongUse, option
from erasable.seeding import id_keys, mix


def split_holdout(interactions: Interactions, rate: float, seed: int) -> tuple[Interactions, Interactions]:
    """Return (training, held out): what hashes below the rate is held out, save each user's largest hash."""
    if not 0 <= rate < 1:
        raise WrongUse(option("holdout", float(rate)), " makes no sense: give a share from 0 to below 1, such as 0.2")
    held = np.zeros(len(interactions), bool)
    if rate > 0:  # else nothing need be hashed
        hashes = pair_hashes(interactions, seed)
        held = hashes < np.uint64(int(rate * 2**64))
        held[kept_rows(interactions, hashes)] = False
    return interactions.select(~held), interactions.select(held)


def pair_hashes(interactions: Interactions, seed: int) -> NDArray[np.uint64]:
    """Return 64 bits for each row, a function of seed, user id and item id alone."""
    users = id_keys(seed, "holdout user", interactions.users)
    items = id_keys(seed, "holdout item", interactions.items)
    return mix(users[interactions.user_index], items[interactions.item_index])


def kept_rows(interactions: Interactions, hashes: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return each user's row with the largest hash; among equals the first by item id."""
    if not len(interactions):
        return np.empty(0, dtype=np.int64)
    largest = np.maximum.reduceat(hashes, interactions.user_starts[:-1])
    candidates = np.flatnonzero(hashes == largest[interactions.user_index])
    # The numbers of a grown catalogue don't follow the ids, so ties need the ids' own order.
    rank = np.argsort(np.asarray(interactions.items.positions_of(interactions.items.sorted().array)))
    by_item = np.lexsort((rank[interactions.item_index[candidates]], interactions.user_index[candidates]))
    ordered = candidates[by_item]
    _, first = np.unique(interactions.user_index[ordered], return_index=True)
    return ordered[first]
