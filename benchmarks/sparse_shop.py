"""A made-up sparse shop: 22,900 people, a long tail of 86,708 items that someone has, 202,436 purchases.

Items lie in departments, and inside these in small series (a camera and what belongs to it). A person has at least five
items; each is of the series of an own item, or of one of the own departments, or of the whole shop, by popularity.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from erasable.data import Interactions

PEOPLE, ITEMS, DEPARTMENTS, LONGEST = 22_900, 230_000, 60, 600
SERIES_LENGTH, EXTRA_ITEMS, SEED = 14.0, 4.4, 7
OF_A_SERIES, OF_A_DEPARTMENT = 0.35, 0.85
"""Below the first a draw goes on with a series, below the second it is of an own department."""


@dataclass(frozen=True)
class Shelves:
    """Where everything lies: the series of each item, where series and departments begin, popularity summed up."""

    series: NDArray[np.int64]
    series_starts: NDArray[np.int64]
    department_starts: NDArray[np.int64]
    popularity: NDArray[np.float64]

    def drawn(self, random: np.random.Generator, low: int, high: int) -> int:
        """Draw one of a run of items by popularity."""
        below, above = self.popularity[low], self.popularity[high]
        place = np.searchsorted(self.popularity, below + random.random() * (above - below), side="right")
        return min(int(place) - 1, high - 1)


def sparse_shop() -> Interactions:
    """Make the shop up: the same one each time."""
    random = np.random.default_rng(SEED)
    shelves = _shelves(random)
    extra = np.floor(random.lognormal(np.log(EXTRA_ITEMS) - 0.72, 1.2, PEOPLE)).astype(int)
    owned = [_purchases(random, shelves, size) for size in np.minimum(5 + extra, LONGEST).tolist()]
    names = random.permutation(ITEMS)  # numbers say nothing about series or departments
    users = [f"u{person:07d}" for person, items in enumerate(owned) for _ in items]
    items = [f"i{names[item]:07d}" for some in owned for item in some]
    return Interactions.from_columns(pa.array(users), pa.array(items))[0]


def _shelves(random: np.random.Generator) -> Shelves:
    sizes = 1 / np.arange(1, DEPARTMENTS + 1) ** 0.7
    departments = np.sort(random.choice(DEPARTMENTS, ITEMS, p=sizes / sizes.sum()))
    lengths = np.maximum(1, random.geometric(1 / SERIES_LENGTH, ITEMS))
    series = np.repeat(np.arange(ITEMS), lengths)[:ITEMS]
    popularity = (random.pareto(1.05, ITEMS) + 1) ** 0.85
    popularity = popularity * random.lognormal(0, 0.7, series.max() + 1)[series]
    popularity = np.minimum(popularity, np.quantile(popularity, 0.9995))
    return Shelves(
        series,
        np.searchsorted(series, np.arange(series.max() + 2)),
        np.searchsorted(departments, np.arange(DEPARTMENTS + 1)),
        np.concatenate([[0], np.cumsum(popularity)]),
    )


def _purchases(random: np.random.Generator, shelves: Shelves, size: int) -> list[int]:
    shares = np.diff(shelves.popularity[shelves.department_starts])
    number = 1 + (random.random() < 0.6) + (random.random() < 0.3)
    departments = random.choice(DEPARTMENTS, number, p=shares / shares.sum())
    owned: dict[int, None] = {}
    for _ in range(20 * size):
        if len(owned) == size:
            break
        owned[_purchase(random, shelves, departments, list(owned))] = None
    return list(owned)


def _purchase(random: np.random.Generator, shelves: Shelves, departments: NDArray[np.int64], owned: list[int]) -> int:
    kind = random.random()
    if kind < OF_A_SERIES and owned:
        series, starts = shelves.series[owned[random.integers(len(owned))]], shelves.series_starts
        return shelves.drawn(random, starts[series], starts[series + 1])
    if kind < OF_A_DEPARTMENT:
        department, starts = departments[random.integers(len(departments))], shelves.department_starts
        return shelves.drawn(random, starts[department], starts[department + 1])
    return shelves.drawn(random, 0, ITEMS)
