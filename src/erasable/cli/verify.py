"""`erasable verify`."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from erasable.cli.options import Folder, Json, Quiet, Threads, settings_options, work_with
from erasable.cli.output import print_json, print_line
from erasable.cli.suppression import PLACES, suppression_from
from erasable.cli.verdict import with_verdict
from erasable.operations import Claim, DiskHome, Verification, verify

NAME = "verify"
_EXIT_CODES = {True: 0, False: 1, None: 3}
_WORDS = {True: "identical", False: "different", None: "cannot be reproduced here"}


@with_verdict
@settings_options(PLACES)
def command(
    folder: Folder,
    certificate: Annotated[
        Path | None, typer.Option(help="Check this certificate too, and replay what its erasure has trained again.")
    ] = None,
    receipt: Annotated[
        Path | None, typer.Option(help="Check also that the certificate is about the person of this receipt.")
    ] = None,
    from_scratch: Annotated[
        bool, typer.Option("--from-scratch", help="With a certificate: replay everything all the same.")
    ] = False,
    threads: Threads = None,
    json_output: Json = False,
    quiet: Quiet = False,
    listed: dict[str, Any] | None = None,
) -> None:
    """Check every file, replay, and compare every byte.

    Ends with exit code 0 if they are identical, 1 if different, 3 if that can't be told here, because the numeric
    environment is another one; 2 if something keeps it from a verdict.
    """
    claim = Claim(certificate, receipt, from_scratch, suppression_from(listed or {}))
    verification = verify(DiskHome(folder), claim, work_with(threads, quiet or json_output))
    if json_output:
        print_json(asdict(verification))
    else:
        _tell(verification)
    raise typer.Exit(_EXIT_CODES[verification.identical])


def _tell(verification: Verification) -> None:
    compared = f" ({verification.compared} arrays compared)" if verification.compared else ""
    print_line(f"{_WORDS[verification.identical]}: {verification.reason}{compared}")
