"""`erasable doctor`."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from erasable.cli.options import Json
from erasable.cli.output import print_facts, print_json
from erasable.cli.upgrade import tell_plan
from erasable.operations import DiskHome, available_cores, plan_upgrade
from erasable.training import numeric_environment

NAME = "doctor"


def command(
    folder: Annotated[
        Path | None,
        typer.Argument(metavar="[DIR]", help="A workspace: say what an upgrade would find there.", show_default=False),
    ] = None,
    json_output: Json = False,
) -> None:
    """Show what equal bytes rest on, and what an upgrade finds."""
    facts: dict[str, Any] = {"cores": str(available_cores()), **numeric_environment()}
    planned = None if folder is None else plan_upgrade(DiskHome(folder))
    if json_output:
        print_json(facts if planned is None else {**facts, "upgrade": asdict(planned)})
        return
    print_facts(facts)
    if planned is not None:
        tell_plan(planned)
