"""Compiled parts around an item-by-item Gram matrix: adding users' pairs of items, and rounding its inverse."""

from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from erasable.data import Interactions
from erasable.models.model import Change, Effort
from erasable.models.parameters import read_only
from erasable.seeding.compiled import compiled
from erasable.threads import pool_of

_TILE = 64
_ROWS_AT_ONCE = 64


class SignedRows(NamedTuple):
    """The items of some users, as a row pointer and what it points to; each user comes (+1) or goes (−1)."""

    starts: NDArray[np.int64]
    items: NDArray[np.int32]
    signs: NDArray[np.int32]


class ByItem(NamedTuple):
    """The same the other way round: who has an item, as a row pointer and what it points to."""

    starts: NDArray[np.int64]
    users: NDArray[np.int32]


NO_ROWS = SignedRows(np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0, np.int32))


def signed_rows(interactions: Interactions, sign: int) -> SignedRows:
    """Return the rows of some interactions, all of one sign."""
    signs = np.full(len(interactions.users), sign, np.int32)
    return SignedRows(interactions.user_starts, interactions.item_index, signs)


def rows_of_change(change: Change) -> SignedRows:
    """Return what a change adds, then what it takes away: so no matrix on the way loses more than it has."""
    return joined(signed_rows(change.given, 1), signed_rows(change.taken, -1))


def joined(first: SignedRows, second: SignedRows) -> SignedRows:
    """Return the rows of both, one after the other."""
    starts = np.concatenate([first.starts, second.starts[1:] + len(first.items)])
    items, signs = (np.concatenate(columns) for columns in zip(first[1:], second[1:], strict=True))
    return SignedRows(starts, items, signs)


def count_pairs(starts: NDArray[np.int64]) -> int:
    """Return how many additions the Gram matrix takes for these rows."""
    lengths = np.diff(starts)
    return int(lengths @ lengths)


def by_item(rows: SignedRows, catalogue: int) -> ByItem:
    """Return who has an item, for each item of the catalogue."""
    starts = np.zeros(catalogue + 1, np.int64)
    np.cumsum(np.bincount(rows.items, minlength=catalogue), out=starts[1:])
    users = np.repeat(np.arange(len(rows.signs), dtype=np.int32), np.diff(rows.starts))
    return ByItem(starts, users[np.argsort(rows.items, kind="stable")])


@compiled(nogil=True)
def add_pairs(gram: NDArray[np.int32], rows: SignedRows, owners: ByItem, low: int, high: int) -> int:
    """Add to the rows from low up to high, in place, each user's pairs of items; returns how many additions it took.

    A row of the Gram matrix stays in the processor's cache while all users of its item are added. A sum is at most the
    number of users, who are numbered in 32 bits: it can't overflow.
    """
    added = 0
    for item in range(low, high):
        total = gram[item]
        for place in range(owners.starts[item], owners.starts[item + 1]):
            user = owners.users[place]
            sign = rows.signs[user]
            owned = rows.items[rows.starts[user] : rows.starts[user + 1]]
            added += len(owned)
            for other in owned:
                total[np.uint32(other)] += sign  # numba need not look for a negative index: twice as quick
    return added


def add_rows(gram: NDArray[np.int32], rows: SignedRows, effort: Effort) -> None:
    """Add rows to a Gram matrix in place; a thread owns whole rows of it, so threads can't change a sum."""
    fixed = SignedRows(*(read_only(column) for column in rows))
    task = partial(add_pairs, gram, fixed, by_item(fixed, len(gram)))
    lows = range(0, len(gram), _ROWS_AT_ONCE)
    highs = [min(low + _ROWS_AT_ONCE, len(gram)) for low in lows]
    with pool_of(effort.threads) as pool:
        for added in pool.map(task, lows, highs):
            effort.advance(added)


@compiled(nogil=True)
def rounded_from_upper(matrix: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return the symmetric matrix of which the upper triangle is given, rounded; tile by tile, for the cache's sake."""
    size = len(matrix)
    rounded = np.empty((size, size), np.float32)
    for top in range(0, size, _TILE):
        for left in range(top, size, _TILE):
            for row in range(top, min(top + _TILE, size)):
                for column in range(max(left, row), min(left + _TILE, size)):
                    value = np.float32(matrix[row, column])
                    rounded[row, column] = value
                    rounded[column, row] = value
    return rounded
