"""How an export of all interactions differs from what is held: who and what is new, changed or missing."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from erasable.chain.dataset import Dataset
from erasable.data.interactions import Interactions


@dataclass(frozen=True)
class Difference:
    """What must change for the data held to equal an export; people are told apart by id."""

    missing: frozenset[str] = field(repr=False)
    """People of whom the export has no row."""
    vanished: Mapping[str, tuple[str, ...]] = field(repr=False)
    """Items whose interactions the export lacks, by person; the people themselves are in it."""
    learned: frozenset[str] = field(repr=False)
    """People with new or changed interactions."""
    users_added: int
    interactions_added: int
    interactions_changed: int

    @property
    def interactions_vanished(self) -> int:
        """How many interactions are missing of people whom the export has."""
        return sum(map(len, self.vanished.values()))

    @property
    def touched(self) -> frozenset[str]:
        """Everyone whose rows change."""
        return self.missing.union(self.vanished, self.learned)

    def keeping_what_is_missing(self) -> "Difference":
        """Return the same, if nobody and nothing is to be forgotten."""
        return replace(self, missing=frozenset(), vanished={})


def difference(held: Dataset, export: Interactions, left_alone: Collection[str] = ()) -> Difference:
    """Compare what is held with an export, bucket by bucket; people who are left alone do not count as different."""
    items = export.items.positions_of(held.items.array)
    keys = export.keys()
    same, old = np.zeros(len(export), bool), np.zeros(len(export), bool)
    known = np.zeros(len(export.users), bool)
    missing, vanished = set[str](), dict[str, tuple[str, ...]]()
    for bucket in held.buckets:
        rows = bucket.history(np.arange(len(bucket.users)))
        place = export.users.positions_of(rows.users.array)
        known[place[place >= 0]] = True
        missing.update(rows.users.take(np.flatnonzero(place < 0)))
        wanted = np.where(place[rows.user_index] < 0, -1, items[rows.item_index])
        there = wanted >= 0
        wanted = place[rows.user_index[there]] * len(export.items) + wanted[there]
        at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        there[there] = keys[at] == wanted
        at = at[keys[at] == wanted]
        old[at] = True
        same[at] = _alike(rows.select(there), export, at)
        vanished |= _items_by_user(rows.select(~there & (place[rows.user_index] >= 0)))
    for user in left_alone:
        vanished.pop(user, None)
    alone = np.isin(export.user_index, export.users.positions([*left_alone]))
    new, changed = ~old & ~alone, old & ~same & ~alone
    here = known | (np.bincount(export.user_index[alone], minlength=len(export.users)) > 0)
    return Difference(
        missing=frozenset(missing.difference(left_alone)),
        vanished=vanished,
        learned=frozenset(export.users.take(np.unique(export.user_index[new | changed]))),
        users_added=int(np.count_nonzero(~here)),
        interactions_added=int(np.count_nonzero(new)),
        interactions_changed=int(np.count_nonzero(changed)),
    )


def _alike(rows: Interactions, export: Interactions, at: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which rows have the rating and the time of the export; one without times says nothing about them."""
    alike = rows.rating == export.rating[at]
    if export.time is None:
        return alike
    times = np.full(len(rows), np.nan) if rows.time is None else rows.time
    theirs = export.time[at]
    return alike & ((times == theirs) | (np.isnan(times) & np.isnan(theirs)))


def _items_by_user(rows: Interactions) -> dict[str, tuple[str, ...]]:
    """Return the ids of the items of each user."""
    names = rows.items.array.take(pa.array(rows.item_index)).to_pylist()
    starts = rows.user_starts
    return {user: tuple(names[starts[place] : starts[place + 1]]) for place, user in enumerate(rows.users)}
