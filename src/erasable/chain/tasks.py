"""Tasks, which describe a stage to train by names and settings alone; executors, which run them; the environment.

The numeric environment is what must be equal for the same training to give the same bytes. It is recorded with each
checkpoint: the machine, and the versions of what the model uses. Our own version does not count: a model's revision
says when its bytes change, and tests compare golden bytes.
"""

import platform
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from importlib.metadata import version
from importlib.util import find_spec
from threading import Event, Lock
from typing import Any, Protocol, TypeVar

from erasable import fingerprint
from erasable.chain.checkpoints import (
    ORIGIN,
    Checkpoint,
    Link,
)
from erasable.chain.dataset import (
    Dataset,
    RowsName,
)
from erasable.chain.settings import Config
from erasable.data.interactions import Interactions, RatingScale
from erasable.errors import Refused, UnknownModel, WrongSetting, option, said
from erasable.grouping.registry import BUILT_IN, check_grouping, find_grouping, libraries_of
from erasable.models import TorchModel, calls
from erasable.models.base import Amends, Arrays, Change, Effort, Model, Parameters, Stage
from erasable.models.machine import blas_libraries, one_blas_thread
from erasable.models.registry import function_digest, is_ours, make_model, revisions_beneath, source_digest
from erasable.progress import Advance
from erasable.seeding.compiled import source_stamp

Environment = Mapping[str, str]
NOTHING: Environment = {}
GROUPING_SOURCE = "grouping source"
CHANGED_CODE = {
    "source": "the source files of the model have changed since",
    GROUPING_SOURCE: "the source files of the grouping have changed since",
}

_OF_EXTRAS = ("gensim",)
_LIBRARIES = ("numpy", "scipy", "numba", "llvmlite", *_OF_EXTRAS, "erasable")
_OF_THE_MACHINE = ("machine", "processor", "libc")
_BELONGING = {
    **dict.fromkeys(("blas", "numpy", "scipy"), ("blas", "numpy", "scipy")),
    "numba": ("numba", "llvmlite", "numpy"),
}
OF_THE_CODE = frozenset({"erasable", "kernels"})
"""Our own version and sources, which 0.1 recorded as well; golden bytes show that they change nothing."""
OF_0_1 = frozenset({*_OF_THE_MACHINE, "blas", *_LIBRARIES, *OF_THE_CODE})
"""What 0.1 recorded for every model; of these, only what the model uses counts."""


def numeric_environment() -> dict[str, str]:
    """Return the processor, the BLAS kernels and the library versions of this process."""
    return dict(_environment())


@cache
def _environment() -> Environment:
    from llvmlite.binding import get_host_cpu_name

    kernels = blas_libraries()
    return {
        "machine": platform.machine(),
        "processor": get_host_cpu_name(),
        "libc": " ".join(platform.libc_ver()),
        "blas": "; ".join(sorted({f"{k['internal_api']} {k['version']} {k.get('architecture', '')}" for k in kernels})),
        **{library: version(library) for library in _LIBRARIES if library not in _OF_EXTRAS or find_spec(library)},
        "kernels": source_stamp(),
    }


def environment_of(model: Model, beside: Environment = NOTHING) -> dict[str, str]:
    """Return what a model's bytes depend on here: the machine, what it uses, and what `beside` adds.

    For a model that is not ours, NumPy, its sources and the revisions of our code that it builds on count too. Ours
    have a revision, and tests that compare golden bytes.
    """
    here, source = _environment(), source_digest(model)
    uses = model.uses if is_ours(model) else ("numpy", *model.uses)
    found = {**beside, **{name: here[name] for name in _OF_THE_MACHINE}, **_versions(uses)}
    if isinstance(model, TorchModel):
        found["torch threads"] = str(model.settings.torch_threads)
    return {**found, **revisions_beneath(model), **({"source": source} if source else {})}


def environment_for(config: Config) -> dict[str, str]:
    """Return what the checkpoints of a configuration depend on here, including the grouping if it is recomputed."""
    return environment_of(make_model(config), used_beside(config))


def used_beside(config: Config) -> dict[str, str]:
    """Return what checkpoints depend on besides the model: nothing, unless the policy recomputes groups.

    Then the libraries that compute groups count, and the sources of a grouping that is not ours.
    """
    if config.policy != "regroup":
        return {}
    try:
        check_grouping(config.dividing)
        if config.grouping in BUILT_IN:
            return _versions(("blas", "numba", *(("gensim",) if config.dividing.vectors == "gensim" else ())))
        labelling = find_grouping(config.grouping)
    except WrongSetting as error:
        why = "install gensim (the extra paper)" if config.grouping in BUILT_IN else error
        raise UnknownModel(f"the policy regroup computes groups again, which is not possible here: {why}") from error
    return {**_versions(("blas", "numba", *libraries_of(labelling))), GROUPING_SOURCE: _source_of(labelling)}


@cache
def _source_of(labelling: Callable[..., object]) -> str:
    """Return the digest of a grouping's sources, computed once: the imported code is what runs."""
    return function_digest(labelling)


def _versions(uses: Iterable[str]) -> dict[str, str]:
    """Return the installed versions of what is used, and of what belongs to it."""
    here, names = _environment(), (name for use in uses for name in _BELONGING.get(use, (use,)))
    return {name: here[name] if name in here else version(name) for name in dict.fromkeys(names)}


def differences(learned_with: Environment, here: Environment) -> list[str]:
    """Describe how two environments differ; empty if they do not."""
    return [
        CHANGED_CODE.get(name)
        or f"{name} is {here.get(name, 'absent')} here and was {learned_with.get(name, 'absent')}"
        for name in sorted({*here, *(learned_with.keys() - OF_0_1)})
        if here.get(name) != learned_with.get(name)
    ]


def distinct(environments: Iterable[Environment]) -> list[Environment]:
    """Return each distinct environment once, in order."""
    found: list[Environment] = []
    for environment in environments:
        if environment not in found:
            found.append(environment)
    return found


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
                pool.shutdown(cancel_futures=True)  # tasks that run end soon (`stopped`); the others never begin
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


class TaskInputs(Protocol):
    """Finds the rows, checkpoints and models that tasks name, wherever they are kept."""

    def rows(self, name: RowsName) -> Interactions:
        """Return the rows of a name."""

    def features(self, name: RowsName) -> Interactions | None:
        """Return the features of items that are learned with the rows of a name, if there are any."""

    def change(self, shortcut: "Shortcut", after: RowsName) -> Change:
        """Return how the rows that a shortcut starts from differ from those of a name."""

    def checkpoint(self, name: str) -> Checkpoint:
        """Return the checkpoint of a name."""

    def model(self, task: "Task") -> Model:
        """Return a task's model with its settings; never import a model just because a task names it."""


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
            **({"features": self.rows.features} if self.rows.features else {}),
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
        scale, weights = RatingScale(*self.scale), self.settings.get("weights", False)
        features = inputs.features(self.rows)
        stage = Stage(rows, scale, self.settings["epochs"], self.seed, self.position, weights, features)
        start = self.begins_from
        shared = None if start == ORIGIN else inputs.checkpoint(start).parameters.shared
        began = time.perf_counter()
        with one_blas_thread():  # so that other packages' models need not do it
            if self.shortcut is None:
                parameters = self._trained(model, shared, stage, effort)
            else:
                change = replace(inputs.change(self.shortcut, self.rows), weights=weights)
                parameters = self._amended(model, shared or {}, change, effort)
        seconds = time.perf_counter() - began
        if not parameters.all_finite():
            raise Refused(f"training {model.name} diverged at {self.label}: ", self._remedy())
        environment = environment_of(model, self.beside)
        link = Link(self.name, self.parent, self.samples, self._from_scratch(seconds), environment)
        by_item = calls.by_item(model, parameters.shared, len(rows.items))
        return Checkpoint(self.name, self.parent, parameters, environment, by_item), link

    def _amended(self, model: Model, made: Arrays, change: Change, effort: Effort) -> Parameters:
        """Amend the earlier checkpoint, which was trained on other rows."""
        if not isinstance(model, Amends):
            raise Refused(f"{model.name} can't be amended from other rows: plan again")
        return Parameters(calls.amended(model, made, change, effort), {})

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


def stages_of(dataset: Dataset) -> tuple[Task, ...]:
    """Return the stages of a chain in order; each stage's rows are hashed once."""
    found: list[Task] = []
    beside = used_beside(dataset.config)
    for position in range(dataset.stages):
        parent = ORIGIN if not found or dataset.config.strategy == "sisa" else found[-1].name
        found.append(_stage(dataset, position, parent, beside))
    return tuple(found)


def link_names(dataset: Dataset) -> list[str]:
    """Return the fingerprint of each stage's checkpoint."""
    return [task.name for task in stages_of(dataset)]


def _stage(dataset: Dataset, position: int, parent: str, beside: Mapping[str, str]) -> Task:
    config, known = dataset.config, len(dataset.known(position))
    samples = calls.counted(make_model(config), dataset.size_of_stage(position), config.stage_epochs)
    return Task(
        parent=parent,
        position=position,
        rows=dataset.learners_name(position),
        settings=config.stage_facts(),
        scale=(dataset.scale.low, dataset.scale.high),
        seed=config.seed,
        solves_rows=dataset.solves_rows,
        brings_items=parent != ORIGIN and len(dataset.known(position - 1)) != known,
        samples=samples,
        visits=samples,
        beside=beside,
    )
