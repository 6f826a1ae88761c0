"""What is counted and hashed of everyone in buckets, so that no bucket need be read for it.

Counts are sums over people, and digests are taken of slots: how people lie in buckets makes no difference.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from erasable.chain.buckets import Bucket
from erasable.chain.settings import Config
from erasable.data.ids import starts_and_bytes
from erasable.data.interactions import Interactions
from erasable.fingerprint import DIGEST_BYTES
from erasable.grouping.registry import anchors_among
from erasable.models.base import Size


class Rules(NamedTuple):
    """What decides who is a learner of which stage, and so what is counted."""

    seed: int
    anchors: float
    stages: int
    ordered: bool = False
    """Whether each person's own order in time counts: only for a model that uses time."""

    @staticmethod
    def of(config: Config, stages: int) -> "Rules":
        """Return the rules of a configuration for so many stages."""
        return Rules(config.seed, config.anchors, stages, config.learner.uses_time)

    def are_those_of(self, other: "Rules") -> bool:
        """Whether both decide the same for as many stages."""
        return self._replace(stages=other.stages) == other


@dataclass(frozen=True, eq=False)
class Counts:
    """What is known of all people without reading a bucket: counts by item and by length of history, and digests.

    All counts are whole numbers, so that those of a person can be added and subtracted exactly.
    """

    rules: Rules
    rows: NDArray[np.int64]
    """How many people have each item, held out or not."""
    trained: NDArray[np.int64]
    """How many people have each item in training."""
    learned: NDArray[np.int64]
    """How many learners of each stage have each item: stages × items."""
    histories: NDArray[np.int64]
    """Rows (group, whether an anchor, number of items in training, number of such people), sorted."""
    held_out: int
    """How many rows are held out."""
    slots: NDArray[np.int64]
    """The slots with people, ascending."""
    people: NDArray[np.int64]
    """How many people each of them has."""
    whole: NDArray[np.uint8]
    """The digest of everything in each slot: slots × 32."""
    of_stages: NDArray[np.uint8] = field(repr=False)
    """The digest of the learners of each stage in each slot, zeros if there are none: stages × slots × 32."""

    @staticmethod
    def of(bucket: Bucket, rules: Rules, hashed: bool = True) -> "Counts":
        """Count one bucket, and hash its slots; not hashed, its digests are zeros."""
        training, count = bucket.training, len(bucket.training.items)
        anchors = anchors_among(bucket.users, rules.anchors, rules.seed)
        learners = [anchors & (bucket.groups == stage) for stage in range(rules.stages)]
        trained = np.bincount(training.item_index, minlength=count)
        stages = [
            trained if mine.all() else np.bincount(training.item_index[mine[training.user_index]], minlength=count)
            for mine in learners
        ]
        slots, people = np.unique(bucket.slots, return_counts=True)
        whole = np.zeros((len(slots), DIGEST_BYTES), np.uint8)
        of_stages = np.zeros((rules.stages, *whole.shape), np.uint8)
        if hashed:
            hashing = _Hashing(bucket, rules.ordered)
            whole = hashing.everything()
            for stage, mine in enumerate(learners):
                of_stages[stage] = hashing.learners(mine)
        return Counts(
            rules=rules,
            rows=trained + np.bincount(bucket.held_out.item_index, minlength=count),
            trained=trained,
            learned=np.stack(stages) if stages else np.zeros((0, count), np.int64),
            histories=_grouped(
                np.stack([bucket.groups, anchors, np.diff(training.user_starts), np.ones(len(anchors))], axis=1)
            ),
            held_out=len(bucket.held_out),
            slots=slots.astype(np.int64),
            people=people.astype(np.int64),
            whole=whole,
            of_stages=of_stages,
        )

    @staticmethod
    def together(parts: Iterable["Counts"]) -> "Counts":
        """Return the counts of several buckets, in the order of their slots, numbered by one list of items."""
        first, *others = parts
        for one in others:
            first = first._with(one)
        return first

    def _with(self, other: "Counts") -> "Counts":
        return replace(
            self,
            rows=self.rows + other.rows,
            trained=self.trained + other.trained,
            learned=self.learned + other.learned,
            histories=_grouped(np.concatenate([self.histories, other.histories])),
            held_out=self.held_out + other.held_out,
            slots=np.concatenate([self.slots, other.slots]),
            people=np.concatenate([self.people, other.people]),
            whole=np.concatenate([self.whole, other.whole]),
            of_stages=np.concatenate([self.of_stages, other.of_stages], axis=1),
        )

    def changed(self, before: "Counts", after: "Counts") -> "Counts":
        """Return the counts after some buckets changed, given what these had before and have now."""
        gone = before.histories * [1, 1, 1, -1]
        stays = ~np.isin(self.slots, before.slots)
        slots = np.concatenate([self.slots[stays], after.slots])
        order = np.argsort(slots)
        return replace(
            self,
            rows=self.rows - before.rows + after.rows,
            trained=self.trained - before.trained + after.trained,
            learned=self.learned - before.learned + after.learned,
            histories=_grouped(np.concatenate([self.histories, gone, after.histories])),
            held_out=self.held_out - before.held_out + after.held_out,
            slots=slots[order],
            people=np.concatenate([self.people[stays], after.people])[order],
            whole=np.concatenate([self.whole[stays], after.whole])[order],
            of_stages=np.concatenate([self.of_stages[:, stays], after.of_stages], axis=1)[:, order],
        )

    def over(self, place: NDArray[np.int64], count: int) -> "Counts":
        """Return the same counts for another list of items, given each item's place in it, −1 for those that go."""
        stays = place >= 0

        def moved(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
            found = np.zeros((*numbers.shape[:-1], count), np.int64)
            found[..., place[stays]] = numbers[..., stays]
            return found

        return replace(self, rows=moved(self.rows), trained=moved(self.trained), learned=moved(self.learned))

    @property
    def users(self) -> int:
        """How many people there are."""
        return int(self.people.sum())

    def size_of_group(self, position: int) -> Size:
        """Return the size of a group's training data."""
        return self._size(self.histories[self.histories[:, 0] == position], 0)

    def size_of_stage(self, position: int, items: int) -> Size:
        """Return the size of what a stage learns from; `items` is how many it knows."""
        own = self.histories[(self.histories[:, 0] == position) & (self.histories[:, 1] == 1)]
        return replace(self._size(own, items), items_had=int(np.count_nonzero(self.learned[position])))

    def size_of_training(self) -> Size:
        """Return the size of everyone's training data."""
        return replace(self._size(self.histories, len(self.rows)), items_had=int(np.count_nonzero(self.trained)))

    def _size(self, histories: NDArray[np.int64], items: int) -> Size:
        return Size(items=items, items_had=0, lengths=histories[:, 2], people=histories[:, 3])

    def name_of_stage(self, position: int) -> str:
        """Return the digest of a stage's learners: of the digests of their slots, in order."""
        digests = self.of_stages[position]
        held = digests.any(axis=1)
        return _of_slots(self.slots[held], digests[held])

    def has_people(self, first: int, end: int) -> bool:
        """Whether somebody is in a group from one position up to another."""
        groups = self.histories[:, 0]
        return bool(((groups >= first) & (groups < end)).any())

    def for_stages(self, stages: int) -> "Counts":
        """Return the counts for another number of stages: nobody learns in those that come or go."""
        more = max(0, stages - len(self.learned))
        return replace(
            self,
            rules=self.rules._replace(stages=stages),
            learned=np.pad(self.learned[:stages], ((0, more), (0, 0))),
            of_stages=np.pad(self.of_stages[:stages], ((0, more), (0, 0), (0, 0))),
        )

    def name_of_everything(self) -> str:
        """Return the digest of everything in all slots."""
        return _of_slots(self.slots, self.whole)


def _of_slots(slots: NDArray[np.int64], digests: NDArray[np.uint8]) -> str:
    hasher = blake2b(slots.astype("<i8").tobytes(), digest_size=DIGEST_BYTES)
    hasher.update(np.ascontiguousarray(digests).data)
    return hasher.hexdigest()


def _grouped(histories: NDArray[Any]) -> NDArray[np.int64]:
    """Return each kind of history once, with the sum of its people."""
    rows = histories.astype(np.int64)
    kinds, place = np.unique(rows[:, :3], axis=0, return_inverse=True)
    people = np.zeros(len(kinds), np.int64)
    np.add.at(people, place.reshape(-1), rows[:, 3])
    found = np.concatenate([kinds, people[:, None]], axis=1)
    return found[people != 0]


class _Hashing:
    """Hashes the people of a bucket, slot by slot: their ids, item ids, ratings, groups, and what is held out.

    If it counts, their own order in time too, of the rows that are learned from.
    """

    def __init__(self, bucket: Bucket, ordered: bool) -> None:
        self._bucket = replace(bucket, training=bucket.training.ordered) if ordered else bucket
        self._ordered = ordered
        self._numbers, first = np.unique(bucket.slots, return_index=True)
        self._bounds = np.append(first, len(bucket.slots)).astype(np.int64)

    def everything(self) -> NDArray[np.uint8]:
        """Return the digest of each slot with people."""
        bucket = self._bucket
        parts = [_Texts.of(bucket.training, self._ordered)]
        bounds = [self._bounds]
        if len(bucket.held_out):
            parts.append(_Texts.of(bucket.held_out))
            owners = bucket.users.positions_of(bucket.held_out.users.array)
            bounds.append(np.searchsorted(owners, self._bounds))
        groups = np.ascontiguousarray(bucket.groups, "<i2")
        return self._digests(
            lambda number: [
                groups[self._bounds[number] : self._bounds[number + 1]],
                *(
                    piece
                    for part, at in zip(parts, bounds, strict=True)
                    if at[number] < at[number + 1]  # whoever else is in the bucket
                    for piece in part.of_people(at, number)
                ),
            ]
        )

    def learners(self, mine: NDArray[np.bool_]) -> NDArray[np.uint8]:
        """Return the digest of some people of each slot, zeros where there are none."""
        bucket = self._bucket
        if not mine.any():
            return np.zeros((len(self._numbers), DIGEST_BYTES), np.uint8)
        chosen = bucket.training if mine.all() else bucket.training.select(mine[bucket.training.user_index])
        bounds = np.concatenate([[0], np.cumsum(mine)])[self._bounds]
        texts, are_there = _Texts.of(chosen, self._ordered), np.diff(bounds) > 0
        return self._digests(lambda number: texts.of_people(bounds, number) if are_there[number] else [])

    def _digests(self, pieces_of: Any) -> NDArray[np.uint8]:  # noqa: ANN401 - a function
        found = np.zeros((len(self._numbers), DIGEST_BYTES), np.uint8)
        for number in range(len(self._numbers)):
            pieces = pieces_of(number)
            if pieces:
                hasher = blake2b(digest_size=DIGEST_BYTES)
                for piece in pieces:
                    hasher.update(len(piece).to_bytes(8, "little"))
                    hasher.update(piece.data)
                found[number] = np.frombuffer(hasher.digest(), np.uint8)
        return found


@dataclass(frozen=True, eq=False)
class _Texts:
    """Rows as bytes: what does not depend on how items are numbered."""

    user_starts: NDArray[np.int64]
    users: NDArray[np.uint8]
    starts: NDArray[np.int64]
    item_starts: NDArray[np.int64]
    items: NDArray[np.uint8]
    rating: NDArray[np.float32]
    order: NDArray[np.int32] | None

    @staticmethod
    def of(rows: Interactions, ordered: bool = False) -> "_Texts":
        """Return rows as bytes; those of times only if they are places in an order."""
        users, items = rows.users.array, rows.items.array.take(pa.array(rows.item_index))
        order = None if rows.time is None or not ordered else rows.time.astype(np.int32)
        return _Texts(*starts_and_bytes(users), rows.user_starts, *starts_and_bytes(items), rows.rating, order)

    def of_people(self, bounds: NDArray[np.int64], number: int) -> list[NDArray[Any]]:
        """Return the bytes of the people between two bounds, with all lengths."""
        low, high = int(bounds[number]), int(bounds[number + 1])
        first, last = int(self.starts[low]), int(self.starts[high])
        return [
            self.user_starts[low : high + 1] - self.user_starts[low],
            self.users[self.user_starts[low] : self.user_starts[high]],
            self.starts[low : high + 1] - first,
            self.item_starts[first : last + 1] - self.item_starts[first],
            self.items[self.item_starts[first] : self.item_starts[last]],
            self.rating[first:last],
            *([] if self.order is None else [self.order[first:last]]),
        ]
