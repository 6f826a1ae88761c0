"""`erasable verify`."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from erasable.cli.options import (
    EXECUTOR,
    PLACES,
    Folder,
    Json,
    Quiet,
    Threads,
    do_not_learn_from,
    settings_options,
    work_with,
)
from erasable.cli.output import print_json, print_line, with_verdict
from erasable.errors import of_command
from erasable.operations.storage import DiskStorage
from erasable.operations.verify import Claim, Verification, verify
from erasable.wording import counted

NAME = "verify"
_OUTCOMES = {True: (0, "identical"), False: (1, "different"), None: (2, "no verdict")}
_ELSEWHERE = 3, "cannot be reproduced here"


@with_verdict
@settings_options(PLACES, EXECUTOR)
def command(
    folder: Folder,
    certificate: Annotated[
        Path | None, typer.Option(help="Check this certificate too, and replay what its erasure trained again.")
    ] = None,
    receipt: Annotated[
        Path | None, typer.Option(help="Check also that the certificate is about the person of this receipt.")
    ] = None,
    from_scratch: Annotated[
        bool, typer.Option("--from-scratch", help="With a certificate: replay everything anyway.")
    ] = False,
    threads: Threads = None,
    json_output: Json = False,
    quiet: Quiet = False,
    listed: dict[str, Any] | None = None,
    executor: dict[str, Any] | None = None,
) -> None:
    """Check every file, replay, and compare every byte.

    Ends with exit code 0 if they are identical, 1 if different, 3 if that can't be decided here, because the numeric
    environment is another one; 2 if something prevents a verdict, such as a do-not-learn list or a queue that can't be
    read.
    """
    claim = Claim(certificate, receipt, from_scratch, do_not_learn_from(listed or {}))
    verification = verify(DiskStorage(folder), claim, work_with(threads, quiet or json_output, executor))
    code, word = _ELSEWHERE if verification.elsewhere else _OUTCOMES[verification.identical]
    if json_output:
        print_json(asdict(verification))
    else:
        _tell(word, verification)
    raise typer.Exit(code)


def _tell(word: str, verification: Verification) -> None:
    compared = f" ({counted(verification.compared, 'array')} compared)" if verification.compared else ""
    print_line(f"{word}: {of_command(verification.reason)}{compared}")
