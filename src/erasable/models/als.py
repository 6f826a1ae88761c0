"""ALS for implicit feedback (Hu, Koren and Volinsky 2008): item factors, and a row for each user in closed form.

What a user has counts as 1 and weighs 1 + 4 · rating / the highest rating; what the user has not counts as 0 and weighs
1. A row is solved from the item factors and the user's own interactions alone; `als_kernel` says how.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from math import ceil, log, sqrt
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from scipy import sparse

from erasable.data import Ids, Interactions
from erasable.errors import Refused, option
from erasable.models.als_kernel import Links, solve_rows
from erasable.models.batches import Floats
from erasable.models.blas import one_blas_thread
from erasable.models.embedding_model import ITEM_ROWS, USER_ROWS, blocks
from erasable.models.model import Effort, Model, Scores, Stage
from erasable.models.parameters import Arrays, Parameters
from erasable.models.settings import Settings
from erasable.seeding import id_keys, normals
from erasable.threads import pool_of

_WEIGHT = 4.0  # of the highest rating: chosen by measuring, with the usual regularisation (docs/decisions)
_DEVIATION = 0.01
_TRAINING_STEPS = 3  # of conjugate gradients; more were measured to change no quality
_STEPS_TO_THE_END = ceil(log(2e7) / log((sqrt(1 + _WEIGHT) + 1) / (sqrt(1 + _WEIGHT) - 1)))  # an error below 1e-7
_BLOCK = 2048
_TASKS = 32
# Work is counted in passes over one interaction: what else takes time was measured in them.
_PASSES_OF_A_SOLVED_ROW = 150
_PASSES_OF_A_GIVEN_ROW = 30
_PASSES_OF_A_SIDE = 50_000
_Array = TypeVar("_Array", bound=NDArray[Any])
_Map = Callable[..., Iterator[Any]]
"""What calls a function on each of some values: on threads, or one after the other."""
_SURE = 1e-6  # a probability is never nearer to 0 or 1


class Side(NamedTuple):
    """The rows of one side as the other side's are solved from: themselves, times the root S, and S."""

    rows: Floats
    turned: Floats
    root: Floats


class ALSSettings(Settings):
    """What can be set about ALS."""

    factors: int = Field(64, ge=1, le=1024)
    """How many numbers stand for a user and for an item."""

    regularisation: float = Field(20.0, gt=0, le=1e12)
    """What keeps the factors small."""

    epochs: int = Field(20, ge=1, le=10_000)
    """How often training alternates between the users' rows and the item factors."""


class ALS(Model):
    """Item factors that training alternates with its users' rows; see `Model` for the methods.

    Parameters
    ----------
    **settings
        Those of `ALSSettings`: `factors`, `regularisation`, `epochs`.

    Examples
    --------
    >>> ALS(factors=32)
    ALS(factors=32)
    """

    name: ClassVar[str] = "als"
    settings_class: ClassVar[type[Settings]] = ALSSettings
    revision: ClassVar[int] = 1
    uses: ClassVar[tuple[str, ...]] = ("blas", "numba")
    strategies: ClassVar[tuple[str, ...]] = ("retrain",)
    settings: ALSSettings

    @property
    def _factors(self) -> int:
        return self.settings.factors

    def start(self, catalogue: Ids, seed: int) -> Arrays:
        """Return small random item factors."""
        return {ITEM_ROWS: _frozen(self._starting_rows(catalogue, seed))}

    def extended(self, shared: Arrays, catalogue: Ids, seed: int) -> Arrays:
        """Return the item factors with those of the catalogue's further items, as they start."""
        known = shared[ITEM_ROWS]
        further = catalogue.take(np.arange(len(known), len(catalogue)))
        return {ITEM_ROWS: _frozen(np.concatenate([known, self._starting_rows(further, seed)]))}

    def train(self, shared: Arrays, stage: Stage, effort: Effort) -> Parameters:
        """Alternate between the users' rows and the item factors; the rows are left to `represent`."""
        rows = stage.interactions
        items: Floats = shared[ITEM_ROWS].copy()
        if len(rows) == 0:
            return Parameters({ITEM_ROWS: items}, {})
        by_user, by_item = _links_of_users(stage), _links_of_items(stage)
        with one_blas_thread(), _crew(effort.threads) as share_out:
            for _ in range(stage.epochs):
                users = _solved(by_user, self._side(items, share_out), _TRAINING_STEPS, share_out)
                items = _solved(by_item, self._side(users, share_out), _TRAINING_STEPS, share_out)
                effort.advance(self._samples_of_epoch(rows))
        return Parameters({ITEM_ROWS: items}, {})

    def newcomers(self, prepared: Side, users: Ids, catalogue: Ids, seed: int) -> Arrays:
        """Return rows of zeros, which is what no interactions are solved to."""
        return {USER_ROWS: _frozen(np.zeros((len(users), self._factors), np.float32))}

    def prepare(self, shared: Arrays) -> Side:
        """Return the item factors with the part of the equations that all users share, solved once."""
        with one_blas_thread():
            return self._side(shared[ITEM_ROWS], map)

    def represent(self, prepared: Side, people: Stage, effort: Effort) -> Arrays:
        """Return the users' rows, each solved to the end from the item factors and the own interactions."""
        if len(people.interactions) == 0:
            return self.newcomers(prepared, people.interactions.users, people.interactions.items, people.seed)
        with one_blas_thread(), _crew(effort.threads, inline=True) as share_out:
            users = _solved(_links_of_users(people), prepared, _STEPS_TO_THE_END, share_out)
        return {USER_ROWS: _frozen(users)}

    def score(self, prepared: Side, row: Arrays, owned: NDArray[np.int32]) -> Scores:
        """Score an item by the product of its factors and the user's row."""
        scores: Scores = prepared.rows @ row[USER_ROWS]
        return scores

    def similar(self, shared: Arrays, number: int) -> Scores:
        """Return the cosine between the item's factors and those of each item; 0 where nothing was learned."""
        items = shared[ITEM_ROWS]
        lengths = np.linalg.norm(items, axis=1)
        products: Scores = items @ items[number]
        scale = lengths * lengths[number]
        return np.clip(np.divide(products, scale, out=np.zeros_like(products), where=scale > 0), -1, 1)

    def probability(self, scores: Scores) -> NDArray[np.float64]:
        """Return the scores, which are fitted to 0 and 1, held between the two."""
        return np.clip(scores.astype(np.float64), _SURE, 1 - _SURE)

    def samples(self, interactions: Interactions, epochs: int) -> int:
        """Return the work of training in passes over one interaction."""
        return epochs * self._samples_of_epoch(interactions)

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

    def _side(self, given: Floats, share_out: _Map) -> Side:
        root = _root(given, self.settings.regularisation, share_out)
        turned = np.empty_like(given)
        list(share_out(lambda part: np.matmul(given[part], root, out=turned[part]), blocks(len(given), _BLOCK)))
        return Side(given, turned, root)


@contextmanager
def _crew(threads: int, inline: bool = False) -> Iterator[_Map]:
    """Give what shares out work over threads; one thread may be this one, where starting another would take longer."""
    if inline and threads == 1:
        yield map
        return
    with pool_of(threads) as pool:
        yield pool.map


def _solved(links: Links, side: Side, steps: int, share_out: _Map) -> Floats:
    """Return one side's rows from the other side."""
    solved = np.empty((len(links.starts) - 1, side.rows.shape[1]), np.float32)
    list(share_out(lambda part: solve_rows(part, links, side.turned, side.root, steps, solved), _shares(links)))
    return solved


def _root(given: Floats, regularisation: float, share_out: _Map) -> Floats:
    """Return S with S·Sᵀ = (YᵀY + λI)⁻¹; by eigenvectors, which bear any λ."""

    def square(part: slice) -> NDArray[np.float64]:
        block = given[part].astype(np.float64)
        return block.T @ block

    total = np.zeros((given.shape[1], given.shape[1]))
    for found in share_out(square, blocks(len(given), _BLOCK)):
        total += found
    values, vectors = np.linalg.eigh(total)
    root = vectors / np.sqrt(np.maximum(values, 0) + regularisation)
    if np.abs(root).max() > np.finfo(np.float32).max:
        raise Refused(
            f"regularisation {regularisation:g} is too small to solve rows with: give a larger ",
            option("regularisation"),
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
