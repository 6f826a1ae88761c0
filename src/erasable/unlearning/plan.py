"""The plan: what forgetting would touch and cost, before it is done."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from erasable import training
from erasable.data import Interactions
from erasable.models import Effort, calls, make_model
from erasable.training import (
    LOCAL,
    CheckpointStore,
    Earlier,
    Executor,
    Knowledge,
    Link,
    Schedule,
    State,
    Task,
    scheduled,
)


class Apart(NamedTuple):
    """What the same people cost if each is forgotten alone, one after the other."""

    requests: int
    cost_ratio: float
    seconds_estimated: float


@dataclass(frozen=True)
class Plan:
    """Which stages would be trained again and what that costs, against training everything at once from scratch.

    What counts is training. Rows that are solved when they are needed cost nothing here, whoever leaves: neither in
    what forgetting visits nor in what retraining would.
    """

    rerun: tuple[int, ...]
    """Their places in the chain."""
    stages_rerun: int
    stages_total: int
    samples: int
    samples_chain: int
    samples_retrain: int
    seconds_estimated: float
    apart: Apart | None = None
    """What several people cost one by one."""
    people: int = 0
    """How many people it is about, of `people_total`."""
    people_total: int = 0
    served_meanwhile: int = 0
    """How many of them are served until it is carried out, without the items that they asked for."""
    schedule: Schedule = field(default=Schedule((), ()), repr=False)
    """The stages and their names, no data."""

    @property
    def tasks(self) -> tuple[Task, ...]:
        """The stages that would be trained again."""
        return self.schedule.tasks

    @property
    def chain_ratio(self) -> float:
        """Samples visited over those of training the whole chain again."""
        return self.samples / self.samples_chain if self.samples_chain else 0.0

    @property
    def cost_ratio(self) -> float:
        """Samples visited over those that the strategy `retrain` would visit on the remaining data."""
        return self.samples / self.samples_retrain if self.samples_retrain else 0.0


def plan_change(state: State, after: Knowledge) -> Plan:
    """Say which stages going from a state to this knowledge trains again, and what that costs."""
    schedule = scheduled(after, Earlier.of(state))
    return Plan(
        rerun=schedule.rerun,
        stages_rerun=len(schedule.rerun),
        stages_total=len(schedule.stages),
        samples=schedule.visits,
        samples_chain=sum(task.samples for task in schedule.stages),
        samples_retrain=_samples_of_retraining(after),
        seconds_estimated=schedule.visits * _seconds_per_sample(state.chain),
        schedule=schedule,
    )


def carry_out(
    plan: Plan, state: State, after: Knowledge, store: CheckpointStore, effort: Effort, executor: Executor = LOCAL
) -> State:
    """Go from a state to this knowledge as it was planned; new checkpoints are in the store beside the old ones.

    The caller makes the new state current first, and only then destroys the old checkpoints.
    """
    return training.carry_out(plan.schedule, after, store, effort, Earlier.of(state), executor)


def largest_cost(planned: Plan, after: Knowledge, people: int) -> float:
    """Return what forgetting so many people can cost, whoever they are; a plan that was made is no larger."""
    model, epochs = make_model(after.config), after.config.stage_epochs
    # Under sisa each is in one group, and only groups that were hit are trained.
    hit = people if after.config.strategy == "sisa" else after.stages
    every_item = [calls.counted(model, after.learners_over_all(position), epochs) for position in range(after.stages)]
    samples = sum(sorted(every_item)[-hit:])
    return max(planned.cost_ratio, samples / planned.samples_retrain if planned.samples_retrain else 0.0)


def _samples_of_retraining(after: Knowledge) -> int:
    """Return how many samples training everyone at once visits."""
    everyone = after.groups[0] if len(after.groups) == 1 else Interactions.merge(after.groups)
    return calls.counted(make_model(after.config), everyone, after.config.epochs)


def _seconds_per_sample(links: Sequence[Link]) -> float:
    """Return the median over some links: the first one may have waited for its kernel to be compiled."""
    rates = [link.seconds / link.samples for link in links if link.samples]
    return statistics.median(rates) if rates else 0.0
