"""From interactions to knowledge: what is held out, and who is trained together; at learning and at regrouping."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from erasable.data import Interactions, k_core, split_holdout
from erasable.errors import DataRefused
from erasable.grouping import Grouping, GroupingEffort, assign_groups
from erasable.training.state import Knowledge

Positions = Mapping[str, int]


def arrange(
    interactions: Interactions, frame: Knowledge, effort: GroupingEffort, given: Positions | None = None
) -> Knowledge:
    """Put interactions, numbered by the catalogue, into a frame of settings: split off the holdout, divide into groups.

    With positions given for every user, nothing is decided about groups.
    """
    config = frame.config
    training, held_out = split_holdout(interactions, config.holdout, config.seed)
    if given is None:
        grouping = assign_groups(training, frame.scale, config, config.seed, effort)
    else:
        grouping = _given_grouping(training, given, config.groups)
    of_row = grouping.positions[training.user_index]
    groups = tuple(training.select(of_row == position) for position in range(config.groups))
    return replace(frame, groups=groups, held_out=held_out, cohesion=grouping.cohesion)


def regrouped(knowledge: Knowledge, effort: GroupingEffort) -> Knowledge:
    """Return the same data with filter, holdout and groups decided anew, as if learned from it alone.

    The filter may be applied to what it left before: a k-core of what is left of a k-core is that of the whole.
    """
    everything = Interactions.merge([*knowledge.groups, knowledge.held_out])
    kept_items = knowledge.kept_items
    if knowledge.config.min_interactions:
        everything, kept_items = _filtered(everything, knowledge.config.min_interactions)
    return arrange(everything, replace(knowledge, kept_items=kept_items), effort)


def _filtered(interactions: Interactions, minimum: int) -> tuple[Interactions, frozenset[str]]:
    try:
        core = k_core(interactions, minimum)
    except DataRefused:  # nobody is left; an erasure is not refused for that
        return interactions.select(np.zeros(len(interactions), dtype=bool)), frozenset()
    return core.with_items(interactions.items), frozenset(core.items)


def _given_grouping(training: Interactions, given: Positions, groups: int) -> Grouping:
    positions = np.array([given[user] for user in training.users], dtype=np.int64)
    return Grouping(positions, (None,) * groups)
