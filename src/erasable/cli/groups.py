"""`erasable groups`."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from erasable.cli.options import Folder, Json, OnlyTheAnswer, Threads, work_with
from erasable.cli.output import print_json, print_line, print_table
from erasable.experiments import draw_groups, figure_file, study_groups
from erasable.operations import DiskHome, GroupFacts, groups

NAME = "groups"
_MEANING = "cohesion: the closer the users of a group, the higher; compare the groups of one table, not two tables"
_UNKNOWN = "cohesion was computed with someone who was forgotten, and is gone with them"


def command(
    folder: Folder,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw sizes, cohesion and a map of the users (.png, .svg or .pdf)."),
    ] = None,
    threads: Threads = None,
    json_output: Json = False,
    quiet: OnlyTheAnswer = False,
) -> None:
    """Show the groups in the order in which they are trained."""
    home, work = DiskHome(folder), work_with(threads, quiet or json_output)
    file = plot and figure_file(plot, folder)
    found = groups(home, work)
    if file is not None:
        draw_groups(study_groups(home, work), file)
    if json_output:
        print_json({"groups": [asdict(group) for group in found]} | ({"figure": str(file)} if file else {}))
        return
    print_table(("position", "users", "interactions", "cohesion"), [_row(group) for group in found])
    print_line(_UNKNOWN if all(group.cohesion is None for group in found) else _MEANING)
    if file is not None:
        print_line(f"the figure is {file}")


def _row(group: GroupFacts) -> tuple[object, ...]:
    cohesion = "–" if group.cohesion is None else f"{group.cohesion:.4g}"
    error = f" ± {group.cohesion_error:.2g}" if group.cohesion_error else ""
    return group.position, group.users, group.interactions, cohesion + error
