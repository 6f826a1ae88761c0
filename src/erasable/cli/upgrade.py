"""`erasable upgrade`."""

from dataclasses import asdict
from typing import Annotated

import typer

from erasable.cli.options import Folder, Json, Quiet, Threads, work_with
from erasable.cli.output import counted, print_json, print_line
from erasable.errors import of_command
from erasable.operations import DiskHome, Upgraded, UpgradePlan, plan_upgrade, upgrade

NAME = "upgrade"


def command(
    folder: Folder,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what it would find and about how long it takes; change nothing.")
    ] = False,
    threads: Threads = None,
    json_output: Json = False,
    quiet: Quiet = False,
) -> None:
    """Bring a workspace to this machine, release and newest format.

    After numpy, scipy, numba, the C library or the machine has changed: what was learned is made again here. Where the
    bytes agree it is adopted, and where they don't the new bytes become current..
    """
    if dry_run:
        planned = plan_upgrade(DiskHome(folder))
        if json_output:
            print_json(asdict(planned))
        else:
            tell_plan(planned)
        return
    done = upgrade(DiskHome(folder), work_with(threads, quiet or json_output))
    if json_output:
        print_json(asdict(done))
    else:
        _tell(done)


def tell_plan(planned: UpgradePlan) -> None:
    """Say in words what an upgrade would find."""
    if not planned.needed:
        of_here = "it is of this numeric environment, in the newest format"
        print_line(f"nothing to upgrade: {of_here}" if planned.refused is None else of_command(planned.refused))
        return
    for difference in planned.differences:
        print_line(difference)
    if planned.steps_replayed:
        print_line(
            f"an upgrade makes {planned.steps_replayed:,} of {counted(planned.steps_total, 'checkpoint')} again here, "
            f"in about {planned.seconds:.1f} s, and keeps the bytes that agree"
        )
    if planned.format < planned.newest_format:
        print_line(f"an upgrade writes the format {planned.newest_format}; it has the format {planned.format}")
    if planned.refused:
        print_line(of_command(planned.refused))


def _tell(done: Upgraded) -> None:
    if not done.changed:
        print_line("nothing to upgrade: it is of this numeric environment, in the newest format")
        return
    for difference in done.differences:
        print_line(difference)
    print_line(
        f"upgraded to version {done.version}, format {done.format}: {counted(done.adopted, 'checkpoint')} with the "
        f"same bytes here, {done.trained:,} with new ones, {done.kept:,} that were of here ({done.seconds:.1f} s)"
    )
