"""Whom an experiment forgets, named like rand@5: per cent of all users, or of the users of one group."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from erasable.data import Interactions
from erasable.seeding import child_key, id_keys
from erasable.training import Knowledge

RequestName = Literal[
    "learn", "rand@2.5", "rand@5", "top@2.5", "top@5", "one", "first group@5", "random group@5", "last group@5"
]


def users_to_forget(knowledge: Knowledge, request: RequestName) -> list[str]:
    """Return whom a request means; who that is depends on the seed and, of all users, on their ids and ratings only.

    rand@K and top@K are K per cent of all users, at random or those with most ratings; one is a single random user;
    the others are K per cent of the users of the first, a random or the last group of the chain.
    """
    kind, _, share = request.partition("@")
    if kind == "learn":
        return []
    users, ratings = _users(knowledge) if kind in ("rand", "top", "one") else _group(knowledge, kind)
    count = 1 if kind == "one" else max(1, round(float(share) / 100 * len(users)))
    keys = id_keys(knowledge.config.seed, "experiment request", users)
    order = np.lexsort((keys, -ratings)) if kind == "top" else np.argsort(keys, kind="stable")
    return [users[place] for place in order[:count].tolist()]


def _users(knowledge: Knowledge) -> tuple[list[str], NDArray[np.int64]]:
    everyone = Interactions.merge([*knowledge.groups, knowledge.held_out])
    return everyone.users.texts(), np.diff(everyone.user_starts)


def _group(knowledge: Knowledge, kind: str) -> tuple[list[str], NDArray[np.int64]]:
    last = len(knowledge.groups) - 1
    random = child_key(knowledge.config.seed, "experiment group") % (last + 1)
    group = knowledge.groups[{"first group": 0, "random group": random, "last group": last}[kind]]
    return group.users.texts(), np.diff(group.user_starts)
