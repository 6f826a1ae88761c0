"""What NMF and DMF share: rows of embeddings, a small network, and training in batches by compiled kernels."""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from erasable.data import Ids, Interactions, RatingScale
from erasable.models.batches import (
    UPDATE_LANES,
    Batch,
    Floats,
    Positives,
    Sizes,
    Table,
    make_batch,
    make_table,
    rates_of,
)
from erasable.models.blas import one_blas_thread
from erasable.models.crew import Schedule, run_crew
from erasable.models.model import Effort, Model, Scores, Stage
from erasable.models.parameters import Arrays, Parameters
from erasable.models.row_solver import Course, OwnData, solve_rows
from erasable.models.sampling import shuffled
from erasable.models.settings import Settings
from erasable.seeding import child_key, id_keys, normals

USER_ROWS = "user"
ITEM_ROWS = "item"
_TILE_SAMPLES = 256
_SAMPLES_PER_CALL = 1_000_000  # compiled code returns this often, so that Ctrl-C and progress bars work


class StepSettings(Settings):
    """What can be set about a model that is trained by steps."""

    only_for_rows = frozenset({"row_epochs"})

    epochs: int = Field(20, ge=1, le=10_000)
    """The total number of training epochs, the paper's T."""

    batch: int = Field(2048, ge=1, le=1_000_000)
    """How many samples, positives and their negatives, one step looks at."""

    negatives: int = Field(4, ge=0, le=100)
    """How many items that the user has not are sampled for each interaction, anew in each epoch."""

    learning_rate: float = Field(0.001, gt=0, le=1)
    """Adam's step size."""

    row_epochs: int = Field(3, ge=1, le=10_000)
    """How often solving a personal row goes through the user's own interactions."""


class Prepared(Protocol):
    """What an embedding model works out of shared parameters once."""

    @property
    def fixed(self) -> Any:  # noqa: ANN401 - a tuple of arrays that only the own kernel knows
        """The shared parameters as the kernel that solves rows wants them."""


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
    shift: ClassVar[Callable[..., None]]
    """The compiled function that works off a run of batches."""
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
    def prepare(self, shared: Arrays) -> Any:  # noqa: ANN401 - a `Prepared` that only the own methods know further
        """Work out what is worked out once for all people."""

    @abstractmethod
    def score(self, prepared: Any, row: Arrays, owned: NDArray[np.int32]) -> Scores:  # noqa: ANN401 - as above
        """Return one score for each item."""

    def start(self, catalogue: Ids, seed: int) -> Arrays:
        """Return the shared parameters before any stage."""
        network = {name: self._starting_array(name, shape, seed) for name, shape in self.shapes.items()}
        return {ITEM_ROWS: self._starting_rows(ITEM_ROWS, catalogue, seed), **network}

    def extended(self, shared: Arrays, catalogue: Ids, seed: int) -> Arrays:
        """Return the shared parameters with the rows of items that the catalogue has appended."""
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

    def newcomers(self, prepared: Prepared, users: Ids, catalogue: Ids, seed: int) -> Arrays:
        """Return the rows from which training and solving start."""
        rows = self._starting_rows(USER_ROWS, users, seed)
        rows.setflags(write=False)
        return {USER_ROWS: rows}

    def represent(self, prepared: Prepared, people: Stage, effort: Effort) -> Arrays:
        """Return the rows of these people, each by steps on the own data alone."""
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

    def samples(self, interactions: Interactions, epochs: int) -> int:
        """Return how many samples training on these interactions visits."""
        owned = np.diff(interactions.user_starts)
        with_negatives = int(owned[owned < len(interactions.items)].sum())
        return epochs * (len(interactions) + self.settings.negatives * with_negatives)

    def _run_epochs(self, tables: tuple[Table, Table, Table], stage: Stage, effort: Effort) -> None:
        positives = _positives(stage)
        sizes = self._sizes(stage.interactions)
        room = make_batch(sizes, self.width, tables[2].rows.shape[1])
        for epoch in range(stage.epochs):
            self._run_epoch(epoch, tables, (positives, sizes, room), stage, effort)

    def _run_epoch(
        self,
        epoch: int,
        tables: tuple[Table, Table, Table],
        parts: tuple[Positives, Sizes, Batch],
        stage: Stage,
        effort: Effort,
    ) -> None:
        positives, sizes, room = parts
        order = shuffled(len(positives.users), _key(stage, "order", epoch))
        negatives = _key(stage, "negatives", epoch)
        batches = -(-len(order) // sizes.batch_units)
        per_call = max(1, _SAMPLES_PER_CALL // len(room.items))
        tiles = len(room.network_slopes)
        for first in range(0, batches, per_call):
            count = min(per_call, batches - first)
            part = order[first * sizes.batch_units : (first + count) * sizes.batch_units]
            rates = rates_of(self.settings.learning_rate, epoch * batches + first, count)
            schedule = Schedule(count, tiles, UPDATE_LANES)
            run_crew(
                effort.threads,
                type(self).shift,
                schedule,
                part,
                positives,
                sizes,
                negatives,
                tables,
                room,
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
    """Return what the loss wants of each interaction: its share of the highest rating."""
    return interactions.rating / np.float32(scale.high)


def _key(stage: Stage, purpose: str, epoch: int) -> np.uint64:
    return np.uint64(child_key(stage.seed, "stage", stage.position, purpose, epoch))


def blocks(count: int, size: int) -> list[slice]:
    """Cut a range of rows into blocks that stay in the processor's cache."""
    return [slice(low, min(low + size, count)) for low in range(0, count, size)]
