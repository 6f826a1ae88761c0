"""Anchors: the users whose data shape shared parameters; everyone else has a personal row only."""

import numpy as np
from numpy.typing import NDArray

from erasable.data import Ids
from erasable.seeding import id_keys


def anchors_among(users: Ids, share: float, seed: int) -> NDArray[np.bool_]:
    """Return who is an anchor: whose hash of seed and own id lies below the share, whoever else is there."""
    if share >= 1:
        return np.ones(len(users), dtype=bool)
    return id_keys(seed, "anchor", users) < np.uint64(int(share * 2**64))
