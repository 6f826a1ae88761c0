"""`erasable plan`."""

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from erasable.chain.plan import Plan
from erasable.cli.options import (
    Folder,
    Items,
    Json,
    OnlyTheAnswer,
    Threads,
    Users,
    UsersFile,
    requests_from,
    until_then,
    work_with,
)
from erasable.cli.output import print_json, print_line
from erasable.errors import WrongUse
from erasable.operations.planning import plan, plan_random
from erasable.operations.storage import DiskStorage
from erasable.wording import counted, duration, percentage

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
    storage, work = DiskStorage(folder), work_with(threads, quiet or json_output)
    if random is not None:
        found = plan_random(storage, random, work)
    else:
        found = plan(storage, requests_from(users, users_file, items), work)
    if json_output:
        print_json(_as_json(found))
        return
    print_line(f"would erase data of {found.people:,} of {counted(found.people_total, 'person', 'people')}")
    print_line(until_then(found.people, found.served_meanwhile))
    for line in _work(found):
        print_line(line)
    if found.apart is not None and found.apart.cost_ratio:
        whole = "learning the model" if found.stages_total == 1 else "--strategy retrain"
        print_line(
            f"one after the other, {found.apart.requests} requests would take about "
            f"{duration(found.apart.seconds_estimated)}, {percentage(found.apart.cost_ratio)} of the work of {whole}"
        )


def _work(found: Plan) -> Iterator[str]:
    """Say what would be trained again; a single stage is not called a chain."""
    cost, about = percentage(found.cost_ratio), duration(found.seconds_estimated)
    if not found.stages_rerun:
        yield "the model has learned nothing from it: would train nothing again"
    elif found.stages_total == 1:
        yield "would rebuild the model without it"
        yield f"{cost} of the work of learning it; about {about}"
    else:
        yield f"would train {found.stages_rerun} of {found.stages_total} stages again"
        chain = percentage(found.chain_ratio)
        yield f"{chain} of the work of the whole chain, {cost} of that of --strategy retrain; about {about}"


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
