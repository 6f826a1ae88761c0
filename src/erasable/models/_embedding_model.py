"""What NMF and DMF share: rows of embeddings, a small network, training in batches, and solving user rows."""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from erasable.data.ids import Ids
from erasable.data.interactions import Interactions, RatingScale
from erasable.models._batches import (
    FIRST_DECAY,
    SECOND_DECAY,
    UPDATE_LANES,
    Batch,
    Floats,
    ParameterTable,
    Positives,
    Sizes,
    adam_row,
    make_batch,
    make_table,
    missing_item,
    rates_of,
    shuffled,
)
from erasable.models._threads import TaskCounts, run_on_threads
from erasable.models.base import Arrays, Effort, Model, Parameters, Scores, Size, Stage
from erasable.models.machine import one_blas_thread
from erasable.models.settings import Settings
from erasable.seeding import child_key, id_keys, normals
from erasable.seeding.compiled import below, compiled, draw
from erasable.threads import pool_of

STEPS = 32
LARGEST_STEP = 128  # units: keeps the buffers small for a user with very many interactions
_SAMPLES_SOLVED_PER_CALL = 300_000  # compiled code returns this often, so that Ctrl-C and progress bars work


class Course(NamedTuple):
    """How rows are solved: passes over the user's own data, items, negatives for each, first step size, pull to 0."""

    passes: int
    catalogue: int
    negatives: int
    rate: float
    pull: float


class OwnData(NamedTuple):
    """The key of each user's draws, the row pointer by user, and the item and target of each interaction."""

    keys: NDArray[np.uint64]
    starts: NDArray[np.int64]
    items: NDArray[np.int32]
    targets: Floats


class StepBuffers(NamedTuple):
    """Buffers for one user: the order of a pass, the samples of a step, the gradient, and the row with its moments."""

    order: NDArray[np.int32]
    items: NDArray[np.int32]
    targets: Floats
    gradients: Floats
    table: ParameterTable


def solve_rows(
    kernel: Callable[..., None],
    data: OwnData,
    course: Course,
    fixed: Any,  # noqa: ANN401 - a tuple of arrays that only the kernel knows
    start: Floats,
    effort: Effort,
) -> Floats:
    """Solve rows from where they start; the number of threads changes no byte."""
    rows = start.copy()
    samples = course.passes * _samples(data, course)
    if effort.threads == 1:  # starting a thread would take longer than one row
        for run in _runs(samples):
            kernel(run, data, course, fixed, rows)
            effort.advance(int(samples[slice(*run)].sum()))
        return rows
    with pool_of(effort.threads) as pool:
        runs = [(run, pool.submit(kernel, run, data, course, fixed, rows)) for run in _runs(samples)]
        for (low, high), done in runs:
            done.result()
            effort.advance(int(samples[low:high].sum()))
    return rows


def _samples(data: OwnData, course: Course) -> NDArray[np.int64]:
    """Return each user's number of samples in a pass."""
    owned = np.diff(data.starts)
    return owned * np.where(owned < course.catalogue, 1 + course.negatives, 1)


def _runs(samples: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Cut the users into runs of about as many samples as one call takes; no run is empty."""
    calls = np.cumsum(samples) // _SAMPLES_SOLVED_PER_CALL
    ends = [*(np.flatnonzero(np.diff(calls)) + 1).tolist(), len(samples)]
    return [run for run in zip([0, *ends[:-1]], ends, strict=True) if run[0] < run[1]]


@compiled
def steps_of_user(data: OwnData, user: int, course: Course) -> int:
    """Return the number of steps that solve a user's row."""
    return course.passes * steps_in_pass(data.starts[user + 1] - data.starts[user])


@compiled
def steps_in_pass(interactions: int) -> int:
    """Return the number of steps in a pass over this many interactions."""
    return max(min(interactions, STEPS), -(-interactions // LARGEST_STEP))


@compiled
def step_buffers(run: tuple[int, int], data: OwnData, course: Course, width: int) -> StepBuffers:
    """Allocate buffers for the largest pass and the largest step of a run of users."""
    most = units = 1
    for user in range(run[0], run[1]):
        owned = data.starts[user + 1] - data.starts[user]
        most = max(most, owned)
        units = max(units, -(-owned // max(1, steps_in_pass(owned))))
    samples = units * (1 + course.negatives)
    table = ParameterTable(np.empty((1, width), np.float32), np.empty((1, 2, width), np.float32), np.empty(1, np.int32))
    return StepBuffers(
        np.empty(most, np.int32),
        np.empty(samples, np.int32),
        np.empty(samples, np.float32),
        np.empty(width, np.float32),
        table,
    )


@compiled
def begin_row(buffers: StepBuffers, row: Floats) -> None:
    """Start a row with zero moments."""
    buffers.table.rows[0, :] = row
    buffers.table.moments[:] = 0


@compiled
def sample_step(buffers: StepBuffers, data: OwnData, user: int, step: int, course: Course) -> tuple[int, float]:
    """Write the samples of a user's step; return their number, and their share of the user's own data."""
    own = slice(data.starts[user], data.starts[user + 1])
    items, targets = data.items[own], data.targets[own]
    steps = steps_in_pass(len(items))
    number, step = step // steps, step % steps
    order = buffers.order[: len(items)]
    if step == 0:
        order[:] = shuffled(len(items), draw(data.keys[user], np.uint64(2 * number)))
    units = order[len(items) * step // steps : len(items) * (step + 1) // steps]
    key = draw(data.keys[user], np.uint64(2 * number + 1))
    return _write_samples(buffers, (items, targets), units, key, course), len(units) / len(items)


@compiled
def _write_samples(
    buffers: StepBuffers,
    owned: tuple[NDArray[np.int32], Floats],
    units: NDArray[np.int32],
    key: np.uint64,
    course: Course,
) -> int:
    """Write some of the user's interactions, each followed by its negatives; return the number of samples."""
    items, targets = owned
    missing = course.catalogue - len(items)
    count = 0
    for unit in units:
        buffers.items[count] = items[unit]
        buffers.targets[count] = targets[unit]
        count += 1
        for negative in range(course.negatives if missing > 0 else 0):
            number = np.uint64(unit) * np.uint64(course.negatives) + np.uint64(negative)
            buffers.items[count] = missing_item(items, below(draw(key, number), missing))
            buffers.targets[count] = 0
            count += 1
    return count


@compiled
def step_row(buffers: StepBuffers, samples: int, share: float, step: tuple[int, int], course: Course) -> None:
    """Take step n of all on the row, from gradients summed over samples that are a share of the user's own data."""
    number, total = step
    row = buffers.table.rows[0]
    pull = np.float32(course.pull * share)
    for place in range(len(row)):
        buffers.gradients[place] += pull * row[place]
    rate = course.rate * (1 - number / total) / (1 - FIRST_DECAY ** (number + 1))
    root = 1 / np.sqrt(1 - SECOND_DECAY ** (number + 1))
    adam_row(
        buffers.table, 0, buffers.gradients, (np.float32(1) / np.float32(samples), np.float32(rate), np.float32(root))
    )


USER_ROWS = "user"
ITEM_ROWS = "item"
_TILE_SAMPLES = 256
_SAMPLES_PER_CALL = 1_000_000  # compiled code returns this often, so that Ctrl-C and progress bars work


class StepSettings(Settings):
    """The settings of a model that is trained by gradient steps."""

    only_for_rows = frozenset({"row_epochs"})
    searched: ClassVar[Mapping[str, Any]] = {"epochs": (8, 80), "learning_rate": (0.0003, 0.01), "negatives": (1, 8)}

    epochs: int = Field(20, ge=1, le=10_000)
    """The total number of training epochs, the paper's T."""

    batch: int = Field(2048, ge=1, le=1_000_000)
    """How many samples, positives and their negatives, each step uses."""

    negatives: int = Field(4, ge=0, le=100)
    """How many items the user does not have are sampled for each interaction, new ones in each epoch."""

    learning_rate: float = Field(0.001, gt=0, le=1)
    """Adam's step size."""

    row_epochs: int = Field(3, ge=1, le=10_000)
    """How many passes over the user's own interactions solve a user row."""


class PreparedNetwork(Protocol):
    """What an embedding model computes from shared parameters once."""

    @property
    def fixed(self) -> Any:  # noqa: ANN401 - a tuple of arrays that only its own kernel knows
        """The shared parameters as the kernel that solves rows reads them."""


class EmbeddingModel(Model):
    """A user row and an item row go through a network to a score; see `Model` for the methods."""

    revision: ClassVar[int] = 1
    uses: ClassVar[tuple[str, ...]] = ("blas", "numba")
    strategies: ClassVar[tuple[str, ...]] = ("laser", "sisa", "retrain")
    settings: StepSettings
    trains_rows = True
    width: ClassVar[int]
    """The width of a row."""
    shapes: ClassVar[Mapping[str, tuple[int, ...]]]
    """The network's arrays in the order in which they lie in one flat vector."""
    batch_kernel: ClassVar[Callable[..., None]]
    """The compiled function that trains on a run of batches."""
    row_kernel: ClassVar[Callable[..., None]]
    """The compiled function that solves the rows of a run of users."""
    row_rate: ClassVar[float]
    """The first step size when a row is solved."""
    row_pull: ClassVar[float]
    """How strongly a row is pulled towards 0 when it is solved, against the sum of the losses of one pass."""

    @abstractmethod
    def deviation(self, name: str) -> float:
        """Return the standard deviation with which an array (or the rows of a table) starts."""

    @abstractmethod
    def prepare(self, shared: Arrays) -> Any:  # noqa: ANN401 - a `PreparedNetwork`
        """Compute once what all people share."""

    @abstractmethod
    def score(self, prepared: Any, row: Arrays, owned: NDArray[np.int32]) -> Scores:  # noqa: ANN401 - as above
        """Return one score for each item."""

    def start(self, catalogue: Ids, seed: int) -> Arrays:
        """Return the shared parameters before any stage."""
        network = {name: self._starting_array(name, shape, seed) for name, shape in self.shapes.items()}
        return {ITEM_ROWS: self._starting_rows(ITEM_ROWS, catalogue, seed), **network}

    def extended(self, shared: Arrays, catalogue: Ids, seed: int) -> Arrays:
        """Append the starting rows of the catalogue's new items."""
        further = Ids(catalogue.array[len(shared[ITEM_ROWS]) :])
        items = np.concatenate([shared[ITEM_ROWS], self._starting_rows(ITEM_ROWS, further, seed)])
        items.setflags(write=False)
        return {**shared, ITEM_ROWS: items}

    def train(self, shared: Arrays, stage: Stage, effort: Effort) -> Parameters:
        """Train on one stage from these shared parameters."""
        users = self._starting_rows(USER_ROWS, stage.interactions.users, stage.seed)
        if len(stage.interactions) == 0:
            return Parameters({name: array.copy() for name, array in shared.items()}, {USER_ROWS: users})
        network = np.concatenate([shared[name].ravel() for name in self.shapes])
        tables = (make_table(users), make_table(shared[ITEM_ROWS]), make_table(network[None, :]))
        with one_blas_thread():
            self._run_epochs(tables, stage, effort)
        users, items, trained = (table.rows for table in tables)
        return Parameters({ITEM_ROWS: items, **self._network_arrays(trained[0])}, {USER_ROWS: users})

    def newcomers(self, prepared: PreparedNetwork, users: Ids, catalogue: Ids, seed: int) -> Arrays:
        """Return the rows from which training and solving start."""
        rows = self._starting_rows(USER_ROWS, users, seed)
        rows.setflags(write=False)
        return {USER_ROWS: rows}

    def represent(self, prepared: PreparedNetwork, people: Stage, effort: Effort) -> Arrays:
        """Solve the rows of these people, each by gradient steps on that person's own data alone."""
        data, settings = people.interactions, self.settings
        own = OwnData(
            id_keys(people.seed, "rows", data.users), data.user_starts, data.item_index, targets_of(data, people.scale)
        )
        course = Course(people.epochs, len(data.items), settings.negatives, self.row_rate, self.row_pull)
        start = self._starting_rows(USER_ROWS, data.users, people.seed)
        with one_blas_thread():
            rows = solve_rows(type(self).row_kernel, own, course, prepared.fixed, start, effort)
        rows.setflags(write=False)
        return {USER_ROWS: rows}

    def samples(self, interactions: Interactions | Size, epochs: int) -> int:
        """Return how many samples training on these interactions visits; whoever has every item has no negatives."""
        size = Size.of(interactions)
        samples = size.lengths * size.people
        with_negatives = int(samples[size.lengths < size.items].sum())
        return epochs * (len(size) + self.settings.negatives * with_negatives)

    def _run_epochs(
        self, tables: tuple[ParameterTable, ParameterTable, ParameterTable], stage: Stage, effort: Effort
    ) -> None:
        positives = _positives(stage)
        sizes = self._sizes(stage.interactions)
        batch = make_batch(sizes, self.width, tables[2].rows.shape[1])
        for epoch in range(stage.epochs):
            self._run_epoch(epoch, tables, (positives, sizes, batch), stage, effort)

    def _run_epoch(
        self,
        epoch: int,
        tables: tuple[ParameterTable, ParameterTable, ParameterTable],
        parts: tuple[Positives, Sizes, Batch],
        stage: Stage,
        effort: Effort,
    ) -> None:
        positives, sizes, batch = parts
        order = shuffled(len(positives.users), _key(stage, "order", epoch))
        negatives = _key(stage, "negatives", epoch)
        batches = -(-len(order) // sizes.batch_units)
        per_call = max(1, _SAMPLES_PER_CALL // len(batch.items))
        tiles = len(batch.network_gradients)
        for first in range(0, batches, per_call):
            count = min(per_call, batches - first)
            part = order[first * sizes.batch_units : (first + count) * sizes.batch_units]
            rates = rates_of(self.settings.learning_rate, epoch * batches + first, count)
            counts = TaskCounts(count, tiles, UPDATE_LANES)
            run_on_threads(
                effort.threads,
                type(self).batch_kernel,
                counts,
                part,
                positives,
                sizes,
                negatives,
                tables,
                batch,
                rates,
            )
            effort.advance(len(part) * (1 + sizes.negatives))

    def _sizes(self, interactions: Interactions) -> Sizes:
        each = 1 + self.settings.negatives
        batch_units = min(len(interactions), max(1, self.settings.batch // each))
        return Sizes(
            len(interactions.items),
            self.settings.negatives,
            batch_units,
            min(batch_units, max(1, _TILE_SAMPLES // each)),
        )

    def _starting_rows(self, table: str, ids: Ids, seed: int) -> Floats:
        return normals(id_keys(seed, table, ids), self.width) * np.float32(self.deviation(table))

    def _starting_array(self, name: str, shape: tuple[int, ...], seed: int) -> Floats:
        key = np.array([child_key(seed, "network", name)], dtype=np.uint64)
        values = normals(key, int(np.prod(shape)))[0].reshape(shape)
        return values * np.float32(self.deviation(name))

    def _network_arrays(self, flat: Floats) -> dict[str, Floats]:
        ends = np.cumsum([int(np.prod(shape)) for shape in self.shapes.values()])
        pieces = np.split(flat, ends[:-1])
        return {
            name: np.ascontiguousarray(piece.reshape(shape))
            for (name, shape), piece in zip(self.shapes.items(), pieces, strict=True)
        }


def _positives(stage: Stage) -> Positives:
    rows = stage.interactions
    return Positives(rows.user_starts, rows.user_index, rows.item_index, targets_of(rows, stage.scale))


def targets_of(interactions: Interactions, scale: RatingScale) -> Floats:
    """Return the target of each interaction: its rating as a share of the highest."""
    return interactions.rating / np.float32(scale.high)


def _key(stage: Stage, purpose: str, epoch: int) -> np.uint64:
    return np.uint64(child_key(stage.seed, "stage", stage.position, purpose, epoch))


def blocks(count: int, size: int) -> list[slice]:
    """Cut a range of rows into blocks that fit in the processor's cache."""
    return [slice(low, min(low + size, count)) for low in range(0, count, size)]
