"""The plan: what forgetting would touch and cost, before it is done."""

import statistics
from dataclasses import dataclass

from erasable.models import make_model
from erasable.training import Knowledge, State, stage_names, stages_to_run


@dataclass(frozen=True)
class Plan:
    """Which stages would be trained again and what that costs, against training everything at once from scratch."""

    rerun: tuple[int, ...]
    stages_total: int
    samples: int
    samples_chain: int
    samples_retrain: int
    seconds_estimated: float

    @property
    def stages_rerun(self) -> int:
        """How many stages would be trained again."""
        return len(self.rerun)

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
    to_run = stages_to_run(stage_names(after), state.chain)
    model, config = make_model(after.config), after.config
    samples = [model.samples(after.groups[position], config.stage_epochs) for position in to_run]
    return Plan(
        rerun=to_run,
        stages_total=len(after.groups),
        samples=sum(samples),
        samples_chain=sum(model.samples(group, config.stage_epochs) for group in after.groups),
        samples_retrain=sum(model.samples(group, config.epochs) for group in after.groups),
        seconds_estimated=sum(samples) * _seconds_per_sample(state),
    )


def _seconds_per_sample(state: State) -> float:
    """Return the median over the stages: the first one may have waited for its kernel to be compiled."""
    rates = [link.seconds / link.samples for link in state.chain if link.samples]
    return statistics.median(rates) if rates else 0.0
