"""`erasable evaluate`."""

from dataclasses import asdict
from typing import Annotated, Any

import typer

from erasable.cli.options import (
    COLUMN_OPTIONS,
    EXECUTOR,
    Folder,
    Json,
    Threads,
    columns_from,
    settings_options,
    work_with,
)
from erasable.cli.output import print_json, print_line, print_table
from erasable.evaluation.protocols import Protocol
from erasable.evaluation.slices import FEWEST
from erasable.evaluation.utility import METRICS, Slice, Utility, metric_named
from erasable.operations.inspect import evaluate
from erasable.operations.storage import DiskStorage
from erasable.wording import counted, listed

NAME = "evaluate"
_SHOWN = 3  # metrics of a slice: more do not fit beside each other, and JSON has them all


@settings_options(COLUMN_OPTIONS, EXECUTOR)
def command(
    folder: Folder,
    test: Annotated[
        str | None, typer.Option(metavar="DATA", help="Test interactions; the holdout if not given.")
    ] = None,
    protocol: Annotated[Protocol, typer.Option(help="What is ranked, and what counts as a hit.")] = "whole-catalogue",
    everyone: Annotated[
        bool, typer.Option("--all", help="Measure everyone in the holdout; else at most 10,000 people.")
    ] = False,
    metrics: Annotated[
        str | None,
        typer.Option(
            metavar="NAME@K,…",
            help=f"Only these metrics: {', '.join(METRICS)}, each with a cutoff; all at 10 and 20 if not given.",
        ),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            metavar="activity|popularity|COLUMN",
            help="Slices too: by people's number of interactions, by how many people have the test items, or by a "
            "declared attribute of these (items --set).",
        ),
    ] = None,
    threads: Threads = None,
    json_output: Json = False,
    columns: dict[str, str] | None = None,
    executor: dict[str, Any] | None = None,
) -> None:
    """Measure how good recommendations are.

    For each user, whole-catalogue ranks everything but what the user has in training; one-of-100 ranks one test item
    among 99 items that the user does not have; held-out-only ranks the test items among themselves and looks at their
    ratings.
    """
    work = work_with(threads, json_output, executor)
    named = None if metrics is None else metrics.split(",")
    utility = evaluate(DiskStorage(folder), test, columns_from(columns or {}), work, protocol, everyone, named, by)
    if json_output:
        found = {"users": utility.users, **utility.values, "protocol": utility.protocol, "intervals": utility.intervals}
        sliced = {} if by is None else {"by": by, "slices": [asdict(one) for one in utility.slices]}
        notes = [*utility.doubts, *utility.notes]
        print_json({**found, **sliced, **({"notes": notes} if notes else {})})
    else:
        _tell(utility, by)


def _tell(utility: Utility, by: str | None) -> None:
    print_line(f"{utility.protocol}: {counted(utility.users, 'user')}; in brackets 95 % intervals over people")
    named = [metric_named(name) for name in utility.values]
    cutoffs = sorted({metric.k for metric in named})
    rows = [
        (name, *(_figure(utility, f"{name}@{k}") for k in cutoffs))
        for name in dict.fromkeys(metric.name for metric in named)
    ]
    print_table(("metric", *(f"@{k}" for k in cutoffs)), rows)
    if by is not None:
        first = [str(metric) for metric in named if metric.k == cutoffs[0]][:_SHOWN]
        shown = [one for one in utility.slices if one.users is not None]
        if shown:
            print_table(
                (by, "users", *first),
                [(one.name, one.users, *(_figure(one, name) for name in first)) for one in shown],
            )
        left_out = [one.name for one in utility.slices if one.users is None]
        if left_out:
            print_line(f"not shown, because fewer than {FEWEST} people could be told apart: {listed(left_out)}")
    for text in (*utility.doubts, *utility.notes):
        print_line(text)


def _figure(found: Utility | Slice, name: str) -> str:
    """Return a value with its interval; nothing if it was not measured."""
    if name not in found.values:
        return ""
    low, high = found.intervals.get(name, (None, None))
    return f"{found.values[name]:.4f}" + ("" if low is None else f" [{low:.4f}, {high:.4f}]")
