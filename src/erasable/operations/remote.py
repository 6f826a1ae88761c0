"""Remote work: tasks written down in a scratch folder, so that another process or machine can carry them out.

An order is a JSON file with plain values and names of files. Whoever carries it out writes what comes of it into the
same folder, as JSON, safetensors or Parquet, and answers with the name of one file. Failures are written down too:
their text may name people.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any, Protocol, TypeVar

from erasable import errors
from erasable.chain.chain import BoundTask, InMemory
from erasable.chain.checkpoints import (
    ORIGIN,
    Checkpoint,
    Link,
    MemoryStore,
)
from erasable.chain.dataset import (
    Dataset,
    RowsName,
)
from erasable.chain.tasks import Shortcut, Task, differences, environment_of
from erasable.errors import ErasableError, NotReproducible, Refused, Said
from erasable.models.base import Effort
from erasable.models.registry import make_model
from erasable.workspace.portable import get_checkpoint, get_dataset, put_checkpoint, put_dataset, sharing_files
from erasable.workspace.scratch import Scratch

Facts = Mapping[str, Any]
"""Plain values that JSON can say."""
CarryOut = Callable[[Scratch, Facts, Effort], Facts]
"""Carries out an order in a worker, and returns what came of it."""
T = TypeVar("T", contravariant=True)
R = TypeVar("R", covariant=True)


class RemoteWork(Protocol[T, R]):
    """A kind of task that can be written down."""

    @property
    def carry_out(self) -> CarryOut:
        """A function of a module, which a worker imports and calls."""

    def order(self, task: T, scratch: Scratch) -> Facts:
        """Write down what a task needs."""

    def outcome(self, task: T, facts: Facts, scratch: Scratch) -> R:
        """Read what came of it."""


class RemoteStages:
    """The stages of a chain: a worker reads the rows of its stage from the buckets."""

    def __init__(self) -> None:
        self._datasets: dict[int, tuple[Dataset, str]] = {}
        self._made: dict[str, Facts] = {}

    @property
    def carry_out(self) -> CarryOut:
        """Trains a stage."""
        return train_stage

    def order(self, task: BoundTask, scratch: Scratch) -> Facts:
        """Write down the dataset and the checkpoint that a stage starts from, unless they are there already."""
        inputs, start = task.inputs, task.task.begins_from
        if not isinstance(inputs, InMemory):
            raise Refused("a task that was sent along can't be sent on")
        dataset, _ = inputs.places[task.task.rows]
        if start != ORIGIN and start not in self._made:
            self._made[start] = put_checkpoint(scratch, inputs.checkpoint(start))
        return {
            "task": asdict(task.task),
            "dataset": self._described(dataset, scratch),
            "before": self._described(inputs.before, scratch) if task.task.shortcut and inputs.before else None,
            "start": self._made.get(start),
        }

    def outcome(self, task: BoundTask, facts: Facts, scratch: Scratch) -> tuple[Checkpoint, Link]:
        """Read the checkpoint of a stage; later stages start from the same file."""
        checkpoint = get_checkpoint(scratch, facts["checkpoint"])
        if checkpoint.fingerprint != task.name:
            raise Refused(f"{task}: a worker trained something else: run this again")
        here = environment_of(task.inputs.model(task.task), task.task.beside)
        found = differences(here, checkpoint.environment)
        if found:  # the sources of a model that is not ours, for instance
            raise NotReproducible(
                f"{task}: a worker would not give the same bytes ({'; '.join(found)}): install the same there"
            )
        self._made[task.name] = facts["checkpoint"]
        return checkpoint, Link(task.name, task.parent, facts["samples"], facts["seconds"], checkpoint.environment)

    def _described(self, dataset: Dataset, scratch: Scratch) -> str:
        if id(dataset) not in self._datasets:
            self._datasets[id(dataset)] = dataset, put_dataset(scratch, dataset)
        return self._datasets[id(dataset)][1]


def train_stage(scratch: Scratch, facts: Facts, effort: Effort) -> Facts:
    """Train a stage in a worker."""
    task, dataset = _task(facts["task"]), get_dataset(scratch, facts["dataset"])
    before = None
    if facts["before"] is not None:
        before = sharing_files(get_dataset(scratch, facts["before"]), dataset)
    store = MemoryStore()
    if facts["start"] is not None:
        store.put(get_checkpoint(scratch, facts["start"]))
    places = {dataset.learners_name(task.position): (dataset, task.position)}
    checkpoint, link = task.run(InMemory(places, store, make_model(dataset.config), before), effort)
    return {"checkpoint": put_checkpoint(scratch, checkpoint), "samples": link.samples, "seconds": link.seconds}


def _task(facts: Facts) -> Task:
    cut = facts["shortcut"]
    shortcut = None if cut is None else Shortcut(**{**cut, "rows": RowsName(**cut["rows"])})
    named = {**facts, "rows": RowsName(**facts["rows"]), "scale": tuple(facts["scale"]), "shortcut": shortcut}
    return Task(**named)


def failure(error: BaseException) -> Facts:
    """Write down a failure: ours with its kind and both wordings, any other with its name."""
    if isinstance(error, ErasableError):
        return {"kind": type(error).__name__, "said": [str(error.said), error.said.of_command]}
    text = f"{type(error).__name__}: {error}".encode("utf-8", "backslashreplace").decode()
    return {"kind": "Refused", "said": [text, text]}


def raise_failure(facts: Facts) -> None:
    """Raise the failure of a worker here."""
    kind = getattr(errors, facts["kind"], Refused)
    message = Said(*facts["said"])
    if kind is errors.WrongSetting or not (isinstance(kind, type) and issubclass(kind, ErasableError)):
        kind = Refused
    raise kind(message)
