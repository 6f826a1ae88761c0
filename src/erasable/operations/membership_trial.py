"""The trial of a membership probe: chains that know people, forget them or never knew them, learned and attacked."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from erasable import unlearning
from erasable.evaluation.membership import Familiarity, Suspects, familiarity
from erasable.evaluation.membership_verdict import Measured
from erasable.grouping import GroupingEffort
from erasable.models import Effort
from erasable.operations.learn import samples_of
from erasable.seeding import child_key
from erasable.training import (
    Config,
    Knowledge,
    Link,
    MemoryStore,
    State,
    link_names,
    links_to_run,
    regrouped,
    train_chain,
)
from erasable.unlearning import Erasure, Request


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

    def measured(self, numbers: Iterable[int], effort: Effort) -> Measured:
        """Learn, forget and attack with the seeds of these numbers."""
        before, never = list[Familiarity](), list[Familiarity]()
        forgotten = [] if self.forgotten is None else [self.forgotten]
        for number in numbers:
            state, store = _learned(self.known, self._key("known", number), effort)
            before.append(familiarity(state, store, self.suspects, effort.threads))
            if self.forgotten is None:
                state = self._forgot(state, store, effort)
                forgotten.append(familiarity(state, store, self.suspects, effort.threads))
            state, store = _learned(self.unknown, self._key("unknown", number), effort)
            never.append(familiarity(state, store, self.suspects, effort.threads))
        marked = np.array([user in self.erased for user in self.suspects.interactions.users])
        return Measured(before, forgotten, never, marked)

    def _forgot(self, state: State, store: MemoryStore, effort: Effort) -> State:
        """Forget the people as a workspace does."""
        erasure = Erasure.of([Request(user) for user in sorted(self.erased)])
        after = erasure.apply(state.knowledge, GroupingEffort(effort.threads))
        return unlearning.forget(state, after, store, effort)

    def _key(self, kind: str, number: int) -> int:
        return child_key(self.suspects.seed, kind, number)


def training_rows(knowledge: Knowledge) -> Knowledge:
    """Return what stages see, loaded; holdout and filter have done their work and are left as they are."""
    nothing = knowledge.held_out.select(np.zeros(len(knowledge.held_out), dtype=bool))
    config = _changed(knowledge.config, holdout=0.0, min_interactions=0)
    return replace(
        knowledge, config=config, groups=tuple(knowledge.groups), held_out=nothing, kept_items=None, cohesion=()
    )


def _learned(knowledge: Knowledge, key: int, effort: Effort) -> tuple[State, MemoryStore]:
    """Learn with another seed, in the groups as they are or, if that is the policy, in groups decided anew."""
    seeded = replace(knowledge, config=_changed(knowledge.config, seed=key >> 1))
    if seeded.config.policy == "regroup":
        seeded = regrouped(seeded, GroupingEffort(effort.threads))
    store = MemoryStore()
    return train_chain(seeded, store, effort), store


def _changed(config: Config, **settings: float) -> Config:
    return Config(**{**config.model_dump(), **settings})


def _samples_of_forgetting(known: Knowledge, unknown: Knowledge) -> int:
    """Return how many samples going from one to the other visits; if groups are decided anew, all of them."""
    if known.config.policy == "regroup":
        return samples_of(unknown)
    chain = [Link(name, "", 0, 0.0) for name in link_names(known)]
    return samples_of(unknown, links_to_run(link_names(unknown), chain))
