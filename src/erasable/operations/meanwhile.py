"""Meanwhile: what an open request means for the person until the version without their data is there.

Whoever asks for everything is not served. Whoever asks for some items is served from a row represented without them,
under the shared parameters that are current, where rows are solved or the model has none (ease). Where rows are trained
in a stage, the row was trained on these items too, so the person is not served either.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from erasable.data import Interactions, over_own_items, split_holdout
from erasable.errors import UnknownUser
from erasable.requests.asked import Asked
from erasable.training import Knowledge, Place
from erasable.unlearning import Subject

Meanwhile = Literal["not served", "served without these items"]
NOT_SERVED: Meanwhile = "not served"
SERVED_WITHOUT: Meanwhile = "served without these items"


@dataclass(frozen=True)
class Lessened:
    """What is left of a person's data without some items, as it will be once they are erased."""

    items: frozenset[str] = field(repr=False)
    """What was asked for."""
    place: Place
    training: Interactions = field(repr=False)
    owned: NDArray[np.int32] = field(repr=False)
    """The numbers of the items that are left, held out or not."""


def can_serve_without(knowledge: Knowledge) -> bool:
    """Whether people can be served without some items at once: rows are solved, or there are none."""
    config = knowledge.config
    return config.aggregate is None and (knowledge.solves_rows or not config.learner.has_rows)


def lessened(knowledge: Knowledge, user: str, items: frozenset[str]) -> Lessened | None:
    """Return what a person has without some items; None if nothing is left, or people can't be served so.

    Which of it is held out depends on the person's own interactions alone, and is decided anew, as erasing does.
    """
    if not can_serve_without(knowledge):
        return None
    try:
        position, row = knowledge.find(user)
    except UnknownUser:
        return None
    group, held_out = knowledge.groups[position], knowledge.held_out
    parts = [group.at(np.array([row]))]
    other = int(held_out.users.positions([user])[0]) if len(held_out) else -1
    if other >= 0:
        parts.append(held_out.at(np.array([other])))
    left = Interactions.merge(parts).without(pairs=[(user, item) for item in items])
    if not len(left):
        return None
    (own,) = over_own_items([left])  # ids decide what is held out: no other item need be hashed
    training, _ = split_holdout(own, knowledge.config.holdout, knowledge.config.seed)
    return Lessened(items, (position, row), training.with_items(knowledge.items), left.item_index)


def all_lessened(
    knowledge: Knowledge, asked: Asked, before: Mapping[str, Lessened | None] | None = None
) -> dict[str, Lessened | None]:
    """Return the same for everyone who asks for some items; what was worked out before is not worked out again."""
    known = before or {}
    found = dict[str, Lessened | None]()
    for user, items in asked.some.items():
        kept = known.get(user)
        found[user] = kept if kept is not None and kept.items == items else lessened(knowledge, user, items)
    return found


def not_served(knowledge: Knowledge, asked: Asked) -> frozenset[str]:
    """Return who of those who have asked is not served."""
    return asked.wholly.union(user for user, left in all_lessened(knowledge, asked).items() if left is None)


def served_meanwhile(knowledge: Knowledge, requests: Iterable[Subject]) -> int:
    """Return how many of those who ask are served until it is carried out, without the items that they asked for."""
    asked = Asked.of(requests)
    return len(asked.people - not_served(knowledge, asked))


def meanwhile(knowledge: Knowledge, request: Subject) -> Meanwhile:
    """Say what a request means for the person until it is carried out."""
    if request.items is None or lessened(knowledge, request.user, frozenset(request.items)) is None:
        return NOT_SERVED
    return SERVED_WITHOUT
