"""Synthetic interactions with planted groups, so that the best recommendations are known."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from erasable.checked_settings import CheckedSettings
from erasable.data.ids import Ids
from erasable.data.interactions import Interactions
from erasable.seeding import id_keys, mix

_USERS_AT_ONCE = 65_536
_UNIT = 2.0**-53


class SyntheticSettings(CheckedSettings):
    """The settings of synthetic data."""

    users: int = Field(default=1000, ge=1)
    """How many users."""
    items: int = Field(default=400, ge=1)
    """How many items, shared out to the groups in blocks."""
    groups: int = Field(default=8, ge=1)
    """How many groups of users, each with its own block of items."""
    per_user: int = Field(default=20, ge=1)
    """About how many distinct items each user has."""
    in_group: float = Field(default=0.8, ge=0, le=1)
    """The share of draws that fall into the block of the user's own group."""
    popularity_exponent: float = Field(default=0.5, ge=0)
    """An item of rank r in its block is drawn in proportion to r to the power of minus this."""
    ratings: bool = False
    """Whether to give ratings: 3 to 5 inside the block, 1 to 3 outside; else every rating is 1."""
    seed: int = 0
    """The seed; each user's rows depend on it and the user's own id."""

    @model_validator(mode="after")
    def _enough_items(self) -> "SyntheticSettings":
        if self.items < self.groups or self.items < self.per_user:
            raise ValueError("give at least as many items as groups and as items for each user")
        return self


@dataclass(frozen=True, eq=False)
class SyntheticData:
    """Synthetic interactions with their ground truth: each user's group, and each item's probability."""

    settings: SyntheticSettings
    interactions: Interactions
    labels: NDArray[np.int64]

    @cached_property
    def block_of_item(self) -> NDArray[np.int64]:
        """The group whose block each item belongs to."""
        return _block_of_item(self.settings)

    def probabilities(self, user_position: int) -> NDArray[np.float64]:
        """Return the true probability that a draw of this user gives each item."""
        settings = self.settings
        weight = _weights(settings)
        own = self.block_of_item == self.labels[user_position]
        share = _in_group_share(settings)
        chance = np.where(own, weight * (share / weight[own].sum()), 0.0)
        if not own.all():
            chance += np.where(own, 0.0, weight * ((1 - share) / weight[~own].sum()))
        return chance

    def best_items(self, user_position: int, k: int, exclude_seen: bool = True) -> list[str]:
        """Return the k item ids this user is most likely to draw, ties by id; items the user has are left out."""
        chance = self.probabilities(user_position)
        order = np.argsort(-chance, kind="stable")
        if exclude_seen:
            begin, end = self.interactions.user_starts[user_position : user_position + 2]
            order = order[~np.isin(order, self.interactions.item_index[begin:end])]
        return self.interactions.items.take(order[:k]).texts()


def synthesise(settings: SyntheticSettings) -> SyntheticData:
    """Generate interactions; a user's rows depend on the settings and that user's own id alone."""
    users = _numbered("u", settings.users)
    items = _numbered("i", settings.items)
    keys = id_keys(settings.seed, "synthetic user", users)
    labels = np.arange(settings.users, dtype=np.int64) % settings.groups
    starts = range(0, settings.users, _USERS_AT_ONCE)
    parts = [
        _distinct_items(settings, keys[start : start + _USERS_AT_ONCE], labels[start : start + _USERS_AT_ONCE])
        for start in starts
    ]
    user_index = np.concatenate([rows + start for start, (rows, _) in zip(starts, parts, strict=True)])
    item_index = np.concatenate([drawn for _, drawn in parts])
    rating = _ratings(settings, keys, labels, user_index, item_index)
    return SyntheticData(settings, Interactions(users, items, user_index, item_index, rating), labels)


def _numbered(letter: str, count: int) -> Ids:
    # Padded with zeros, so that the order of the bytes is the order of the numbers.
    width = max(4, len(str(count)))
    return Ids.of(f"{letter}{number:0{width}d}" for number in range(1, count + 1))


def _distinct_items(
    settings: SyntheticSettings, keys: NDArray[np.uint64], labels: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return (user, item) numbers in order: each user's first `per_user` distinct items of twice as many draws."""
    drawn = _draws(settings, keys, labels, 2 * settings.per_user)
    order = np.argsort(drawn, axis=1, kind="stable")
    in_order = np.take_along_axis(drawn, order, axis=1)
    repeats = np.zeros(drawn.shape, dtype=bool)
    repeats[:, 1:] = in_order[:, 1:] == in_order[:, :-1]
    fresh = np.empty(drawn.shape, dtype=bool)
    np.put_along_axis(fresh, order, ~repeats, axis=1)
    wanted = fresh & (np.cumsum(fresh, axis=1) <= settings.per_user)
    keep = np.take_along_axis(wanted, order, axis=1)
    return np.nonzero(keep)[0], in_order[keep]


def _draws(
    settings: SyntheticSettings, keys: NDArray[np.uint64], labels: NDArray[np.int64], count: int
) -> NDArray[np.int64]:
    """Draw items by one search in the cumulative weights, inside or outside the block of the user's own group."""
    counters = np.arange(count, dtype=np.uint64)
    inside = _uniforms(keys, 2 * counters) < _in_group_share(settings)
    place = _uniforms(keys, 2 * counters + np.uint64(1))
    edges = np.concatenate([[0.0], np.cumsum(_weights(settings))])
    bounds = np.searchsorted(_block_of_item(settings), np.arange(settings.groups + 1))
    low, high = edges[bounds[labels]][:, None], edges[bounds[labels + 1]][:, None]
    outside = place * (edges[-1] - (high - low))
    target = np.where(inside, low + place * (high - low), outside + np.where(outside >= low, high - low, 0.0))
    return np.minimum(np.searchsorted(edges, target, side="right") - 1, settings.items - 1)


def _uniforms(keys: NDArray[np.uint64], counters: NDArray[np.uint64]) -> NDArray[np.float64]:
    return (mix(keys[:, None], counters[None, :]) >> np.uint64(11)).astype(np.float64) * _UNIT


def _in_group_share(settings: SyntheticSettings) -> float:
    return settings.in_group if settings.groups > 1 else 1.0


def _block_of_item(settings: SyntheticSettings) -> NDArray[np.int64]:
    return np.arange(settings.items, dtype=np.int64) * settings.groups // settings.items


def _weights(settings: SyntheticSettings) -> NDArray[np.float64]:
    block = _block_of_item(settings)
    first = np.searchsorted(block, np.arange(settings.groups))
    rank = np.arange(settings.items) - first[block] + 1
    return np.power(rank.astype(np.float64), -settings.popularity_exponent)


def _ratings(
    settings: SyntheticSettings,
    keys: NDArray[np.uint64],
    labels: NDArray[np.int64],
    user_index: NDArray[np.int64],
    item_index: NDArray[np.int64],
) -> NDArray[np.float32]:
    if not settings.ratings:
        return np.ones(len(user_index), dtype=np.float32)
    own = _block_of_item(settings)[item_index] == labels[user_index]
    # Counters far above those of the draws, so that a rating never shares a draw's bits.
    bits = mix(keys[user_index], item_index.astype(np.uint64) + np.uint64(2**32))
    spread = (bits >> np.uint64(32)) % np.uint64(3)
    return (np.where(own, 3, 1) + spread).astype(np.float32)
