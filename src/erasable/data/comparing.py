"""Whose data changed between two tables of interactions."""

import numpy as np
from numpy.typing import NDArray

from erasable.data.interactions import Interactions


def unchanged_users(before: Interactions, after: Interactions) -> NDArray[np.int64]:
    """Return for each user after where the user stood before with the very same items and ratings, −1 if nowhere.

    Items may have come and gone; those that stay must stand in the same order, else their owners count as changed.
    """
    places = before.users.positions_of(after.users.array)
    owned_before, owned_after = np.diff(before.user_starts), np.diff(after.user_starts)
    candidates = np.flatnonzero(places >= 0)
    candidates = candidates[owned_before[places[candidates]] == owned_after[candidates]]
    unchanged = np.full(len(places), -1, dtype=np.int64)
    if len(candidates):
        ours = _rows_of(after, candidates)
        theirs = _rows_of(before, places[candidates])
        items = _numbers_before(before, after)[after.item_index[ours]]
        equal = (items == before.item_index[theirs]) & (after.rating[ours] == before.rating[theirs])
        starts = np.concatenate([[0], np.cumsum(owned_after[candidates])[:-1]])
        same = np.logical_and.reduceat(equal, starts)
        unchanged[candidates[same]] = places[candidates[same]]
    return unchanged


def differing_rows(before: Interactions, after: Interactions) -> tuple[Interactions, Interactions]:
    """Return all rows of the users whose data changed, came or went: as they were, and as they are."""
    same = unchanged_users(before, after)
    stayed = np.zeros(len(before.users), dtype=bool)
    stayed[same[same >= 0]] = True
    return before.select(~stayed[before.user_index]), after.select((same < 0)[after.user_index])


def _numbers_before(before: Interactions, after: Interactions) -> NDArray[np.int64]:
    """Return the number that each item after had before, −1 if there was no such item."""
    if before.items == after.items:
        return np.arange(len(after.items))
    return before.items.positions_of(after.items.array)


def _rows_of(interactions: Interactions, users: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the numbers of the rows of some users, user by user."""
    starts, owned = interactions.user_starts[users], np.diff(interactions.user_starts)[users]
    first = np.repeat(starts - np.concatenate([[0], np.cumsum(owned)[:-1]]), owned)
    return first + np.arange(int(owned.sum()))
