"""What the cells of one worker share: the data, its spaces, and the latest grouping and chains."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, TypeVar

from erasable import fingerprint
from erasable.chain.arrangement import arrange
from erasable.chain.chain import train_chain
from erasable.chain.checkpoint import MemoryStore
from erasable.chain.dataset import Dataset, State
from erasable.chain.plan import Erasure, carry_out, plan_change
from erasable.data.catalogue import Catalogue, CoreFilter
from erasable.data.columns import ColumnNames
from erasable.data.interactions import Interactions
from erasable.data.rating_scale import RatingScale, recognise_scale
from erasable.data.readers import read_interactions
from erasable.grouping.groups import user_space
from erasable.grouping.points import GroupingEffort, Points, bipartite_graph
from erasable.grouping.registry import GroupingName, GroupingSettings
from erasable.models.base import Effort
from erasable.paper._cells import about_groups, config_of
from erasable.paper._settings import ExperimentSettings, RequestName, users_to_forget
from erasable.requests.request import Request

T = TypeVar("T")
SPACES: Mapping[GroupingName, str] = {
    "bkm": "rating rows",
    "cbkm": "vectors of cbkm",
    "cbkm-near": "vectors of cbkm-near",
}
"""The name of the space in which each grouping compares users."""


@dataclass(frozen=True)
class DataSource:
    """Where interactions come from and how they are read."""

    file: Path
    columns: ColumnNames
    rating_scale: tuple[float, float] | None = None
    given_name: str | None = None

    @property
    def name(self) -> str:
        """The name of the data: as given, else that of the file, or of its folder if the file is called `ratings`."""
        stem = self.file.name.partition(".")[0]
        return self.given_name or (self.file.resolve().parent.name if stem == "ratings" else stem)

    def read(self) -> tuple[Interactions, RatingScale]:
        """Read the interactions and their scale."""
        declared = RatingScale(*self.rating_scale) if self.rating_scale is not None else None
        interactions = read_interactions(self.file, self.columns, declared).interactions
        return interactions, declared or recognise_scale(interactions.rating)


def data_digest(interactions: Interactions, scale: RatingScale) -> str:
    """Return the digest that identifies data in cells: rows, the ids of users and items, and the scale."""
    return fingerprint.of_value([interactions.digest(), interactions.items.digest(), scale.low, scale.high])


@dataclass(frozen=True, eq=False)
class Chain:
    """A trained chain with its checkpoints."""

    state: State
    checkpoints: MemoryStore


@dataclass(frozen=True)
class Forgetting:
    """The cost of forgetting."""

    users: int
    stages_rerun: int
    cost_ratio: float
    chain_ratio: float
    seconds: float


class Latest(Generic[T]):
    """A cache of one value: cells that share it come one after the other."""

    def __init__(self) -> None:
        self._key: str | None = None
        self._value: T | None = None

    def get(self, facts: Mapping[str, Any], make: Callable[[], T]) -> T:
        """Return the cached value if the facts are the same, else make a new one."""
        key = fingerprint.of_value(dict(facts))
        if self._value is None or key != self._key:
            self._key, self._value = None, None  # the old value is freed before memory is taken for the next
            self._key, self._value = key, make()
        return self._value


class Workbench:
    """Reads, groups and trains for cells, and reuses what the cell before has made."""

    def __init__(self, source: DataSource, threads: int) -> None:
        self._source = source
        self.threads = threads
        self._grouped: Latest[Dataset] = Latest()
        self._learned: Latest[Chain] = Latest()
        self._forgotten: Latest[tuple[Chain, Forgetting]] = Latest()

    @cached_property
    def _read(self) -> tuple[Interactions, RatingScale]:
        return self._source.read()

    @property
    def interactions(self) -> Interactions:
        """The data as it was read."""
        return self._read[0]

    @property
    def scale(self) -> RatingScale:
        """The rating scale, recognised from the data or declared."""
        return self._read[1]

    @cached_property
    def data_digest(self) -> str:
        """The digest that identifies the data in cells."""
        return data_digest(*self._read)

    @property
    def effort(self) -> Effort:
        """How chains are trained."""
        return Effort(self.threads)

    def grouped(self, settings: Mapping[str, Any]) -> Dataset:
        """Return the dataset that these settings start from."""
        dataset = self._grouped.get(
            about_groups(settings),
            lambda: arrange_into_groups(self.interactions, self.scale, settings, self.threads),
        )
        return replace(dataset, config=config_of(settings))

    def learned(self, settings: Mapping[str, Any]) -> Chain:
        """Return the chain trained with these settings."""
        facts = {name: value for name, value in settings.items() if name != "aggregate"}
        chain = self._learned.get(facts, lambda: learn_chain(self.grouped(settings), self.effort))
        return _judged_by(chain, settings)

    def forgotten(self, settings: Mapping[str, Any], request: RequestName) -> tuple[Chain, Forgetting | None]:
        """Return the chain that has forgotten what the request names, and the cost."""
        chain = self.learned(settings)
        users = users_to_forget(chain.state.dataset, request)
        if not users:
            return chain, None
        facts = {**{name: value for name, value in settings.items() if name != "aggregate"}, "request": request}
        after, forgetting = self._forgotten.get(facts, lambda: forget_users(chain, users, self.effort))
        return _judged_by(after, settings), forgetting


def arrange_into_groups(
    interactions: Interactions, scale: RatingScale, settings: Mapping[str, Any], threads: int
) -> Dataset:
    """Return the dataset of these interactions and settings; all items are declared as the catalogue."""
    config = config_of(settings)
    kept = interactions
    if config.min_interactions:
        kept = CoreFilter.of(interactions, config.min_interactions).apply(interactions)
    catalogue = Catalogue.from_items(kept.items)
    numbered = kept.with_items(catalogue.items)
    kept_items = frozenset(kept.items) if config.min_interactions else None
    frame = Dataset(config, catalogue, scale, (), numbered, kept_items)
    return arrange(numbered, frame, GroupingEffort(threads))


def learn_chain(dataset: Dataset, effort: Effort) -> Chain:
    """Train a chain into a new store."""
    checkpoints = MemoryStore()
    return Chain(train_chain(dataset, checkpoints, effort), checkpoints)


def forget_users(chain: Chain, users: Sequence[str], effort: Effort) -> tuple[Chain, Forgetting]:
    """Return the chain without these users, and the cost; the given chain does not change."""
    state, checkpoints = chain.state, chain.checkpoints.copy()
    after = Erasure.of([Request(user) for user in users]).apply(state.dataset)
    began = time.perf_counter()
    planned = plan_change(state, after)
    left = carry_out(planned, state, after, checkpoints, effort)
    seconds = time.perf_counter() - began
    checkpoints.keep_only(link.fingerprint for link in left.chain)
    took = Forgetting(len(users), planned.stages_rerun, planned.cost_ratio, planned.chain_ratio, seconds)
    return Chain(left, checkpoints), took


def _judged_by(chain: Chain, settings: Mapping[str, Any]) -> Chain:
    """Return the chain with these settings, which differ only where training does not depend on them."""
    dataset = replace(chain.state.dataset, config=config_of(settings))
    return Chain(replace(chain.state, dataset=dataset), chain.checkpoints)


def ungrouped_settings(settings: ExperimentSettings, seed: int) -> dict[str, Any]:
    """Return the settings that give the training data as one group."""
    return {"strategy": "retrain", "seed": seed, **settings.model_dump(include={"holdout", "min_interactions"})}


def training_part(dataset: Dataset) -> Interactions:
    """Return the training interactions of a dataset with one group."""
    (everyone,) = dataset.groups
    return everyone


def training_space(dataset: Dataset, grouping: GroupingName, threads: int) -> Points:
    """Return the users as points in the space of a grouping."""
    training = training_part(dataset)
    graph, effort = bipartite_graph(training, dataset.scale), GroupingEffort(threads)
    return user_space(graph, training.users, GroupingSettings(grouping=grouping), dataset.config.seed, effort)
