"""From interactions to knowledge: what is held out, and who is trained together; at learning and at regrouping."""

from collections.abc import Collection, Mapping
from contextlib import nullcontext
from dataclasses import replace

import numpy as np

from erasable.data import Interactions, k_core, split_holdout
from erasable.errors import DataRefused
from erasable.grouping import Grouping, GroupingEffort, assign_groups
from erasable.grouping.registry import BUILT_IN
from erasable.models import one_blas_thread
from erasable.training.state import Knowledge

Positions = Mapping[str, int]


def arrange(
    interactions: Interactions,
    frame: Knowledge,
    effort: GroupingEffort,
    given: Positions | None = None,
    risky: Collection[str] = (),
) -> Knowledge:
    """Put interactions into a frame of settings: split off the holdout, divide into groups.

    If a catalogue was declared they are numbered by it.
    With positions given for every user, nothing is decided about groups. Risky users come after all groups.
    """
    config = frame.config
    training, held_out = split_holdout(interactions, config.holdout, config.seed)
    if given is not None:
        grouping = _given_grouping(training, given, config.groups)
    elif any(user in training.users for user in risky):
        grouping = _grouped_apart(training, risky, frame, effort)
    else:
        grouping = _grouped(training, frame, effort)
    of_row = grouping.positions[training.user_index]
    groups = tuple(training.select(of_row == position) for position in range(len(grouping.cohesion)))
    return replace(frame, groups=groups, held_out=held_out, cohesion=grouping.cohesion).tidied()


def _grouped_apart(
    training: Interactions, risky: Collection[str], frame: Knowledge, effort: GroupingEffort
) -> Grouping:
    """Group the others as if the risky were not there, and put the risky into one more group behind them."""
    config, others = frame.config, training.without(users=risky)
    grouping = _grouped(others, frame, effort)
    positions = np.full(len(training.users), config.groups, dtype=np.int64)
    positions[training.users.positions_of(others.users.array)] = grouping.positions
    return Grouping(positions, (*grouping.cohesion, None))


def _grouped(training: Interactions, frame: Knowledge, effort: GroupingEffort) -> Grouping:
    """Decide groups; a grouping of another package need not think of BLAS threads, ours give the same on any number."""
    config = frame.config
    with nullcontext() if config.grouping in BUILT_IN else one_blas_thread():
        return assign_groups(training, frame.scale, config.dividing, config.seed, effort)


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
    return Grouping(positions, (None,) * max(groups, 1 + int(np.max(positions, initial=-1))))
