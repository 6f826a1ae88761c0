"""Tidy tables: a row for each number that was measured, its labels beside it; means and deviations over seeds."""

import csv
import statistics
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

Row = dict[str, Any]
Table = Sequence[Row]


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
    """Return the labels, less the seed, of each number with its mean and deviation over the seeds."""
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
    """Return a table in Markdown, the first column to the left, numbers in the others to the right."""
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
