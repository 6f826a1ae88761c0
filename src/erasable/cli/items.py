"""`erasable items`."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from erasable.cli.options import Folder, Json, Quiet, Wait, work_with
from erasable.cli.output import print_json, print_line
from erasable.cli.selecting import ids_in
from erasable.errors import WrongUse
from erasable.operations.declared_items import declare_items, items_of, read_declared
from erasable.operations.storage import DiskStorage
from erasable.wording import counted

NAME = "items"


def command(
    folder: Folder,
    hide: Annotated[
        list[str] | None,
        typer.Option(metavar="I,I", help="Recommend these items to nobody from now on, without training; repeatable."),
    ] = None,
    show: Annotated[
        list[str] | None, typer.Option(metavar="I,I", help="Recommend these hidden items again; repeatable.")
    ] = None,
    attributes: Annotated[
        Path | None,
        typer.Option(
            "--set",
            metavar="FILE",
            help="Replace the attributes of items, for recommend --where: CSV or Parquet, one row an item; nothing "
            "about people. A scan finds their ids there, but not those that are numbers of fewer than 8 digits or ids "
            "of items too.",
        ),
    ] = None,
    item_column: Annotated[
        str | None, typer.Option(metavar="NAME", help="The column of --set with the item's id, by name or number.")
    ] = None,
    wait: Wait = False,
    json_output: Json = False,
    quiet: Quiet = False,
) -> None:
    """Hide items, declare their attributes, or say what is declared."""
    if item_column is not None and attributes is None:
        raise WrongUse("--item-column is for --set: give it too, or leave both out")
    reporter = work_with(None, quiet or json_output).reporter
    storage = DiskStorage(folder, waiting=reporter if wait else None)
    if hide or show or attributes is not None:
        table = None if attributes is None else read_declared(attributes, item_column)
        found = declare_items(storage, ids_in(hide or []), ids_in(show or []), table)
    else:
        found = items_of(storage)
    if json_output:
        print_json(asdict(found))
        return
    print_line(f"{counted(found.items, 'item')} in the catalogue")
    print_line(f"hidden: {', '.join(found.hidden) or 'none'}")
    print_line(f"attributes: {', '.join(found.attributes) or 'none'}; declared for {counted(found.declared, 'item')}")
    if found.unknown:
        print_line(f"nobody has {counted(found.unknown, 'item')} of these yet: they can't be recommended before")
