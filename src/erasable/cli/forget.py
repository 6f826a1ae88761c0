"""`erasable forget`."""

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from erasable.cli.options import (
    EXECUTOR,
    FORGETTING,
    Folder,
    Issuer,
    Items,
    Json,
    OnlyTheAnswer,
    Threads,
    Users,
    UsersFile,
    Wait,
    do_not_learn_from,
    requests_from,
    settings_options,
    until_then,
    work_with,
)
from erasable.cli.output import can_ask, print_json, print_line
from erasable.errors import Refused, ResidueFound, WrongUse
from erasable.operations.claims import COMMAND
from erasable.operations.do_not_learn import Outside
from erasable.operations.forget import Extent, Forgotten, forget, large_extent, withdraw_submitted
from erasable.operations.recording import begin_new_queue, issuing_as
from erasable.operations.storage import DiskStorage
from erasable.wording import counted, duration, percentage

NAME = "forget"
BEGUN = "a new queue was begun: the requests in the lost one are gone; submit them again, and create new tokens"
REMINDER = "The input file, exports and backups still hold the person: erase them there too."

_UNKEPT = "receipt, kept nowhere (--receipts DIR writes it to a file):"
_UNTIL_ERASED = "receipt, kept until the erasure is done (--receipts DIR writes it to a file):"
_GIVE = "(give each to its person, then delete it)"


@settings_options(FORGETTING, EXECUTOR)
def command(
    folder: Folder,
    users: Users = None,
    users_file: UsersFile = None,
    items: Items = None,
    ignore_unknown: Annotated[
        bool, typer.Option("--ignore-unknown", help="Leave out users that are not held.")
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Don't ask before erasing more than 1 % of the people (and more than 10).")
    ] = False,
    rerun: Annotated[
        bool, typer.Option("--rerun", help="In another numeric environment: train everything again here.")
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Finish what a killed command began; needs no user.")
    ] = False,
    withdraw: Annotated[
        bool, typer.Option("--withdraw", help="Take back what a killed command submitted and did not carry out.")
    ] = False,
    new_queue: Annotated[
        bool,
        typer.Option("--new-queue", help="Begin a new queue in place of one that is lost; open requests are lost."),
    ] = False,
    no_wait: Annotated[
        bool, typer.Option("--no-wait", help="Submit the requests, print their numbers, and don't wait.")
    ] = False,
    wait: Wait = False,
    receipts: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write each person's receipt there; it is for that person alone."),
    ] = None,
    reference: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT", help="Your case number of one person's request; it is written into the receipt only."
        ),
    ] = None,
    issuer: Issuer = None,
    threads: Threads = None,
    json_output: Json = False,
    quiet: OnlyTheAnswer = False,
    listed: dict[str, Any] | None = None,
    executor: dict[str, Any] | None = None,
) -> None:
    """Forget users, or some interactions of one user, exactly."""
    if wait and no_wait:
        raise WrongUse("--no-wait submits requests and waits for nobody: leave out --wait")
    work = work_with(threads, quiet or json_output, executor)
    storage = DiskStorage(folder, waiting=work.reporter if wait else None)
    if withdraw:
        people = withdraw_submitted(storage)
        taken_back = f"took back what {counted(people, 'person', 'people')} asked for; nothing was erased"
        _tell_fact({"withdrawn": people}, taken_back, json_output)
        return
    nobody = not (users or users_file or items)
    if new_queue:
        begin_new_queue(storage)
        if nobody and not resume:
            _tell_fact({"new_queue": True}, BEGUN, json_output)
            return
    requests = [] if nobody and (resume or issuer is not None) else requests_from(users, users_file, items)
    about = listed or {}
    outside = Outside(receipts, do_not_learn_from(about), bool(about.get("no_do_not_learn")), reference=reference)
    yes = yes or _agreed(large_extent(storage, requests, ignore_unknown))
    with issuing_as(storage, issuer):
        forgotten = forget(storage, requests, ignore_unknown, rerun, work, outside, yes, COMMAND, wait=not no_wait)
    if json_output:
        print_json(_facts(forgotten, receipts))
    elif no_wait:
        _tell_submitted(forgotten, folder, receipts)
    else:
        _tell(forgotten, len({request.user for request in requests}), receipts)
        if items:
            print_line(until_then(1, forgotten.served_meanwhile, done=True))
    if forgotten.set_aside:  # what was certified is printed first: the receipts are stored nowhere
        raise ResidueFound(forgotten.set_aside[0])


def _agreed(extent: Extent | None) -> bool:
    """Ask before many people are erased, or refuse where nobody can be asked."""
    if extent is None:
        return False
    if not can_ask():
        raise Refused(f"this erases {extent}: if that is meant, give --yes; nothing was done")
    if not typer.confirm(f"This erases {extent}. Go on?", err=True):
        raise Refused("nothing was erased")
    return True


def _tell_fact(fact: dict[str, Any], sentence: str, json_output: bool) -> None:
    if json_output:
        print_json(fact)
    else:
        print_line(sentence)


def _tell_submitted(forgotten: Forgotten, folder: Path, receipts: Path | None) -> None:
    shown = {one.request_id: one.in_short() for one in forgotten.receipts} if receipts is None else {}
    for number in forgotten.submitted:
        print_line(f"submitted: {number}")
        if number in shown:
            print_line(f"  {_UNTIL_ERASED} {shown[number]}")
    if receipts is not None:
        print_line(f"receipts: {receipts} {_GIVE}")
    print_line(until_then(len(forgotten.submitted), forgotten.served_meanwhile))
    for line in _what_else(forgotten):
        print_line(line)
    place = shlex.quote(str(folder))
    print_line(f"erasable serve {place} carries it out if it runs, and erasable forget {place} --resume if not")


def _facts(forgotten: Forgotten, receipts: Path | None) -> dict[str, Any]:
    """Return what is printed as JSON; receipts written into a folder are not shown."""
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
    shown = {one.request_id: one for one in forgotten.receipts} if receipts is None else {}
    for path in forgotten.certificates:
        print_line(f"certificate: {path}")
        if Path(path).stem in shown:
            receipt = shown[Path(path).stem].in_short()
            print_line(f"  {_UNKEPT} {receipt}")
    if forgotten.certificates:
        if receipts is not None:
            print_line(f"receipts: {receipts} {_GIVE}")
        print_line(REMINDER)


def _what_was_done(forgotten: Forgotten, people: str) -> str:
    if forgotten.finished == len(forgotten.certificates) and not forgotten.stages_rerun:
        return f"certified the erasure of {people}, which was done before"
    return f"erased data of {people}: {_what_was_trained(forgotten)} ({duration(forgotten.seconds)})"


def _what_was_trained(forgotten: Forgotten) -> str:
    work = percentage(forgotten.chain_ratio)
    if not forgotten.stages_rerun:
        return "the model had learned nothing from it and stays as it is"
    if forgotten.stages_total == 1:
        return f"rebuilt the model without it, {work} of the work of learning it"
    return (
        f"trained {forgotten.stages_rerun} of {forgotten.stages_total} stages again, {work} of the work of the whole "
        "chain"
    )


def _what_else(forgotten: Forgotten) -> Iterator[str]:
    if forgotten.left_out:
        yield f"left out {counted(forgotten.left_out, 'request')}: nothing of what was named is held"
    if forgotten.dropped:
        others = counted(forgotten.dropped, "other person", "other people")
        yield f"the filter, applied anew, no longer keeps {others}: they fell below --min-interactions"
    if forgotten.finished:
        yield f"finished for {counted(forgotten.finished, 'person', 'people')} what was asked for before"
    yield from forgotten.notes
