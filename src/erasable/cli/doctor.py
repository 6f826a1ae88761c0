"""`erasable doctor`."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from erasable.chain.tasks import numeric_environment
from erasable.cli.options import Json
from erasable.cli.output import print_facts, print_json
from erasable.cli.upgrade import tell_plan
from erasable.operations.storage import DiskStorage
from erasable.operations.upgrade import plan_upgrade
from erasable.operations.work import available_cores

NAME = "doctor"


def command(
    folder: Annotated[
        Path | None,
        typer.Argument(metavar="[DIR]", help="A workspace: say what an upgrade would do there.", show_default=False),
    ] = None,
    json_output: Json = False,
) -> None:
    """Show the numeric environment, and what an upgrade would do."""
    facts: dict[str, Any] = {"cores": str(available_cores()), **numeric_environment()}
    planned = None if folder is None else plan_upgrade(DiskStorage(folder))
    if json_output:
        print_json(facts if planned is None else {**facts, "upgrade": asdict(planned)})
        return
    print_facts(facts)
    if planned is not None:
        tell_plan(planned)
