"""`erasable verify`."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from erasable.cli.options import Folder, Json, Quiet, Threads, work_with
from erasable.cli.output import print_json, print_line
from erasable.operations import DiskHome, Verification, verify

NAME = "verify"
_EXIT_CODES = {True: 0, False: 1, None: 3}
_WORDS = {True: "identical", False: "different", None: "cannot be reproduced here"}


def command(
    folder: Folder,
    certificate: Annotated[Path | None, typer.Option(help="Also check that this certificate was issued here.")] = None,
    from_scratch: Annotated[
        bool, typer.Option("--from-scratch", help="Replay everything; this is always done so far.")
    ] = False,
    threads: Threads = None,
    json_output: Json = False,
    quiet: Quiet = False,
) -> None:
    """Train again from what is left and compare every byte.

    Ends with exit code 0 if they are identical, 1 if different, 3 if that can't be told here, because the numeric
    environment is another one.
    """
    del from_scratch
    verification = verify(DiskHome(folder), certificate, work_with(threads, quiet or json_output))
    if json_output:
        print_json(asdict(verification))
    else:
        _tell(verification)
    raise typer.Exit(_EXIT_CODES[verification.identical])


def _tell(verification: Verification) -> None:
    compared = f" ({verification.compared} arrays compared)" if verification.compared else ""
    print_line(f"{_WORDS[verification.identical]}: {verification.reason}{compared}")
