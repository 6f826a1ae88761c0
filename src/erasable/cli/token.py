"""`erasable token`: who may use the service."""

from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from erasable.cli.options import Folder, Json
from erasable.cli.output import print_json, print_line, print_table
from erasable.errors import WrongUse
from erasable.operations.inspect import status
from erasable.operations.storage import DiskStorage
from erasable.requests.opening import open_database
from erasable.requests.tokens import ROLES, Role, Tokens

NAME = "token"
app = typer.Typer(help="Manage who may use the service.", no_args_is_help=True, rich_markup_mode=None)
_LONGEST_LABEL = 100


@app.command("create")
def create(
    folder: Folder,
    role: Annotated[
        Role,
        typer.Option(
            help="What it is for: application recommends and submits, officer answers requests, operator does all."
        ),
    ],
    label: Annotated[str, typer.Option(help="A few words to tell it from others.")] = "",
    json_output: Json = False,
) -> None:
    """Create a token and print it, this once; the service stores only a digest."""
    _refuse_long(label)
    number, secret = _tokens(folder).create(role, label, datetime.now(UTC))
    if json_output:
        print_json({"number": number, "role": role, "token": secret})
        return
    print_line(secret)


@app.command("list")
def list_tokens(folder: Folder, json_output: Json = False) -> None:
    """List the tokens, without their secrets, which are stored nowhere."""
    found = _tokens(folder).all()
    if json_output:
        print_json({"tokens": [asdict(token) for token in found]})
        return
    if not found:
        print_line(f"there is none: create one with erasable token create {folder} --role {'|'.join(ROLES)}")
        return
    print_table(
        ("number", "role", "label", "created", "revoked"),
        [(one.number, one.role, one.label, one.created, one.revoked or "") for one in found],
    )


@app.command("rename")
def rename(
    folder: Folder,
    number: Annotated[
        str, typer.Argument(metavar="NUMBER", help="Its number, as token list shows it.", show_default=False)
    ],
    label: Annotated[
        str, typer.Argument(metavar="LABEL", help="A few words to tell it from others.", show_default=False)
    ],
) -> None:
    """Give a token a new label, such as one that names nobody."""
    _refuse_long(label)
    _tokens(folder).rename(number, label, datetime.now(UTC))
    print_line(f"token {number} has a new label")


@app.command("revoke")
def revoke(
    folder: Folder,
    number: Annotated[
        str, typer.Argument(metavar="NUMBER", help="Its number, as token list shows it.", show_default=False)
    ],
) -> None:
    """Revoke a token, at once."""
    _tokens(folder).revoke(number, datetime.now(UTC))
    print_line(f"token {number} is revoked")


def _refuse_long(label: str) -> None:
    if len(label) > _LONGEST_LABEL:
        raise WrongUse(f"the label is longer than {_LONGEST_LABEL} characters: give a shorter one")


def _tokens(folder: Path) -> Tokens:
    status(DiskStorage(folder))  # refuses a folder that is no workspace: no queue belongs there
    return Tokens(open_database(folder))
