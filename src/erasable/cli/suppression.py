"""The options that name a suppression list and its key, and what they mean together."""

from pathlib import Path
from typing import Annotated

import typer

from erasable.errors import WrongUse
from erasable.proof.suppression import Suppression

ListFile = Annotated[
    Path | None,
    typer.Option("--suppression", metavar="LIST", help="The suppression list: who was erased and must not come back."),
]
KeyFile = Annotated[
    Path | None,
    typer.Option("--suppression-key", metavar="KEY", help="The key of that list, which lies in another folder."),
]
Drop = Annotated[
    bool,
    typer.Option("--drop-suppressed", help="Leave out what is on the suppression list, instead of refusing the data."),
]


def suppression_from(list_file: Path | None, key_file: Path | None, drop: bool = False) -> Suppression | None:
    """Return what the options mean; a list without its key, or the other way round, makes no sense."""
    if list_file is not None and key_file is not None:
        return Suppression(list_file, key_file, drop)
    if list_file is not None:
        raise WrongUse("--suppression needs its key: give --suppression-key KEY too")
    if key_file is not None:
        raise WrongUse("--suppression-key needs its list: give --suppression LIST too")
    if drop:
        raise WrongUse("--drop-suppressed needs a list: give --suppression LIST and --suppression-key KEY too")
    return None
