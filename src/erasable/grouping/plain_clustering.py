"""Plain k-means, which minds no sizes: what balanced groups are compared with (the paper's Appendix B.1)."""

import numpy as np

from erasable.grouping.centres import centres_of, first_centres
from erasable.grouping.points import Labels, Points, squared_distances
from erasable.seeding import child_key

MOST_ROUNDS = 100


def plain_k_means(points: Points, groups: int, seed: int, threads: int) -> Labels:
    """Give each point to the nearest centre, and move the centres, until labels repeat."""
    centres = first_centres(points, groups, child_key(seed, "first centres", 0), threads)
    labels = np.argmin(squared_distances(points, centres, threads), axis=1)
    for _ in range(MOST_ROUNDS):
        before, centres = labels, centres_of(points, labels, groups)
        labels = np.argmin(squared_distances(points, centres, threads), axis=1)
        if np.array_equal(labels, before):
            break
    return labels
