"""The curriculum: in which order the groups are trained."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from erasable.grouping.cohesion import Cohesion
from erasable.grouping.settings import OrderName


def positions_of_groups(
    order: OrderName | None, cohesion: Sequence[Cohesion], interactions: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the position of each group in the chain, easy being a high cohesion; groups that tie stand by number."""
    keys = np.zeros(len(interactions))
    if order in ("easy", "hard"):
        keys = np.array([group.value for group in cohesion]) * (1 if order == "hard" else -1)
    elif order == "count":
        keys = -interactions.astype(np.float64)
    positions = np.empty(len(interactions), np.int64)
    positions[np.argsort(keys, kind="stable")] = np.arange(len(interactions))
    return positions
