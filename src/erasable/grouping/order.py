"""The curriculum: in which order the groups are trained."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from erasable.grouping.cohesion import Cohesion
from erasable.grouping.settings import OrderName


def positions_of_groups(
    order: OrderName | None, cohesion: Sequence[Cohesion], interactions: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the position of each group in the chain; groups that tie stand by number.

    Easy is a high cohesion: the paper's ρ, divided by size, so that a group is not easy by being large.
    """
    keys: dict[OrderName | None, NDArray[np.float64]] = {
        "number": np.zeros(len(interactions)),
        "easy": -np.array([group.value for group in cohesion]),
        "hard": np.array([group.value for group in cohesion]),
        "count": -interactions.astype(np.float64),
    }
    positions = np.empty(len(interactions), np.int64)
    positions[np.argsort(keys[order], kind="stable")] = np.arange(len(interactions))
    return positions
