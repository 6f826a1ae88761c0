"""Erasures: the dataset without what is erased, a plan of what that costs, and carrying it out on a chain."""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeVar

from erasable.chain.arrangement import regrouped
from erasable.chain.chain import Earlier, Schedule, carry_out_schedule, scheduled, train_chain
from erasable.chain.checkpoints import (
    CheckpointStore,
    Link,
)
from erasable.chain.dataset import (
    Dataset,
    State,
)
from erasable.chain.tasks import LOCAL, Executor, Task
from erasable.data.interactions import Subject
from erasable.errors import UnknownInteraction, UnknownUser
from erasable.grouping.points import ALONE, GroupingEffort
from erasable.models import calls
from erasable.models.base import Effort
from erasable.models.registry import make_model

S = TypeVar("S", bound=Subject)


@dataclass(frozen=True)
class Erasure:
    """Several requests together: the users to forget entirely, and (user, item) pairs of others."""

    users: frozenset[str]
    pairs: frozenset[tuple[str, str]]

    @staticmethod
    def of(requests: Sequence[Subject]) -> "Erasure":
        """Join requests; a user who is forgotten entirely needs no pairs."""
        users = frozenset(request.user for request in requests if request.everything)
        pairs = frozenset((r.user, item) for r in requests if r.user not in users for item in r.items or ())
        return Erasure(users, pairs)

    def apply(self, dataset: Dataset, effort: GroupingEffort = ALONE) -> Dataset:
        """Return the dataset as if it had never held what is erased; under the policy regroup, with new groups."""
        remaining = dataset.without(self.users, self.pairs)
        return regrouped(remaining, effort) if dataset.config.policy == "regroup" else remaining


def known_requests(requests: Sequence[S], dataset: Dataset, ignore_unknown: bool = False) -> list[S]:
    """Return the requests about data that is held; refuse the others, or leave them out."""
    known: list[S] = []
    for request in requests:
        try:
            known.append(_known(request, dataset, ignore_unknown))
        except (UnknownUser, UnknownInteraction):
            if not ignore_unknown:
                raise
    return known


def _known(request: S, dataset: Dataset, ignore_unknown: bool) -> S:
    """Return a request, without items that are not held if those may be ignored; refuse it if nothing is held."""
    if request.items is None:
        dataset.find(request.user)
        return request
    owned = dataset.items_of(request.user)
    held = tuple(item for item in request.items if item in owned)
    missing = [item for item in request.items if item not in owned]
    if missing and not (held and ignore_unknown):
        raise UnknownInteraction(
            f"user {request.user!r} has no interaction with item {missing[0]!r}: check its id; nothing was done"
        )
    return replace(request, items=held)


class Apart(NamedTuple):
    """The cost of forgetting the same people one at a time."""

    requests: int
    cost_ratio: float
    seconds_estimated: float


@dataclass(frozen=True)
class Plan:
    """Which stages would be trained again and what that costs, compared with training everything from scratch.

    Only training counts. Rows that are solved when needed cost nothing here, neither for forgetting nor for retraining.
    """

    rerun: tuple[int, ...]
    """Their positions in the chain."""
    stages_rerun: int
    stages_total: int
    samples: int
    samples_chain: int
    samples_retrain: int
    seconds_estimated: float
    apart: Apart | None = None
    """The cost of forgetting several people one at a time."""
    people: int = 0
    """How many people the plan is about, of `people_total`."""
    people_total: int = 0
    served_meanwhile: int = 0
    """How many of them are still served until it is carried out, without the items that they named."""
    schedule: Schedule = field(default=Schedule((), ()), repr=False)
    """The stages and their names; no data."""

    @property
    def tasks(self) -> tuple[Task, ...]:
        """The stages that would be trained again."""
        return self.schedule.tasks

    @property
    def chain_ratio(self) -> float:
        """Samples visited, over those of training the whole chain again."""
        return self.samples / self.samples_chain if self.samples_chain else 0.0

    @property
    def cost_ratio(self) -> float:
        """Samples visited, over those that the strategy `retrain` would visit on the remaining data."""
        return self.samples / self.samples_retrain if self.samples_retrain else 0.0


def plan_change(state: State, after: Dataset, measured: Sequence[Link] = ()) -> Plan:
    """Plan the way from a state to this dataset: which stages to train again, and the cost.

    Seconds are estimated from how long the chain of the state took, or another one that was measured.
    """
    schedule = scheduled(after, Earlier.of(state))
    return Plan(
        rerun=schedule.rerun,
        stages_rerun=len(schedule.rerun),
        stages_total=len(schedule.stages),
        samples=schedule.visits,
        samples_chain=sum(task.samples for task in schedule.stages),
        samples_retrain=_samples_of_retraining(after),
        seconds_estimated=schedule.visits * _seconds_per_sample(measured or state.chain),
        schedule=schedule,
    )


def carry_out(
    plan: Plan, state: State, after: Dataset, store: CheckpointStore, effort: Effort, executor: Executor = LOCAL
) -> State:
    """Train from a state to this dataset as planned; new checkpoints go into the store beside the old ones.

    The caller must make the new state current first, and only then destroy the old checkpoints.
    """
    return carry_out_schedule(plan.schedule, after, store, effort, Earlier.of(state), executor)


def largest_cost(planned: Plan, after: Dataset, people: int) -> float:
    """Return an upper bound on the cost of forgetting so many people, whoever they are."""
    model, epochs = make_model(after.config), after.config.stage_epochs
    # Under sisa each person is in one group, and only those groups are trained again.
    hit = people if after.config.strategy == "sisa" else after.stages
    sizes = [after.size_of_stage(position, every_item=True) for position in range(after.stages)]
    every_item = [calls.counted(model, size, epochs) for size in sizes]
    samples = sum(sorted(every_item)[-hit:])
    return max(planned.cost_ratio, samples / planned.samples_retrain if planned.samples_retrain else 0.0)


def _samples_of_retraining(after: Dataset) -> int:
    """Return how many samples training all users at once visits."""
    return calls.counted(make_model(after.config), after.size_of_training(), after.config.epochs)


def _seconds_per_sample(links: Sequence[Link]) -> float:
    """Return the median over links: the first one may include compiling its kernel."""
    rates = [link.seconds / link.samples for link in links if link.samples]
    return statistics.median(rates) if rates else 0.0


def forget(state: State, after: Dataset, store: CheckpointStore, effort: Effort) -> State:
    """Return the state of what an erasure leaves; new checkpoints go into the store beside the old ones.

    The caller must make the new state current first, and only then destroy the old checkpoints.
    """
    return train_chain(after, store, effort, Earlier.of(state))


def samples_of(dataset: Dataset, places: Iterable[int] | None = None) -> int:
    """Return how many samples training the whole chain visits, or some of its stages; nothing is hashed."""
    model, epochs = make_model(dataset.config), dataset.config.stage_epochs
    wanted = range(dataset.stages) if places is None else places
    sizes = (dataset.size_of_stage(place) for place in wanted)
    return sum(calls.counted(model, size, epochs) for size in sizes)
