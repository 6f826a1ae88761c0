"""Dividing users into groups that need no vectors: at random, or each by their own id; and the order of groups."""

import numpy as np
from numpy.typing import NDArray

from erasable.data import Interactions
from erasable.errors import NotYet, Refused
from erasable.grouping.settings import GroupingSettings
from erasable.seeding import id_keys

Labels = NDArray[np.int64]


def assign_positions(interactions: Interactions, settings: GroupingSettings, seed: int) -> Labels:
    """Return for each user the position in the chain of the group that they belong to."""
    if settings.groups > len(interactions.users) and settings.grouping != "independent":
        raise Refused(
            f"{settings.groups} groups for {len(interactions.users)} users: give --groups a number of at most that"
        )
    labels = _labels(interactions, settings, seed)
    return _positions(labels, interactions, settings)


def _labels(interactions: Interactions, settings: GroupingSettings, seed: int) -> Labels:
    if settings.grouping == "random":
        return random_labels(interactions, settings.groups, seed)
    if settings.grouping == "independent":
        return independent_labels(interactions, settings.groups, seed)
    raise NotYet(f"the grouping {settings.grouping} is not there yet: choose random or independent")


def random_labels(interactions: Interactions, groups: int, seed: int) -> Labels:
    """Deal users out in random order, so that no group exceeds the ceiling of users over groups."""
    order = np.argsort(id_keys(seed, "random group", interactions.users), kind="stable")
    labels = np.empty(len(order), dtype=np.int64)
    labels[order] = np.arange(len(order)) % groups
    return labels


def independent_labels(interactions: Interactions, groups: int, seed: int) -> Labels:
    """Choose each user's group from a keyed hash of their own id alone; sizes are not capped."""
    keys = id_keys(seed, "independent group", interactions.users)
    return (keys % np.uint64(groups)).astype(np.int64)


def _positions(labels: Labels, interactions: Interactions, settings: GroupingSettings) -> Labels:
    """Turn group numbers into positions."""
    if settings.order in ("easy", "hard"):
        raise NotYet(f"the order {settings.order} needs cohesion, which is not there yet: choose number or count")
    if settings.order == "number":
        return labels
    counts = np.bincount(labels, weights=np.diff(interactions.user_starts), minlength=settings.groups)
    place = np.empty(settings.groups, dtype=np.int64)
    place[np.argsort(-counts, kind="stable")] = np.arange(settings.groups)
    return place[labels]
