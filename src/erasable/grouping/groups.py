"""The Group module from end to end: interactions to groups in the order in which they are trained."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from erasable.data import Interactions, RatingScale
from erasable.errors import Refused
from erasable.grouping.balanced_clustering import balanced_k_means, balanced_label_propagation, balanced_mixture
from erasable.grouping.bipartite import bipartite_graph
from erasable.grouping.cohesion import Cohesion, cohesion_of_groups
from erasable.grouping.order import positions_of_groups
from erasable.grouping.parallel import ALONE, GroupingEffort
from erasable.grouping.points import Labels, Points
from erasable.grouping.settings import GroupingSettings
from erasable.grouping.user_space import user_space
from erasable.seeding import id_keys

MOST_CELLS = 250_000_000
"""How large a table of (user, group) or (column, group) may be, of 8 bytes each; beyond that grouping is refused."""

_CLUSTERINGS = {
    "cbkm": balanced_k_means,
    "cbkm-near": balanced_k_means,
    "bkm": balanced_k_means,
    "clpa": balanced_label_propagation,
    "cgmm": balanced_mixture,
}


@dataclass(frozen=True, eq=False)
class Grouping:
    """The position in the chain of each user's group, and the cohesion of the group at each position."""

    positions: NDArray[np.int64]
    cohesion: tuple[Cohesion | None, ...]


def assign_groups(
    interactions: Interactions,
    scale: RatingScale,
    settings: GroupingSettings,
    seed: int,
    effort: GroupingEffort = ALONE,
) -> Grouping:
    """Divide users into groups and put the groups in order."""
    users = interactions.users
    if settings.grouping == "independent" or settings.groups == 1 or not len(users):
        return Grouping(independent_labels(interactions, settings.groups, seed), (None,) * settings.groups)
    _check_room(interactions, settings)
    graph = bipartite_graph(interactions, scale)
    space = user_space(graph, users, settings, seed, effort)
    with effort.track("groups"):
        labels = label_users(space, interactions, settings, seed, effort.threads)
    with effort.track("cohesion"):
        cohesion = cohesion_of_groups(space, labels, settings.groups, seed, effort.threads)
    _say_clamped(cohesion, effort)
    counts = np.bincount(labels[interactions.user_index], minlength=settings.groups)
    positions = positions_of_groups(settings.order, cohesion, counts)
    return Grouping(positions[labels], tuple(cohesion[group] for group in np.argsort(positions)))


def label_users(
    space: Points, interactions: Interactions, settings: GroupingSettings, seed: int, threads: int
) -> Labels:
    """Give each user a group number by where they are in a space; the order is not decided here."""
    if settings.grouping == "random":
        return random_labels(interactions, settings.groups, seed)
    return _CLUSTERINGS[settings.grouping](space, settings.groups, seed, threads)


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


def _say_clamped(cohesion: Sequence[Cohesion], effort: GroupingEffort) -> None:
    most = max(group.clamped for group in cohesion)
    if most > 0:
        effort.note(
            f"up to {most:.2%} of the pairs of users in a group are alike: cohesion counts them as a thousandth of the "
            "spread of all users apart"
        )


def _check_room(interactions: Interactions, settings: GroupingSettings) -> None:
    columns = len(interactions.items) if settings.grouping == "bkm" else 0
    if settings.grouping != "random" and settings.groups * max(len(interactions.users), columns) > MOST_CELLS:
        raise Refused(
            f"{settings.groups} groups are too many for --grouping {settings.grouping} of {len(interactions.users):,} "
            f"users and {len(interactions.items):,} items: give fewer --groups, or --grouping random"
        )
