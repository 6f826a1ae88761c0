"""Tasks, which describe a stage to train by names and settings alone; and executors, which run them."""

import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from threading import Event, Lock
from typing import Any, Protocol, TypeVar

from erasable import fingerprint
from erasable.chain.checkpoint import Checkpoint
from erasable.chain.dataset import Link, RowsName
from erasable.chain.environment import environment_of
from erasable.data.interactions import Interactions
from erasable.data.rating_scale import RatingScale
from erasable.errors import Refused, option, said
from erasable.models import calls
from erasable.models.base import Amends, Arrays, Change, Effort, Model, Parameters, Stage
from erasable.models.machine import one_blas_thread
from erasable.progress import Advance

T = TypeVar("T")
R = TypeVar("R")


class Executor(Protocol):
    """Runs tasks that do not depend on one another."""

    def map(self, function: Callable[[T, Effort], R], tasks: Sequence[T], effort: Effort) -> Iterator[tuple[T, R]]:
        """Yield each task with the result of a pure function.

        For another process, the function, the tasks and the results are pickled; a task takes its own inputs along, or
        only their names.
        """


class Local:
    """Runs tasks in threads of this process, as many at once as there are threads; results come in order."""

    def map(self, function: Callable[[T, Effort], R], tasks: Sequence[T], effort: Effort) -> Iterator[tuple[T, R]]:
        """Yield each task with the result of a function; a single task runs in the caller's own thread."""
        if len(tasks) == 1:
            yield tasks[0], function(tasks[0], effort)
            return
        at_once, stopped = max(1, min(effort.threads, len(tasks))), Event()
        share = Effort(max(1, effort.threads // at_once), _one_at_a_time(effort.advance, stopped))
        with ThreadPoolExecutor(at_once) as pool:
            try:
                running = [(task, pool.submit(function, task, share)) for task in tasks]
                for task, outcome in running:
                    yield task, outcome.result()
            except BaseException:
                stopped.set()
                pool.shutdown(cancel_futures=True)  # an interrupted user should not wait for the rest
                raise


LOCAL = Local()


class HasParent(Protocol):
    """A task with a name, which may depend on another one."""

    @property
    def name(self) -> str:
        """The name of its result."""

    @property
    def parent(self) -> str:
        """The name of the result that it depends on."""


F = TypeVar("F", bound=HasParent)


def in_dependency_order(
    executor: Executor, function: Callable[[F, Effort], R], tasks: Sequence[F], effort: Effort
) -> Generator[tuple[F, R], None, None]:
    """Run tasks, each after the one that it depends on; tasks that are independent of each other run at once."""
    waiting = list(tasks)
    while waiting:
        names = {task.name for task in waiting}
        yield from executor.map(function, [task for task in waiting if task.parent not in names], effort)
        waiting = [task for task in waiting if task.parent in names]


class _Stopped(Exception):
    """Ends a task whose result is no longer needed."""


def _one_at_a_time(advance: Advance, stopped: Event) -> Advance:
    lock = Lock()

    def call(samples: int) -> None:
        if stopped.is_set():
            raise _Stopped
        with lock:
            advance(samples)

    return call


ORIGIN = "origin"


class TaskInputs(Protocol):
    """Finds the rows, checkpoints and models that tasks name, wherever they are kept."""

    def rows(self, name: RowsName) -> Interactions:
        """Return the rows of a name."""

    def checkpoint(self, name: str) -> Checkpoint:
        """Return the checkpoint of a name."""

    def model(self, task: "Task") -> Model:
        """Return a task's model with its settings; a task's own word is no reason to import anything."""


@dataclass(frozen=True)
class Shortcut:
    """What a stage is amended from: its earlier checkpoint, the rows of that, and what training it cost."""

    checkpoint: str = field(repr=False)
    rows: RowsName
    samples: int
    seconds: float


@dataclass(frozen=True)
class Task:
    """One stage to train: the names of its inputs and everything else that decides its bytes; plain values only."""

    parent: str = field(repr=False)
    """The checkpoint that it starts from, or `ORIGIN`."""
    position: int
    rows: RowsName = field(repr=False)
    """The learners' rows, in the stage's own numbering of items."""
    settings: Mapping[str, Any]
    """The model's name and revision, those of its settings that reach a stage, and the epochs."""
    scale: tuple[float, float]
    seed: int
    solves_rows: bool
    """Whether user rows are solved when needed, so that none are stored."""
    brings_items: bool
    """Whether the stage knows more items than its parent."""
    samples: int
    """How many samples training from the start visits."""
    visits: int
    """How many samples this task visits: fewer with a shortcut."""
    beside: Mapping[str, str] = field(default_factory=dict)
    """What its bytes depend on besides the model: versions and sources of the grouping, if that is recomputed."""
    shortcut: Shortcut | None = field(default=None, repr=False)
    """What the stage is amended from, if there is a shortcut."""

    @cached_property
    def name(self) -> str:
        """The fingerprint of its checkpoint: of its parent, and everything else that the result depends on."""
        facts = {
            "parent": self.parent,
            "position": self.position,
            "rows": self.rows.rows,
            "catalogue": self.rows.items,
            "scale": self.scale,
            "settings": self.settings,
            "seed": self.seed,
            **({"rows solved": True} if self.solves_rows else {}),
        }
        return fingerprint.of_value(facts)

    @property
    def label(self) -> str:
        """The name to show."""
        return label_of(self.position)

    @property
    def begins_from(self) -> str:
        """The checkpoint that the task reads, or `ORIGIN`."""
        return self.shortcut.checkpoint if self.shortcut else self.parent

    def run(self, inputs: TaskInputs, effort: Effort) -> tuple[Checkpoint, Link]:
        """Train the stage; return its checkpoint, and what training it from scratch costs. Nothing is stored."""
        model, rows = inputs.model(self), inputs.rows(self.rows)
        stage = Stage(rows, RatingScale(*self.scale), self.settings["epochs"], self.seed, self.position)
        start = self.begins_from
        shared = None if start == ORIGIN else inputs.checkpoint(start).parameters.shared
        began = time.perf_counter()
        with one_blas_thread():  # so that other packages' models need not do it
            if self.shortcut is None:
                parameters = self._trained(model, shared, stage, effort)
            else:
                parameters = self._amended(model, shared or {}, inputs.rows(self.shortcut.rows), stage, effort)
        seconds = time.perf_counter() - began
        if not parameters.all_finite():
            raise Refused(f"training {model.name} diverged at {self.label}: ", self._remedy())
        environment = environment_of(model, self.beside)
        link = Link(self.name, self.parent, self.samples, self._from_scratch(seconds), environment)
        by_item = calls.by_item(model, parameters.shared, len(rows.items))
        return Checkpoint(self.name, self.parent, parameters, environment, by_item), link

    def _amended(self, model: Model, made: Arrays, rows: Interactions, stage: Stage, effort: Effort) -> Parameters:
        """Amend the earlier checkpoint, which was trained on other rows."""
        if not isinstance(model, Amends):
            raise Refused(f"{model.name} can't be amended from other rows: plan again")
        return Parameters(calls.amended(model, made, Change.between(rows, stage.interactions), effort), {})

    def _trained(self, model: Model, shared: Arrays | None, stage: Stage, effort: Effort) -> Parameters:
        """Train from the parent's shared parameters, which have not seen the stage's data."""
        items = stage.interactions.items
        if shared is None:
            shared = calls.started(model, items, self.seed)
        elif self.brings_items:
            shared = calls.extended(model, shared, items, self.seed)
        trained = calls.trained(model, shared, stage, effort)
        return Parameters(trained.shared, {}) if self.solves_rows else trained

    def _from_scratch(self, seconds: float) -> float:
        """Estimate the time of the whole stage from the measured rate, or from the earlier stage after a short run."""
        if self.shortcut is not None and 2 * self.visits < self.samples:
            earlier = self.shortcut
            return earlier.seconds * self.samples / earlier.samples if earlier.samples else 0.0
        return seconds * self.samples / self.visits if self.visits else 0.0

    def _remedy(self) -> str:
        """Return what to change so that training does not diverge."""
        settings = self.settings["settings"]
        if settings.get("learning_rate"):
            return said("give a smaller ", option("learning_rate"))
        if settings.get("regularisation"):
            return said("give a larger ", option("regularisation"))
        return "change the model's settings"


def label_of(position: int) -> str:
    """Return the name to show for the stage at a position."""
    return f"stage {position + 1}"
