"""`erasable show`."""

from dataclasses import asdict
from typing import Annotated

import typer

from erasable.cli.options import Folder, Json
from erasable.cli.output import print_json, print_line, print_table
from erasable.operations import DiskHome, show

NAME = "show"


def command(
    folder: Folder,
    user: Annotated[str, typer.Option(metavar="U", help="The user's id, exactly as in the data.", show_default=False)],
    json_output: Json = False,
) -> None:
    """Show what is held about a person (access, GDPR Art. 15)."""
    holding = show(DiskHome(folder), user)
    if json_output:
        print_json(asdict(holding))
        return
    print_line(f"user {holding.user_id}: {len(holding.interactions)} interactions, in group {holding.group + 1}")
    rows = [
        (
            one.item_id,
            one.rating,
            "" if one.time is None else f"{one.time:.0f}",
            "held out" if one.held_out else "",
        )
        for one in holding.interactions
    ]
    print_table(("item", "rating", "time", ""), rows)
    for name, numbers in holding.personal_rows.items():
        print_line(f"personal row ({name}): {' '.join(f'{number:.3f}' for number in numbers)}")
