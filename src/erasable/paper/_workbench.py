"""An experiment: labelled cells, a table of results, claims, figures; and the data that the cells of a worker share."""

import csv
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, Literal, NamedTuple, TypeVar

from erasable import fingerprint
from erasable.chain.arrangement import arrange
from erasable.chain.chain import train_chain
from erasable.chain.checkpoints import MemoryStore
from erasable.chain.dataset import (
    Dataset,
    State,
)
from erasable.chain.plan import Erasure, carry_out, plan_change
from erasable.data.catalogue import Catalogue, CoreFilter
from erasable.data.columns import ColumnNames
from erasable.data.interactions import Interactions, RatingScale, recognise_scale
from erasable.data.readers import read_interactions
from erasable.errors import DataRefused
from erasable.grouping.groups import user_space
from erasable.grouping.points import GroupingEffort, Points, bipartite_graph
from erasable.grouping.registry import GroupingName, GroupingSettings
from erasable.models.base import Effort
from erasable.models.registry import find_model
from erasable.paper._cells import (
    Cell,
    ExperimentSettings,
    MethodName,
    RequestName,
    Result,
    about_groups,
    config_of,
    method_settings,
    users_to_forget,
)
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
    frame = Dataset.of_nobody(config, catalogue, scale, kept_items)
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


Row = dict[str, Any]
Table = Sequence[Row]
_OF_CHAINS = {"epochs", "epoch_budget", "batch", "negatives", "holdout", "min_interactions"}
_USUAL_GROUPS = 8
Verdict = Literal["holds", "holds in part", "does not hold", "not decided"]
Measure = Callable[[Workbench, Cell], dict[str, Any]]
"""A function of a workbench and a cell that returns a JSON object."""


class Summary(NamedTuple):
    """The mean and the standard deviation of some values."""

    mean: float
    deviation: float
    seeds: int

    def __str__(self) -> str:
        return f"{self.mean:.4f} ± {self.deviation:.4f}" if self.seeds > 1 else f"{self.mean:.4f}"


def pick(table: Table, **where: Any) -> list[Row]:  # noqa: ANN401 - any label
    """Return the rows with these labels.

    >>> pick([{"model": "nmf", "value": 1}, {"model": "dmf", "value": 2}], model="dmf")
    [{'model': 'dmf', 'value': 2}]
    """
    return [row for row in table if all(row.get(name) == value for name, value in where.items())]


def labels(table: Table, name: str) -> list[Any]:
    """Return the different labels of a column, in the order in which they first appear."""
    return list(dict.fromkeys(row[name] for row in table if name in row))


def summary(table: Table) -> Summary:
    """Return the mean and deviation of the values of some rows.

    >>> summary([{"value": 1.0}, {"value": 3.0}])
    Summary(mean=2.0, deviation=1.4142135623730951, seeds=2)
    """
    values = [row["value"] for row in table]
    return Summary(statistics.mean(values), statistics.stdev(values) if len(values) > 1 else 0.0, len(values))


def paired(table: Table, column: str, one: str, other: str) -> list[tuple[Row, Row]]:
    """Return the rows that differ in one column only, as pairs (labelled one, labelled other)."""

    def key(row: Row) -> tuple[Any, ...]:
        return tuple((name, value) for name, value in sorted(row.items()) if name not in (column, "value"))

    others = {key(row): row for row in pick(table, **{column: other})}
    return [(row, others[key(row)]) for row in pick(table, **{column: one}) if key(row) in others]


def over_seeds(table: Table) -> list[tuple[Row, Summary]]:
    """Return the mean and deviation over the seeds for each set of labels."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in table:
        key = tuple((name, value) for name, value in row.items() if name not in ("seed", "value"))
        groups.setdefault(key, []).append(row)
    return [(dict(key), summary(rows)) for key, rows in groups.items()]


def write_csv(table: Table, file: Path) -> None:
    """Write a table, with a column for each label that appears."""
    columns = list(dict.fromkeys(name for row in table for name in row))
    columns = [*(name for name in columns if name != "value"), "value"]
    with file.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(table)


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]], numbers: bool = True) -> str:
    """Return a Markdown table, the first column aligned left, numbers in the others right."""
    rule = ["---", *("---:" if numbers else "---" for _ in header[1:])]
    return "".join("| " + " | ".join(row) + " |\n" for row in (header, rule, *rows))


def crossed(
    table: Table, rows: str, columns: str, cell: Callable[[list[Row]], str] = lambda found: str(summary(found))
) -> str:
    """Return a Markdown table of one column's labels against another's."""
    across = labels(table, columns)
    body = [
        [str(down), *(cell(found) if (found := pick(table, **{rows: down, columns: name})) else "" for name in across)]
        for down in labels(table, rows)
    ]
    return markdown([rows, *map(str, across)], body)


@dataclass(frozen=True)
class PaperClaim:
    """A claim of the paper, what was measured, and the verdict by a stated rule."""

    said: str
    rule: str
    """When the claim holds, and when it holds in part."""
    measured: str
    verdict: Verdict


@dataclass(frozen=True, eq=False)
class Entry:
    """A cell of the grid with its labels; the same cell may occur several times."""

    labels: Row
    cell: Cell


@dataclass(frozen=True)
class Experiment:
    """One of the paper's experiments."""

    name: str
    title: str
    about: str
    """What is measured and how, in a few sentences for the report."""
    entries: Callable[[ExperimentSettings, str], list[Entry]]
    """The grid, from settings and the digest of the data."""
    values: Callable[[Result], list[Row]]
    """The result of a cell as rows of a tidy table: further labels, and `value`."""
    claims: Callable[[Table], list[PaperClaim]]
    tables: Callable[[Table], str]
    """The main numbers, as Markdown."""
    figures: Callable[[Table], Mapping[str, Any]]
    """The figures to draw, by the stem of their files."""
    measurements: Mapping[str, Measure] = field(default_factory=dict)
    """How each kind of cell that this experiment adds is measured."""
    timed: bool = False
    """Whether cells are measured one at a time, with all cores, since their seconds count."""

    def table(self, entries: Sequence[Entry], result_of: Callable[[Cell], Result]) -> list[Row]:
        """Return the tidy table of the cells of a grid."""
        return [{**entry.labels, **row} for entry in entries for row in self._rows(entry.cell, result_of(entry.cell))]

    def _rows(self, cell: Cell, result: Result) -> list[Row]:
        try:
            return self.values(result)
        except (KeyError, TypeError, ValueError, AttributeError):
            raise DataRefused(
                f"the result in cells/{cell.name}.json is none of {self.name}: delete the file and run this again"
            ) from None


class ChainLabels(NamedTuple):
    """The labels of a chain in an experiment."""

    model: str
    method: MethodName
    groups: int
    seed: int


def chain_settings(settings: ExperimentSettings, chain: ChainLabels, **more: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return the settings of a chain that an experiment sets; the others keep their default."""
    method = method_settings(chain.method, chain.groups)
    alone = {"epoch_budget": "shared"} if method["strategy"] == "retrain" else {}  # one group gets all epochs anyway
    return {
        "model": chain.model,
        **method,
        **settings.model_dump(include=_OF_CHAINS),
        **alone,
        "learning_rate": settings.learning_rate or find_model(chain.model)().settings.model_dump()["learning_rate"],
        "seed": chain.seed,
        **more,
    }


def usual_groups(groups: Iterable[int]) -> int:
    """Return the paper's usual number of groups, 8, or else the largest number below it.

    >>> usual_groups([1, 2, 4, 8, 16]), usual_groups([1, 2, 4]), usual_groups([1, 16])
    (8, 4, 8)
    """
    return max((number for number in groups if 1 < number <= _USUAL_GROUPS), default=_USUAL_GROUPS)


def share_verdict(share: float, whole: float = 0.95, part: float = 0.5) -> Verdict:
    """Return whether a claim about all cases holds in (nearly) all of them, in most, or not.

    >>> share_verdict(1.0), share_verdict(0.7), share_verdict(0.2)
    ('holds', 'holds in part', 'does not hold')
    """
    return "holds" if share >= whole else "holds in part" if share >= part else "does not hold"


def rounded(values: Mapping[str, float]) -> dict[str, float]:
    """Return values as cells store them, with 6 digits."""
    return {name: round(value, 6) for name, value in values.items()}
