"""`erasable scan`."""

import shlex
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from erasable.cli.options import COLUMN_OPTIONS, Folder, Json, Quiet, columns_from, settings_options, work_with
from erasable.cli.output import counted, print_json, print_line, print_table
from erasable.cli.verdict import with_verdict
from erasable.operations import scan
from erasable.proof.residue import Scan
from erasable.proof.residue.wording import UNKNOWN

NAME = "scan"


@with_verdict
@settings_options(COLUMN_OPTIONS)
def command(
    folder: Folder,
    user: Annotated[str, typer.Option(metavar="U", help="The user's id, exactly as in the data.", show_default=False)],
    data: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A table that still has the person, whose rows are searched as values too."),
    ] = None,
    how: Annotated[bool, typer.Option("--how", help="Say what was searched, and how.")] = False,
    json_output: Json = False,
    quiet: Quiet = False,
    columns: dict[str, str] | None = None,
) -> None:
    """Search every file of a workspace for what is left of a person.

    Ends with exit code 0 if nothing was found, 1 if something was, 2 if something keeps it from a verdict.
    """
    found = scan(folder, user, data, columns_from(columns or {}), work_with(None, quiet or json_output))
    if json_output:
        print_json({"clean": found.clean, **asdict(found)})
    else:
        _tell(found, folder, how)
    raise typer.Exit(0 if found.clean else 1)


def _tell(found: Scan, folder: Path, how: bool) -> None:
    kinds = ", ".join(f"{number:,} {kind}" for kind, number in found.kinds.items() if number)
    print_line(f"searched {counted(found.files, 'file')}, {counted(found.bytes, 'byte')} ({kinds})")
    if how:
        for sentence in found.searched:
            print_line(f"- {sentence}")
    if UNKNOWN in found.searched:
        print_line(
            "nothing is held about this id, so only the id was searched; --data FILE searches its interactions too"
        )
    if found.clean:
        print_line("nothing of the person was found" + ("" if how else " (--how says where and how it was searched)"))
        return
    print_line(f"the person was found in {counted(len(found.residues), 'place')}:")
    print_table(("file", "place", "what"), [(one.file, one.place, one.what) for one in found.residues])
    print_line(
        f"next: if the person was not erased yet, run erasable forget {shlex.quote(str(folder))} with their id; remove "
        "other files, or what they hold of the person, by hand; then scan again"
    )
