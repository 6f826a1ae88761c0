"""The Group module from end to end: interactions to groups in the order in which they are trained."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from erasable.data import Interactions, RatingScale
from erasable.errors import Refused, option
from erasable.grouping.balanced_clustering import balanced_k_means, balanced_label_propagation, balanced_mixture
from erasable.grouping.bipartite import bipartite_graph
from erasable.grouping.cohesion import Cohesion, cohesion_of_groups
from erasable.grouping.order import positions_of_groups
from erasable.grouping.parallel import ALONE, GroupingEffort
from erasable.grouping.points import Labels, Points, rating_rows
from erasable.grouping.registry import labels_by
from erasable.grouping.settings import BY_LIKENESS, GroupingSettings
from erasable.grouping.user_space import user_space
from erasable.seeding import id_keys

MOST_CELLS = 250_000_000
"""How large a table of (user, group) or (column, group) may be, of 8 bytes each; beyond that grouping is refused."""

MOST_COMPARED = 300_000
"""How many users may all be compared with each other, which takes the square of that in steps."""

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
    if settings.grouping not in BY_LIKENESS and settings.order in ("number", "count"):  # nobody's likeness matters
        return _ordered(_plain_labels(interactions, settings, seed), None, interactions, settings)
    check_room(interactions, settings)
    space = user_space(bipartite_graph(interactions, scale), users, settings, seed, effort)
    with effort.track("groups"):
        labels = label_users(space, interactions, settings, seed, effort.threads)
    with effort.track("cohesion"):
        cohesion = cohesion_of_groups(space, labels, settings.groups, seed, effort.threads)
    _say_clamped(cohesion, effort)
    return _ordered(labels, cohesion, interactions, settings)


def cohesion_between_rows(
    groups: Sequence[Interactions], scale: RatingScale, seed: int, threads: int
) -> list[Cohesion]:
    """Return the cohesion of groups as they are, measured between rating rows."""
    everyone = Interactions.merge(groups)
    if not len(everyone):
        return [Cohesion(0.0, 0.0)] * len(groups)
    labels = np.empty(len(everyone.users), np.int64)
    for number, group in enumerate(groups):
        labels[everyone.users.positions_of(group.users.array)] = number
    return cohesion_of_groups(rating_rows(bipartite_graph(everyone, scale)), labels, len(groups), seed, threads)


def label_users(
    space: Points, interactions: Interactions, settings: GroupingSettings, seed: int, threads: int
) -> Labels:
    """Give each user a group number by where they are in a space; the order is not decided here."""
    if settings.grouping not in BY_LIKENESS:
        return _plain_labels(interactions, settings, seed)
    return _CLUSTERINGS[settings.grouping](space, settings.groups, seed, threads)


def _plain_labels(interactions: Interactions, settings: GroupingSettings, seed: int) -> Labels:
    """Give each user a group number without a space: at random, or as another package does."""
    if settings.grouping == "random":
        return random_labels(interactions, settings.groups, seed)
    return labels_by(settings.grouping, interactions, settings.groups, seed)


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


def _ordered(
    labels: Labels, cohesion: Sequence[Cohesion] | None, interactions: Interactions, settings: GroupingSettings
) -> Grouping:
    counts = np.bincount(labels[interactions.user_index], minlength=settings.groups)
    positions = positions_of_groups(settings.order, cohesion or (), counts)
    known = (None,) * settings.groups if cohesion is None else [cohesion[group] for group in np.argsort(positions)]
    return Grouping(positions[labels], tuple(known))


def _say_clamped(cohesion: Sequence[Cohesion], effort: GroupingEffort) -> None:
    most = max(group.clamped for group in cohesion)
    if most > 0:
        effort.note(
            f"up to {most:.2%} of the pairs of users in a group are alike: cohesion counts them as a thousandth of the "
            "spread of all users apart"
        )


def check_room(interactions: Interactions, settings: GroupingSettings) -> None:
    """Refuse what would take more memory or time than there is, before any work."""
    if settings.grouping == "clpa" and len(interactions.users) > MOST_COMPARED:
        raise Refused(
            option("grouping", "clpa"),
            f" compares everyone with everyone, at most {MOST_COMPARED:,} users: give ",
            option("grouping", "cgmm"),
        )
    columns = len(interactions.items) if settings.grouping == "bkm" else 0
    if settings.grouping in BY_LIKENESS and settings.groups * max(len(interactions.users), columns) > MOST_CELLS:
        raise Refused(
            f"{settings.groups} groups are too many for ",
            option("grouping", settings.grouping),
            f" of {len(interactions.users):,} users and {len(interactions.items):,} items: give fewer ",
            option("groups"),
            ", or ",
            option("grouping", "random"),
        )
