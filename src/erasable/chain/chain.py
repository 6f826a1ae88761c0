"""The paper's SeqTrain module: a chain of stages, one for each group, with a checkpoint after each.

Every checkpoint is named by a fingerprint of everything that made it. So learning and forgetting are the same function:
compute the names along the chain, keep every checkpoint whose name exists, and train the others. Under the strategy
sisa every stage starts from scratch, so none depends on another.
"""

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace

from erasable.chain.checkpoints import (
    ORIGIN,
    Checkpoint,
    CheckpointStore,
    Link,
)
from erasable.chain.dataset import (
    Dataset,
    RowsName,
    State,
)
from erasable.chain.tasks import (
    CHANGED_CODE,
    LOCAL,
    Executor,
    Shortcut,
    Task,
    differences,
    distinct,
    environment_for,
    in_dependency_order,
    stages_of,
)
from erasable.data.interactions import Interactions
from erasable.errors import Refused
from erasable.models.base import Amends, Change, Effort, Model
from erasable.models.registry import is_ours, make_model


@dataclass(frozen=True)
class Earlier:
    """An earlier chain, and its dataset if known; its checkpoints are kept where they are still valid."""

    chain: Sequence[Link] = ()
    dataset: Dataset | None = None

    @staticmethod
    def of(state: State) -> "Earlier":
        """Return the chain of a state."""
        return Earlier(state.chain, state.dataset)


NOTHING_EARLIER = Earlier()


@dataclass(frozen=True)
class Schedule:
    """All stages of a chain, and which of them to train; it holds names and settings, but no data."""

    stages: tuple[Task, ...]
    rerun: tuple[int, ...]
    """The positions of the stages that an earlier chain does not already hold."""

    @property
    def tasks(self) -> tuple[Task, ...]:
        """The stages to train."""
        return tuple(self.stages[place] for place in self.rerun)

    @property
    def visits(self) -> int:
        """How many samples training them visits."""
        return sum(task.visits for task in self.tasks)


@dataclass(frozen=True, eq=False)
class InMemory:
    """Finds the inputs of tasks in datasets in memory, and in a store of checkpoints."""

    places: Mapping[RowsName, tuple[Dataset, int]]
    """The dataset and the stage to which the rows of a name belong."""
    store: CheckpointStore
    trained: Model
    before: Dataset | None = None
    """The dataset that shortcuts start from."""

    @staticmethod
    def of(schedule: Schedule, dataset: Dataset, earlier: Earlier, store: CheckpointStore) -> "InMemory":
        """Return the inputs of a schedule's tasks; rows that were hashed for it are not hashed again."""
        named = {dataset.learners_name(task.position): (dataset, task.position) for task in schedule.tasks}
        return InMemory(named, store, make_model(dataset.config), earlier.dataset)

    def rows(self, name: RowsName) -> Interactions:
        """Return the rows of a name."""
        if name not in self.places:
            raise Refused("the data changed since the plan was made: plan again")
        dataset, position = self.places[name]
        return dataset.learners(position)

    def features(self, name: RowsName) -> Interactions | None:
        """Return the features that are learned with the rows of a name."""
        dataset, position = self.places[name]
        return dataset.features_at(position)

    def change(self, shortcut: Shortcut, after: RowsName) -> Change:
        """Return how the rows of a shortcut differ from those of a task."""
        if self.before is None or self.before.learners_name(0) != shortcut.rows or after not in self.places:
            raise Refused("the data changed since the plan was made: plan again")
        dataset, position = self.places[after]
        return dataset.change_from(self.before, position)

    def checkpoint(self, name: str) -> Checkpoint:
        """Return the checkpoint of a name."""
        return self.store.get(name)

    def model(self, task: Task) -> Model:
        """Return the dataset's model, whose settings are the task's."""
        return self.trained

    def needed_by(self, task: Task) -> "PackedInputs":
        """Return the inputs of this task, and no others."""
        start = task.begins_from
        checkpoints = {} if start == ORIGIN else {start: self.checkpoint(start)}
        change = None if task.shortcut is None else self.change(task.shortcut, task.rows)
        return PackedInputs(
            {task.rows: self.rows(task.rows)}, checkpoints, self.trained, change, self.features(task.rows)
        )


@dataclass(frozen=True, eq=False)
class PackedInputs:
    """The inputs of one task, sent along to where it runs."""

    held: Mapping[RowsName, Interactions] = field(repr=False)
    checkpoints: Mapping[str, Checkpoint] = field(repr=False)
    trained: Model
    changed: Change | None = field(default=None, repr=False)
    featured: Interactions | None = field(default=None, repr=False)

    def rows(self, name: RowsName) -> Interactions:
        """Return the rows of a name."""
        return self.held[name]

    def features(self, name: RowsName) -> Interactions | None:
        """Return the features that were sent along."""
        return self.featured

    def change(self, shortcut: Shortcut, after: RowsName) -> Change:
        """Return the change that was sent along."""
        if self.changed is None:
            raise Refused("the data changed since the plan was made: plan again")
        return self.changed

    def checkpoint(self, name: str) -> Checkpoint:
        """Return the checkpoint of a name."""
        return self.checkpoints[name]

    def model(self, task: Task) -> Model:
        """Return the model that was sent along."""
        return self.trained

    def needed_by(self, task: Task) -> "PackedInputs":
        """Return itself."""
        return self


@dataclass(frozen=True, eq=False)
class BoundTask:
    """A task with its inputs; pickled for another process, it takes along only the inputs of its own task."""

    task: Task
    inputs: InMemory | PackedInputs = field(repr=False)

    @property
    def name(self) -> str:
        """The name of its checkpoint."""
        return self.task.name

    @property
    def parent(self) -> str:
        """The name of the checkpoint it starts from."""
        return self.task.parent

    def __str__(self) -> str:
        return self.task.label

    def __reduce__(self) -> tuple[type["BoundTask"], tuple[Task, PackedInputs]]:
        return BoundTask, (self.task, self.inputs.needed_by(self.task))


def links_to_run(names: Sequence[str], chain: Sequence[Link]) -> tuple[int, ...]:
    """Return the positions whose checkpoints differ from those of an earlier chain."""
    made = [link.fingerprint for link in chain]
    return tuple(place for place, name in enumerate(names) if made[place : place + 1] != [name])


def scheduled(dataset: Dataset, earlier: Earlier = NOTHING_EARLIER, stages: Sequence[Task] | None = None) -> Schedule:
    """Return what to train to get from an earlier chain to this dataset; pass `stages` if they are known already."""
    found = list(stages_of(dataset) if stages is None else stages)
    rerun = links_to_run([task.name for task in found], earlier.chain)
    if 0 in rerun:
        found[0] = _with_shortcut(found[0], dataset, earlier)
    return Schedule(tuple(found), rerun)


def carry_out_schedule(
    schedule: Schedule,
    dataset: Dataset,
    store: CheckpointStore,
    effort: Effort,
    earlier: Earlier = NOTHING_EARLIER,
    executor: Executor = LOCAL,
) -> State:
    """Train the stages of this dataset's schedule, and return the state with the new chain."""
    inputs = InMemory.of(schedule, dataset, earlier, store)
    new: dict[int, Link] = {}
    tasks = [BoundTask(task, inputs) for task in schedule.tasks]
    with closing(in_dependency_order(executor, _run, tasks, effort)) as made:
        for bound, (checkpoint, link) in made:
            store.put(checkpoint)  # before any stage that starts from it begins
            new[bound.task.position] = link
    return State(dataset, tuple(new.get(place) or earlier.chain[place] for place in range(len(schedule.stages))))


def train_chain(
    dataset: Dataset,
    store: CheckpointStore,
    effort: Effort,
    earlier: Earlier = NOTHING_EARLIER,
    executor: Executor = LOCAL,
) -> State:
    """Train the stages that an earlier chain does not already hold, and return the state with the new chain."""
    return carry_out_schedule(scheduled(dataset, earlier), dataset, store, effort, earlier, executor)


def _run(bound: BoundTask, effort: Effort) -> tuple[Checkpoint, Link]:
    return bound.task.run(bound.inputs, effort)


def _with_shortcut(task: Task, dataset: Dataset, earlier: Earlier) -> Task:
    """Give the first stage a shortcut from its earlier checkpoint, if its model can amend."""
    model, before = make_model(dataset.config), earlier.dataset
    made = next((link for link in earlier.chain[:1] if link.parent == task.parent), None)
    if made is None or before is None or before.config != dataset.config or not isinstance(model, Amends):
        return task
    if before.learners_name(0).features != task.rows.features:  # every count may have changed
        return task
    visits = model.samples_amended(dataset.learners(0), dataset.change_from(before, 0))
    shortcut = Shortcut(made.fingerprint, before.learners_name(0), made.samples, made.seconds)
    return replace(task, visits=visits, shortcut=shortcut)


@dataclass(frozen=True)
class Elsewhere:
    """The positions of checkpoints that were made in another numeric environment, and how it differs."""

    places: tuple[int, ...]
    differences: tuple[str, ...]
    other_code: bool = False
    """Whether only the code of the model or the grouping differs."""
    newer_revision: bool = False
    """Whether only a model of ours has a later revision here: then an erasure trains everything again, once."""

    def __bool__(self) -> bool:
        return bool(self.places)

    def __str__(self) -> str:
        return "; ".join(self.differences)

    @property
    def how(self) -> str:
        """How it was learned: with other code, if nothing else differs, or in another numeric environment."""
        return "with other code" if self.other_code else "in another numeric environment"


def made_elsewhere(state: State) -> Elsewhere:
    """Return which checkpoints of a state were made in another numeric environment, and how it differs from here."""
    config = state.dataset.config
    if config.revision != config.learner.revision:
        said = f"{config.model} has the revision {config.learner.revision} here and had {config.revision}"
        newer = is_ours(config.learner) and config.revision < config.learner.revision
        return Elsewhere(tuple(range(len(state.chain))), (said,), other_code=True, newer_revision=newer)
    here = environment_for(config)
    environments = [link.environment for link in state.chain]
    found = [(one, differences(one, here)) for one in distinct(environments)]
    foreign = [one for one, said in found if said]
    places = tuple(place for place, one in enumerate(environments) if one in foreign)
    sentences = tuple(dict.fromkeys(sentence for _, said in found for sentence in said))
    return Elsewhere(places, sentences, {*sentences} <= {*CHANGED_CODE.values()})
