"""People in buckets: runs of slots that are stored and moved together.

A slot is one of 4,096 shares of the people, by hash of seed and id. It depends on nobody else. A bucket is a run of
slots in one file. How many buckets there are follows from the size and reaches no name and no byte of a model.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from math import log2
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from erasable.data.ids import Ids
from erasable.data.interactions import Interactions
from erasable.data.slots import SLOTS, slot_order, slots_of

PEOPLE_IN_A_BUCKET = 50_000
"""About how many people lie in one file; files of any size can be read, so this may change at any time."""
_TOO_LARGE = 1.5  # a bucket is divided once it has this many times as many people


class Place(NamedTuple):
    """Where somebody's data is: the position of the group, the number of the bucket, and the row in the bucket."""

    group: int
    bucket: int
    row: int


@dataclass(frozen=True, eq=False)
class Bucket:
    """The people of a run of slots, by slot, and by id within one."""

    training: Interactions
    held_out: Interactions
    """Rows that are not learned from; not everyone has some."""
    groups: NDArray[np.int16]
    """The position of each person's group in the chain."""
    slots: NDArray[np.int16]
    """The slot of each person."""

    @staticmethod
    def of(training: Interactions, held_out: Interactions, groups: NDArray[Any], seed: int) -> "Bucket":
        """Return people in the order of a bucket; whoever has no row in training is left out."""
        order, slots = slot_order(training.users, seed), slots_of(training.users, seed)
        ordered = replace(training, by_slot=True).at(order)
        if len(held_out):
            places = ordered.users.positions_of(held_out.users.array)
            held_out = replace(held_out, by_slot=True).at(np.argsort(places)[np.count_nonzero(places < 0) :])
        return Bucket(ordered, held_out, np.asarray(groups)[order].astype(np.int16), slots[order])

    @property
    def users(self) -> Ids:
        """The people, in the order of their rows."""
        return self.training.users

    def find(self, user: str, slot: int) -> int:
        """Return the row of a user, -1 if there is none."""
        low, high = np.searchsorted(self.slots, [slot, slot + 1]).tolist()
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if self.users[middle] < user else (low, middle)
        return low if low < len(self.users) and self.users[low] == user else -1

    def held_out_of(self, row: int) -> NDArray[np.int32]:
        """Return the numbers of the items that the person at a row has in the holdout."""
        if not len(self.held_out):
            return self.held_out.item_index
        place = int(self._held_out_places[row])
        return self.held_out.item_index[:0] if place < 0 else self.held_out.items_at(place)

    @cached_property
    def _held_out_places(self) -> NDArray[np.int64]:
        return self.held_out.users.positions_of(self.users.array)

    def history(self, rows: NDArray[np.int64]) -> Interactions:
        """Return all interactions of the people at some rows, held out or not, by id."""
        training = self.training.at(rows)
        places = self._held_out_places[rows] if len(self.held_out) else np.empty(0, int)
        found = np.sort(places[places >= 0])
        parts = [training.by_id(), *([self.held_out.at(found).by_id()] if len(found) else [])]
        return Interactions.merge(parts) if len(parts) > 1 else parts[0]

    def without(self, rows: NDArray[np.int64]) -> "Bucket":
        """Return the bucket without the people at some rows."""
        stays = np.ones(len(self.users), bool)
        stays[rows] = False
        held_out = self.held_out
        if len(held_out):
            gone = held_out.users.positions_of(self.users.take(rows).array)
            left = np.ones(len(held_out.users), bool)
            left[gone[gone >= 0]] = False
            held_out = held_out.select(left[held_out.user_index])
        training = self.training.select(stays[self.training.user_index])
        return Bucket(training, held_out, self.groups[stays], self.slots[stays])

    def over(self, items: Ids) -> "Bucket":
        """Return the same rows numbered by another list of items."""
        if self.training.items is items:
            return self
        return replace(self, training=self.training.with_items(items), held_out=self.held_out.with_items(items))

    def divided(self, first: int, end: int) -> dict[int, "Bucket"]:
        """Return the bucket of a run of slots by its first slot, or several if it has too many people."""
        if len(self.users) <= _TOO_LARGE * PEOPLE_IN_A_BUCKET:
            return {first: self}
        return {low: self.part(low, high) for low, high in pairwise(cuts(len(self.users), first, end))}

    def part(self, first: int, end: int) -> "Bucket":
        """Return the people of some slots."""
        low, high = np.searchsorted(self.slots, [first, end])
        training = self.training.at(np.arange(low, high))
        held_out = self.held_out
        if len(held_out):
            places = self.users.positions_of(held_out.users.array)
            held_out = held_out.at(np.flatnonzero((places >= low) & (places < high)))
        return Bucket(training, held_out, self.groups[low:high], self.slots[low:high])


def cuts(people: int, first: int = 0, end: int = SLOTS) -> list[int]:
    """Return the slots at which the buckets of so many people begin; the last entry is the end.

    Each has the same number of slots, a power of 2, whoever lies in them: where a bucket begins tells of nobody.
    """
    parts = min(2 ** max(0, round(log2(max(1, people) / PEOPLE_IN_A_BUCKET))), end - first)
    return list(range(first, end + 1, (end - first) // parts))


def dealt(training: Interactions, held_out: Interactions, groups: NDArray[Any], seed: int) -> list[Bucket]:
    """Deal people out to buckets; everyone has a row in training."""
    whole = Bucket.of(training, held_out, groups, seed)
    return [whole.part(low, high) for low, high in pairwise(cuts(len(whole.users)))]


class StoredBucket(Protocol):
    """A bucket in a file."""

    def read(self, items: Ids) -> Bucket:
        """Return the bucket, its rows numbered by a list of items."""

    def kept_open(self) -> "Bucket | StoredBucket":
        """Return the same bucket, to be read even when no version names its file any more."""


class Buckets(Sequence[Bucket]):
    """All buckets, in the order of their slots; those in files are read when first used."""

    def __init__(self, parts: Sequence[Bucket | StoredBucket], starts: Sequence[int], items: Ids, seed: int) -> None:
        self.parts = tuple(parts)
        self.starts = tuple(starts)
        """The first slot of each bucket."""
        self.items = items
        self.seed = seed
        self._read: dict[int, Bucket] = {}

    @staticmethod
    def of(buckets: Sequence[Bucket], items: Ids, seed: int) -> "Buckets":
        """Return buckets in memory, each with the same number of slots, as `dealt` makes them."""
        return Buckets(buckets, [SLOTS * number // len(buckets) for number in range(len(buckets))], items, seed)

    def __len__(self) -> int:
        return len(self.parts)

    def __getitem__(self, number: Any) -> Any:  # noqa: ANN401 - a number or a slice
        """Return a bucket, which stays in memory, or several."""
        if isinstance(number, slice):
            return tuple(self[one] for one in range(*number.indices(len(self))))
        place = range(len(self))[number]
        if place not in self._read:
            self._read[place] = self._made(place)
        return self._read[place]

    def __iter__(self) -> Iterator[Bucket]:
        """Yield each bucket; those that are read for this do not stay in memory."""
        for place in range(len(self)):
            yield self._read.get(place) or self._made(place)

    def remember(self, read: Mapping[int, Bucket]) -> None:
        """Keep buckets in memory that were just made, by number, so that their files need not be read."""
        self._read |= read

    def release(self, number: int) -> None:
        """Keep a bucket in memory no longer, if it can be read again."""
        if not isinstance(self.parts[number], Bucket):
            self._read.pop(number, None)

    def new_since(self, other: "Buckets") -> list[int]:
        """Return the numbers of the buckets that are not among the others; item numbers don't count."""
        shared = {id(part) for part in other.parts}
        return [number for number, part in enumerate(self.parts) if id(part) not in shared]

    def number_of(self, slot: int) -> int:
        """Return which bucket holds a slot."""
        return int(np.searchsorted(self.starts, slot, side="right")) - 1

    def find(self, user: str) -> Place | None:
        """Return where somebody's data is, None if nothing is held."""
        slot = int(slots_of(Ids.of([user]), self.seed)[0])
        number = self.number_of(slot)
        bucket: Bucket = self[number]
        row = bucket.find(user, slot)
        return None if row < 0 else Place(int(bucket.groups[row]), number, row)

    def by_bucket(self, users: Ids) -> dict[int, NDArray[np.int64]]:
        """Return the positions of some users in their list, by the number of the bucket that would hold them."""
        numbers = np.searchsorted(self.starts, slots_of(users, self.seed), side="right") - 1
        return {int(number): np.flatnonzero(numbers == number) for number in np.unique(numbers)}

    def dealt_again(self, seed: int) -> "Buckets":
        """Return the same people in buckets by another seed."""
        training, held_out = (
            Interactions.joined([getattr(bucket, name) for bucket in self]) for name in ("training", "held_out")
        )
        groups = np.concatenate([bucket.groups for bucket in self])
        return Buckets.of(dealt(training, held_out, groups, seed), self.items, seed)

    def in_memory(self) -> "Buckets":
        """Return the same buckets, all of them read."""
        return Buckets([self[number] for number in range(len(self))], self.starts, self.items, self.seed)

    def kept_open(self) -> "Buckets":
        """Return the same buckets, to be read even when no version names their files any more."""
        parts = [
            self._read.get(number) or (part if isinstance(part, Bucket) else part.kept_open())
            for number, part in enumerate(self.parts)
        ]
        return Buckets(parts, self.starts, self.items, self.seed)

    def over(self, items: Ids) -> "Buckets":
        """Return the same buckets with rows numbered by another list of items."""
        return self.changed({}, items)

    def changed(self, new: Mapping[int, Bucket], items: Ids) -> "Buckets":
        """Return the buckets with some of them replaced; one that grew and got too large is divided."""
        parts: dict[int, Bucket | StoredBucket] = {}
        for number, (first, end) in enumerate(pairwise([*self.starts, SLOTS])):
            grew = number in new and len(new[number].users) > len(self[number].users)
            parts |= new[number].divided(first, end) if grew else {first: new.get(number, self.parts[number])}
        changed = Buckets([*parts.values()], [*parts], items, self.seed)
        if len(changed) == len(self):
            changed._read = {number: one.over(items) for number, one in self._read.items() if number not in new}
        return changed

    def _made(self, number: int) -> Bucket:
        part = self.parts[number]
        return part.over(self.items) if isinstance(part, Bucket) else part.read(self.items)
