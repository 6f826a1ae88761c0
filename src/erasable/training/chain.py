"""The paper's SeqTrain module: a chain of stages, one for each group, with a checkpoint after each.

Every stage leaves a checkpoint that is named by a fingerprint of everything that made it. So learning and
forgetting are the same function: work out the names along the chain, keep every checkpoint whose name is already there,
and make those that are not. Under the strategy sisa every stage begins at the origin, so that one does not follow from
another.
"""

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace

from erasable.data import Interactions
from erasable.errors import Refused
from erasable.models import Amends, Change, Effort, Model, calls, make_model
from erasable.training.checkpoint import Checkpoint, CheckpointStore
from erasable.training.environment import used_beside
from erasable.training.executors import LOCAL, Executor, in_turns
from erasable.training.state import Knowledge, Link, RowsName, State
from erasable.training.tasks import ORIGIN, Shortcut, Task


@dataclass(frozen=True)
class Earlier:
    """A chain that was made earlier, and what it was made from if that is known; what of it still holds is kept."""

    chain: Sequence[Link] = ()
    knowledge: Knowledge | None = None

    @staticmethod
    def of(state: State) -> "Earlier":
        """Return the chain of a state."""
        return Earlier(state.chain, state.knowledge)


NOTHING_EARLIER = Earlier()


@dataclass(frozen=True)
class Schedule:
    """All stages of a chain, and which of them are to be made; it holds names and settings, and no data."""

    stages: tuple[Task, ...]
    rerun: tuple[int, ...]
    """The places of those that a chain made earlier does not already hold."""

    @property
    def tasks(self) -> tuple[Task, ...]:
        """The stages that are to be made."""
        return tuple(self.stages[place] for place in self.rerun)

    @property
    def visits(self) -> int:
        """How many samples making them visits."""
        return sum(task.visits for task in self.tasks)


@dataclass(frozen=True, eq=False)
class InMemory:
    """Finds the inputs of tasks in what is known, and in a store of checkpoints."""

    learners: Mapping[RowsName, tuple[Knowledge, int]]
    """Of which knowledge, and of which stage, the rows of a name are."""
    store: CheckpointStore
    learner: Model

    @staticmethod
    def of(schedule: Schedule, knowledge: Knowledge, earlier: Earlier, store: CheckpointStore) -> "InMemory":
        """Return the inputs of a schedule's tasks; rows that were hashed when it was made are not hashed again."""
        named = {knowledge.learners_name(task.position): (knowledge, task.position) for task in schedule.tasks}
        before = earlier.knowledge
        if before is not None and any(task.shortcut for task in schedule.tasks):
            named[before.learners_name(0)] = before, 0
        return InMemory(named, store, make_model(knowledge.config))

    def rows(self, name: RowsName) -> Interactions:
        """Return the rows of a name."""
        if name not in self.learners:
            raise Refused("the plan is of other data than are held: plan again")
        knowledge, position = self.learners[name]
        return knowledge.learners(position)

    def checkpoint(self, name: str) -> Checkpoint:
        """Return the checkpoint of a name."""
        return self.store.get(name)

    def model(self, task: Task) -> Model:
        """Return the model that is known, whose settings are the task's."""
        return self.learner

    def needed_by(self, task: Task) -> "Parcel":
        """Return the inputs of one task, and of no other."""
        rows = [task.rows, *([task.shortcut.rows] if task.shortcut else [])]
        start = task.begins_from
        checkpoints = {} if start == ORIGIN else {start: self.checkpoint(start)}
        return Parcel({name: self.rows(name) for name in rows}, checkpoints, self.learner)


@dataclass(frozen=True, eq=False)
class Parcel:
    """The inputs of one task, which go along to where it is carried out."""

    held: Mapping[RowsName, Interactions] = field(repr=False)
    checkpoints: Mapping[str, Checkpoint] = field(repr=False)
    learner: Model

    def rows(self, name: RowsName) -> Interactions:
        """Return the rows of a name."""
        return self.held[name]

    def checkpoint(self, name: str) -> Checkpoint:
        """Return the checkpoint of a name."""
        return self.checkpoints[name]

    def model(self, task: Task) -> Model:
        """Return the model that came along."""
        return self.learner

    def needed_by(self, task: Task) -> "Parcel":
        """Return itself."""
        return self


@dataclass(frozen=True, eq=False)
class Order:
    """A task with where its inputs are found; sent to another process, it takes its own inputs along and no others."""

    task: Task
    inputs: InMemory | Parcel = field(repr=False)

    @property
    def name(self) -> str:
        """The name of what it makes."""
        return self.task.name

    @property
    def parent(self) -> str:
        """The name of what it follows from."""
        return self.task.parent

    def __str__(self) -> str:
        return self.task.label

    def __reduce__(self) -> tuple[type["Order"], tuple[Task, Parcel]]:
        return Order, (self.task, self.inputs.needed_by(self.task))


def stages_of(knowledge: Knowledge) -> tuple[Task, ...]:
    """Return the stages of a chain in their order; each stage's rows are hashed once."""
    found: list[Task] = []
    beside = used_beside(knowledge.config)
    for position in range(knowledge.stages):
        parent = ORIGIN if not found or knowledge.config.strategy == "sisa" else found[-1].name
        found.append(_stage(knowledge, position, parent, beside))
    return tuple(found)


def link_names(knowledge: Knowledge) -> list[str]:
    """Return the fingerprint of each stage's checkpoint."""
    return [task.name for task in stages_of(knowledge)]


def links_to_run(names: Sequence[str], chain: Sequence[Link]) -> tuple[int, ...]:
    """Return the places whose checkpoints differ from those of a chain made earlier."""
    made = [link.fingerprint for link in chain]
    return tuple(place for place, name in enumerate(names) if made[place : place + 1] != [name])


def scheduled(
    knowledge: Knowledge, earlier: Earlier = NOTHING_EARLIER, stages: Sequence[Task] | None = None
) -> Schedule:
    """Return what leads from a chain made earlier to what is known; its stages may have been described already."""
    found = list(stages_of(knowledge) if stages is None else stages)
    rerun = links_to_run([task.name for task in found], earlier.chain)
    if 0 in rerun:
        found[0] = _with_shortcut(found[0], knowledge, earlier)
    return Schedule(tuple(found), rerun)


def carry_out(
    schedule: Schedule,
    knowledge: Knowledge,
    store: CheckpointStore,
    effort: Effort,
    earlier: Earlier = NOTHING_EARLIER,
    executor: Executor = LOCAL,
) -> State:
    """Make the stages that a schedule for this knowledge says, and return the state with the new chain."""
    inputs = InMemory.of(schedule, knowledge, earlier, store)
    new: dict[int, Link] = {}
    orders = [Order(task, inputs) for task in schedule.tasks]
    with closing(in_turns(executor, _made, orders, effort)) as made:
        for order, (checkpoint, link) in made:
            store.put(checkpoint)  # before anything that follows from it is begun
            new[order.task.position] = link
    return State(knowledge, tuple(new.get(place) or earlier.chain[place] for place in range(len(schedule.stages))))


def train_chain(
    knowledge: Knowledge,
    store: CheckpointStore,
    effort: Effort,
    earlier: Earlier = NOTHING_EARLIER,
    executor: Executor = LOCAL,
) -> State:
    """Make the stages that a chain made earlier does not already hold, and return the state with the new chain."""
    return carry_out(scheduled(knowledge, earlier), knowledge, store, effort, earlier, executor)


def _made(order: Order, effort: Effort) -> tuple[Checkpoint, Link]:
    """Make the stage of a task."""
    return order.task.run(order.inputs, effort)


def _stage(knowledge: Knowledge, position: int, parent: str, beside: Mapping[str, str]) -> Task:
    config, learners = knowledge.config, knowledge.learners(position)
    samples = calls.counted(make_model(config), learners, config.stage_epochs)
    return Task(
        parent=parent,
        position=position,
        rows=knowledge.learners_name(position),
        settings=config.stage_facts(),
        scale=(knowledge.scale.low, knowledge.scale.high),
        seed=config.seed,
        solves_rows=knowledge.solves_rows,
        brings_items=parent != ORIGIN and len(knowledge.known(position - 1)) != len(learners.items),
        samples=samples,
        visits=samples,
        beside=beside,
    )


def _with_shortcut(task: Task, knowledge: Knowledge, earlier: Earlier) -> Task:
    """Return a first stage with the short way from itself as it was made earlier, if its model has one."""
    model, before = make_model(knowledge.config), earlier.knowledge
    made = next((link for link in earlier.chain[:1] if link.parent == task.parent), None)
    if made is None or before is None or before.config != knowledge.config or not isinstance(model, Amends):
        return task
    was, learners = before.learners(0), knowledge.learners(0)
    visits = model.samples_amended(learners, Change.between(was, learners))
    shortcut = Shortcut(made.fingerprint, before.learners_name(0), made.samples, made.seconds)
    return replace(task, visits=visits, shortcut=shortcut)
