"""Users in operations: ids as callers give them, ids that are nearly the same, and users with an open request."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any, Literal, NamedTuple, SupportsIndex

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from erasable.chain.buckets import Place
from erasable.chain.dataset import Dataset
from erasable.data.catalogue import over_own_items
from erasable.data.ids import NONE_NEAR, NearIds, near_ids
from erasable.data.interactions import Interactions, Subject
from erasable.errors import UnknownUser, WrongUse
from erasable.requests.request import Asked
from erasable.workspace.manifest import Preferences

Id = str | SupportsIndex
"""A user or item id as in the table: text, or a whole number of any kind."""
Meanwhile = Literal["not served", "served without these items"]
"""How a person with an open request is served until it is carried out."""
NOT_SERVED: Meanwhile = "not served"
SERVED_WITHOUT: Meanwhile = "served without these items"


class NumberedIds(NamedTuple):
    """Whether user ids, and item ids, were whole numbers in the table; else they are text."""

    users: bool = False
    items: bool = False

    @staticmethod
    def of(preferences: Preferences) -> "NumberedIds":
        """Return what a recommender remembers of its ids."""
        return NumberedIds(preferences.users_are_numbers, preferences.items_are_numbers)


ALL_TEXT = NumberedIds()


def text_of(given: Any) -> str:  # noqa: ANN401 - whatever a caller passes as an id
    """Return an id as text; a whole number is written in decimal, anything else is refused.

    >>> text_of("007"), text_of(7)
    ('007', '7')
    """
    value = given.as_py() if hasattr(given, "as_py") else given
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Integral) and not isinstance(value, bool):
        return str(int(value))
    raise WrongUse(
        f"{value!r} is no id: give text or a whole number, as in the table (a {type(value).__name__} was given)"
    )


def texts_of(given: Any) -> list[str]:  # noqa: ANN401 - whatever a caller passes as ids
    """Return one id, or each of many, as text.

    >>> texts_of(42), texts_of([42, "7"])
    (['42'], ['42', '7'])
    """
    if hasattr(given, "columns") or hasattr(given, "column_names"):
        raise WrongUse("a table holds more than ids: give the column of it that has them, such as table['user']")
    if getattr(given, "ndim", 1) == 0:  # NumPy's own numbers and texts, and arrays of one
        return [text_of(given.item())]
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        return [text_of(given)]
    return [text_of(one) for one in given]


def shown_ids(texts: Sequence[str], as_numbers: bool) -> pa.Array:
    """Return ids as they were in the table; if one of them is no whole number, all as text.

    >>> shown_ids(["42", "7"], as_numbers=True).to_pylist(), shown_ids(["42", "x"], as_numbers=True).to_pylist()
    ([42, 7], ['42', 'x'])
    """
    column = pa.array(texts, pa.string())
    for kind in (pa.int64(), pa.uint64()) if as_numbers else ():
        with suppress(pa.ArrowInvalid):
            numbers = column.cast(kind)
            if numbers.cast(pa.string()).equals(column):  # 007 is not 7
                return numbers
    return column


def near_in(dataset: Dataset, user: str) -> NearIds:
    """Return how many users have an id that differs only a little from one that is not held."""
    if dataset.buckets.find(user) is not None:
        return NONE_NEAR
    return near_ids((bucket.users for bucket in dataset.buckets), user)


@contextmanager
def telling_near_ids(dataset: Dataset, users: Iterable[str]) -> Iterator[None]:
    """Make the error for an unknown user mention ids that differ from theirs only a little."""
    try:
        yield
    except UnknownUser:
        unknown = next((user for user in users if dataset.buckets.find(user) is None), None)
        near = NONE_NEAR if unknown is None else near_in(dataset, unknown)
        if not near.held:
            raise
        raise UnknownUser(near.sentence()) from None


@dataclass(frozen=True)
class RemainingData:
    """A person's data without some items, as it will be once these are erased."""

    items: frozenset[str] = field(repr=False)
    """The items that were asked for."""
    place: Place
    training: Interactions = field(repr=False)
    owned: NDArray[np.int32] = field(repr=False)
    """The numbers of the items that are left, held out or not."""


def can_serve_without(dataset: Dataset) -> bool:
    """Whether people can be served without some items at once: user rows are solved, or there are none."""
    config = dataset.config
    return config.aggregate is None and (dataset.solves_rows or not config.learner.has_rows)


def remaining_data(dataset: Dataset, user: str, items: frozenset[str]) -> RemainingData | None:
    """Return a person's data without some items; None if nothing is left, or the model can't serve that at once.

    The holdout depends on the person's own interactions alone, and is chosen again, as an erasure does.
    """
    if not can_serve_without(dataset):
        return None
    try:
        place = dataset.find(user)
    except UnknownUser:
        return None
    left = dataset.data_of([user]).without(pairs=[(user, item) for item in items])
    if not len(left):
        return None
    (own,) = over_own_items([left])  # only the ids of these items decide the holdout, so no others are hashed
    training, _ = dataset.config.splitting.of(own)
    return RemainingData(items, place, training.with_items(dataset.items), left.item_index)


def all_remaining_data(
    dataset: Dataset, asked: Asked, before: Mapping[str, RemainingData | None] | None = None
) -> dict[str, RemainingData | None]:
    """Return the same for everyone who asks for some items; `before` holds results that are used again."""
    known = before or {}
    found = dict[str, RemainingData | None]()
    for user, items in asked.some.items():
        kept = known.get(user)
        found[user] = kept if kept is not None and kept.items == items else remaining_data(dataset, user, items)
    return found


def not_served(dataset: Dataset, asked: Asked) -> frozenset[str]:
    """Return which of those who have asked are not served."""
    return asked.wholly.union(user for user, left in all_remaining_data(dataset, asked).items() if left is None)


def served_meanwhile(dataset: Dataset, requests: Iterable[Subject]) -> int:
    """Return how many of those who ask are served until the erasure, without the items they named."""
    asked = Asked.of(requests)
    return len(asked.people - not_served(dataset, asked))


def meanwhile(dataset: Dataset, request: Subject) -> Meanwhile:
    """Return how the person is served until their request is carried out."""
    if request.items is None or remaining_data(dataset, request.user, frozenset(request.items)) is None:
        return NOT_SERVED
    return SERVED_WITHOUT
