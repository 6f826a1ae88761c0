"""Small tables of interactions, written out or made up."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from erasable.data import Ids, Interactions, RatingScale, recognise_scale
from erasable.models import Stage
from erasable.seeding import child_key, id_keys


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


def made_up(seed: int, users: int = 12, items: int = 9) -> Interactions:
    """Make up a table with ratings: user u0000 has every item, u0001 has one, the last item is u0000's alone."""
    names = [f"i{number:03d}" for number in range(items)]
    has = {"u0000": names, "u0001": names[:1]}
    for number in range(2, users):
        user = f"u{number:04d}"
        has[user] = some_of(names[:-1], 1 + child_key(seed, "count", user) % (items - 2), seed, user)
    return table({user: {item: rating_of(seed, user, item) for item in own} for user, own in has.items()})


def checkerboard() -> tuple[Interactions, list[list[int]]]:
    """Return a table in which users have the items of their own colour, and two items of each that it leaves out."""
    users, items = 200, 40
    liked = [[item for item in range(items) if item % 2 == user % 2] for user in range(users)]
    left_out = [[liked[user][(user // 2 + shift) % 20] for shift in (0, 3)] for user in range(users)]
    kept = [[item for item in liked[user] if item not in left_out[user]] for user in range(users)]
    return table({f"u{user:03d}": [f"i{item:02d}" for item in kept[user]] for user in range(users)}), left_out


def rating_of(seed: int, user: str, item: str) -> float:
    """Make up a rating from 1 to 5."""
    return float(1 + child_key(seed, "rating", user, item) % 5)


def some_of(texts: Sequence[str], count: int, seed: int, purpose: str) -> list[str]:
    """Draw some texts, in random order."""
    return [texts[place] for place in np.argsort(id_keys(seed, purpose, texts), kind="stable")[:count]]


def as_rows(interactions: Interactions) -> set[tuple[str, str, float]]:
    """Return the rows as (user, item, rating)."""
    users, items = interactions.users.texts(), interactions.items.texts()
    columns = (interactions.user_index, interactions.item_index, interactions.rating)
    return {(users[u], items[i], float(r)) for u, i, r in zip(*columns, strict=True)}


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
