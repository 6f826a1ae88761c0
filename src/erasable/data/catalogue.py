"""What is decided before training: the catalogue, the k-core filter, and which interactions are held out."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from erasable.data._lines import numbered_lines
from erasable.data.ids import LONGEST_ID, Ids, encode_ids
from erasable.data.interactions import Interactions
from erasable.data.sources import local_source
from erasable.errors import DataRefused, WrongUse, option
from erasable.seeding import id_keys, mix


@dataclass(frozen=True)
class Catalogue:
    """A list of items with fixed numbers; a later version only appends, so an item keeps its number."""

    items: Ids
    versions: tuple[int, ...]
    declared: bool
    """Whether it was declared; otherwise it holds the items that 0.1 froze from the data."""

    def __post_init__(self) -> None:
        ascending = all(early < late for early, late in zip(self.versions, self.versions[1:], strict=False))
        if not self.versions or not ascending or self.versions[-1] != len(self.items):
            raise WrongUse("catalogue versions are growing item counts that end at the number of items")
        if self.versions[0] < 1:
            raise DataRefused("the catalogue is empty: give it at least one item")

    @classmethod
    def from_items(cls, items: Iterable[str]) -> "Catalogue":
        """Declare items as the first version, ordered by their UTF-8 bytes."""
        ids = (items if isinstance(items, Ids) else Ids.of(items)).sorted()
        return cls(ids, (len(ids),), declared=True)

    def grown(self, items: Iterable[str]) -> "Catalogue":
        """Return a later version with the new items appended, ordered by their UTF-8 bytes; itself if none is new."""
        new = Ids.of({item for item in items if item not in self.items}).sorted()
        if not len(new):
            return self
        joined = Ids.of([*self.items, *new])
        return Catalogue(joined, (*self.versions, len(joined)), self.declared)


def read_catalogue(path: str | Path) -> Catalogue:
    """Read a declared catalogue: one item id per line, as written; blank lines and repeats are skipped."""
    lines = [(number, text) for number, text in numbered_lines(local_source(path)) if text.strip()]
    for number, text in lines:
        if len(text) > LONGEST_ID:
            raise DataRefused(f"{path}, line {number}: the item has more than {LONGEST_ID:,} characters: shorten it")
    texts = [text for _, text in lines]
    if not texts:
        raise DataRefused(f"{path}: the catalogue is empty: write one item id a line")
    return Catalogue.from_items(dict.fromkeys(texts))


def over_own_items(parts: Sequence[Interactions]) -> list[Interactions]:
    """Number all parts by the items that occur in some row, ordered by their UTF-8 bytes.

    Parts that are already numbered like this are returned as they are.
    """
    had = [part.items.take(np.flatnonzero(np.bincount(part.item_index))).array for part in parts]
    items, _ = encode_ids(pa.concat_arrays(had))
    return [part if part.items == items else part.with_items(items) for part in parts]


@dataclass(frozen=True)
class CoreFilter:
    """The users and items that a k-core filter kept; frozen like the groups, and not computed again."""

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


def split_holdout(interactions: Interactions, rate: float, seed: int) -> tuple[Interactions, Interactions]:
    """Return (training, held out): a row is held out if its hash is below the rate, except each user's largest hash."""
    if not 0 <= rate < 1:
        raise WrongUse(option("holdout", float(rate)), " makes no sense: give a share from 0 to below 1, such as 0.2")
    held = np.zeros(len(interactions), bool)
    if rate > 0:  # else nothing need be hashed
        hashes = pair_hashes(interactions, seed)
        held = hashes < np.uint64(int(rate * 2**64))
        held[kept_rows(interactions, hashes)] = False
    return interactions.select(~held), interactions.select(held)


def pair_hashes(interactions: Interactions, seed: int) -> NDArray[np.uint64]:
    """Return a 64-bit hash of seed, user id and item id for each row."""
    users = id_keys(seed, "holdout user", interactions.users)
    items = id_keys(seed, "holdout item", interactions.items)
    return mix(users[interactions.user_index], items[interactions.item_index])


def kept_rows(interactions: Interactions, hashes: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return each user's row with the largest hash; of equal ones the first by item id."""
    if not len(interactions):
        return np.empty(0, dtype=np.int64)
    largest = np.maximum.reduceat(hashes, interactions.user_starts[:-1])
    candidates = np.flatnonzero(hashes == largest[interactions.user_index])
    # The numbers of a grown catalogue don't follow the ids, so ties need the ids' own order.
    rank = np.argsort(np.asarray(interactions.items.positions_of(interactions.items.sorted().array)))
    by_item = np.lexsort((rank[interactions.item_index[candidates]], interactions.user_index[candidates]))
    ordered = candidates[by_item]
    _, first = np.unique(interactions.user_index[ordered], return_index=True)
    return ordered[first]
