"""`erasable groups`."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from erasable.cli.options import Folder, Json, OnlyTheAnswer, Threads, work_with
from erasable.cli.output import print_json, print_line, print_table
from erasable.operations.inspect import GroupFacts, groups, study_groups
from erasable.operations.storage import DiskStorage
from erasable.plots import draw_groups, figure_file
from erasable.wording import counted

NAME = "groups"
_MEANING = "cohesion: higher where the users of a group are more alike; comparable within one table, not between tables"
_UNKNOWN = "cohesion was computed with someone who was forgotten, and was deleted with them"


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
    storage, work = DiskStorage(folder), work_with(threads, quiet or json_output)
    file = plot and figure_file(plot, folder)
    found = groups(storage, work)
    if file is not None:
        draw_groups(study_groups(storage, work), file)
    if json_output:
        print_json({"groups": [asdict(group) for group in found]} | ({"figure": str(file)} if file else {}))
        return
    if len(found) == 1:
        (everyone,) = found
        users, interactions = counted(everyone.users, "user"), counted(everyone.interactions, "interaction")
        print_line(f"{users} with {interactions} are learned all at once: there are no groups to put in order")
    else:
        print_table(("position", "users", "interactions", "cohesion"), [_row(group) for group in found])
        print_line(_UNKNOWN if all(group.cohesion is None for group in found) else _MEANING)
    if file is not None:
        print_line(f"the figure is {file}")


def _row(group: GroupFacts) -> tuple[object, ...]:
    cohesion = "–" if group.cohesion is None else f"{group.cohesion:.4g}"
    error = f" ± {group.cohesion_error:.2g}" if group.cohesion_error else ""
    return group.position, group.users, group.interactions, cohesion + error
