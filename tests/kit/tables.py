"""Small tables of interactions, written out or made up; shared by the tests of the numeric core."""

from collections.abc import Iterable, Mapping

import numpy as np

from erasable.data import Ids, Interactions, RatingScale, recognise_scale
from erasable.models import Stage


def table(rows: Mapping[str, Iterable[str] | Mapping[str, float]], catalogue: Iterable[str] = ()) -> Interactions:
    """Write a table as {user: items} or {user: {item: rating}}; the catalogue may hold more items."""
    ratings = {user: dict(has) if isinstance(has, Mapping) else dict.fromkeys(has, 1.0) for user, has in rows.items()}
    users = sorted(user for user, has in ratings.items() if has)
    items = sorted({*catalogue, *(item for has in ratings.values() for item in has)})
    cells = [
        (u, i, ratings[user][item])
        for u, user in enumerate(users)
        for i, item in enumerate(items)
        if item in ratings[user]
    ]
    columns = np.array(cells, dtype=np.float64).reshape(len(cells), 3)
    return Interactions(Ids.of(users), Ids.of(items), *columns.T)


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


def as_rows(interactions: Interactions) -> set[tuple[str, str, float]]:
    """Return the rows as (user, item, rating)."""
    users, items = interactions.users.texts(), interactions.items.texts()
    columns = (interactions.user_index, interactions.item_index, interactions.rating)
    return {(users[u], items[i], float(r)) for u, i, r in zip(*columns, strict=True)}


def items_of(interactions: Interactions, row: int) -> np.ndarray:
    """Return the item numbers of one user."""
    return interactions.item_index[interactions.user_starts[row] : interactions.user_starts[row + 1]]


def stage(
    interactions: Interactions,
    *,
    epochs: int = 1,
    seed: int = 0,
    position: int = 0,
    scale: RatingScale | None = None,
) -> Stage:
    """Return a stage; its scale is the one that the ratings fill if none is given."""
    return Stage(interactions, scale or recognise_scale(interactions.rating), epochs, seed, position)
