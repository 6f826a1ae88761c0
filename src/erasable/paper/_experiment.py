"""An experiment: a grid of labelled cells, a tidy table of their results, claims about it, and figures."""

import csv
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from erasable.errors import DataRefused
from erasable.models.registry import find_model
from erasable.paper._cells import Cell, Result
from erasable.paper._settings import ExperimentSettings, MethodName, method_settings
from erasable.paper._workbench import Workbench

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
