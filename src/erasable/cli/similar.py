"""`erasable similar`."""

from typing import Annotated, Any

import typer

from erasable.cli.options import Folder, Json, settings_options
from erasable.cli.output import print_json, print_line, print_table
from erasable.cli.selecting import FILTERS, TellingDoubts, selection_from
from erasable.operations.recommend import similar
from erasable.operations.storage import DiskStorage
from erasable.operations.work import Work

NAME = "similar"


@settings_options(FILTERS)
def command(
    folder: Folder,
    items: Annotated[
        list[str], typer.Option("--item", metavar="I", help="An item's id, exactly as in the data; may be repeated.")
    ],
    k: Annotated[int, typer.Option("-k", min=1, max=100_000, help="How many items for each.")] = 10,
    json_output: Json = False,
    filters: dict[str, Any] | None = None,
) -> None:
    """Show the items most similar to others."""
    selection, work = selection_from(filters or {}), Work(reporter=TellingDoubts())
    found = dict(zip(items, similar(DiskStorage(folder), items, k, selection, work), strict=True))
    ranked = {item: list(enumerate(alike, start=1)) for item, alike in found.items()}
    if json_output:
        answers = {
            item: [{"item_id": offer.item_id, "score": offer.score, "rank": rank} for rank, offer in alike]
            for item, alike in ranked.items()
        }
        print_json({"similar": [{"item_id": item, "items": alike} for item, alike in answers.items()]})
        return
    rows = [(item, rank, offer.item_id, offer.score) for item, alike in ranked.items() for rank, offer in alike]
    print_table(["item", "rank", "similar", "score"], rows)
    for item, alike in found.items():
        if not alike:
            print_line(f"item {item}: the model finds no item that is similar{' and may be shown' if filters else ''}")
