"""`erasable tune`."""

import shlex
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from erasable.cli.options import (
    COLUMN_OPTIONS,
    CONFIG_OPTIONS,
    BadRows,
    Json,
    Quiet,
    Threads,
    columns_from,
    settings_options,
    with_default,
    work_with,
)
from erasable.cli.output import print_json, print_line
from erasable.data.values import OnBadRow
from erasable.errors import Unfinished, WrongUse
from erasable.operations.compare import USUAL_HOLDOUT, with_test_rows
from erasable.operations.prepare import Inputs
from erasable.operations.tune import SettingsSearch, as_lines, tune
from erasable.wording import counted

NAME = "tune"
_NOT_HERE = ("rows", "risk_threshold", "features", "chosen_on")
_OPTIONS = with_default(
    {name: one for name, one in CONFIG_OPTIONS.items() if name not in _NOT_HERE}, "holdout", USUAL_HOLDOUT
)


@settings_options(_OPTIONS, {name: one for name, one in COLUMN_OPTIONS.items() if name != "risk_column"})
def command(
    data: Annotated[str, typer.Argument(metavar="DATA", help="The interactions, as for learn.", show_default=False)],
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="Where the settings go, for learn --config.", show_default=False)
    ],
    trials: Annotated[
        int, typer.Option(min=1, help="How many settings are tried, those of earlier runs included.")
    ] = 30,
    objective: Annotated[str, typer.Option(help="What is to be raised.")] = "ndcg@10",
    study: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Where trials are recorded, never in a workspace; beside --out if not given."
        ),
    ] = None,
    on_bad_row: BadRows = "refuse",
    threads: Threads = None,
    json_output: Json = False,
    quiet: Quiet = False,
    settings: dict[str, Any] | None = None,
    columns: dict[str, str] | None = None,
) -> None:
    """Search for settings of a model, on rows that are not test rows.

    The test rows (--holdout, a tenth if not given) are set aside first and never looked at; settings are tried on
    validation rows inside the rest. Settings that are given stay. Stop at any time: the same command goes on.
    """
    if not out.absolute().parent.is_dir() or out.is_dir():
        raise WrongUse(f"{out}: can't be written: name a file in a folder that is there")
    search = SettingsSearch(study or out.with_suffix(".study"), trials, objective)
    if out.suffix == ".json" or out == search.study:
        raise WrongUse(f"{out}: the settings are TOML, in a file of their own: give --out a name such as settings.toml")
    inputs = Inputs(columns_from(columns or {}), on_bad_row=on_bad_row)
    try:
        found = tune(data, with_test_rows(settings or {}), search, inputs, work_with(threads, quiet or json_output))
    except KeyboardInterrupt:
        if not search.study.exists():
            raise
        raise Unfinished(f"stopped; trials are in {search.study}: the same command goes on from there") from None
    out.write_text(found.as_toml(), encoding="utf-8")
    if json_output:
        print_json({**asdict(found), "out": str(out), "study": str(search.study)})
        return
    print_line(f"the best of {counted(found.trials, 'trial')}: {objective} {found.score:.4f} on validation rows")
    if found.usual is not None:
        print_line(f"the defaults: {found.usual:.4f}")
    for line in as_lines(found.settings):
        print_line(line)
    print_line(f"trials are in {search.study}: settings and scores, nobody's data; the same command goes on from there")
    print_line(f"written to {out}; next: {_learning(data, out, columns or {}, on_bad_row)}")
    print_line(
        "these settings were chosen on data: certificates of what is learned with them say so, unless you declare them "
        "(--chosen-on declared)"
    )


def _learning(data: str, out: Path, columns: Mapping[str, str], on_bad_row: OnBadRow) -> str:
    """Return the command that learns the same data with the settings: they do not say how to read it."""
    named = [word for name, column in columns.items() for word in (f"--{name.replace('_', '-')}", column)]
    skipping = ["--on-bad-row", on_bad_row] if on_bad_row != "refuse" else []
    return shlex.join(["erasable", "learn", data, "--into", "DIR", "--config", str(out), *named, *skipping])
