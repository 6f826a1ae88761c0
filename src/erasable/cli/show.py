"""`erasable show`."""

from dataclasses import asdict
from typing import Annotated

import typer

from erasable.cli.options import Folder, Json
from erasable.cli.output import print_json, print_line, print_table
from erasable.operations.inspect import show
from erasable.operations.storage import DiskStorage
from erasable.wording import counted

NAME = "show"


def command(
    folder: Folder,
    user: Annotated[str, typer.Option(metavar="U", help="The user's id, exactly as in the data.", show_default=False)],
    json_output: Json = False,
) -> None:
    """Show everything that is held about a person.

    This answers a request for access (GDPR, Article 15).
    """
    holding = show(DiskStorage(folder), user)
    if json_output:
        print_json(asdict(holding))
        return
    print_line(f"user {holding.user_id}: {counted(len(holding.interactions), 'interaction')}, in group {holding.group}")
    if holding.suppressed:
        print_line("the person has asked to be erased and is suppressed: they get no recommendations")
    rows = [
        (
            one.item_id,
            f"{one.rating:g}",
            _time(one.time),
            "held out" if one.held_out else "used",
        )
        for one in holding.interactions
    ]
    print_table(("item", "rating", "time", "training"), rows)
    for name, numbers in holding.personal_rows.items():
        print_line(f"personal row ({name}): {' '.join(f'{number:.3f}' for number in numbers)}")


def _time(time: float | str | None) -> str:
    if time is None:
        return ""
    return time if isinstance(time, str) else f"{time:.15g}"
