"""`erasable data get`."""

import shlex
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from erasable.cli.options import Json, Quiet, work_with
from erasable.cli.output import print_json, print_line
from erasable.data.public_sets import PUBLIC_SETS, get_public_set, public_set
from erasable.wording import counted

NAME = "data"
app = typer.Typer(help="Get public data sets.", no_args_is_help=True, rich_markup_mode=None)


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
