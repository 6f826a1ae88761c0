"""The plan: what forgetting would touch and cost, before it is done."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from erasable.data import Interactions
from erasable.models import make_model
from erasable.training import Earlier, Knowledge, Link, State, steps_of, tasks_of


class Apart(NamedTuple):
    """What the same people cost if each is forgotten alone, one after the other."""

    requests: int
    cost_ratio: float
    seconds_estimated: float


@dataclass(frozen=True)
class Plan:
    """Which steps would be made again and what that costs, against training everything at once from scratch."""

    rerun: tuple[int, ...]
    """Their places in the chain: stages that would be trained again, and rows of groups that would be solved again."""
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

    @property
    def chain_ratio(self) -> float:
        """Samples visited over those of training the whole chain again."""
        return self.samples / self.samples_chain if self.samples_chain else 0.0

    @property
    def cost_ratio(self) -> float:
        """Samples visited over those that the strategy `retrain` would visit on the remaining data."""
        return self.samples / self.samples_retrain if self.samples_retrain else 0.0


def plan_change(state: State, after: Knowledge) -> Plan:
    """Say which steps going from a state to this knowledge makes again, and what that costs."""
    tasks = tasks_of(after, Earlier.of(state))
    rates = _seconds_per_sample(state.stages), _seconds_per_sample(state.chain[len(state.stages) :])
    return Plan(
        rerun=tuple(task.place for task in tasks),
        stages_rerun=sum(task.place < after.stages for task in tasks),
        stages_total=after.stages,
        samples=sum(task.visits for task in tasks),
        samples_chain=sum(step.samples for step in steps_of(after)),
        samples_retrain=_samples_of_retraining(after),
        seconds_estimated=sum(task.visits * rates[task.place >= after.stages] for task in tasks),
    )


def largest_cost(planned: Plan, after: Knowledge, people: int) -> float:
    """Return what forgetting so many people can cost, whoever they are; a plan that was made is no larger."""
    if after.config.strategy != "sisa":
        samples = planned.samples_chain
    else:  # each is in one group, and only groups that were hit are trained
        samples = sum(sorted(step.samples for step in steps_of(after))[-people:])
    return max(planned.cost_ratio, samples / planned.samples_retrain if planned.samples_retrain else 0.0)


def _samples_of_retraining(after: Knowledge) -> int:
    """Return how many samples training everyone at once visits, and solving their rows if it does not give them."""
    model, config = make_model(after.config), after.config
    everyone = after.groups[0] if len(after.groups) == 1 else Interactions.merge(after.groups)
    samples = model.samples(everyone, config.epochs)
    return samples if model.trains_rows else samples + model.samples_of_rows(everyone, config.row_epochs)


def _seconds_per_sample(links: Sequence[Link]) -> float:
    """Return the median over some links: the first one may have waited for its kernel to be compiled."""
    rates = [link.seconds / link.samples for link in links if link.samples]
    return statistics.median(rates) if rates else 0.0
