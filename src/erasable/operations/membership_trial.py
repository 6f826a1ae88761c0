"""The trial of a membership probe: chains that know people, forget them or never knew them, learned and attacked."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from erasable import unlearning
from erasable.data import Catalogue
from erasable.evaluation.membership import Familiarity, Suspects, familiarity
from erasable.evaluation.membership_verdict import Measured
from erasable.grouping import GroupingEffort
from erasable.models import Effort
from erasable.operations.learn import samples_of
from erasable.requests import Request
from erasable.seeding import child_key
from erasable.training import (
    LOCAL,
    Config,
    Executor,
    Knowledge,
    Link,
    MemoryStore,
    State,
    link_names,
    links_to_run,
    regrouped,
    train_chain,
)
from erasable.unlearning import Erasure


@dataclass(frozen=True)
class _Attack:
    """One chain that is learned and attacked: whether it knows the people, and the number of its seed."""

    known: bool
    number: int


@dataclass(frozen=True, eq=False)
class Trial:
    """What chains with and without the people learn from, and whom the attacker asks about."""

    known: Knowledge
    unknown: Knowledge
    erased: frozenset[str]
    suspects: Suspects
    forgotten: Familiarity | None = None
    """How well a model that has forgotten them knows the suspects; without one, chains forget them here."""

    @property
    def samples(self) -> int:
        """How many samples the chains of one seed visit."""
        forgetting = 0 if self.forgotten is not None else _samples_of_forgetting(self.known, self.unknown)
        return samples_of(self.known) + forgetting + samples_of(self.unknown)

    def measured(self, numbers: Iterable[int], effort: Effort, executor: Executor = LOCAL) -> Measured:
        """Learn, forget and attack with the seeds of these numbers."""
        before, never = list[Familiarity](), list[Familiarity]()
        forgotten = [] if self.forgotten is None else [self.forgotten]
        tasks = [_Attack(known, number) for number in numbers for known in (True, False)]
        for task, (learned, left) in executor.map(self._attacked, tasks, effort):
            (before if task.known else never).append(learned)
            forgotten += [] if left is None else [left]
        marked = np.array([user in self.erased for user in self.suspects.interactions.users])
        return Measured(before, forgotten, never, marked)

    def _attacked(self, task: "_Attack", effort: Effort) -> tuple[Familiarity, Familiarity | None]:
        """Return how well a chain knows the suspects, and how well once it has forgotten them, if it is to."""
        knowledge, kind = (self.known, "known") if task.known else (self.unknown, "unknown")
        state, store = _learned(knowledge, child_key(self.suspects.seed, kind, task.number), effort)
        learned = familiarity(state, store, self.suspects, effort.threads)
        if not task.known or self.forgotten is not None:
            return learned, None
        state = self._forgot(state, store, effort)
        return learned, familiarity(state, store, self.suspects, effort.threads)

    def _forgot(self, state: State, store: MemoryStore, effort: Effort) -> State:
        """Forget the people as a workspace does."""
        erasure = Erasure.of([Request(user) for user in sorted(self.erased)])
        after = erasure.apply(state.knowledge, GroupingEffort(effort.threads))
        return unlearning.forget(state, after, store, effort)


def training_rows(knowledge: Knowledge) -> Knowledge:
    """Return what stages see, loaded; holdout and filter have done their work and are left as they are.

    All items are declared, so that every chain can be asked about the same ones.
    """
    nothing = knowledge.held_out.select(np.zeros(len(knowledge.held_out), dtype=bool))
    config = _changed(knowledge.config, holdout=0.0, min_interactions=0)
    catalogue = knowledge.catalogue or Catalogue.from_items(knowledge.items)
    groups = tuple(knowledge.groups)
    return Knowledge(config, catalogue, knowledge.scale, groups, nothing)


def _learned(knowledge: Knowledge, key: int, effort: Effort) -> tuple[State, MemoryStore]:
    """Learn with another seed, in the groups as they are or, if that is the policy, in groups decided anew."""
    seeded = replace(knowledge, config=_changed(knowledge.config, seed=key >> 1))
    if seeded.config.policy == "regroup":
        seeded = regrouped(seeded, GroupingEffort(effort.threads))
    store = MemoryStore()
    return train_chain(seeded, store, effort), store


def _changed(config: Config, **settings: float) -> Config:
    return config.changed(**settings)


def _samples_of_forgetting(known: Knowledge, unknown: Knowledge) -> int:
    """Return how many samples going from one to the other visits; if groups are decided anew, all of them."""
    if known.config.policy == "regroup":
        return samples_of(unknown)
    chain = [Link(name, "", 0, 0.0) for name in link_names(known)]
    return samples_of(unknown, links_to_run(link_names(unknown), chain))
