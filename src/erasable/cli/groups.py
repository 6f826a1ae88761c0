"""`erasable groups`."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from erasable.cli.options import Folder, Json
from erasable.cli.output import print_json, print_table
from erasable.errors import NotYet
from erasable.operations import DiskHome, groups

NAME = "groups"


def command(
    folder: Folder,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="Not there yet.")] = None,
    json_output: Json = False,
) -> None:
    """Show the groups in the order in which they are trained."""
    if plot is not None:
        raise NotYet("--plot is not there yet: leave it out")
    found = groups(DiskHome(folder))
    if json_output:
        print_json({"groups": [asdict(group) for group in found]})
    else:
        print_table(
            ("position", "users", "interactions", "cohesion"),
            [(g.position + 1, g.users, g.interactions, "–" if g.cohesion is None else g.cohesion) for g in found],
        )
