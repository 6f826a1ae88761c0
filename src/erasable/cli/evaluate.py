"""`erasable evaluate`."""

from pathlib import Path
from typing import Annotated

import typer

from erasable.cli.options import (
    COLUMN_OPTIONS,
    Folder,
    Json,
    Threads,
    columns_from,
    settings_options,
    work_with,
)
from erasable.cli.output import print_json, print_table
from erasable.operations import DiskHome, evaluate

NAME = "evaluate"


@settings_options(COLUMN_OPTIONS)
def command(
    folder: Folder,
    test: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Test interactions; the holdout if not given.")
    ] = None,
    threads: Threads = None,
    json_output: Json = False,
    columns: dict[str, str] | None = None,
) -> None:
    """Measure recommendations: hit rate, NDCG and recall.

    For each user the whole catalogue is ranked, less what the user has in training.
    """
    utility = evaluate(DiskHome(folder), test, columns_from(columns or {}), work_with(threads, json_output))
    if json_output:
        print_json({"users": utility.users, **utility.values, "protocol": utility.protocol})
    else:
        print_table(("users", *utility.values), [(utility.users, *utility.values.values())])
