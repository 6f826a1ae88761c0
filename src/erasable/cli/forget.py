"""`erasable forget`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from erasable.cli.options import Folder, Issuer, Json, OnlyTheAnswer, Threads, settings_options, work_with
from erasable.cli.output import can_ask, counted, print_json, print_line
from erasable.cli.requests import Items, Users, UsersFile, requests_from
from erasable.cli.suppression import FORGETTING, suppression_from
from erasable.errors import Refused
from erasable.operations import (
    DiskHome,
    Extent,
    Forgotten,
    Outside,
    forget,
    issuing_as,
    large_extent,
    withdraw_pending,
)

NAME = "forget"
REMINDER = "The input file, exports and backups still hold the person: erase them there too."


@settings_options(FORGETTING)
def command(
    folder: Folder,
    users: Users = None,
    users_file: UsersFile = None,
    items: Items = None,
    ignore_unknown: Annotated[
        bool, typer.Option("--ignore-unknown", help="Leave out users that are not held.")
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Don't ask, also if more than 1 % of the people (and more than 10) are meant.")
    ] = False,
    rerun: Annotated[
        bool, typer.Option("--rerun", help="In another numeric environment: train everything again here.")
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Finish what a killed command has begun; needs no user.")
    ] = False,
    withdraw: Annotated[
        bool, typer.Option("--withdraw", help="Take back what a killed command has accepted and not carried out.")
    ] = False,
    receipts: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Write each person's receipt there; it is for that person alone.",
        ),
    ] = None,
    reference: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Your case number of one person's request; it stands in the receipt alone."),
    ] = None,
    issuer: Issuer = None,
    threads: Threads = None,
    json_output: Json = False,
    quiet: OnlyTheAnswer = False,
    listed: dict[str, Any] | None = None,
) -> None:
    """Forget users, or some interactions of one user, exactly."""
    if withdraw:
        _tell_withdrawn(withdraw_pending(DiskHome(folder)), json_output)
        return
    nobody = not (users or users_file or items)
    requests = [] if nobody and (resume or issuer is not None) else requests_from(users, users_file, items)
    work = work_with(threads, quiet or json_output)
    about = listed or {}
    outside = Outside(receipts, suppression_from(about), bool(about.get("no_do_not_learn")), reference=reference)
    yes = yes or _agreed(large_extent(DiskHome(folder), requests, ignore_unknown))
    with issuing_as(DiskHome(folder), issuer):
        forgotten = forget(DiskHome(folder), requests, ignore_unknown, rerun, work, outside, yes)
    if json_output:
        print_json(_facts(forgotten, receipts))
    else:
        _tell(forgotten, len({request.user for request in requests}), receipts)


def _agreed(extent: Extent | None) -> bool:
    """Ask before many people are erased, or refuse where nobody can be asked."""
    if extent is None:
        return False
    if not can_ask():
        raise Refused(f"this erases {extent}: if that is meant, give --yes; nothing was done")
    if not typer.confirm(f"This erases {extent}. Go on?", err=True):
        raise Refused("nothing was erased")
    return True


def _tell_withdrawn(people: int, json_output: bool) -> None:
    if json_output:
        print_json({"withdrawn": people})
    else:
        print_line(f"took back what {counted(people, 'person', 'people')} asked for; nothing was erased")


def _facts(forgotten: Forgotten, receipts: Path | None) -> dict[str, Any]:
    """Return what is printed as JSON; receipts that were written into a folder are not shown."""
    shown = [receipt.model_dump(mode="json") for receipt in forgotten.receipts] if receipts is None else []
    folder = None if receipts is None else str(receipts)
    return {**vars(forgotten), "receipts": shown, "receipts_folder": folder, "reminder": REMINDER}


def _tell(forgotten: Forgotten, asked: int, receipts: Path | None) -> None:
    people = counted(len(forgotten.certificates), "person", "people")
    if forgotten.certificates:
        print_line(_what_was_done(forgotten, people))
        print_line("the files of the workspace were searched: nothing of what was erased was found")
    elif not asked:
        print_line("nothing was left to finish")
    for line in _what_else(forgotten):
        print_line(line)
    for path, receipt in zip(forgotten.certificates, forgotten.receipts, strict=True):
        print_line(f"certificate: {path}")
        if receipts is None:
            print_line(f"  receipt, kept nowhere (--receipts DIR writes it to a file): {receipt.in_short()}")
    if forgotten.certificates:
        if receipts is not None:
            print_line(f"receipts: {receipts} (give each to its person, then delete it)")
        print_line(REMINDER)


def _what_was_done(forgotten: Forgotten, people: str) -> str:
    if forgotten.finished == len(forgotten.certificates) and not forgotten.stages_rerun:
        return f"certified the erasure of {people}, which was done before"
    return (
        f"erased what {people} asked for: trained {forgotten.stages_rerun} of {forgotten.stages_total} stages again, "
        f"{forgotten.chain_ratio:.0%} of the work of the whole chain ({forgotten.seconds:.1f} s)"
    )


def _what_else(forgotten: Forgotten) -> Iterator[str]:
    if forgotten.left_out:
        yield f"left out {counted(forgotten.left_out, 'request')}: nothing is held of what was named"
    if forgotten.dropped:
        others = counted(forgotten.dropped, "other person", "other people")
        yield f"the filter, applied anew, no longer keeps {others}: they fell below --min-interactions"
    if forgotten.finished:
        yield f"finished for {counted(forgotten.finished, 'person', 'people')} what a killed command had begun"
    yield from forgotten.notes
