"""Made-up people and what they have, piece by piece: as much as is wanted, and never all of it in memory.

How many items people have is long-tailed, and so is how popular items are. Each person has two tastes among clusters of
items, so that there is something to learn. A person's rows are computed from the seed, the settings and the person's
own number: they are the same whatever the pieces are. `synthetic` has small data whose best recommendations are known.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator
from scipy.special import erfc

from erasable.checked_settings import CheckedSettings
from erasable.seeding import child_key
from erasable.seeding.compiled import below, compiled, draw

MOST_ITEMS_OF_A_PERSON = 10_000
ROWS_AT_ONCE = 2**20
_MOST_PEOPLE_AT_ONCE = 2**20
_MOST_CLUSTERS = 20
_FEWEST_ITEMS_OF_A_CLUSTER = 5
_SPREAD = 1.0  # of the logarithm of how many items people have: the mean is 1.6 times the median
_POPULARITY_EXPONENT = 0.8
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_UNIT = 2.0**-53


class MadeUpSettings(CheckedSettings):
    """The settings of made-up data."""

    users: int = Field(default=10_000, ge=1, le=10**9)
    """How many people."""
    items: int = Field(default=1_000, ge=1, le=10**7)
    """How many items there are; nobody may have those that are least popular."""
    interactions: int = Field(default=100_000, ge=1)
    """About how many interactions in all: most people have few and some have many, each at least one."""
    clusters: int | None = Field(default=None, ge=1)
    """How many kinds of items; each person prefers two of them. If not given: 20, or fewer for fewer than 100 items."""
    ratings: bool = False
    """Add ratings from 1 to 5, higher for items of a preferred kind."""
    times: bool = False
    """Add times, in seconds since 1970; a person's rows are in the order of their times."""
    seed: int = 0
    """The seed; each person's rows depend on it, on these settings and on the person's own number."""

    @model_validator(mode="after")
    def _possible(self) -> "MadeUpSettings":
        if self.clusters is not None and self.clusters > self.items:
            raise ValueError("give at least as many `items` as `clusters`")
        if self.interactions < self.users:
            raise ValueError("give at least as many `interactions` as `users`: each has one at least")
        most = self.users * self.most_of_a_person
        if self.interactions > most:
            raise ValueError(
                f"give at most {most:,} `interactions`, which is {self.most_of_a_person:,} for each person, or more "
                "`users` or `items`"
            )
        return self

    @property
    def kinds(self) -> int:
        """The number of clusters: the given one, or one that fits the items."""
        return self.clusters or min(_MOST_CLUSTERS, max(1, self.items // _FEWEST_ITEMS_OF_A_CLUSTER))

    @property
    def most_of_a_person(self) -> int:
        """How many items one person may have."""
        return min(self.items, MOST_ITEMS_OF_A_PERSON)

    @property
    def people_at_once(self) -> int:
        """How many people have about as many rows as are made at once."""
        return max(1, min(_MOST_PEOPLE_AT_ONCE, ROWS_AT_ONCE * self.users // self.interactions))


@dataclass(frozen=True, eq=False)
class Piece:
    """The rows of some people who follow each other: person number `first + n` has `starts[n]:starts[n + 1]`."""

    first: int
    starts: NDArray[np.int64]
    item_index: NDArray[np.int32]
    rating: NDArray[np.int8] | None
    time: NDArray[np.int64] | None

    @property
    def people(self) -> int:
        """How many people it has."""
        return len(self.starts) - 1

    @cached_property
    def user_index(self) -> NDArray[np.int32]:
        """The person of each row, counted from the first of the piece."""
        return np.repeat(np.arange(self.people, dtype=np.int32), np.diff(self.starts))


def made_up_pieces(
    settings: MadeUpSettings, first: int = 0, end: int | None = None, people_at_once: int | None = None
) -> Iterator[Piece]:
    """Make up the rows of the people numbered from `first` to before `end`, of all if none are named.

    Parameters
    ----------
    settings : MadeUpSettings
        How much, and of which kind.
    first, end : int, optional
        Which people, counted from 0.
    people_at_once : int, optional
        How many people a piece has; it changes no row.

    Returns
    -------
    iterator of Piece
        The pieces, in the order of the people.

    Examples
    --------
    >>> settings = MadeUpSettings(users=50, items=30, interactions=200)
    >>> whole, = made_up_pieces(settings)
    >>> part, = made_up_pieces(settings, first=20, end=21)
    >>> bool((part.item_index == whole.item_index[whole.starts[20]:whole.starts[21]]).all())
    True
    """
    last = settings.users if end is None else end
    step = people_at_once or settings.people_at_once
    at_least, popularity = _shares_with_at_least(settings), _popularity(settings)
    taken = np.full(settings.items, -1, dtype=np.int64)
    for begin in range(first, last, step):
        yield _piece(settings, begin, min(last, begin + step), at_least, popularity, taken)


def _piece(
    settings: MadeUpSettings,
    begin: int,
    end: int,
    at_least: NDArray[np.float64],
    popularity: NDArray[np.float64],
    taken: NDArray[np.int64],
) -> Piece:
    starts = np.concatenate([[0], np.cumsum(_how_many(settings, begin, end, at_least))]).astype(np.int64)
    rows = int(starts[-1])
    item_index = np.empty(rows, dtype=np.int32)
    rating = np.empty(rows if settings.ratings else 0, dtype=np.int8)
    time = np.empty(rows if settings.times else 0, dtype=np.int64)
    key = np.uint64(child_key(settings.seed, "made-up people"))
    _make_rows(key, begin, starts, settings.kinds, popularity, taken, item_index, rating, time)
    return Piece(begin, starts, item_index, rating if settings.ratings else None, time if settings.times else None)


def _shares_with_at_least(settings: MadeUpSettings) -> NDArray[np.float64]:
    """Return the share of people who have at least 1, 2, 3, ... items: log-normal, with the mean that is asked for."""
    logarithms = np.log(np.arange(2, settings.most_of_a_person + 1, dtype=np.float64))
    wanted = settings.interactions / settings.users

    def shares(centre: float) -> NDArray[np.float64]:
        beyond = 0.5 * erfc((logarithms - centre) / (_SPREAD * np.sqrt(2.0)))
        return np.concatenate([[1.0], beyond])

    low, high = -20.0, 40.0
    for _ in range(60):  # the mean is the sum of the shares, and grows with the centre
        centre = (low + high) / 2
        low, high = (centre, high) if shares(centre).sum() < wanted else (low, centre)
    return shares(high)


def _how_many(settings: MadeUpSettings, begin: int, end: int, at_least: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return how many items people have, from quantiles that are spread evenly over any people who follow each other.

    Independent draws would miss the wanted sum by several per cent where people are few, and some have very many.
    """
    numbers = np.arange(begin, end, dtype=np.uint64)
    with np.errstate(over="ignore"):
        bits = np.uint64(child_key(settings.seed, "made-up numbers of items")) + numbers * _GOLDEN
    quantile = (bits >> np.uint64(11)).astype(np.float64) * _UNIT
    # The shares fall from 1: as many items as there are shares above the quantile.
    return len(at_least) - np.searchsorted(at_least[::-1], quantile, side="right")


def _popularity(settings: MadeUpSettings) -> NDArray[np.float64]:
    """Return the cumulative chances of the ranks in a cluster; item n has cluster n modulo clusters, rank n divided."""
    ranks = np.arange(1, -(-settings.items // settings.kinds) + 1, dtype=np.float64)
    cumulative = np.cumsum(ranks**-_POPULARITY_EXPONENT)
    return cumulative / cumulative[-1]


_DRAWS_FOR_A_ROW = 8
_FIRST_ROW_DRAW = 16
_OTHER_DRAWS = 2**40  # far above the draws of items, so that a rating or a time never shares their bits
_PER_MILLE_FIRST, _PER_MILLE_EITHER = 600, 800
_FIRST_SECOND = 1_577_836_800  # 1 January 2020
_SECONDS_OF_JOINING = 3 * 365 * 86_400
_MOST_SECONDS_BETWEEN = 2 * 86_400


# One function, longer than others: what it draws for a row depends on all that was drawn for the person.
@compiled(nogil=True)
def _make_rows(
    key: np.uint64,
    begin: int,
    starts: NDArray[np.int64],
    clusters: int,
    popularity: NDArray[np.float64],
    taken: NDArray[np.int64],
    item_index: NDArray[np.int32],
    rating: NDArray[np.int8],
    time: NDArray[np.int64],
) -> None:
    """Fill in the rows of some people; `taken` has the last person who took each item, and is changed."""
    items = len(taken)
    for place in range(len(starts) - 1):
        person = np.int64(begin + place)
        own = draw(key, np.uint64(person))
        first, second = below(draw(own, np.uint64(0)), clusters), below(draw(own, np.uint64(1)), clusters)
        moment = _FIRST_SECOND + below(draw(own, np.uint64(2)), _SECONDS_OF_JOINING)
        counter = np.uint64(_FIRST_ROW_DRAW)
        for row in range(starts[place], starts[place + 1]):
            item = 0
            for _ in range(_DRAWS_FOR_A_ROW):
                choice, cluster = below(draw(own, counter), 1000), first
                if choice >= _PER_MILLE_EITHER:
                    cluster = below(draw(own, counter + np.uint64(1)), clusters)
                elif choice >= _PER_MILLE_FIRST:
                    cluster = second
                share = np.float64(draw(own, counter + np.uint64(2)) >> np.uint64(11)) * _UNIT
                rank = int(np.searchsorted(popularity, share, side="right"))
                item = min(rank, len(popularity) - 1) * clusters + cluster
                counter += np.uint64(3)
                if item < items and taken[item] != person:
                    break
            # Whoever has nearly everything takes the next item that is free.
            item = item % items
            while taken[item] == person:
                item = item + 1 if item + 1 < items else 0
            taken[item] = person
            item_index[row] = item
            other = np.uint64(_OTHER_DRAWS) + np.uint64(2 * (row - starts[place]))
            if len(rating):
                kind = item % clusters
                lowest = 3 if kind in (first, second) else 1
                rating[row] = lowest + below(draw(own, other), 3)
            if len(time):
                moment += 1 + below(draw(own, other + np.uint64(1)), _MOST_SECONDS_BETWEEN)
                time[row] = moment
