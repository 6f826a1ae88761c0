"""Assigning users to groups, measuring the cohesion of groups, and ordering them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from queue import SimpleQueue
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from erasable.data.interactions import Interactions, RatingScale
from erasable.errors import Refused, option
from erasable.grouping.balanced_clustering import balanced_k_means, balanced_label_propagation, balanced_mixture
from erasable.grouping.points import (
    ALONE,
    BipartiteGraph,
    Blocks,
    GroupingEffort,
    Labels,
    Points,
    bipartite_graph,
    narrowed,
    over_ranges,
    rating_rows,
    take_points,
)
from erasable.grouping.registry import BY_LIKENESS, BY_VECTORS, GroupingSettings, OrderName, find_vectors, labels_by
from erasable.seeding import child_key, id_keys
from erasable.seeding.compiled import below, compiled, draw
from erasable.wording import percentage

MOST_EXACT = 20_000
SAMPLED_PAIRS = 2_000_000
_CLOSEST = 1e-3
"""Distances below this share of the spread of all users are clamped to it; 1 / distance would have no bound."""


class Cohesion(NamedTuple):
    """How close the users of a group are.

    Attributes
    ----------
    value : float
        ρ = Σ over ordered pairs x ≠ y of 1 / distance(x, y), divided by the number of users.
    error : float
        Its standard error; 0 if all pairs were counted.
    clamped : float
        The share of pairs whose distance was clamped; reported when learning, and not stored.

    Examples
    --------
    >>> Cohesion(2.5, 0.0)
    Cohesion(value=2.5, error=0.0, clamped=0.0)
    """

    value: float
    error: float
    clamped: float = 0.0


def cohesion_of_groups(points: Points, labels: Labels, groups: int, seed: int, threads: int) -> list[Cohesion]:
    """Return the cohesion of each group; groups of more than `MOST_EXACT` users are measured on sampled pairs."""
    closest = _CLOSEST * _spread(points)
    found = []
    for group in range(groups):
        members = narrowed(take_points(points, np.flatnonzero(labels == group)))
        if members.size < 2 or closest == 0.0:  # no pair, or all users at one point
            found.append(Cohesion(0.0, 0.0, float(members.size > 1)))
        elif members.size <= MOST_EXACT:
            found.append(_exact(members, closest, threads))
        else:
            found.append(_sampled(members, closest, child_key(seed, "cohesion", group), threads))
    return found


def _spread(points: Points) -> float:
    """Return the root mean square distance of all points to their mean."""
    mean = np.bincount(points.columns, weights=points.values, minlength=points.width) / points.size
    return float(np.sqrt(max(0.0, points.squares.mean() - np.square(mean).sum())))


def _exact(members: Points, closest: float, threads: int) -> Cohesion:
    # One sum for each block, added in order afterwards, so that the number of threads changes nothing.
    sums = np.empty((Blocks.count(members), 2))
    idle: SimpleQueue[Blocks] = SimpleQueue()
    for _ in range(threads):
        idle.put(Blocks(members))

    def measure(begin: int, end: int) -> None:
        blocks = idle.get()
        for block in range(begin, end):
            first = block * Blocks.WIDTH
            sums[block] = _add_inverses(blocks.squared_distances(block, first), first, closest)
        idle.put(blocks)

    over_ranges(measure, len(sums), threads)
    total, clamped = sums.sum(axis=0).tolist()
    return Cohesion(2 * total / members.size, 0.0, 2 * clamped / (members.size * (members.size - 1)))


def _sampled(members: Points, closest: float, key: int, threads: int) -> Cohesion:
    inverses = np.empty(SAMPLED_PAIRS)
    over_ranges(
        lambda begin, end: _sample_inverses(begin, end, members, closest, np.uint64(key), inverses),
        SAMPLED_PAIRS,
        threads,
    )
    others = members.size - 1
    error = float(inverses.std()) / SAMPLED_PAIRS**0.5
    return Cohesion(float(inverses.mean()) * others, error * others, float(np.mean(inverses >= 1 / closest)))


@compiled(nogil=True)
def _add_inverses(distances: NDArray[np.float64], first: int, closest: float) -> tuple[float, int]:
    """Sum 1 / distance between the points from `first` on (rows) and a block of them (columns), each pair once.

    Also return how many pairs are not farther apart than `closest`.
    """
    total, clamped = 0.0, 0
    for row in range(first, distances.shape[0]):
        for column in range(min(distances.shape[1], row - first)):
            distance = np.sqrt(distances[row, column])
            total += 1.0 / max(distance, closest)
            clamped += distance <= closest
    return total, clamped


@compiled(nogil=True)
def _sample_inverses(
    begin: int, end: int, members: Points, closest: float, key: np.uint64, inverses: NDArray[np.float64]
) -> None:
    """Write 1 / distance for random pairs of distinct points, drawn with replacement."""
    count = len(members.squares)
    for pair in range(begin, end):
        one = below(draw(key, np.uint64(2 * pair)), count)
        other = below(draw(key, np.uint64(2 * pair + 1)), count - 1)
        other += other >= one
        inverses[pair] = 1.0 / max(np.sqrt(_squared_distance(members, one, other)), closest)


@compiled(nogil=True)
def _squared_distance(points: Points, one: int, other: int) -> float:
    left, right = points.starts[one], points.starts[other]
    product = 0.0
    while left < points.starts[one + 1] and right < points.starts[other + 1]:
        if points.columns[left] == points.columns[right]:
            product += points.values[left] * points.values[right]
            left += 1
            right += 1
        elif points.columns[left] < points.columns[right]:
            left += 1
        else:
            right += 1
    return max(0.0, points.squares[one] + points.squares[other] - 2.0 * product)


def positions_of_groups(
    order: OrderName | None, cohesion: Sequence[Cohesion], interactions: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the position of each group in the chain; easy means high cohesion, and ties go by number."""
    keys = np.zeros(len(interactions))
    if order in ("easy", "hard"):
        keys = np.array([group.value for group in cohesion]) * (1 if order == "hard" else -1)
    elif order == "count":
        keys = -interactions.astype(np.float64)
    positions = np.empty(len(interactions), np.int64)
    positions[np.argsort(keys, kind="stable")] = np.arange(len(interactions))
    return positions


def user_space(
    graph: BipartiteGraph, users: Iterable[str], settings: GroupingSettings, seed: int, effort: GroupingEffort
) -> Points:
    """Return users as points in the space in which a grouping compares them."""
    if settings.grouping not in BY_VECTORS:
        return rating_rows(graph)
    return find_vectors(settings)(graph, users, settings, seed, effort)


MOST_CELLS = 250_000_000
"""The largest table of (user, group) or (column, group), of 8 bytes each; grouping refuses a larger one."""

MOST_COMPARED = 300_000
"""The most users that are all compared with each other, which takes quadratic time."""

_CLUSTERINGS = {
    "cbkm": balanced_k_means,
    "cbkm-near": balanced_k_means,
    "bkm": balanced_k_means,
    "clpa": balanced_label_propagation,
    "cgmm": balanced_mixture,
}


@dataclass(frozen=True, eq=False)
class Grouping:
    """Who is trained together, and in which order.

    Attributes
    ----------
    positions : array of int64
        The position in the chain of each user's group.
    cohesion : tuple of Cohesion or None
        The cohesion of the group at each position, where it was computed.

    Examples
    --------
    >>> Grouping(np.array([0, 1, 0]), (None, None)).positions.tolist()
    [0, 1, 0]
    """

    positions: NDArray[np.int64]
    cohesion: tuple[Cohesion | None, ...]


def assign_groups(
    interactions: Interactions,
    scale: RatingScale,
    settings: GroupingSettings,
    seed: int,
    effort: GroupingEffort = ALONE,
) -> Grouping:
    """Divide users into groups and put the groups in order.

    Parameters
    ----------
    interactions : Interactions
        The rows of all users.
    scale : RatingScale
        The lowest and the highest possible rating.
    settings : GroupingSettings
        Which grouping, how many groups, which order.
    seed : int
        What all draws start from.
    effort : GroupingEffort, optional
        Threads and progress.

    Returns
    -------
    Grouping
        The position of each user's group, and the cohesion of groups.

    Raises
    ------
    erasable.errors.Refused
        If a grouping of another package fails or returns wrong labels, or the data are too large for this one.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from erasable.data import Interactions, RatingScale
    >>> rows, _ = Interactions.from_columns(pa.array(["ann", "bob", "cy", "dee"]), pa.array(["tea"] * 4))
    >>> found = assign_groups(rows, RatingScale(1, 1), GroupingSettings(grouping="random", groups=2), seed=0)
    >>> sorted(found.positions.tolist())
    [0, 0, 1, 1]
    """
    users = interactions.users
    if settings.grouping == "independent" or settings.groups == 1 or not len(users):
        return Grouping(independent_labels(interactions, settings.groups, seed), (None,) * settings.groups)
    if settings.grouping not in BY_LIKENESS and settings.order in ("number", "count"):  # no distances needed
        return _ordered(_plain_labels(interactions, settings, seed), None, interactions, settings)
    check_room(interactions, settings)
    space = user_space(bipartite_graph(interactions, scale), users, settings, seed, effort)
    with effort.reporter.track("groups"):
        labels = label_users(space, interactions, settings, seed, effort.threads)
    with effort.reporter.track("cohesion"):
        cohesion = cohesion_of_groups(space, labels, settings.groups, seed, effort.threads)
    _say_clamped(cohesion, effort)
    return _ordered(labels, cohesion, interactions, settings)


def cohesion_between_rows(
    groups: Sequence[Interactions], scale: RatingScale, seed: int, threads: int
) -> list[Cohesion]:
    """Return the cohesion of existing groups, measured between rating rows."""
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
    """Give each user a group number by their point in a space; the order of groups is decided later."""
    if settings.grouping not in BY_LIKENESS:
        return _plain_labels(interactions, settings, seed)
    return _CLUSTERINGS[settings.grouping](space, settings.groups, seed, threads)


def _plain_labels(interactions: Interactions, settings: GroupingSettings, seed: int) -> Labels:
    """Give each user a group number without a space: at random, or by another package's grouping."""
    if settings.grouping == "random":
        return random_labels(interactions, settings.groups, seed)
    return labels_by(settings.grouping, interactions, settings.groups, seed)


def random_labels(interactions: Interactions, groups: int, seed: int) -> Labels:
    """Assign users to groups in random order, so that no group exceeds ⌈users / groups⌉."""
    order = np.argsort(id_keys(seed, "random group", interactions.users), kind="stable")
    labels = np.empty(len(order), dtype=np.int64)
    labels[order] = np.arange(len(order)) % groups
    return labels


def independent_labels(interactions: Interactions, groups: int, seed: int) -> Labels:
    """Choose each user's group by a keyed hash of their own id alone; sizes are not capped."""
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
        effort.reporter.note(
            f"up to {percentage(most)} of the pairs of users in a group are alike: cohesion counts their distance as a "
            "thousandth of the spread of all users"
        )


def check_room(interactions: Interactions, settings: GroupingSettings) -> None:
    """Refuse a grouping that would take too much memory or time, before any work."""
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
