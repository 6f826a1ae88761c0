"""Popular: everyone is recommended what most people have; the least that another model must beat."""

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from erasable.data.ids import Ids
from erasable.data.interactions import Interactions
from erasable.models.base import Arrays, Change, Effort, Model, Parameters, Scores, Size, Stage, frozen
from erasable.models.settings import Settings

OWNERS = "counts"
PEOPLE = "total"  # a scan takes an array of this name for a number, one of "people" for ids
_CLAMP = 1e-4


class PopularSettings(Settings):
    """Popular has no settings."""


class Popular(Model):
    """Scores an item by the share of people who have it, the same for everyone; see `Model` for the methods.

    Ratings make no difference.

    Parameters
    ----------
    **settings
        Popular has none.

    Examples
    --------
    >>> Popular()
    Popular()
    """

    name: ClassVar[str] = "popular"
    settings_class: ClassVar[type[Settings]] = PopularSettings
    revision: ClassVar[int] = 1
    uses: ClassVar[tuple[str, ...]] = ()
    strategies: ClassVar[tuple[str, ...]] = ("retrain",)
    settings: PopularSettings
    trains_rows = True  # there are none
    by_slot = True  # counts are whole numbers, so their order makes no difference
    has_rows = False

    def start(self, catalogue: Ids, seed: int) -> Arrays:
        """Return counts of 0."""
        return frozen({OWNERS: np.zeros(len(catalogue), np.int32), PEOPLE: np.zeros(1, np.int32)})

    def train(self, shared: Arrays, stage: Stage, effort: Effort) -> Parameters:
        """Count who has each item; the stage holds all data there is."""
        rows = stage.interactions
        if len(rows) == 0:
            return Parameters({name: array.copy() for name, array in shared.items()}, {})
        effort.advance(self.samples(rows, stage.epochs))
        return Parameters({OWNERS: _owners(rows), PEOPLE: np.array([len(rows.users)], np.int32)}, {})

    def amended(self, trained: Arrays, change: Change, effort: Effort) -> Arrays:
        """Subtract the rows that go and add those that come."""
        owners, people = trained[OWNERS] - _owners(change.taken), trained[PEOPLE]
        if change.taken.items != change.given.items:
            places = change.given.items.positions_of(change.taken.items.array)
            moved = np.zeros(len(change.given.items), np.int32)
            moved[places[places >= 0]] = owners[places >= 0]
            owners = moved
        effort.advance(len(change.taken) + len(change.given))
        people = people + np.int32(len(change.given.users) - len(change.taken.users))
        return frozen({OWNERS: owners + _owners(change.given), PEOPLE: people})

    def provisional(self, shared: Arrays, change: Change) -> Arrays:
        """Return the amended counts: nothing of the users who leave is left in them."""
        return self.amended(shared, change, Effort())

    def represent(self, prepared: Arrays, people: Stage, effort: Effort) -> Arrays:
        """Return no rows: there are none."""
        return {}

    def score(self, prepared: Arrays, row: Arrays, owned: NDArray[np.int32]) -> Scores:
        """Return the share of people who have each item."""
        return (prepared[OWNERS] / np.maximum(prepared[PEOPLE], 1)).astype(np.float32)

    def probability(self, scores: Scores) -> NDArray[np.float64]:
        """Return the shares, clamped away from 0 and 1."""
        return np.clip(scores.astype(np.float64), _CLAMP, 1 - _CLAMP)

    def samples(self, interactions: Interactions | Size, epochs: int) -> int:
        """Return the number of rows, each of which is counted once."""
        return len(interactions)

    def samples_amended(self, interactions: Interactions, change: Change) -> int:
        """Return the number of rows that go or come."""
        return len(change.taken) + len(change.given)


def _owners(rows: Interactions) -> NDArray[np.int32]:
    """Return how many people have each item."""
    return np.bincount(rows.item_index, minlength=len(rows.items)).astype(np.int32)
