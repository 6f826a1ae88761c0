"""`erasable attack`."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from erasable.cli.options import (
    COLUMN_OPTIONS,
    EXECUTOR,
    Folder,
    Json,
    OnlyTheAnswer,
    Threads,
    columns_from,
    read_requests,
    settings_options,
    work_with,
)
from erasable.cli.output import print_json, print_line, print_table
from erasable.errors import WrongUse
from erasable.evaluation.attack import FEWEST_SEEDS, Interval, Verdict
from erasable.operations.attack import USUAL_SEEDS, Probe, attack, attack_erased
from erasable.operations.storage import DiskStorage
from erasable.plots import draw_membership, figure_file
from erasable.wording import counted

NAME = "attack"
_EXIT_CODES: dict[Verdict, int] = {"forgotten": 0, "remembers": 1, "worthless here": 3}
_HEADINGS = ("attack", "looks at", "before", "after forgetting", "never knew them", "verdict")


@settings_options(COLUMN_OPTIONS, EXECUTOR)
def command(
    folder: Folder,
    users: Annotated[
        int | None,
        typer.Option(metavar="N", help="How many people to forget in memory; 5 %, at most 200, if not given."),
    ] = None,
    seeds: Annotated[int, typer.Option(min=FEWEST_SEEDS, max=100, help="How many models of each kind.")] = USUAL_SEEDS,
    data: Annotated[
        str | None, typer.Option(metavar="DATA", help="The rows of people who were erased; needs --users-file.")
    ] = None,
    users_file: Annotated[
        Path | None, typer.Option(metavar="F", help="Who was erased, one user id a line; needs --data.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the results of the attacks (.png, .svg or .pdf).")
    ] = None,
    threads: Threads = None,
    json_output: Json = False,
    quiet: OnlyTheAnswer = False,
    columns: dict[str, str] | None = None,
    executor: dict[str, Any] | None = None,
) -> None:
    """Attack the model to see whether it remembers.

    People are forgotten in memory, and nothing in the workspace is changed; with --data and --users-file the current
    model is attacked with people who were erased. Attacks must do no better on it than on models that never knew them.
    Ends with exit code 0 if so, 1 if it remembers, 3 if the attacks don't even succeed before forgetting, so that
    nothing follows.
    """
    file = plot and figure_file(plot, folder)
    storage, work = DiskStorage(folder), work_with(threads, quiet or json_output, executor)
    if data is None and users_file is None:
        probe = attack(storage, users, seeds, work)
    else:
        source, people = _erased(data, users_file, users)
        probe = attack_erased(storage, source, people, seeds, columns_from(columns or {}), work)
    if file is not None:
        draw_membership(probe, file)
    if json_output:
        print_json(asdict(probe) | ({"figure": str(file)} if file else {}))
    else:
        _tell(probe, file)
    raise typer.Exit(_EXIT_CODES[probe.verdict])


def _erased(data: str | None, users_file: Path | None, users: int | None) -> tuple[str, list[str]]:
    """Return where the rows of erased people are, and who they are."""
    if data is None or users_file is None:
        raise WrongUse("--data and --users-file belong together: give both, or neither to forget people in memory")
    if users is not None:
        raise WrongUse("--users-file says who was erased: leave out --users")
    requests = read_requests(users_file)
    if not all(request.everything for request in requests):
        raise WrongUse(f"{users_file}: names items, but the attack is on whole people: give user ids only")
    return data, list(dict.fromkeys(request.user for request in requests))


def _tell(probe: Probe, file: Path | None) -> None:
    rows = [
        (one.attack, one.view, _words(one.before), _words(one.forgotten), _words(one.never), one.verdict)
        for one in probe.findings
    ]
    print_table(_HEADINGS, rows)
    print_line(f"{probe.verdict}: {_sentence(probe)}")
    if probe.rounds > 1 and probe.verdict != "remembers":
        print_line("the first round said otherwise, which may happen by chance: all was repeated with other seeds")
    if file is not None:
        print_line(f"the figure is {file}")


def _words(interval: Interval) -> str:
    return f"{interval.mean:.2f} ({interval.low:.2f} to {interval.high:.2f})"


def _sentence(probe: Probe) -> str:
    people = counted(probe.people, "person", "people")
    match probe.verdict:
        case "forgotten":
            working = sum(one.verdict == "forgotten" for one in probe.findings)
            attacks = counted(working, "attack")
            return f"{attacks} recognised {people} before, none does after, as on models that never knew them"
        case "remembers":
            return f"after forgetting, {people} are still recognised better than by models that never knew them"
        case _:
            return (
                f"no attack recognises {people} even before they are forgotten, so nothing follows: give more --users "
                "or --seeds, and rely on verify"
            )
