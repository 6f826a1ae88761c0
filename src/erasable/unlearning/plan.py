"""The plan: what forgetting would touch and cost, before it is done."""

from collections.abc import Sequence
from dataclasses import dataclass

from erasable.data import Interactions
from erasable.models import make_model
from erasable.training import Knowledge, State, stage_names, stages_to_run
from erasable.unlearning.request import Erasure, Request


@dataclass(frozen=True)
class Plan:
    """Which stages would be trained again and what that costs, against training everything at once from scratch."""

    stages_rerun: int
    stages_total: int
    first_stage: int
    samples: int
    samples_retrain: int
    seconds_estimated: float

    @property
    def cost_ratio(self) -> float:
        """Samples visited over those that the strategy `retrain` would visit on the remaining data."""
        return self.samples / self.samples_retrain if self.samples_retrain else 0.0


def plan_erasure(state: State, requests: Sequence[Request]) -> Plan:
    """Say what forgetting these requests together would touch and cost."""
    return plan_change(state, Erasure.of(requests).apply(state.knowledge))


def plan_change(state: State, after: Knowledge) -> Plan:
    """Say which stages going from a state to this knowledge trains again, and what that costs."""
    to_run = stages_to_run(stage_names(after), state.chain)
    model, config = make_model(after.config), after.config
    samples = [model.samples(after.groups[position], config.stage_epochs) for position in to_run]
    retrain = model.samples(_all_training(after), config.epochs) if after.users else 0
    return Plan(
        stages_rerun=len(to_run),
        stages_total=len(after.groups),
        first_stage=to_run.start,
        samples=sum(samples),
        samples_retrain=retrain,
        seconds_estimated=sum(samples) * _seconds_per_sample(state),
    )


def _seconds_per_sample(state: State) -> float:
    samples = sum(link.samples for link in state.chain)
    return sum(link.seconds for link in state.chain) / samples if samples else 0.0


def _all_training(knowledge: Knowledge) -> Interactions:
    return Interactions.merge(knowledge.groups)
