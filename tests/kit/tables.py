"""Small tables of interactions, made up or, as `erasable.testing` has it, written out."""

import numpy as np

from erasable.data import Interactions
from erasable.testing._suite import as_rows, stage, table

__all__ = ["as_rows", "items_of", "random_table", "stage", "table"]


def random_table(seed: int, users: int = 12, items: int = 9, ratings: bool = False) -> Interactions:
    """Make up a table in which user u0 has every item, u1 has one, and nobody has the last item except u0."""
    generator = np.random.default_rng(seed)
    names = [f"i{number:03d}" for number in range(items)]
    rows = {"u0000": dict.fromkeys(names, 1.0), "u0001": {names[0]: 1.0}}
    for number in range(2, users):
        chosen = generator.permutation(items - 1)[: generator.integers(1, items - 1)]
        rows[f"u{number:04d}"] = {names[item]: 1.0 for item in chosen}
    if ratings:
        rows = {user: {item: float(generator.integers(1, 6)) for item in has} for user, has in rows.items()}
    return table(rows)


def items_of(interactions: Interactions, row: int) -> np.ndarray:
    """Return the item numbers of one user."""
    return interactions.item_index[interactions.user_starts[row] : interactions.user_starts[row + 1]]
