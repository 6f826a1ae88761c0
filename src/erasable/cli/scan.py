"""`erasable scan`."""

import shlex
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from erasable.cli.options import (
    COLUMN_OPTIONS,
    EXECUTOR,
    Folder,
    Json,
    Quiet,
    columns_from,
    settings_options,
    work_with,
)
from erasable.cli.output import print_error, print_json, print_line, print_table, with_verdict
from erasable.errors import said
from erasable.operations.scan import PersonScan, scan
from erasable.operations.storage import DiskStorage, queue_fault
from erasable.scan import UNKNOWN
from erasable.wording import counted

NAME = "scan"


@with_verdict
@settings_options(COLUMN_OPTIONS, EXECUTOR)
def command(
    folder: Folder,
    user: Annotated[str, typer.Option(metavar="U", help="The user's id, exactly as in the data.", show_default=False)],
    data: Annotated[
        str | None,
        typer.Option(
            metavar="DATA", help="A table that still has the person: the values of their rows are searched for too."
        ),
    ] = None,
    how: Annotated[bool, typer.Option("--how", help="Say what was searched, and how.")] = False,
    json_output: Json = False,
    quiet: Quiet = False,
    columns: dict[str, str] | None = None,
    executor: dict[str, Any] | None = None,
) -> None:
    """Search every file of a workspace for what is left of a person.

    Ends with exit code 0 if nothing was found, 1 if something was or if ids are held that differ only a little, 2 if
    something prevents a verdict, such as a queue that can't be read.
    """
    found = scan(folder, user, data, columns_from(columns or {}), work_with(None, quiet or json_output, executor))
    fault = queue_fault(DiskStorage(folder))
    if json_output:
        places = [{"file": one.file, "place": one.place, "what": one.what} for one in found.residues]
        print_json({"clean": found.clean, **asdict(found), "residues": places, "queue_fault": fault})
    else:
        _tell(found, folder, how)
    if found.clean and fault is not None:
        print_error(said("the queue was not searched: ", fault).of_command)
        raise typer.Exit(2)
    raise typer.Exit(0 if found.clean else 1)


def _tell(found: PersonScan, folder: Path, how: bool) -> None:
    kinds = ", ".join(f"{number:,} {kind}" for kind, number in found.kinds.items() if number)
    print_line(f"searched {counted(found.files, 'file')}, {counted(found.bytes, 'byte')} ({kinds})")
    if how:
        for sentence in found.searched:
            print_line(f"- {sentence}")
    if UNKNOWN in found.searched:
        print_line(
            "nothing is held about this id, so only the id was searched for; --data FILE searches for its interactions "
            "too"
        )
    if found.near.held:
        print_line(found.near.sentence())
    if found.clean:
        print_line("nothing of the person was found" + ("" if how else " (--how says where and how it was searched)"))
        return
    if not found.residues:
        print_line("nothing of what was given was found in the files")
        return
    print_line(f"the person was found in {counted(len(found.residues), 'place')}:")
    print_table(("file", "place", "what"), [(one.file, one.place, one.what) for one in found.residues])
    print_line(
        f"next: if the person was not erased yet, run erasable forget {shlex.quote(str(folder))} with their id; remove "
        "other files, or what they hold of the person, by hand; then scan again"
    )
