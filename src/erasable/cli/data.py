"""`erasable data get` and `erasable data make`."""

import shlex
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError

from erasable.cli.options import Json, Quiet, parameters_of, settings_options, work_with
from erasable.cli.output import print_json, print_line
from erasable.data.made_up import MadeUpSettings
from erasable.data.made_up_files import write_made_up
from erasable.data.public_sets import PUBLIC_SETS, get_public_set, public_set
from erasable.models.settings import wrong_setting
from erasable.wording import counted

NAME = "data"
app = typer.Typer(help="Get public data sets, or make data up.", no_args_is_help=True, rich_markup_mode=None)


@app.command("get")
def get(
    name: Annotated[str, typer.Argument(metavar="NAME", help=f"One of {', '.join(PUBLIC_SETS)}.", show_default=False)],
    into: Annotated[Path, typer.Option(metavar="DIR", help="Where to put it, as DIR/NAME/ratings.csv.")] = Path("data"),
    json_output: Json = False,
    quiet: Quiet = False,
) -> None:
    """Download a public data set, check it, and show its terms of use."""
    fetched = get_public_set(public_set(name), into, work_with(None, quiet or json_output).reporter)
    if json_output:
        print_json(asdict(fetched))
        return
    how = "was there already with" if fetched.kept else "was downloaded and checked:"
    print_line(f"{fetched.name} {how} {counted(fetched.rows, 'row')} in {fetched.path}")
    print_line(f"its terms: {fetched.licence}; in full: {fetched.terms}")
    print_line(f"next: erasable learn {shlex.quote(fetched.path)} --into shop --holdout 0.1")


@app.command("make")
@settings_options(parameters_of(MadeUpSettings))
def make(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="A new file; its ending says what to write: .parquet, .csv or .csv.gz.",
            show_default=False,
        ),
    ],
    files: Annotated[
        int | None,
        typer.Option(metavar="K", help="Make FILE a folder of K Parquet files, with the rows shared out in order."),
    ] = None,
    json_output: Json = False,
    quiet: Quiet = False,
    settings: dict[str, Any] | None = None,
) -> None:
    """Make up data of any size, to try things out on, and write it piece by piece.

    The same settings and seed give the same bytes, and however many files there are, the same rows.
    """
    try:
        chosen = MadeUpSettings(**settings or {})
    except ValidationError as error:
        raise wrong_setting(error) from None
    made = write_made_up(chosen, file, files, work_with(None, quiet or json_output).reporter)
    if json_output:
        print_json(asdict(made))
        return
    parts = "" if files is None else f" in {counted(made.files, 'file')}"
    print_line(
        f"made up {counted(made.users, 'user')} and {counted(made.items, 'item')}, "
        f"{counted(made.interactions, 'interaction')}{parts}: {made.path}"
    )
    if files is None:
        print_line(f"next: erasable learn {shlex.quote(made.path)} --into shop --holdout 0.1")
