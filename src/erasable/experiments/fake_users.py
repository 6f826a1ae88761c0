"""Fake users who push some items into recommendations: a profile injection attack, made up from a seed."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from erasable.data import Ids, Interactions, RatingScale
from erasable.seeding import child_key, id_keys, mix

PUSHED = 10
FILLERS = 30
_DRAWS = 8 * FILLERS


@dataclass(frozen=True, eq=False)
class FakeUsers:
    """The interactions of fake users, over the items of the real ones, and the items they push."""

    interactions: Interactions
    pushed: Ids

    @property
    def ids(self) -> list[str]:
        """The ids of the fake users, none of which is a real one's."""
        return self.interactions.users.texts()


def make_fake_users(real: Interactions, scale: RatingScale, count: int, seed: int) -> FakeUsers:
    """Make up users who give some unpopular items the highest rating, and rate popular ones to look real.

    Each rates the same 10 items of the less popular half of all items, and 30 fillers, drawn in proportion to how often
    items are rated, with the highest or the middle rating.
    """
    pushed = _pushed_items(real, seed)
    users = _new_ids(real.users, count)
    keys = id_keys(seed, "fake user", users)
    rows = [_rows(real, scale, pushed, key) for key in keys]
    user_index = np.repeat(np.arange(count, dtype=np.int32), [len(items) for items, _ in rows])
    item_index, rating = (np.concatenate(column) for column in zip(*rows, strict=True))
    return FakeUsers(Interactions(users, real.items, user_index, item_index, rating), real.items.take(pushed))


def with_fake_users(real: Interactions, fakes: FakeUsers) -> Interactions:
    """Return the interactions of the real and of the fake users."""
    return Interactions.merge([real, fakes.interactions])


def _pushed_items(real: Interactions, seed: int) -> NDArray[np.int64]:
    """Return the numbers of the pushed items; which they are depends on the seed, their ids and their popularity."""
    ratings = np.bincount(real.item_index, minlength=len(real.items))
    unpopular = np.argsort(ratings, kind="stable")[: max(1, len(ratings) // 2)]
    keys = id_keys(seed, "pushed item", real.items)[unpopular]
    return np.sort(unpopular[np.argsort(keys, kind="stable")[:PUSHED]])


def _new_ids(known: Ids, count: int) -> Ids:
    """Return ids that sort as they count; if real ids begin like them, they begin with more of the same."""
    prefix = "fake-"
    while any(user.startswith(prefix) for user in known):
        prefix = "fake-" + prefix
    return Ids.of(f"{prefix}{number:0{max(5, len(str(count)))}d}" for number in range(1, count + 1))


def _rows(
    real: Interactions, scale: RatingScale, pushed: NDArray[np.int64], key: np.uint64
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return the items of one fake user, ascending, and their ratings."""
    fillers = _fillers(real, pushed, key)
    coins = mix(np.array(child_key(int(key), "rating"), np.uint64), fillers.astype(np.uint64)) >> np.uint64(63)
    ratings = np.where(coins == 1, scale.high, (scale.low + scale.high) / 2)
    items = np.concatenate([pushed, fillers])
    order = np.argsort(items, kind="stable")
    return items[order], np.concatenate([np.full(len(pushed), scale.high), ratings])[order].astype(np.float32)


def _fillers(real: Interactions, pushed: NDArray[np.int64], key: np.uint64) -> NDArray[np.int64]:
    """Return different items, each that of a random interaction, so that popular ones are drawn more often."""
    rows = mix(np.array(key), np.arange(_DRAWS, dtype=np.uint64)) % np.uint64(len(real))
    drawn = dict.fromkeys(real.item_index[rows.astype(np.int64)].tolist())
    return np.array([item for item in drawn if item not in set(pushed.tolist())][:FILLERS], np.int64)
