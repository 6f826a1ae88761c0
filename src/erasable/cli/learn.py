"""`erasable learn`."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from erasable.cli.config_file import read_config
from erasable.cli.options import (
    COLUMN_OPTIONS,
    CONFIG_OPTIONS,
    Json,
    Quiet,
    Threads,
    columns_from,
    settings_options,
    work_with,
)
from erasable.cli.output import counted, print_json, print_line
from erasable.cli.suppression import Drop, KeyFile, ListFile, suppression_from
from erasable.errors import NotYet
from erasable.operations import Inputs, Learned, learn
from erasable.training import Config

NAME = "learn"


@settings_options(CONFIG_OPTIONS, COLUMN_OPTIONS)
def command(
    data: Annotated[
        Path, typer.Argument(metavar="DATA", help="CSV, TSV, ::, .inter or Parquet file.", show_default=False)
    ],
    into: Annotated[Path, typer.Option(metavar="DIR", help="The new workspace folder.", show_default=False)],
    config: Annotated[Path | None, typer.Option(help="A TOML or JSON file with settings; options win over it.")] = None,
    groups_from: Annotated[
        Path | None,
        typer.Option(help="Take groups and their order from a workspace or a CSV (user_id, group, position)."),
    ] = None,
    catalogue: Annotated[
        Path | None,
        typer.Option(help="The items there are: a file with one id a line, or another workspace."),
    ] = None,
    suppression: ListFile = None,
    suppression_key: KeyFile = None,
    drop_suppressed: Drop = False,
    rows: Annotated[str | None, typer.Option(help="Not there yet: only stage.")] = None,
    anchors: Annotated[float | None, typer.Option(help="Not there yet.")] = None,
    more: Annotated[bool, typer.Option("--more", help="Not there yet.")] = False,
    threads: Threads = None,
    json_output: Json = False,
    quiet: Quiet = False,
    settings: dict[str, Any] | None = None,
    columns: dict[str, str] | None = None,
) -> None:
    """Learn a recommender from a table of interactions."""
    _refuse_later(rows, anchors, more)
    from_file = read_config(config, {**CONFIG_OPTIONS, **COLUMN_OPTIONS})
    named = {name: from_file.pop(name) for name in COLUMN_OPTIONS if name in from_file}
    chosen = Config.of({**from_file, **(settings or {})})
    suppressed = suppression_from(suppression, suppression_key, drop_suppressed)
    inputs = Inputs(columns_from({**named, **(columns or {})}), groups_from, catalogue, suppressed)
    learned = learn(data, into, chosen, inputs, work_with(threads, quiet or json_output))
    if json_output:
        print_json(asdict(learned))
    else:
        _tell(learned, into)


def _tell(learned: Learned, into: Path) -> None:
    print_line(
        f"learned {counted(learned.users, 'user')}, {counted(learned.items, 'item')}, "
        f"{counted(learned.interactions, 'interaction')} in {counted(learned.groups, 'group')} "
        f"({learned.seconds:.1f} s)"
    )
    if learned.suppressed:
        left_out = counted(learned.suppressed, "person or single interaction", "people and single interactions")
        print_line(f"left out {left_out} on the suppression list")
    print_line(f"the workspace is {into}; next: erasable recommend {into} --user U")


def _refuse_later(rows: str | None, anchors: float | None, more: bool) -> None:
    for option, given in (
        ("--rows", rows not in (None, "stage")),
        ("--anchors", anchors is not None),
        ("--more", more),
    ):
        if given:
            raise NotYet(f"{option} is not there yet: leave it out")
