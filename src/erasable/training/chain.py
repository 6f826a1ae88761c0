"""The paper's SeqTrain module: a chain of stages, one for each group, with a checkpoint after each; then the rows.

Every step of the chain leaves a checkpoint that is named by a fingerprint of everything that made it. So learning and
forgetting are the same function: work out the names along the chain, keep every checkpoint whose name is already there,
and make those that are not. Under the strategy sisa every stage begins at the origin, so that one does not follow from
another. Where rows are solved, the rows of each group follow from the last stage.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from erasable import fingerprint
from erasable.errors import Refused
from erasable.models import CLOSED_FORMS, Effort
from erasable.training.checkpoint import Checkpoint, CheckpointStore
from erasable.training.side_by_side import side_by_side
from erasable.training.state import Knowledge, Link, State
from erasable.training.steps import Made, RowsStep, StageStep, Step

ORIGIN = "origin"


@dataclass(frozen=True)
class Earlier:
    """A chain that was made earlier, and what it was made from if that is known; what of it still holds is kept."""

    chain: Sequence[Link] = ()
    knowledge: Knowledge | None = None

    @staticmethod
    def of(state: State) -> "Earlier":
        """Return the chain of a state."""
        return Earlier(state.chain, state.knowledge)

    def same_step(self, step: Step, parent: str) -> "tuple[Step, Link] | None":
        """Return a step as it was made earlier under the same parent, if it was."""
        found = (pair for pair in self._steps if _is_same(pair[0], step))
        return next((pair for pair in found if pair[1].parent == parent), None)

    @cached_property
    def _steps(self) -> list[tuple[Step, Link]]:
        return list(zip(steps_of(self.knowledge), self.chain, strict=False)) if self.knowledge else []


NOTHING_EARLIER = Earlier()


@dataclass(frozen=True)
class Task:
    """One step that is to be made: where, under which name, and what it follows from."""

    place: int
    step: Step
    name: str
    parent: str
    earlier: tuple[Step, Link] | None

    @cached_property
    def visits(self) -> int:
        """How many samples making it visits."""
        return self.step.visits(self.earlier[0] if self.earlier else None)

    def make(self, store: CheckpointStore, effort: Effort) -> Link:
        """Make it and keep its checkpoint."""
        shared = None if self.parent == ORIGIN else store.get(self.parent).parameters.shared
        made = Made(self.earlier[0], store.get(self.earlier[1].fingerprint).parameters) if self.earlier else None
        began = time.perf_counter()
        parameters = self.step.run(shared, made, effort)
        seconds = time.perf_counter() - began
        if not parameters.all_finite():
            closed = self.step.knowledge.config.model in CLOSED_FORMS
            remedy = "give a larger --regularisation" if closed else "give a smaller --learning-rate"
            raise Refused(f"training diverged at {self.step.label}: {remedy}")
        store.put(Checkpoint(self.name, self.parent, parameters))
        return Link(self.name, self.parent, self.step.samples, self._from_scratch(seconds))

    def _from_scratch(self, seconds: float) -> float:
        """Return how long the whole step takes at the rate that was measured; at that of earlier if too little was."""
        samples, visits = self.step.samples, self.visits
        if self.earlier and 2 * visits < samples:
            link = self.earlier[1]
            return link.seconds * samples / link.samples if link.samples else 0.0
        return seconds * samples / visits if visits else 0.0


def link_names(knowledge: Knowledge) -> list[str]:
    """Return the fingerprint of each step's checkpoint: its parent, and all else that its outcome depends on."""
    return [name for name, _ in _names_and_parents(knowledge, steps_of(knowledge))]


def links_to_run(names: Sequence[str], chain: Sequence[Link]) -> tuple[int, ...]:
    """Return the places whose checkpoints differ from those of a chain made earlier."""
    made = [link.fingerprint for link in chain]
    return tuple(place for place, name in enumerate(names) if made[place : place + 1] != [name])


def tasks_of(knowledge: Knowledge, earlier: Earlier = NOTHING_EARLIER) -> list[Task]:
    """Return the steps that a chain made earlier does not already hold."""
    steps = steps_of(knowledge)
    named = _names_and_parents(knowledge, steps)
    return [
        Task(place, steps[place], *named[place], earlier.same_step(steps[place], named[place][1]))
        for place in links_to_run([name for name, _ in named], earlier.chain)
    ]


def train_chain(
    knowledge: Knowledge, store: CheckpointStore, effort: Effort, earlier: Earlier = NOTHING_EARLIER
) -> State:
    """Make the steps that a chain made earlier does not already hold, and return the state with the new chain."""
    tasks = {task.place: task for task in tasks_of(knowledge, earlier)}

    def make(place: int, effort: Effort) -> Link:
        return tasks[place].make(store, effort)

    in_turn = ((place, make(place, effort)) for place in tasks)
    new = dict(side_by_side(make, list(tasks), effort) if knowledge.config.strategy == "sisa" else in_turn)
    return State(knowledge, tuple(new.get(place) or earlier.chain[place] for place in range(len(steps_of(knowledge)))))


def steps_of(knowledge: Knowledge) -> list[Step]:
    """Return the steps of a chain in their order: the stages, then the rows of each group if they are solved."""
    stages = [StageStep(knowledge, position) for position in range(knowledge.stages)]
    rows = [RowsStep(knowledge, position) for position in range(len(knowledge.groups) if knowledge.solves_rows else 0)]
    return [*stages, *rows]


def _names_and_parents(knowledge: Knowledge, steps: Sequence[Step]) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for place, step in enumerate(steps):
        follows = min(place, knowledge.stages) - 1
        parent = ORIGIN if follows < 0 or knowledge.config.strategy == "sisa" else found[follows][0]
        found.append((fingerprint.of_value({"parent": parent, **step.facts}), parent))
    return found


def _is_same(one: Step, other: Step) -> bool:
    alike = type(one) is type(other) and one.position == other.position
    return alike and one.knowledge.config == other.knowledge.config
