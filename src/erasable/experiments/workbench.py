"""What the cells of one worker share: the data, and the grouping and the chains of the cell before."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, TypeVar

from erasable import fingerprint
from erasable.data import (
    Catalogue,
    ColumnNames,
    CoreFilter,
    Interactions,
    RatingScale,
    read_interactions,
    recognise_scale,
)
from erasable.experiments.cells import about_groups, config_of
from erasable.experiments.requests import RequestName, users_to_forget
from erasable.grouping import GroupingEffort
from erasable.models import Effort
from erasable.requests import Request
from erasable.training import Knowledge, MemoryStore, State, arrange, train_chain
from erasable.unlearning import Erasure, carry_out, plan_change

T = TypeVar("T")


@dataclass(frozen=True)
class DataSource:
    """Where interactions come from and how they are read."""

    file: Path
    columns: ColumnNames
    rating_scale: tuple[float, float] | None = None
    given_name: str | None = None

    @property
    def name(self) -> str:
        """What the data are called: as given, else like their file, or like its folder if the file is a `ratings`."""
        stem = self.file.name.partition(".")[0]
        return self.given_name or (self.file.resolve().parent.name if stem == "ratings" else stem)

    def read(self) -> tuple[Interactions, RatingScale]:
        """Read the interactions and their scale."""
        declared = RatingScale(*self.rating_scale) if self.rating_scale is not None else None
        interactions = read_interactions(self.file, self.columns, declared).interactions
        return interactions, declared or recognise_scale(interactions.rating)


def data_digest(interactions: Interactions, scale: RatingScale) -> str:
    """Return what names data in cells: rows, the ids of users and items, and the scale."""
    return fingerprint.of_value([interactions.digest(), interactions.items.digest(), scale.low, scale.high])


@dataclass(frozen=True, eq=False)
class Chain:
    """A chain that was learned, with its checkpoints."""

    state: State
    checkpoints: MemoryStore


@dataclass(frozen=True)
class Forgetting:
    """What forgetting took."""

    users: int
    stages_rerun: int
    cost_ratio: float
    chain_ratio: float
    seconds: float


class Latest(Generic[T]):
    """Keeps the thing made last, under its key: cells that share it come one after the other."""

    def __init__(self) -> None:
        self._key: str | None = None
        self._value: T | None = None

    def get(self, facts: Mapping[str, Any], make: Callable[[], T]) -> T:
        """Return what was made last if the facts are the same, else make it anew."""
        key = fingerprint.of_value(dict(facts))
        if self._value is None or key != self._key:
            self._key, self._value = None, None  # what is no longer wanted goes before room is taken for the next
            self._key, self._value = key, make()
        return self._value


class Workbench:
    """Reads, groups and learns for cells; what the cell before has made is used again."""

    def __init__(self, source: DataSource, threads: int) -> None:
        self._source = source
        self.threads = threads
        self._grouped: Latest[Knowledge] = Latest()
        self._learned: Latest[Chain] = Latest()
        self._forgotten: Latest[tuple[Chain, Forgetting]] = Latest()

    @cached_property
    def _read(self) -> tuple[Interactions, RatingScale]:
        return self._source.read()

    @property
    def interactions(self) -> Interactions:
        """The data as they are."""
        return self._read[0]

    @property
    def scale(self) -> RatingScale:
        """The rating scale, recognised from the data or declared."""
        return self._read[1]

    @cached_property
    def data_digest(self) -> str:
        """What names the data in cells."""
        return data_digest(*self._read)

    @property
    def effort(self) -> Effort:
        """How chains are trained."""
        return Effort(self.threads)

    def grouped(self, settings: Mapping[str, Any]) -> Knowledge:
        """Return the data in their groups, as learning with these settings starts."""
        knowledge = self._grouped.get(
            about_groups(settings),
            lambda: arrange_into_groups(self.interactions, self.scale, settings, self.threads),
        )
        return replace(knowledge, config=config_of(settings))

    def learned(self, settings: Mapping[str, Any]) -> Chain:
        """Return the chain learned with these settings."""
        facts = {name: value for name, value in settings.items() if name != "aggregate"}
        chain = self._learned.get(facts, lambda: learn_chain(self.grouped(settings), self.effort))
        return _judged_by(chain, settings)

    def forgotten(self, settings: Mapping[str, Any], request: RequestName) -> tuple[Chain, Forgetting | None]:
        """Return the chain that has forgotten what the request names, and what that took."""
        chain = self.learned(settings)
        users = users_to_forget(chain.state.knowledge, request)
        if not users:
            return chain, None
        facts = {**{name: value for name, value in settings.items() if name != "aggregate"}, "request": request}
        after, forgetting = self._forgotten.get(facts, lambda: forget_users(chain, users, self.effort))
        return _judged_by(after, settings), forgetting


def arrange_into_groups(
    interactions: Interactions, scale: RatingScale, settings: Mapping[str, Any], threads: int
) -> Knowledge:
    """Return interactions in the groups that these settings give; their items are declared as the catalogue."""
    config = config_of(settings)
    kept = interactions
    if config.min_interactions:
        kept = CoreFilter.of(interactions, config.min_interactions).apply(interactions)
    catalogue = Catalogue.from_items(kept.items)
    numbered = kept.with_items(catalogue.items)
    kept_items = frozenset(kept.items) if config.min_interactions else None
    frame = Knowledge(config, catalogue, scale, (), numbered, kept_items)
    return arrange(numbered, frame, GroupingEffort(threads))


def learn_chain(knowledge: Knowledge, effort: Effort) -> Chain:
    """Train a chain into a store of its own."""
    checkpoints = MemoryStore()
    return Chain(train_chain(knowledge, checkpoints, effort), checkpoints)


def forget_users(chain: Chain, users: Sequence[str], effort: Effort) -> tuple[Chain, Forgetting]:
    """Return the chain that never knew these users, and what it took; the chain given stays as it is."""
    state, checkpoints = chain.state, chain.checkpoints.copy()
    after = Erasure.of([Request(user) for user in users]).apply(state.knowledge)
    began = time.perf_counter()
    planned = plan_change(state, after)
    left = carry_out(planned, state, after, checkpoints, effort)
    seconds = time.perf_counter() - began
    checkpoints.keep_only(link.fingerprint for link in left.chain)
    took = Forgetting(len(users), planned.stages_rerun, planned.cost_ratio, planned.chain_ratio, seconds)
    return Chain(left, checkpoints), took


def _judged_by(chain: Chain, settings: Mapping[str, Any]) -> Chain:
    """Return the chain with these settings, which differ from its own in what no stage depends on."""
    knowledge = replace(chain.state.knowledge, config=config_of(settings))
    return Chain(replace(chain.state, knowledge=knowledge), chain.checkpoints)
