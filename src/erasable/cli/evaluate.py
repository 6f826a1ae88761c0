"""`erasable evaluate`."""

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
from erasable.cli.output import print_json, print_table
from erasable.evaluation.protocols import Protocol
from erasable.operations.inspect import evaluate
from erasable.operations.storage import DiskStorage

NAME = "evaluate"


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
    threads: Threads = None,
    json_output: Json = False,
    columns: dict[str, str] | None = None,
    executor: dict[str, Any] | None = None,
) -> None:
    """Measure recommendations: hit rate, NDCG and recall.

    For each user, whole-catalogue ranks everything but what the user has in training; one-of-100 ranks one test item
    among 99 items that the user does not have; held-out-only ranks the test items among themselves and looks at their
    ratings.
    """
    work = work_with(threads, json_output, executor)
    utility = evaluate(DiskStorage(folder), test, columns_from(columns or {}), work, protocol, everyone)
    if json_output:
        print_json({"users": utility.users, **utility.values, "protocol": utility.protocol})
    else:
        found = {"protocol": utility.protocol, "users": utility.users, **utility.values}
        print_table(tuple(found), [tuple(found.values())])
