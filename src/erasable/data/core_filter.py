"""The k-core filter and its frozen result; it depends on other users, so it is off unless asked for."""

from dataclasses import dataclass

import numpy as np

from erasable.data.ids import Ids
from erasable.data.interactions import Interactions
from erasable.errors import DataRefused, WrongUse, option


@dataclass(frozen=True)
class CoreFilter:
    """The users and items that a k-core filter left, kept like the groups and not computed anew."""

    users: Ids
    items: Ids

    @classmethod
    def of(cls, interactions: Interactions, minimum: int) -> "CoreFilter":
        """Compute the filter and freeze its result."""
        core = k_core(interactions, minimum)
        return cls(core.users, core.items)

    def apply(self, interactions: Interactions) -> Interactions:
        """Keep only the rows whose user and item are in the frozen lists."""
        return apply_frozen(interactions, self.users, self.items)


def k_core(interactions: Interactions, minimum: int) -> Interactions:
    """Drop users and items with fewer than `minimum` interactions, repeatedly until nothing changes."""
    if minimum < 0:
        raise WrongUse(option("min_interactions", minimum), " makes no sense: give 0 (off) or more")
    if minimum == 0:
        return interactions
    users, items = interactions.user_index, interactions.item_index
    while True:
        many_users = np.bincount(users, minlength=len(interactions.users)) >= minimum
        many_items = np.bincount(items, minlength=len(interactions.items)) >= minimum
        keep = many_users[users] & many_items[items]
        if keep.all():
            break
        users, items = users[keep], items[keep]
    return apply_frozen(
        interactions,
        interactions.users.take(np.flatnonzero(many_users)),
        interactions.items.take(np.flatnonzero(many_items)),
    )


def apply_frozen(interactions: Interactions, users: Ids, items: Ids) -> Interactions:
    """Keep only the rows whose user and item are in the frozen lists, numbered by the frozen items."""
    known_users = users.positions_of(interactions.users.array) >= 0
    known_items = items.positions_of(interactions.items.array) >= 0
    keep = known_users[interactions.user_index] & known_items[interactions.item_index]
    if not keep.any():
        raise DataRefused("the filter leaves no interaction: lower ", option("min_interactions"))
    return interactions.select(keep).with_items(items)
