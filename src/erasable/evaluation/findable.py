"""Which rows of a test set a recommender could find: those it did not learn from, of users and items that it knows."""

from dataclasses import dataclass

import numpy as np

from erasable.chain.dataset import Dataset
from erasable.data.interactions import Interactions
from erasable.errors import Refused, option
from erasable.wording import counted

_ALSO_LEARNED = {
    "whole-catalogue": "they can't be recommended, so they count as missed",
    "one-of-100": "they are easier to find than others",
    "held-out-only": "they are easier to rank than others",
}


@dataclass(frozen=True)
class Findable:
    """How many rows and users a test set has, and how many of them a recommender learned from and knows."""

    rows: int
    users: int
    learned: int
    """Rows that are also learned from."""
    of_known_users: int
    known_users: int
    of_known_items: int
    """Rows whose items are in the catalogue."""

    @staticmethod
    def of(dataset: Dataset, test: Interactions) -> "Findable":
        """Count them, reading the buckets of these users only."""
        items = test.items.positions_of(dataset.items.array)
        learned, known = np.zeros(len(test), bool), np.zeros(len(test.users), bool)
        for number in dataset.buckets.by_bucket(test.users):
            rows = dataset.buckets[number].training
            place = test.users.positions_of(rows.users.array)
            known[place[place >= 0]] = True
            there = (place[rows.user_index] >= 0) & (items[rows.item_index] >= 0)
            pairs = place[rows.user_index[there]] * len(test.items) + items[rows.item_index[there]]
            learned |= np.isin(test.keys(), pairs)
        in_catalogue = dataset.items.positions_of(test.items.array) >= 0
        return Findable(
            rows=len(test),
            users=len(test.users),
            learned=int(learned.sum()),
            of_known_users=int(known[test.user_index].sum()),
            known_users=int(known.sum()),
            of_known_items=int(in_catalogue[test.item_index].sum()),
        )

    def refuse_what_is_learned(self) -> None:
        """Refuse a test set of nothing but what its users have in training, which is never recommended."""
        if self.learned and self.learned == self.of_known_users:
            raise Refused(
                f"all test rows of known users ({self.learned:,}) are also learned from, and nobody is recommended "
                "what they have in training: test with rows that were kept out, or learn with ",
                option("holdout", 0.1),
            )

    def doubts(self, protocol: str) -> tuple[str, ...]:
        """Say that rows are also learned from, if some are."""
        if not self.learned:
            return ()
        return (f"{_of(self.learned, self.rows, 'test row')} also learned from: {_ALSO_LEARNED[protocol]}",)

    def notes(self) -> tuple[str, ...]:
        """Say how many users and items the recommender does not know, if there are some."""
        users, rows = self.users - self.known_users, self.rows - self.of_known_items
        strangers = f"{_of(users, self.users, 'test user')} unknown to the model, and left out"
        unknown = f"{_of(rows, self.rows, 'test row')} of items outside the catalogue: they can't be found"
        return (*([strangers] if users else []), *([unknown] if rows else []))


def _of(some: int, total: int, one: str) -> str:
    return f"{some:,} of {counted(total, one)} {'is' if some == 1 else 'are'}"
