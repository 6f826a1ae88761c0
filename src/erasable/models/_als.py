"""ALS for implicit feedback (Hu, Koren and Volinsky 2008): item factors, and a row for each user in closed form."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from math import ceil, log, sqrt
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from erasable.data.ids import Ids
from erasable.data.interactions import Interactions
from erasable.data.slots import SLOTS, in_slots, slots_of
from erasable.errors import Refused, option
from erasable.models._batches import Floats
from erasable.models._columns import with_features
from erasable.models._embedding_model import ITEM_ROWS, USER_ROWS, blocks
from erasable.models.base import Arrays, Effort, Model, Parameters, Scores, Size, Stage
from erasable.models.machine import cosines, one_blas_thread
from erasable.models.settings import Settings
from erasable.seeding import id_keys, normals
from erasable.seeding.compiled import compiled
from erasable.threads import pool_of

_TILE = 512  # this many rows of 64 numbers stay in the processor's cache
_CONVERGED = np.float32(1e-14)  # of the squared residual: 1e-7 is what 32 bits can tell
_VANISHED = np.float32(1e-30)


class Links(NamedTuple):
    """The interactions seen from one side, as a weighted CSR matrix: row n has `others[starts[n] : starts[n + 1]]`."""

    starts: NDArray[np.int64]
    others: NDArray[np.int32]
    weights: Floats


class _SolverBuffers(NamedTuple):
    """Buffers to solve one row with: up to a tile of the other side's rows, and vectors."""

    tile: Floats
    products: Floats
    part: Floats
    image: Floats
    direction: Floats
    residual: Floats
    solution: Floats


@compiled
def _solver_buffers(factors: int) -> _SolverBuffers:
    return _SolverBuffers(
        np.empty((_TILE, factors), np.float32),
        np.empty(_TILE, np.float32),
        np.empty(factors, np.float32),
        np.empty(factors, np.float32),
        np.empty(factors, np.float32),
        np.empty(factors, np.float32),
        np.empty(factors, np.float32),
    )


@compiled
def _gather(links: Links, rows: Floats, low: int, high: int, buffers: _SolverBuffers) -> None:
    for place in range(low, high):
        row = rows[links.others[place]]
        for factor in range(rows.shape[1]):
            buffers.tile[place - low, factor] = row[factor]


@compiled
def _begin(links: Links, rows: Floats, low: int, high: int, buffers: _SolverBuffers) -> None:
    """Write Σ (1 + w)·z as the first residual and the first direction; if one tile is enough, it stays gathered."""
    buffers.solution[:] = 0
    buffers.residual[:] = 0
    for first in range(low, high, _TILE):
        last = min(high, first + _TILE)
        _gather(links, rows, first, last, buffers)
        for place in range(last - first):
            confidence = np.float32(1) + links.weights[first + place]
            for factor in range(rows.shape[1]):
                buffers.residual[factor] += confidence * buffers.tile[place, factor]
    buffers.direction[:] = buffers.residual


@compiled
def _apply(links: Links, rows: Floats, low: int, high: int, buffers: _SolverBuffers) -> None:
    """Write (I + Σ w·z·zᵀ)·direction as the image."""
    buffers.image[:] = buffers.direction
    for first in range(low, high, _TILE):
        last = min(high, first + _TILE)
        if high - low > _TILE:
            _gather(links, rows, first, last, buffers)
        tile, products = buffers.tile[: last - first], buffers.products[: last - first]
        np.dot(tile, buffers.direction, products)
        for place in range(last - first):
            products[place] *= links.weights[first + place]
        np.dot(products, tile, buffers.part)
        for factor in range(rows.shape[1]):
            buffers.image[factor] += buffers.part[factor]


@compiled
def _descend(links: Links, rows: Floats, low: int, high: int, steps: int, buffers: _SolverBuffers) -> None:
    """Take conjugate gradient steps from 0, until the solution has converged."""
    square = np.dot(buffers.residual, buffers.residual)
    enough = max(square * _CONVERGED, _VANISHED)
    for _ in range(steps):
        if not square > enough:
            return
        _apply(links, rows, low, high, buffers)
        length = square / np.dot(buffers.direction, buffers.image)
        for factor in range(rows.shape[1]):
            buffers.solution[factor] += length * buffers.direction[factor]
            buffers.residual[factor] -= length * buffers.image[factor]
        before, square = square, np.dot(buffers.residual, buffers.residual)
        for factor in range(rows.shape[1]):
            buffers.direction[factor] = buffers.residual[factor] + square / before * buffers.direction[factor]


@compiled(nogil=True)
def solve_rows(share: tuple[int, int], links: Links, rows: Floats, root: Floats, steps: int, solved: Floats) -> None:
    """Solve the rows from share[0] up to share[1], each by itself; `rows` are the other side's, times S."""
    buffers = _solver_buffers(rows.shape[1])
    for number in range(share[0], share[1]):
        low, high = links.starts[number], links.starts[number + 1]
        if low == high:
            solved[number] = 0
            continue
        _begin(links, rows, low, high, buffers)
        _descend(links, rows, low, high, steps, buffers)
        np.dot(root, buffers.solution, solved[number])


_WEIGHT = 4.0  # of the highest rating: chosen by measuring, with the usual regularisation (docs/decisions)
_DEVIATION = 0.01
_TRAINING_STEPS = 3  # of conjugate gradients; more did not improve quality (measured)
_BLOCK = 2048
_SLOTS_OF_A_RUN = 128  # summed one after another; the runs are shared out to threads
_TASKS = 32
# Work is counted in passes over one interaction; the other costs were measured in that unit.
_PASSES_OF_A_SOLVED_ROW = 150
_PASSES_OF_A_GIVEN_ROW = 30
_PASSES_OF_A_SIDE = 50_000
_Array = TypeVar("_Array", bound=NDArray[Any])
_Map = Callable[..., Iterator[Any]]
"""`map`, or the `map` of a thread pool."""
_SURE = 1e-6  # a probability is never nearer to 0 or 1


class Side(NamedTuple):
    """The rows of one side, prepared to solve the other side: the rows, the rows times the root S, and S."""

    rows: Floats
    transformed: Floats
    root: Floats


class ALSSettings(Settings):
    """The settings of ALS."""

    searched: ClassVar[Mapping[str, Any]] = {"factors": (16, 256), "regularisation": (1.0, 200.0), "epochs": (5, 40)}

    factors: int = Field(64, ge=1, le=1024)
    """The number of factors of each user and each item."""

    regularisation: float = Field(20.0, gt=0, le=1e12)
    """The L2 regularisation of the factors."""

    epochs: int = Field(20, ge=1, le=10_000)
    """How often training alternates between user rows and item factors."""


class ALS(Model):
    """Alternates between item factors and user rows; see `Model` for the methods.

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
    revision: ClassVar[int] = 2
    by_slot: ClassVar[bool] = True
    uses: ClassVar[tuple[str, ...]] = ("blas", "numba")
    strategies: ClassVar[tuple[str, ...]] = ("retrain",)
    uses_weights: ClassVar[bool] = True
    uses_features: ClassVar[bool] = True
    settings: ALSSettings

    @property
    def _factors(self) -> int:
        return self.settings.factors

    def start(self, catalogue: Ids, seed: int) -> Arrays:
        """Return small random item factors."""
        return {ITEM_ROWS: _frozen(self._starting_rows(catalogue, seed))}

    def extended(self, shared: Arrays, catalogue: Ids, seed: int) -> Arrays:
        """Append the starting factors of the catalogue's new items."""
        known = shared[ITEM_ROWS]
        further = catalogue.take(np.arange(len(known), len(catalogue)))
        return {ITEM_ROWS: _frozen(np.concatenate([known, self._starting_rows(further, seed)]))}

    def train(self, shared: Arrays, stage: Stage, effort: Effort) -> Parameters:
        """Alternate between the users' rows and the item factors; the rows are left to `represent`.

        A feature has a row like a user, solved from the items that have it. Item factors follow from both, so an item
        that nobody has gets its factors from its features.
        """
        rows = in_slots(stage.interactions, stage.seed)
        items: Floats = shared[ITEM_ROWS].copy()
        if len(with_features(rows, stage.features)) == 0:
            return Parameters({ITEM_ROWS: items}, {})
        slots = [*_runs_of_slots(rows.users, stage.seed), *_runs_of_features(rows, stage.features)]
        by_user = _links_with_features(_links_of_users(rows, stage), stage.features)
        by_item = _links_of_items(by_user, len(items))
        samples = self.samples(with_features(rows, stage.features), 1)
        with one_blas_thread(), _on_threads(effort.threads) as share_out:
            for _ in range(stage.epochs):
                users = _solved(by_user, self._item_side(items, share_out), _TRAINING_STEPS, share_out)
                items = _solved(by_item, self._user_side(users, slots, share_out), _TRAINING_STEPS, share_out)
                effort.advance(samples)
        return Parameters({ITEM_ROWS: items}, {})

    def newcomers(self, prepared: Side, users: Ids, catalogue: Ids, seed: int) -> Arrays:
        """Return rows of zeros, the solution for a user without interactions."""
        return {USER_ROWS: _frozen(np.zeros((len(users), self._factors), np.float32))}

    def prepare(self, shared: Arrays) -> Side:
        """Solve the part of the equations that all users share."""
        with one_blas_thread():
            return self._item_side(shared[ITEM_ROWS], map)

    def represent(self, prepared: Side, people: Stage, effort: Effort) -> Arrays:
        """Solve each user's row to convergence, from the item factors and the user's own interactions."""
        if len(people.interactions) == 0:
            return self.newcomers(prepared, people.interactions.users, people.interactions.items, people.seed)
        with one_blas_thread(), _on_threads(effort.threads, inline=True) as share_out:
            links, steps = _links_of_users(people.interactions, people), _steps_to_the_end(people)
            users = _solved(links, prepared, steps, share_out)
        return {USER_ROWS: _frozen(users)}

    def score(self, prepared: Side, row: Arrays, owned: NDArray[np.int32]) -> Scores:
        """Score an item by the product of its factors and the user's row."""
        scores: Scores = prepared.rows @ row[USER_ROWS]
        return scores

    def similar(self, shared: Arrays, number: int) -> Scores:
        """Return the cosine between this item's factors and each item's; 0 where nothing was learned."""
        return cosines(shared[ITEM_ROWS], number)

    def probability(self, scores: Scores) -> NDArray[np.float64]:
        """Return the scores, which are fitted to 0 and 1, clipped between the two."""
        return np.clip(scores.astype(np.float64), _SURE, 1 - _SURE)

    def samples(self, interactions: Interactions | Size, epochs: int) -> int:
        """Return the work of training in passes over one interaction."""
        size = Size.of(interactions)
        if not len(size):
            return 0
        passes = 2 * len(size) * (1 + _TRAINING_STEPS)
        around = self._passes_around(size.users, size.items) + self._passes_around(size.items_had, size.users)
        return epochs * (passes + around)

    def _passes_around(self, solved: int, given: int) -> int:
        root = 6 * self._factors**2  # the eigenvectors take factors³, a pass takes factors
        return _PASSES_OF_A_SOLVED_ROW * solved + _PASSES_OF_A_GIVEN_ROW * given + _PASSES_OF_A_SIDE + root

    def _starting_rows(self, ids: Ids, seed: int) -> Floats:
        return normals(id_keys(seed, ITEM_ROWS, ids), self._factors) * np.float32(_DEVIATION)

    def _item_side(self, items: Floats, share_out: _Map) -> Side:
        return self._side(items, share_out(partial(_square_of, items), blocks(len(items), _BLOCK)), share_out)

    def _user_side(self, users: Floats, slots: Sequence[NDArray[np.int64]], share_out: _Map) -> Side:
        """Prepare the users' rows: sums over them run over slots in order, and over ids within one."""
        return self._side(users, share_out(partial(sum_of_squares, users), slots), share_out)

    def _side(self, given: Floats, squares: Iterable[NDArray[np.float64]], share_out: _Map) -> Side:
        root = _root(squares, given.shape[1], self.settings.regularisation)
        transformed = np.empty_like(given)
        list(share_out(lambda part: np.matmul(given[part], root, out=transformed[part]), blocks(len(given), _BLOCK)))
        return Side(given, transformed, root)


@contextmanager
def _on_threads(threads: int, inline: bool = False) -> Iterator[_Map]:
    """Yield a `map` over threads; inline, one thread is the caller's own, since starting one would take longer."""
    if inline and threads == 1:
        yield map
        return
    with pool_of(threads) as pool:
        yield pool.map


def _solved(links: Links, side: Side, steps: int, share_out: _Map) -> Floats:
    """Solve one side's rows from the other side."""
    solved = np.empty((len(links.starts) - 1, side.rows.shape[1]), np.float32)
    list(share_out(lambda part: solve_rows(part, links, side.transformed, side.root, steps, solved), _shares(links)))
    return solved


def _square_of(given: Floats, part: slice) -> NDArray[np.float64]:
    block = given[part].astype(np.float64)
    return block.T @ block


@compiled(nogil=True)
def sum_of_squares(given: Floats, bounds: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the sum of YᵀY over the slots between these bounds, one after another."""
    total = np.zeros((given.shape[1], given.shape[1]))
    for slot in range(len(bounds) - 1):
        block = given[bounds[slot] : bounds[slot + 1]].astype(np.float64)
        total += np.dot(block.T, block)
    return total


def _runs_of_slots(users: Ids, seed: int) -> list[NDArray[np.int64]]:
    """Return where the slots with people begin, in a fixed number of runs of slots; each run ends with its end."""
    bounds = np.searchsorted(slots_of(users, seed), np.arange(SLOTS + 1))
    runs = (bounds[low : low + _SLOTS_OF_A_RUN + 1] for low in range(0, SLOTS, _SLOTS_OF_A_RUN))
    return [_frozen(np.unique(run)) for run in runs if run[0] < run[-1]]


def _root(squares: Iterable[NDArray[np.float64]], factors: int, regularisation: float) -> Floats:
    """Return S with S·Sᵀ = (YᵀY + λI)⁻¹, computed from eigenvectors, which stay stable for any λ."""
    total = np.zeros((factors, factors))
    for found in squares:
        total += found
    values, vectors = np.linalg.eigh(total)
    root = vectors / np.sqrt(np.maximum(values, 0) + regularisation)
    if np.abs(root).max() > np.finfo(np.float32).max:
        raise Refused(
            f"regularisation {regularisation:g} is too small to solve rows with: give a larger ",
            option("regularisation"),
        )
    return np.ascontiguousarray(root, dtype=np.float32)


def _steps_to_the_end(people: Stage) -> int:
    """Return how many steps bring the error of a row below 1e-7, whatever its weights."""
    widest = sqrt(1 + _WEIGHT * (people.scale.high if people.weights else 1))
    return ceil(log(2e7) / log((widest + 1) / (widest - 1)))


def _links_of_users(rows: Interactions, stage: Stage) -> Links:
    """Return each user's items: the highest rating weighs as much as one unit of weight."""
    unit = _WEIGHT if stage.weights else _WEIGHT / stage.scale.high
    return Links(rows.user_starts, rows.item_index, rows.rating * np.float32(unit))


def _links_with_features(users: Links, features: Interactions | None) -> Links:
    """Append each feature's items: one unit of a feature's weight weighs as much as one of an interaction."""
    if features is None:
        return users
    starts = np.concatenate([users.starts, features.user_starts[1:] + users.starts[-1]])
    weights = np.concatenate([users.weights, features.rating * np.float32(_WEIGHT)])
    return Links(_frozen(starts), _frozen(np.concatenate([users.others, features.item_index])), weights)


def _runs_of_features(rows: Interactions, features: Interactions | None) -> list[NDArray[np.int64]]:
    """Return where blocks of features begin and end among the rows, after those of people."""
    parts = blocks(0 if features is None else len(features.users), _BLOCK)
    return [_frozen(len(rows.users) + np.array([part.start, part.stop], np.int64)) for part in parts]


def _links_of_items(of_users: Links, items: int) -> Links:
    """Return each item's users, in the order of their rows."""
    from scipy import sparse

    shape = (len(of_users.starts) - 1, items)
    columns = sparse.csr_array((of_users.weights, of_users.others, of_users.starts), shape=shape).tocsc()
    # Read-only like the users' links, so that the kernel is compiled once.
    return Links(_frozen(columns.indptr.astype(np.int64)), _frozen(columns.indices.astype(np.int32)), columns.data)


def _shares(links: Links) -> list[tuple[int, int]]:
    """Cut the rows into tasks of about equal work; the cuts change no byte."""
    passes = 1 + _TRAINING_STEPS
    work = links.starts * passes + _PASSES_OF_A_SOLVED_ROW * np.arange(len(links.starts))
    cuts = np.unique(np.searchsorted(work, np.linspace(0, work[-1], _TASKS + 1)))
    return list(pairwise(cuts.tolist()))


def _frozen(array: _Array) -> _Array:
    array.setflags(write=False)
    return array
