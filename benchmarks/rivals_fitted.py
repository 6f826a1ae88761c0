"""Rivals of EASE from neighbourhoods: how each is fitted to a split, and the one function that judges them all."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from erasable.data import Interactions, RatingScale
from erasable.models import Effort, Model, Stage
from erasable.models._columns_kernel import by_source, summed
from erasable.models._embedding_model import USER_ROWS
from erasable.models.base import prepared_by
from erasable.models.machine import one_blas_thread
from implicit_rival import train_implicit

AT_ONCE = 256
Scorer = Callable[[NDArray[np.int64]], NDArray[np.float32]]
"""Gives some users' scores of all items, a row for each."""
Fitted = tuple[Scorer, float]
"""What scores, and the seconds of the processor that fitting it took."""


@dataclass(frozen=True)
class Split:
    """Rows to learn from, and those that recommendations should find."""

    learned: Interactions
    held: Interactions
    scale: RatingScale
    threads: int

    @cached_property
    def matrix(self) -> sparse.csr_matrix:
        """Who has what."""
        rows = self.learned
        ones, shape = np.ones(len(rows), np.float32), (len(rows.users), len(rows.items))
        return sparse.csr_matrix((ones, rows.item_index, rows.user_starts), shape=shape)


def popular(split: Split) -> Scorer:
    """Recommend what most people have."""
    counts = np.asarray(split.matrix.sum(axis=0), np.float32)
    return lambda users: np.repeat(counts, len(users), axis=0)


def item_knn(split: Split, neighbours: int, shrink: float) -> Scorer:
    """Score an item by the summed, shrunk cosines of those of its nearest items that someone has."""
    rows, by_item = split.learned, split.matrix.tocsc()
    near = _nearest(rows.user_starts, rows.item_index, by_item.indptr, by_item.indices, neighbours, shrink)
    spoken = by_source(*near)
    return lambda users: np.stack([summed(*spoken, rows.items_at(user)) for user in users.tolist()])


def implicit_als(split: Split, factors: int, regularisation: float, alpha: float) -> Fitted:
    """Train implicit on interactions that all weigh the same."""
    confidences = np.full(len(split.learned), alpha, np.float32)
    settings = {"factors": factors, "regularisation": regularisation, "iterations": 15, "threads": split.threads}
    trained = train_implicit(split.learned, confidences, settings)
    user, item = trained.factors["user"], trained.factors["item"]
    return lambda users: user[users] @ item.T, trained.cpu_seconds


def timed(fit: Callable[..., Scorer], split: Split, **settings: Any) -> Fitted:
    began = time.process_time()
    return fit(split, **settings), time.process_time() - began


def ours(model: type[Model], split: Split, **settings: Any) -> Scorer:
    """Train a model of this project: one that scores from what people have, or ALS, which has rows of people."""
    made, effort = model(**settings), Effort(split.threads)
    stage = Stage(split.learned, split.scale, getattr(made.settings, "epochs", 1), seed=0, position=0)
    prepared = prepared_by(made, made.train(made.start(split.learned.items, 0), stage, effort).shared)
    rows = made.represent(prepared, stage, effort)
    if rows:  # a product for many people at once takes a fraction of the time of one for each
        user, item = rows[USER_ROWS], prepared.rows
        return lambda users: user[users] @ item.T
    return lambda users: np.stack([made.score(prepared, {}, split.learned.items_at(user)) for user in users.tolist()])


def ndcg_at_10(scorer: Scorer, split: Split) -> float:
    """Return the mean over everyone with held-out rows, as `erasable.evaluation` defines it."""
    learned, held = split.learned, split.held
    places, gains = learned.users.positions_of(held.users.array), []
    with one_blas_thread():
        for low in range(0, len(places), AT_ONCE):
            users = places[low : low + AT_ONCE]
            found = held.user_starts[low : low + len(users) + 1], held.item_index
            gains.append(_gains(scorer(users), users, learned.user_starts, learned.item_index, *found))
    return float(np.concatenate(gains).mean())


@numba.njit(cache=True)
def _gains(scores, users, owned_starts, owned, held_starts, held):  # type: ignore[no-untyped-def]
    """Return each user's NDCG@10: the whole catalogue less what they have, ties to the first item."""
    discounts = 1 / np.log2(np.arange(2, 12))
    gains = np.zeros(len(users))
    best = np.empty(10, np.int64)
    for row in range(len(users)):
        values, size = scores[row], 0
        values[owned[owned_starts[users[row]] : owned_starts[users[row] + 1]]] = -np.inf
        for item in range(len(values)):
            if values[item] == -np.inf or (size == 10 and not values[item] > values[best[9]]):
                continue
            place = min(size, 9)
            while place > 0 and values[best[place - 1]] < values[item]:
                best[place] = best[place - 1]
                place -= 1
            best[place] = item
            size = min(size + 1, 10)
        wanted = held[held_starts[row] : held_starts[row + 1]]
        for place in range(size):
            if (wanted == best[place]).any():
                gains[row] += discounts[place]
        gains[row] /= discounts[: min(10, len(wanted))].sum()
    return gains


@numba.njit(cache=True)
def _nearest(user_starts, owned, item_starts, owners, number, shrink):  # type: ignore[no-untyped-def]
    """Return each item's nearest ones and their cosines c / (√(n_i n_j) + shrink); equals by number, -1 is none."""
    size, counts = len(item_starts) - 1, np.diff(item_starts).astype(np.float64)
    items, weights = np.full((size, number), -1, np.int32), np.zeros((size, number), np.float32)
    both, seen = np.zeros(size, np.int64), np.empty(size, np.int64)
    for item in range(size):
        many = 0
        for user in owners[item_starts[item] : item_starts[item + 1]]:
            for other in owned[user_starts[user] : user_starts[user + 1]]:
                if both[other] == 0 and other != item:
                    seen[many] = other
                    many += 1
                both[other] += 1
        both[item] = 0
        others = seen[:many]
        near = both[others] / (np.sqrt(counts[item] * counts[others]) + shrink)
        both[others] = 0
        border = np.partition(near, many - number)[many - number] if many > number else 0.0
        chosen = np.concatenate((others[near > border], np.sort(others[near == border])))[:number]
        items[item, : len(chosen)] = chosen
        above = near[near > border]
        weights[item, : len(chosen)] = border
        weights[item, : len(above)] = above
    return items, weights
