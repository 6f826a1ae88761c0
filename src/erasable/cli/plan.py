"""`erasable plan`."""

from typing import Annotated, Any

import typer

from erasable.cli.options import Folder, Json, OnlyTheAnswer, Threads, work_with
from erasable.cli.output import counted, print_json, print_line
from erasable.cli.requests import Items, Users, UsersFile, requests_from, until_then
from erasable.errors import WrongUse
from erasable.operations import DiskHome, plan, plan_random
from erasable.unlearning import Plan

NAME = "plan"


def command(
    folder: Folder,
    users: Users = None,
    users_file: UsersFile = None,
    items: Items = None,
    random: Annotated[int | None, typer.Option(metavar="N", min=1, help="Plan for N users chosen at random.")] = None,
    threads: Threads = None,
    json_output: Json = False,
    quiet: OnlyTheAnswer = False,
) -> None:
    """Say what forgetting would touch and cost; nothing is changed."""
    if random is not None and (users or users_file or items):
        raise WrongUse("--random chooses the users: leave out --user, --users-file and --item")
    home, work = DiskHome(folder), work_with(threads, quiet or json_output)
    if random is not None:
        found = plan_random(home, random, work)
    else:
        found = plan(home, requests_from(users, users_file, items), work)
    if json_output:
        print_json(_as_json(found))
        return
    print_line(f"would erase data of {found.people:,} of {counted(found.people_total, 'person', 'people')}")
    print_line(until_then(found.people, found.served_meanwhile))
    print_line(f"would train {found.stages_rerun} of {found.stages_total} stages again")
    print_line(
        f"{found.chain_ratio:.0%} of the work of the whole chain, {found.cost_ratio:.0%} of that of --strategy "
        f"retrain; about {found.seconds_estimated:.1f} s"
    )
    if found.apart is not None:
        print_line(
            f"one after the other, {found.apart.requests} requests would take about "
            f"{found.apart.seconds_estimated:,.0f} s, {found.apart.cost_ratio:.1f} times the work of --strategy retrain"
        )


def _as_json(found: Plan) -> dict[str, Any]:
    return {
        "people": found.people,
        "people_total": found.people_total,
        "served_meanwhile": found.served_meanwhile,
        "stages_rerun": found.stages_rerun,
        "stages_total": found.stages_total,
        "chain_ratio": found.chain_ratio,
        "cost_ratio": found.cost_ratio,
        "seconds_estimated": found.seconds_estimated,
        "one_by_one": None if found.apart is None else found.apart._asdict(),
    }
