"""ALS for implicit feedback (Hu, Koren and Volinsky 2008): item factors, and a row for each user in closed form.

What a user has counts as 1 and weighs 1 + 4 · rating / the highest rating; what the user has not counts as 0 and weighs
1. A row is solved from the item factors and the user's own interactions alone; `als_kernel` says how.
"""

from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from itertools import pairwise
from math import ceil, log, sqrt
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from erasable.data import Ids, Interactions
from erasable.errors import Refused
from erasable.models.als_kernel import Links, solve_rows
from erasable.models.batches import Floats
from erasable.models.blas import one_blas_thread
from erasable.models.embedding_model import ITEM_ROWS, USER_ROWS, blocks
from erasable.models.model import Change, Effort, Scorer, Scores, Stage
from erasable.models.parameters import Arrays, Parameters
from erasable.models.settings import ModelSettings
from erasable.seeding import id_keys, normals
from erasable.threads import pool_of

_WEIGHT = 4.0  # of the highest rating: chosen by measuring, with the usual regularisation (docs/decisions)
_DEVIATION = 0.01
_TRAINING_STEPS = 3  # of conjugate gradients; more were measured to change no quality
_STEPS_TO_THE_END = ceil(log(2e7) / log((sqrt(1 + _WEIGHT) + 1) / (sqrt(1 + _WEIGHT) - 1)))  # an error below 1e-7
_BLOCK = 2048
_TASKS = 32
# Work is counted in passes over one interaction: what else takes time was measured in them.
_PASSES_TO_THE_END = 10
_PASSES_OF_A_SOLVED_ROW = 150
_PASSES_OF_A_GIVEN_ROW = 30
_PASSES_OF_A_SIDE = 50_000
_Array = TypeVar("_Array", bound=NDArray[Any])
_SURE = 1e-6  # a probability is never nearer to 0 or 1


class Als:
    """Item factors that training alternates with its users' rows; see `Model` for the methods."""

    trains_rows = False

    def __init__(self, settings: ModelSettings) -> None:
        self._settings = settings
        self._factors = settings.factors
        self._regularisation = settings.regularisation or 0.0

    def start(self, catalogue: Ids, seed: int) -> Arrays:
        """Return small random item factors."""
        return {ITEM_ROWS: _frozen(self._starting_rows(catalogue, seed))}

    def extended(self, shared: Arrays, catalogue: Ids, seed: int) -> Arrays:
        """Return the item factors with those of the catalogue's further items, as they start."""
        known = shared[ITEM_ROWS]
        further = catalogue.take(np.arange(len(known), len(catalogue)))
        return {ITEM_ROWS: _frozen(np.concatenate([known, self._starting_rows(further, seed)]))}

    def train(self, shared: Arrays, stage: Stage, effort: Effort) -> Parameters:
        """Alternate between the users' rows and the item factors; the rows are left to `solve`."""
        rows = stage.interactions
        items: Floats = shared[ITEM_ROWS].copy()
        if len(rows) == 0:
            return Parameters({ITEM_ROWS: items}, {})
        by_user, by_item = _links_of_users(stage), _links_of_items(stage)
        with _crew(effort.threads) as crew:
            for _ in range(stage.epochs):
                users = self._solve(by_user, items, _TRAINING_STEPS, crew)
                items = self._solve(by_item, users, _TRAINING_STEPS, crew)
                effort.advance(self._samples_of_epoch(rows))
        return Parameters({ITEM_ROWS: items}, {})

    def amended(self, trained: Arrays, change: Change, effort: Effort) -> Arrays | None:
        """Return None: every item's factors depend on every user through all epochs."""
        return None

    def newcomers(self, shared: Arrays, users: Ids, seed: int) -> Arrays:
        """Return rows of zeros, which is what no interactions are solved to."""
        return {USER_ROWS: _frozen(self._nothing_known(len(users)))}

    def solve(self, shared: Arrays, stage: Stage, effort: Effort) -> Arrays:
        """Return the users' rows, each solved to the end from the item factors and the own interactions."""
        if len(stage.interactions) == 0:
            return {USER_ROWS: _frozen(self._nothing_known(0))}
        with _crew(effort.threads) as crew:
            users = self._solve(_links_of_users(stage), shared[ITEM_ROWS], _STEPS_TO_THE_END, crew)
        effort.advance(self.samples_of_rows(stage.interactions, stage.epochs))
        return {USER_ROWS: _frozen(users)}

    def provisional(self, shared: Arrays, change: Change) -> Arrays:
        """Return the item factors as they are: one user's part can't be taken out of them at once."""
        return shared

    def scorer(self, shared: Arrays) -> Scorer:
        """Score an item by the product of its factors and the user's row."""
        items = shared[ITEM_ROWS]

        def score(rows: Arrays, owned: NDArray[np.int32]) -> Scores:
            scores: Scores = items @ rows[USER_ROWS]
            return scores

        return score

    def probability(self, scores: Scores) -> NDArray[np.float64]:
        """Return the scores, which are fitted to 0 and 1, held between the two."""
        return np.clip(scores.astype(np.float64), _SURE, 1 - _SURE)

    def samples(self, interactions: Interactions, epochs: int) -> int:
        """Return the work of training in passes over one interaction."""
        return epochs * self._samples_of_epoch(interactions)

    def samples_amended(self, interactions: Interactions, change: Change) -> int | None:
        """Return None: there is no short way."""
        return None

    def samples_of_rows(self, interactions: Interactions, epochs: int) -> int:
        """Return the work of solving the rows, however many epochs there are."""
        passes = len(interactions) * _PASSES_TO_THE_END
        return passes + self._passes_around(interactions, len(interactions.users), len(interactions.items))

    def _samples_of_epoch(self, interactions: Interactions) -> int:
        users, items = len(interactions.users), len(interactions.items)
        had = int(np.count_nonzero(np.bincount(interactions.item_index)))
        passes = 2 * len(interactions) * (1 + _TRAINING_STEPS)
        return passes + self._passes_around(interactions, users, items) + self._passes_around(interactions, had, users)

    def _passes_around(self, interactions: Interactions, solved: int, given: int) -> int:
        if len(interactions) == 0:
            return 0
        root = 6 * self._factors**2  # the eigenvectors take factors³, a pass takes factors
        return _PASSES_OF_A_SOLVED_ROW * solved + _PASSES_OF_A_GIVEN_ROW * given + _PASSES_OF_A_SIDE + root

    def _starting_rows(self, ids: Ids, seed: int) -> Floats:
        return normals(id_keys(seed, ITEM_ROWS, ids), self._factors) * np.float32(_DEVIATION)

    def _nothing_known(self, users: int) -> Floats:
        return np.zeros((users, self._factors), np.float32)

    def _solve(self, links: Links, given: Floats, steps: int, crew: Executor) -> Floats:
        """Return one side's rows from the other side's."""
        root = _root(given, self._regularisation, crew)
        turned = np.empty_like(given)
        list(crew.map(lambda part: np.matmul(given[part], root, out=turned[part]), blocks(len(given), _BLOCK)))
        solved = np.empty((len(links.starts) - 1, self._factors), np.float32)
        list(crew.map(lambda part: solve_rows(part, links, turned, root, steps, solved), _shares(links)))
        return solved


@contextmanager
def _crew(threads: int) -> Iterator[Executor]:
    with one_blas_thread(), pool_of(threads) as pool:
        yield pool


def _root(given: Floats, regularisation: float, crew: Executor) -> Floats:
    """Return S with S·Sᵀ = (YᵀY + λI)⁻¹; by eigenvectors, which bear any λ."""

    def square(part: slice) -> NDArray[np.float64]:
        block = given[part].astype(np.float64)
        return block.T @ block

    total = np.zeros((given.shape[1], given.shape[1]))
    for found in crew.map(square, blocks(len(given), _BLOCK)):
        total += found
    values, vectors = np.linalg.eigh(total)
    root = vectors / np.sqrt(np.maximum(values, 0) + regularisation)
    if np.abs(root).max() > np.finfo(np.float32).max:
        raise Refused(
            f"regularisation {regularisation:g} is too small to solve rows with: give a larger --regularisation"
        )
    return np.ascontiguousarray(root, dtype=np.float32)


def _links_of_users(stage: Stage) -> Links:
    rows = stage.interactions
    return Links(rows.user_starts, rows.item_index, rows.rating * np.float32(_WEIGHT / stage.scale.high))


def _links_of_items(stage: Stage) -> Links:
    """Return each item's users, ascending."""
    of_users = _links_of_users(stage)
    shape = (len(stage.interactions.users), len(stage.interactions.items))
    turned = sparse.csr_array((of_users.weights, of_users.others, of_users.starts), shape=shape).tocsc()
    # Read-only like the users' links, so that the kernel is compiled once.
    return Links(_frozen(turned.indptr.astype(np.int64)), _frozen(turned.indices.astype(np.int32)), turned.data)


def _shares(links: Links) -> list[tuple[int, int]]:
    """Cut the rows into tasks of about equal work; where the cuts are changes no byte."""
    passes = 1 + _TRAINING_STEPS
    work = links.starts * passes + _PASSES_OF_A_SOLVED_ROW * np.arange(len(links.starts))
    cuts = np.unique(np.searchsorted(work, np.linspace(0, work[-1], _TASKS + 1)))
    return list(pairwise(cuts.tolist()))


def _frozen(array: _Array) -> _Array:
    array.setflags(write=False)
    return array
