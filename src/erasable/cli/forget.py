"""`erasable forget`."""

from dataclasses import asdict
from typing import Annotated

import typer

from erasable.cli.options import Folder, Json, Quiet, Threads, work_with
from erasable.cli.output import counted, print_json, print_line
from erasable.cli.requests import Items, Users, UsersFile, requests_from
from erasable.operations import DiskHome, Forgotten, forget

NAME = "forget"
REMINDER = "The input file, exports and backups still hold the person: erase them there too."


def command(
    folder: Folder,
    users: Users = None,
    users_file: UsersFile = None,
    items: Items = None,
    ignore_unknown: Annotated[
        bool, typer.Option("--ignore-unknown", help="Leave out users that are not held.")
    ] = False,
    rerun: Annotated[
        bool, typer.Option("--rerun", help="In another numeric environment: train everything again here.")
    ] = False,
    threads: Threads = None,
    json_output: Json = False,
    quiet: Quiet = False,
) -> None:
    """Forget users, or some interactions of one user, exactly."""
    requests = requests_from(users, users_file, items)
    work = work_with(threads, quiet or json_output)
    forgotten = forget(DiskHome(folder), requests, ignore_unknown, rerun, work)
    if json_output:
        print_json(asdict(forgotten) | {"reminder": REMINDER})
    else:
        _tell(forgotten, asked=len({request.user for request in requests}))


def _tell(forgotten: Forgotten, asked: int) -> None:
    people = len(forgotten.certificates)
    if people:
        print_line(
            f"erased what {counted(people, 'person', 'people')} asked for: trained {forgotten.stages_rerun} of "
            f"{forgotten.stages_total} stages again, {forgotten.chain_ratio:.0%} of the work of the whole chain "
            f"({forgotten.seconds:.1f} s)"
        )
    if people < asked:
        print_line(f"left out {counted(asked - people, 'person', 'people')}: nothing is held of what was named")
    if forgotten.dropped:
        others = counted(forgotten.dropped, "other person", "other people")
        print_line(f"the filter, applied anew, no longer keeps {others}: they fell below --min-interactions")
    for path in forgotten.certificates:
        print_line(f"certificate: {path}")
    if people:
        print_line(REMINDER)
