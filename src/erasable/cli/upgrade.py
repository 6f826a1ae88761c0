"""`erasable upgrade`."""

from dataclasses import asdict
from typing import Annotated, Any

import typer

from erasable.cli.options import EXECUTOR, Folder, Json, Quiet, Threads, Wait, settings_options, work_with
from erasable.cli.output import print_json, print_line
from erasable.errors import of_command
from erasable.operations.storage import DiskStorage
from erasable.operations.upgrade import Upgraded, UpgradePlan, plan_upgrade, upgrade
from erasable.wording import counted, duration

NAME = "upgrade"
_NOTHING = "nothing to upgrade: it was made in this numeric environment, and has the newest format"


@settings_options(EXECUTOR)
def command(
    folder: Folder,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what it would do and about how long it takes; change nothing.")
    ] = False,
    wait: Wait = False,
    threads: Threads = None,
    json_output: Json = False,
    quiet: Quiet = False,
    executor: dict[str, Any] | None = None,
) -> None:
    """Bring a workspace to this machine, release and newest format.

    After numpy, scipy, numba, the C library or the machine has changed: checkpoints are trained again here. Those whose
    bytes agree are adopted; of the others the new bytes become current.
    """
    if dry_run:
        planned = plan_upgrade(DiskStorage(folder))
        if json_output:
            print_json(asdict(planned))
        else:
            tell_plan(planned)
        return
    work = work_with(threads, quiet or json_output, executor)
    done = upgrade(DiskStorage(folder, waiting=work.reporter if wait else None), work)
    if json_output:
        print_json(asdict(done))
    else:
        _tell(done)


def tell_plan(planned: UpgradePlan) -> None:
    """Print what an upgrade would do."""
    if not planned.needed:
        print_line(_NOTHING if planned.refused is None else of_command(planned.refused))
        return
    for difference in planned.differences:
        print_line(difference)
    if planned.steps_replayed:
        print_line(
            f"an upgrade trains {planned.steps_replayed:,} of {counted(planned.steps_total, 'checkpoint')} again here, "
            f"in about {duration(planned.seconds)}, and keeps the bytes that agree"
        )
    if planned.format < planned.newest_format:
        print_line(f"an upgrade writes format {planned.newest_format}; the workspace has format {planned.format}")
    if planned.refused:
        print_line(of_command(planned.refused))


def _tell(done: Upgraded) -> None:
    if not done.changed:
        print_line(_NOTHING)
        return
    for difference in done.differences:
        print_line(difference)
    print_line(
        f"upgraded to version {done.version}, format {done.format}: {counted(done.adopted, 'checkpoint')} with the "
        f"same bytes here, {done.trained:,} with new ones, {done.kept:,} that were made here already "
        f"({duration(done.seconds)})"
    )
