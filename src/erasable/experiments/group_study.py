"""What there is to see in the groups of a recommender; vectors are computed anew for it and kept nowhere."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from erasable.data import Interactions
from erasable.errors import Refused
from erasable.grouping import GroupingSettings
from erasable.grouping.bipartite import bipartite_graph
from erasable.grouping.cohesion import cohesion_of_groups
from erasable.grouping.groups import check_room, label_users
from erasable.grouping.hypergraph import MOST_PAIRS, most_pairs
from erasable.grouping.plain_clustering import plain_k_means
from erasable.grouping.points import Labels, Points
from erasable.grouping.settings import GroupingName
from erasable.grouping.user_space import user_space
from erasable.operations import Home, Work
from erasable.training import Knowledge

COMPARED: tuple[GroupingName, ...] = ("random", "bkm", "cbkm", "cbkm-near")


@dataclass(frozen=True, eq=False)
class GroupStudy:
    """Group sizes of plain k-means and of the recommender, cohesion of groupings in one space, and a map of users."""

    grouping: str
    sizes: Mapping[str, NDArray[np.int64]]
    """Group sizes, largest first, by what made the groups (the paper's Appendix B.1)."""
    cohesion: Mapping[str, NDArray[np.float64]]
    """The ρ of each group, by grouping, all measured between rating rows (the paper's Appendix D.2)."""
    places: NDArray[np.float64]
    """Two coordinates of each user: the two directions in which the vectors of `cbkm-near` vary most."""
    positions: Labels
    """The position of each user's group in the chain."""


def study_groups(home: Home, work: Work) -> GroupStudy:
    """Compare the groups of a recommender with those that other groupings would make of its data."""
    with home.reading() as session:
        knowledge = session.state().knowledge
        training = Interactions.merge(list(knowledge.groups))
    if len(training.users) < 2:
        raise Refused("there are fewer than two users: nothing can be drawn")
    check_room(training, _settings("bkm", knowledge))
    positions = _positions(knowledge, training)
    names = _compared(training, knowledge)
    spaces = {name: _space(name, training, knowledge, work) for name in names}
    with work.reporter.track("comparing groupings"):
        labels: dict[str, Labels] = {name: _labels(name, spaces[name], training, knowledge, work) for name in names}
        compared = {**labels, knowledge.config.grouping: positions}
        return GroupStudy(
            grouping=knowledge.config.grouping,
            sizes=_sizes(spaces, positions, knowledge, work),
            cohesion={name: _cohesion(spaces["bkm"], groups, work) for name, groups in compared.items()},
            places=_main_directions(spaces["cbkm-near"]),
            positions=positions,
        )


def _compared(training: Interactions, knowledge: Knowledge) -> tuple[GroupingName, ...]:
    """Return the groupings to compare with; not the paper's where its hypergraph can't be built and takes hours."""
    too_large = most_pairs(bipartite_graph(training, knowledge.scale)) > MOST_PAIRS
    return tuple(name for name in COMPARED if not (too_large and name == "cbkm"))


def _positions(knowledge: Knowledge, training: Interactions) -> Labels:
    positions = np.empty(len(training.users), np.int64)
    for position, group in enumerate(knowledge.groups):
        positions[training.users.positions(group.users.texts())] = position
    return positions


def _space(name: GroupingName, training: Interactions, knowledge: Knowledge, work: Work) -> Points:
    graph = bipartite_graph(training, knowledge.scale)
    return user_space(graph, training.users, _settings(name, knowledge), knowledge.config.seed, work.grouping)


def _labels(name: GroupingName, space: Points, training: Interactions, knowledge: Knowledge, work: Work) -> Labels:
    return label_users(space, training, _settings(name, knowledge), knowledge.config.seed, work.threads)


def _settings(name: GroupingName, knowledge: Knowledge) -> GroupingSettings:
    return GroupingSettings(grouping=name, groups=len(knowledge.groups))


def _sizes(
    spaces: Mapping[GroupingName, Points], positions: Labels, knowledge: Knowledge, work: Work
) -> dict[str, NDArray[np.int64]]:
    groups, seed = len(knowledge.groups), knowledge.config.seed
    found = {
        "plain k-means on rating rows": plain_k_means(spaces["bkm"], groups, seed, work.threads),
        "plain k-means on vectors": plain_k_means(spaces["cbkm-near"], groups, seed, work.threads),
        knowledge.config.grouping: positions,
    }
    return {name: np.sort(np.bincount(labels, minlength=groups))[::-1] for name, labels in found.items()}


def _cohesion(space: Points, labels: Labels, work: Work) -> NDArray[np.float64]:
    found = cohesion_of_groups(space, labels, int(labels.max()) + 1, 0, work.threads)
    return np.array([group.value for group in found])


def _main_directions(space: Points) -> NDArray[np.float64]:
    """Return the coordinates of points in the two directions of most variance (principal components)."""
    rows = space.values.reshape(space.size, space.width)
    centred = rows - rows.mean(axis=0)
    _, directions = np.linalg.eigh(centred.T @ centred)
    return centred @ directions[:, [-1, -2]]
