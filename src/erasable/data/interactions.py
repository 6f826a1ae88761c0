"""Interactions: a frozen, checked table in (user, item) order, what changed between two of them; the rating scale."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray
from pydantic import Field, field_validator

from erasable import fingerprint
from erasable.checked_settings import CheckedSettings
from erasable.data.ids import ArrowColumn, Ids, byte_order, encode_ids, latest_of_each_pair
from erasable.errors import DataRefused, Said, WrongUse, option

if TYPE_CHECKING:
    from scipy.sparse import csr_array


@dataclass(frozen=True)
class Subject:
    """Who is to be erased: everything of a user, or only the interactions with some items."""

    user: str
    items: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if self.items is not None and not self.items:
            raise WrongUse(f"the request of user {self.user!r} names no item: name some, or ask for everything")

    @property
    def everything(self) -> bool:
        """Whether all of the user's data is erased."""
        return self.items is None


@dataclass(frozen=True, eq=False)
class Interactions:
    """Rows (user, item, rating, time), one for each pair, in (user, item) order; frozen.

    Attributes
    ----------
    users : Ids
        The users with a row, ordered by UTF-8 bytes unless they are `by_slot`.
    items : Ids
        The items that numbers refer to. Some may have no row, so removing a user never changes an item's number.
    user_index, item_index : ndarray of int32
        The numbers of each row's user and item.
    rating : ndarray of float32
        The ratings; 1 for each row if there are none.
    time : ndarray of float64 or None
        The times in seconds; an unknown one is NaN.
    by_slot : bool
        Whether users are in another order: by slot, and by UTF-8 bytes within one (`erasable.data.slots`).

    Examples
    --------
    >>> rows, repeated = Interactions.from_columns(pa.array(["ann", "bob"]), pa.array(["tea", "milk"]))
    >>> rows.users.texts(), rows.items.texts(), rows.item_index.tolist(), repeated
    (['ann', 'bob'], ['milk', 'tea'], [1, 0], 0)
    """

    users: Ids
    items: Ids
    user_index: NDArray[np.int32]
    item_index: NDArray[np.int32]
    rating: NDArray[np.float32]
    time: NDArray[np.float64] | None = None
    by_slot: bool = False

    def __post_init__(self) -> None:
        self._freeze("user_index", np.int32)
        self._freeze("item_index", np.int32)
        self._freeze("rating", np.float32)
        if self.time is not None:
            self._freeze("time", np.float64)
        self._check()

    @classmethod
    def from_columns(
        cls,
        users: ArrowColumn,
        items: ArrowColumn,
        rating: ArrayLike | None = None,
        time: ArrayLike | None = None,
        most: int | None = None,
    ) -> tuple["Interactions", int]:
        """Build from text columns; return how many repeated pairs were dropped, too. The latest of each is kept.

        An unknown time counts as the oldest; of equal times the last row is kept. Without ratings each is 1. If `most`
        is given, ratings are weights: those of one pair add up, to at most so much.
        """
        user_ids, user_index = encode_ids(users)
        item_ids, item_index = encode_ids(items)
        times = None if time is None else np.asarray(time, dtype=np.float64)
        keys = user_index.astype(np.int64) * max(len(item_ids), 1) + item_index
        rows = latest_of_each_pair(keys, times)
        ratings = np.ones(len(keys), np.float32) if rating is None else np.asarray(rating, dtype=np.float32)
        kept_times = None if times is None else times[rows]
        kept = ratings[rows] if most is None else _added_up(keys, ratings, keys[rows], most)
        built = cls(user_ids, item_ids, user_index[rows], item_index[rows], kept, kept_times)
        return built, len(keys) - len(rows)

    @staticmethod
    def merge(parts: Sequence["Interactions"]) -> "Interactions":
        """Return the rows of all parts; they share one item list, and no (user, item) pair is in two of them."""
        if not parts:
            raise WrongUse("nothing to merge: give at least one part")
        items = parts[0].items
        if any(part.items != items for part in parts):
            raise WrongUse("the parts have different item lists: use with_items to give them one")
        users, place = encode_ids(pa.concat_arrays([part.users.array for part in parts]))
        starts = np.cumsum([0, *(len(part.users) for part in parts)])
        shifted = [part.user_index + start for part, start in zip(parts, starts, strict=False)]
        user_index = place[np.concatenate(shifted)]
        item_index = np.concatenate([part.item_index for part in parts])
        rating = np.concatenate([part.rating for part in parts])
        time = _merged_times(parts)
        order = np.argsort(user_index.astype(np.int64) * len(items) + item_index, kind="stable")
        return Interactions(
            users, items, user_index[order], item_index[order], rating[order], None if time is None else time[order]
        )

    @staticmethod
    def joined(parts: Sequence["Interactions"]) -> "Interactions":
        """Return the rows of all parts one after another; they share one item list, and no user is in two of them."""
        first, *others = parts
        if not others:
            return first
        starts = np.cumsum([0, *(len(part.users) for part in parts)])
        shifted = [part.user_index + np.int32(start) for part, start in zip(parts, starts, strict=False)]
        columns = {
            "user_index": np.concatenate(shifted),
            "item_index": np.concatenate([part.item_index for part in parts]),
            "rating": np.concatenate([part.rating for part in parts]),
            "time": _merged_times(parts),
        }
        for column in columns.values():
            if column is not None:
                column.setflags(write=False)
        users = Ids.unchecked(pa.concat_arrays([part.users.array for part in parts]))
        whole = object.__new__(Interactions)  # each part was checked, and to check ten million rows takes a second
        for name, value in {"users": users, "items": first.items, **columns, "by_slot": True}.items():
            object.__setattr__(whole, name, value)
        return whole

    def without(self, users: Collection[str] = (), pairs: Collection[tuple[str, str]] = ()) -> "Interactions":
        """Return the interactions without some users and (user, item) pairs; unknown ones are ignored."""
        keep = ~self._rows_of(users)
        keep[self._rows_of_pairs(pairs)] = False
        return self.select(keep)

    def of_users(self, users: Collection[str]) -> "Interactions":
        """Return only the interactions of some users; unknown ones are ignored."""
        return self.select(self._rows_of(users))

    def by_id(self) -> "Interactions":
        """Return the same rows with users ordered by UTF-8 bytes."""
        if not self.by_slot:
            return self
        return replace(self.at(np.asarray(byte_order(self.users.array)).astype(np.int64)), by_slot=False)

    def at(self, rows: NDArray[np.int64]) -> "Interactions":
        """Return the interactions of the users at some positions: ascending ones, unless users are by slot."""
        owned = np.diff(self.user_starts)[rows]
        first = np.repeat(self.user_starts[rows] - np.cumsum(owned) + owned, owned)
        chosen = first + np.arange(len(first))
        return Interactions(
            users=self.users.take(rows),
            items=self.items,
            user_index=np.repeat(np.arange(len(rows), dtype=np.int32), owned),
            item_index=self.item_index[chosen],
            rating=self.rating[chosen],
            time=None if self.time is None else self.time[chosen],
            by_slot=self.by_slot,
        )

    def select(self, mask: NDArray[np.bool_]) -> "Interactions":
        """Return the rows where the mask is true; users without a row are dropped, items keep their numbers."""
        if mask.shape != (len(self),) or mask.dtype != np.bool_:
            raise WrongUse("the mask must hold one boolean for each interaction")
        kept_users = self.user_index[mask]
        present = np.zeros(len(self.users), dtype=bool)
        present[kept_users] = True
        renumbered = (np.cumsum(present) - 1).astype(np.int32)
        return Interactions(
            users=self.users if present.all() else self.users.take(np.flatnonzero(present)),
            items=self.items,
            user_index=renumbered[kept_users],
            item_index=self.item_index[mask],
            rating=self.rating[mask],
            time=None if self.time is None else self.time[mask],
            by_slot=self.by_slot,
        )

    def with_items(self, items: Ids) -> "Interactions":
        """Number the same rows by another item list, such as a catalogue."""
        if items == self.items:
            return replace(self, items=items)
        place = items.positions_of(self.items.array)
        lacking = place[self.item_index] < 0
        if lacking.any():
            missing = self.items[int(self.item_index[np.argmax(lacking)])]
            raise DataRefused(
                f"item {missing!r} is not in the catalogue: add it there and give ",
                Said("catalogue=FILE", "--catalogue"),
                ", or drop its interactions",
            )
        return self.renumbered(items, place)

    def renumbered(self, items: Ids, place: NDArray[np.int64]) -> "Interactions":
        """Number the rows by another list, given each item's place in it; rows of items with −1 are left out."""
        kept = self.select(place[self.item_index] >= 0) if (place < 0).any() else self
        item_index = place[kept.item_index].astype(np.int32)
        if np.all(np.diff(place[place >= 0]) > 0):
            return replace(kept, items=items, item_index=item_index)
        order = np.argsort(kept.user_index.astype(np.int64) * len(items) + item_index, kind="stable")
        time = None if kept.time is None else kept.time[order]
        return Interactions(
            kept.users, items, kept.user_index, item_index[order], kept.rating[order], time, kept.by_slot
        )

    def has_rows_of(self, other: "Interactions") -> bool:
        """Whether both hold the same rows, however their items are numbered."""
        if self is other:
            return True
        if len(self) != len(other) or self.users != other.users or (self.time is None) != (other.time is None):
            return False
        place = other.items.positions_of(self.items.array)
        alike = np.array_equal(self.user_index, other.user_index) and np.array_equal(self.rating, other.rating)
        alike = alike and np.array_equal(place[self.item_index], other.item_index)
        if self.time is None or other.time is None:
            return alike
        return alike and np.array_equal(self.time, other.time, equal_nan=True)

    @cached_property
    def timeless(self) -> "Interactions":
        """The same rows without times, which no digest covers."""
        return self if self.time is None else replace(self, time=None)

    @cached_property
    def ordered(self) -> "Interactions":
        """The same rows, each with its place in its user's own order, from 0, instead of its time."""
        place = np.empty(len(self), np.float64)
        place[self.by_time()] = np.arange(len(self)) - self.user_starts[self.user_index]
        return replace(self, time=place)

    def by_time(self) -> NDArray[np.int64]:
        """Return all rows, each user's from the oldest to the latest: unknown times first, equal ones by item id."""
        times = np.zeros(len(self)) if self.time is None else np.where(np.isnan(self.time), -np.inf, self.time)
        # The numbers of a grown catalogue don't follow the ids, so ties need the ids' own order.
        rank = None if self.items.is_sorted else np.argsort(np.asarray(byte_order(self.items.array)))
        items = self.item_index if rank is None else rank[self.item_index]
        return np.lexsort((items, times, self.user_index))

    @cached_property
    def unweighted(self) -> "Interactions":
        """The same rows, each of which counts 1."""
        return replace(self, rating=np.ones(len(self), np.float32))

    @cached_property
    def user_starts(self) -> NDArray[np.int64]:
        """The row pointer of a CSR matrix: where each user's rows begin, then the number of rows."""
        starts = np.searchsorted(self.user_index, np.arange(len(self.users) + 1)).astype(np.int64)
        starts.setflags(write=False)
        return starts

    def items_at(self, row: int) -> NDArray[np.int32]:
        """Return the item numbers of one user, ascending."""
        return self.item_index[self.user_starts[row] : self.user_starts[row + 1]]

    def csr(self) -> "csr_array[np.float32, tuple[int, int]]":
        """Return the ratings as a sparse matrix, users by items."""
        from scipy.sparse import csr_array

        shape = (len(self.users), len(self.items))
        # Copies, because SciPy may sort or sum in place and these arrays are read-only.
        return csr_array((self.rating.copy(), self.item_index.copy(), self.user_starts.copy()), shape=shape)

    def digest(self) -> str:
        """Return the fingerprint of user ids, row pointer, item numbers and ratings; times and item ids don't count."""
        return self._digest

    @cached_property
    def _digest(self) -> str:
        arrays: dict[str, NDArray[Any]] = {
            "starts": self.user_starts,
            "items": self.item_index,
            "ratings": self.rating,
        }
        return fingerprint.of_value([self.users.digest(), fingerprint.of_arrays(arrays)])

    def __len__(self) -> int:
        return len(self.user_index)

    def _rows_of(self, users: Collection[str]) -> NDArray[np.bool_]:
        if isinstance(users, str):
            raise WrongUse("give a list of users: one text would be read letter by letter")
        wanted = np.zeros(len(self.users), dtype=bool)
        found = self.users.positions(list(users))
        wanted[found[found >= 0]] = True
        return wanted[self.user_index]

    def _rows_of_pairs(self, pairs: Collection[tuple[str, str]]) -> NDArray[np.int64]:
        if not pairs or not len(self):
            return np.empty(0, dtype=np.int64)
        users = self.users.positions([user for user, _ in pairs])
        items = self.items.positions([item for _, item in pairs])
        known = (users >= 0) & (items >= 0)
        wanted = users[known] * len(self.items) + items[known]
        keys = self.keys()
        rows = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        return rows[keys[rows] == wanted]

    def keys(self) -> NDArray[np.int64]:
        """Return one number for each (user, item) pair, ascending if users are ordered by id."""
        return self.user_index.astype(np.int64) * len(self.items) + self.item_index

    def _freeze(self, name: str, dtype: type[np.generic]) -> None:
        given = np.asarray(getattr(self, name))
        # A view, so that the caller's own array stays writable.
        frozen = np.ascontiguousarray(given, dtype=dtype).view()
        frozen.setflags(write=False)
        object.__setattr__(self, name, frozen)

    def _check(self) -> None:
        columns: list[NDArray[Any]] = [self.user_index, self.item_index, self.rating]
        columns += [] if self.time is None else [self.time]
        if any(column.shape != (len(self.user_index),) for column in columns):
            raise DataRefused("the columns differ in length: give one value for each interaction")
        if not np.all(np.isfinite(self.rating)):
            raise DataRefused("a rating is not a finite number: correct or drop that row")
        if self.time is not None and np.any(np.isinf(self.time)):
            raise DataRefused("a time is infinite: correct it, or leave it unknown")
        fault = self._order_fault()
        if fault:
            raise DataRefused(f"{fault}: build with Interactions.from_columns")

    def _order_fault(self) -> str | None:
        if not self.by_slot and not self.users.is_sorted:
            return "users must ascend by their UTF-8 bytes"
        users, items = self.user_index, self.item_index
        if not len(self):
            return "each user needs a row, in order" if len(self.users) else None
        is_next = users[1:] == users[:-1] + 1
        is_same = users[1:] == users[:-1]
        if users[0] != 0 or users[-1] != len(self.users) - 1 or not (is_next | is_same).all():
            return "each user needs a row, in order"
        if items.min() < 0 or items.max() >= len(self.items):
            return "an item number lies outside the item list"
        if not (is_next | (items[1:] > items[:-1])).all():
            return "rows must ascend by (user, item)"
        return None


def _added_up(keys: NDArray[np.int64], weights: NDArray[np.float32], pairs: NDArray[np.int64], most: int) -> np.ndarray:
    """Return the sum of the weights of each pair, to at most so much; sums of whole numbers have no order."""
    sums = np.bincount(np.searchsorted(pairs, keys), weights=weights.astype(np.float64), minlength=len(pairs))
    return np.minimum(sums, most)


def _merged_times(parts: Sequence[Interactions]) -> NDArray[np.float64] | None:
    if all(part.time is None for part in parts):
        return None
    return np.concatenate([np.full(len(part), np.nan) if part.time is None else part.time for part in parts])


def unchanged_users(before: Interactions, after: Interactions) -> NDArray[np.int64]:
    """Return each user's position before the change if their items and ratings are the same, else −1.

    Times count where both have some. Items may have come and gone. Those that stay must be in the same order, or their
    owners count as changed.
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
        if before.time is not None and after.time is not None:
            then, now = before.time[theirs], after.time[ours]
            equal &= (then == now) | (np.isnan(then) & np.isnan(now))
        starts = np.concatenate([[0], np.cumsum(owned_after[candidates])[:-1]])
        same = np.logical_and.reduceat(equal, starts)
        unchanged[candidates[same]] = places[candidates[same]]
    return unchanged


def differing_rows(before: Interactions, after: Interactions) -> tuple[Interactions, Interactions]:
    """Return all rows of the users who changed, came or went: before, and after."""
    same = unchanged_users(before, after)
    stayed = np.zeros(len(before.users), dtype=bool)
    stayed[same[same >= 0]] = True
    return before.select(~stayed[before.user_index]), after.select((same < 0)[after.user_index])


def _numbers_before(before: Interactions, after: Interactions) -> NDArray[np.int64]:
    """Return the number that each item had before, −1 if it is new."""
    if before.items == after.items:
        return np.arange(len(after.items))
    return before.items.positions_of(after.items.array)


def _rows_of(interactions: Interactions, users: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the row numbers of some users, user by user."""
    starts, owned = interactions.user_starts[users], np.diff(interactions.user_starts)[users]
    first = np.repeat(starts - np.concatenate([[0], np.cumsum(owned)[:-1]]), owned)
    return first + np.arange(int(owned.sum()))


_HIGHEST = 1e12  # documents hold the scale as canonical JSON, which is exact for whole numbers below 2^53 only
_REMEDY = Said("give the scale with rating_scale=(LOW, HIGH)", "give the scale with --rating-scale LOW HIGH")


@dataclass(frozen=True)
class RatingScale:
    """The lowest and the highest possible rating; 1 and 1 for implicit feedback.

    Parameters
    ----------
    low, high : float
        The two ends, from 0 up.

    Examples
    --------
    >>> str(RatingScale(0.5, 5))
    '0.5–5'
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        # A stage's name covers the scale, and in JSON 5 and 5.0 differ.
        object.__setattr__(self, "low", float(self.low))
        object.__setattr__(self, "high", float(self.high))
        if not (isfinite(self.low) and isfinite(self.high)) or self.high > _HIGHEST:
            raise WrongUse(option("rating_scale"), f" needs two finite numbers up to {_HIGHEST:g}, such as 1 5")
        if not 0 <= self.low <= self.high or self.high == 0:
            raise WrongUse(
                option("rating_scale"),
                " needs LOW HIGH from 0 up, HIGH above 0 and not below LOW, such as 1 5: shift ratings that go below 0",
            )

    def contains(self, rating: ArrayLike) -> bool:
        """Whether every rating is on the scale."""
        return not np.any(self.outside(np.asarray(rating)))

    def check(self, rating: ArrayLike) -> None:
        """Refuse ratings outside the scale, naming the first such row, counted from 1."""
        ratings = np.atleast_1d(np.asarray(rating, dtype=np.float32))
        outside = self.outside(ratings)
        if np.any(outside):
            row = int(np.argmax(outside))
            raise DataRefused(
                f"row {row + 1}: rating {ratings[row]:g} lies outside the scale {self}: correct it, or drop the row"
            )

    def outside(self, rating: np.ndarray) -> np.ndarray:
        """Return a mask of the ratings outside the scale."""
        # Ratings are float32: 0.7 must not fall below a lowest rating of 0.7.
        return ~((rating >= np.float32(self.low)) & (rating <= np.float32(self.high)))

    def __str__(self) -> str:
        return f"{self.low:g}" if self.low == self.high else f"{self.low:g}–{self.high:g}"


KNOWN_SCALES = (
    RatingScale(1, 1),
    RatingScale(0, 1),
    RatingScale(1, 5),
    RatingScale(0.5, 5),
    RatingScale(0, 5),
    RatingScale(1, 10),
    RatingScale(0, 10),
)


def recognise_scale(rating: ArrayLike) -> RatingScale:
    """Return the first known scale that contains the ratings."""
    ratings = np.asarray(rating, dtype=np.float32)
    if not ratings.size:
        raise DataRefused("there is no rating to recognise a scale from: ", _REMEDY)
    ends = np.array([ratings.min(), ratings.max()])
    if ends[0] < 0:
        raise DataRefused(f"ratings from {ends[0]:g} to {ends[1]:g} go below 0: shift them so that none does")
    found = next((scale for scale in KNOWN_SCALES if scale.contains(ends)), None)
    if found is None:
        raise DataRefused(f"ratings from {ends[0]:g} to {ends[1]:g} fit no known scale: ", _REMEDY)
    return found


def _weight_of_event(text: str) -> tuple[str, int]:
    event, sign, weight = (part.strip() for part in text.rpartition("="))
    if not (sign and event and weight.isascii() and weight.isdigit()):
        raise ValueError(f"{text.strip()!r} is no event with its weight: write view=1,cart=3,buy=5")
    return event, int(weight)


class DataSettings(CheckedSettings):
    """Holdout, filter and rating scale."""

    holdout: float = Field(0.0, ge=0, lt=1)
    """The share of interactions kept out of training for `evaluate`."""

    min_interactions: int = Field(0, ge=0)
    """Drop users and items with fewer interactions, repeatedly (a k-core); frozen unless the policy is regroup."""

    rating_scale: tuple[float, float] | None = None
    """The lowest and the highest rating there can be; recognised from the data if not given."""

    max_weight: int | None = Field(None, ge=1, le=100)
    """With --weight-column or --event-column: the most that the rows of one pair add up to; 10 if not given."""

    event_weights: str | dict[str, int] | None = None
    """What each type of event counts, such as view=1,cart=3,buy=5; rows of events with 0 are left out."""

    @field_validator("rating_scale")
    @classmethod
    def _makes_sense(cls, value: tuple[float, float] | None) -> tuple[float, float] | None:
        if value is not None:
            RatingScale(*value)  # refuses what makes no sense
        return value

    @field_validator("event_weights")
    @classmethod
    def _weighs_events(cls, value: str | dict[str, int] | None) -> dict[str, int] | None:
        if value is None:
            return None
        pairs = [_weight_of_event(part) for part in value.split(",")] if isinstance(value, str) else [*value.items()]
        named = dict(pairs)
        if len(named) < len(pairs):
            raise ValueError("an event is there twice: give each one weight")
        if any(weight < 0 for weight in named.values()) or not any(named.values()):
            raise ValueError("give whole numbers from 0 up, one of them above 0")
        return dict(sorted(named.items()))
