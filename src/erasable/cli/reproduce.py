"""`erasable reproduce`."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from pydantic import ValidationError
from rich.console import Console
from rich.live import Live
from rich.table import Table

from erasable.cli.options import (
    COLUMN_OPTIONS,
    EXECUTOR,
    Json,
    Quiet,
    cluster_from,
    columns_from,
    parameters_of,
    read_config,
    settings_options,
)
from erasable.cli.output import print_json, print_line, print_table, shows_progress
from erasable.errors import WrongUse
from erasable.operations.work import available_cores
from erasable.paper import EXPERIMENTS, DataSource, ExperimentSettings, RunProgress, Watcher, Workforce, reproduce
from erasable.wording import counted, duration

NAME = "reproduce"
EVERYTHING = "all"
_AS_OPTIONS = ("seeds", "epochs", "epoch_budget", "min_interactions")
_OPTIONS = {name: option for name, option in parameters_of(ExperimentSettings).items() if name in _AS_OPTIONS}


@settings_options(_OPTIONS, COLUMN_OPTIONS, EXECUTOR)
def command(
    experiment: Annotated[
        Literal["utility", "time", "order", "cohesion", "balance", "embedding", "theory", "poison", "all"],
        typer.Argument(metavar="EXPERIMENT", help=f"One of {', '.join(EXPERIMENTS)}, or all.", show_default=False),
    ],
    data: Annotated[Path, typer.Option(metavar="DATA", help="The interactions, as for learn.", show_default=False)],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where cells and reports go.", show_default=False)],
    config: Annotated[Path | None, typer.Option(help="A TOML or JSON file with settings (see configs/).")] = None,
    name: Annotated[
        str | None, typer.Option(help="The name of the data; that of the file or its folder if not given.")
    ] = None,
    rating_scale: Annotated[
        tuple[float, float] | None,
        typer.Option(metavar="LOW HIGH", help="The lowest and the highest rating; recognised if not given."),
    ] = None,
    workers: Annotated[int, typer.Option(min=1, max=1024, help="How many cells are measured at once.")] = 2,
    json_output: Json = False,
    quiet: Quiet = False,
    settings: dict[str, Any] | None = None,
    columns: dict[str, str] | None = None,
    executor: dict[str, Any] | None = None,
) -> None:
    """Repeat the paper's experiments, with a verdict on each claim.

    Tables, figures and a report are written. Every finished cell is kept: stop at any time, and run the same command
    to resume.
    """
    chosen = _settings(config, settings or {})
    experiments = list(EXPERIMENTS.values()) if experiment == EVERYTHING else [EXPERIMENTS[experiment]]
    source = DataSource(data, columns_from(columns or {}), rating_scale, _plain(name))
    cluster = cluster_from(executor or {})
    with _live_table(not (quiet or json_output)) as watch:
        done = reproduce(experiments, source, out, chosen, Workforce(workers, available_cores(), watch, cluster))
    if json_output:
        verdicts = [{"experiment": one.experiment, **vars(one.claim)} for one in done.findings]
        print_json({"report": str(done.report), "cells": done.cells, "measured": done.measured, "claims": verdicts})
        return
    rows = [(one.experiment, one.claim.verdict, one.claim.said) for one in done.findings]
    print_table(("experiment", "verdict", "the paper says"), rows)
    print_line(f"{counted(done.cells, 'cell')}, {done.measured:,} measured now; the report is {done.report}")


def _settings(config: Path | None, given: dict[str, Any]) -> ExperimentSettings:
    try:
        return ExperimentSettings(**{**read_config(config, ExperimentSettings.model_fields), **given})
    except ValidationError as error:
        first = error.errors()[0]
        said = first["msg"].replace("tuple", "list").replace("Tuple", "A list")
        raise WrongUse(f"wrong setting {'.'.join(map(str, first['loc']))}: {said}") from None


def _plain(name: str | None) -> str | None:
    if name is not None and (name in ("", "cells") or set(name) & set("/\\") or name.startswith(".")):
        raise WrongUse(f"--name {name!r} can't name a folder: give a plain word such as ml-1m")
    return name


@contextmanager
def _live_table(wanted: bool) -> Iterator[Watcher]:
    """Show the progress of the run on standard error, if that is a terminal."""
    if not (wanted and shows_progress()):
        yield lambda progress: None
        return
    with Live(console=Console(stderr=True), transient=True, refresh_per_second=2) as live:
        yield lambda progress: live.update(progress_table(progress))


def progress_table(progress: RunProgress) -> Table:
    """Return how many cells of each kind are done, which are being measured, and the time left."""
    table = Table(box=None, pad_edge=False)
    for heading in ("cells", "done", "of"):
        table.add_column(heading, justify="left" if heading == "cells" else "right")
    for kind, (done, total) in progress.cells.items():
        table.add_row(kind, f"{done:,}", f"{total:,}")
    for label in progress.running:
        table.add_row(f"[dim]now: {label}[/dim]", "", "")
    left = "not known yet" if progress.seconds_left is None else duration(progress.seconds_left)
    table.add_row(f"time left: {left}", "", "")
    return table
