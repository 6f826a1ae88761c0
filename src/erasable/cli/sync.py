"""`erasable sync`."""

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from erasable.cli.options import (
    COLUMN_OPTIONS,
    EXECUTOR,
    PLACES,
    BadRows,
    Json,
    Quiet,
    Threads,
    Wait,
    columns_from,
    do_not_learn_from,
    settings_options,
    work_with,
)
from erasable.cli.output import of_newcomers, print_json, print_line
from erasable.errors import ResidueFound
from erasable.operations.declared_items import read_declared
from erasable.operations.do_not_learn import Outside
from erasable.operations.forget import Extent
from erasable.operations.prepare import Inputs
from erasable.operations.storage import DiskStorage
from erasable.operations.sync import Synced, SyncRules, sync
from erasable.wording import counted, duration, listed

NAME = "sync"


@settings_options(COLUMN_OPTIONS, PLACES, EXECUTOR)
def command(
    export: Annotated[
        str,
        typer.Argument(
            metavar="EXPORT",
            help="All interactions as of now: a file, folder, pattern or URL, as for learn.",
            show_default=False,
        ),
    ],
    into: Annotated[Path, typer.Option(metavar="DIR", help="The workspace folder.", show_default=False)],
    forget_missing: Annotated[
        bool,
        typer.Option(
            "--forget-missing", help="Forget people and interactions that the export lacks, with certificates."
        ),
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Forget them even if that is more than 1 % of the people (and more than 10).")
    ] = False,
    expect_rows: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Refuse an export with another number of rows; else one with less than half of those held is refused.",
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what it would do; change nothing.")] = False,
    receipts: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write the receipt of each person who is forgotten there.")
    ] = None,
    items: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="New attributes of items; where features are learned, from these too."),
    ] = None,
    catalogue: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Where items were declared: a file with further ones, one id a line."),
    ] = None,
    on_bad_row: BadRows = "refuse",
    wait: Wait = False,
    threads: Threads = None,
    json_output: Json = False,
    quiet: Quiet = False,
    columns: dict[str, str] | None = None,
    listed_in: dict[str, Any] | None = None,
    executor: dict[str, Any] | None = None,
) -> None:
    """Make a workspace equal to an export, in one version.

    New and changed interactions are learned. What the export lacks stays, or is forgotten with --forget-missing. Nobody
    is put on the do-not-learn list for that: whoever is in a later export is learned again. People who have asked to be
    erased stay out, or wait for their own request.
    """
    inputs = Inputs(
        columns_from(columns or {}),
        catalogue=catalogue,
        do_not_learn=do_not_learn_from(listed_in or {}),
        on_bad_row=on_bad_row,
        items=None if items is None else read_declared(items),
    )
    rules = SyncRules(forget_missing, yes, expect_rows, dry_run)
    work = work_with(threads, quiet or json_output, executor)
    storage = DiskStorage(into, waiting=work.reporter if wait else None)
    done = sync(storage, export, inputs, rules, work, Outside(receipts=receipts))
    if json_output:
        print_json(asdict(done))
    else:
        for sentence in _sentences(done, into, receipts):
            print_line(sentence)
    if done.set_aside:
        raise ResidueFound(done.set_aside[0])


def _sentences(done: Synced, into: Path, receipts: Path | None) -> Iterator[str]:
    yield _what_was_learned(done)
    yield from _what_was_missing(done)
    if receipts is not None and done.certificates:
        yield f"receipts: {receipts}"
    if done.asked:
        waiting = counted(done.asked, "person who has asked", "people who have asked")
        yield f"left as they are: {waiting} to be erased, until their own request is carried out"
    if done.items_unknown and not done.dry_run:
        yield of_newcomers(done.items_unknown, into)
    yield from done.in_words()
    if done.suppressed:
        yield f"left out what is on the do-not-learn list ({done.left_out})"
    yield from done.notes
    if not done.dry_run:
        sizes = counted(done.users, "user"), counted(done.items, "item"), counted(done.interactions, "interaction")
        yield f"{into} now knows {listed(sizes)}"


def _what_was_learned(done: Synced) -> str:
    would = "would have " if done.dry_run else ""
    again = f"{done.stages_rerun} of {done.stages_total} stages" if done.stages_total > 1 else "the model"
    took = "" if done.dry_run else f" ({duration(done.seconds)})"  # a dry run trains nothing, so its time says nothing
    trained = f"{would}trained {again if done.stages_rerun else 'nothing'} again{took}"
    if not (done.interactions_added or done.interactions_changed):
        return "nothing is new or changed in the export" + (f"; {trained}" if done.stages_rerun else "")
    learned = [
        counted(done.users_added, "new user"),
        counted(done.interactions_added, "new interaction"),
        counted(done.interactions_changed, "changed interaction"),
    ]
    return f"{would}learned {listed(learned)}: {trained}"


def _what_was_missing(done: Synced) -> Iterator[str]:
    """Say what the export lacks, and what became of it."""
    lacking = [
        *([counted(done.users_missing, "person", "people")] if done.users_missing else []),
        *([counted(done.interactions_missing, "interaction") + " of others"] if done.interactions_missing else []),
    ]
    if not lacking:
        return
    if not done.forgotten:
        yield f"the export lacks {listed(lacking)}: nothing of that is forgotten without --forget-missing"
    elif done.dry_run:
        data = f"data of {Extent(done.users_lacking, done.users_before)}"
        yield f"would forget {listed(lacking)}{f', {data}: so many need --yes' if done.needs_yes else ''}"
    else:
        yield f"forgot {listed(lacking)}: {counted(len(done.certificates), 'certificate')}"
