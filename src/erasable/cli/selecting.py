"""The options of `erasable recommend` and `similar` that limit which items are in the answer."""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

from erasable.cli.options import option
from erasable.cli.output import TerminalReporter
from erasable.data.item_lists import read_item_list
from erasable.operations.selection import Selection

_ITEMS = typer.Option(
    metavar="I,I",
    help="Recommend only these items, separated by commas (an id with a comma is quoted); may be repeated.",
)
_AVAILABLE = typer.Option(
    metavar="FILE",
    help="Recommend only items in this file: one id a line, or CSV with a header that names the item's column, and the "
    "user's for lists of users' own; other columns are ignored. Ids that the catalogue does not have are passed over.",
)
_EXCLUDE = typer.Option(metavar="I,I", help="Recommend none of these items; may be repeated.")
_EXCLUDE_FILE = typer.Option(
    metavar="FILE", help="Recommend none of the items in this file, which is written like --available."
)
_WHERE = typer.Option(
    metavar="FILTER",
    help="Recommend only items whose attributes fit: \"category == 'books' and price < 20\"; columns, comparisons, "
    "and, or, not, in (see erasable items --set).",
)
_SEEN = typer.Option("--seen", help="Recommend items that the user has too, held-out ones included.")
_SCORES = typer.Option("--scores", help="Print the model's score of each of --items instead, seen or not.")

SELECTING = {
    "items": option("items", list[str] | None, _ITEMS),
    "available": option("available", Path | None, _AVAILABLE),
    "exclude": option("exclude", list[str] | None, _EXCLUDE),
    "exclude_file": option("exclude_file", Path | None, _EXCLUDE_FILE),
    "where": option("where", str | None, _WHERE),
    "seen": option("seen", bool, _SEEN, default=False),
    "scores": option("scores", bool, _SCORES, default=False),
}

FILTERS = {name: SELECTING[name] for name in ("available", "exclude", "exclude_file", "where")}


class TellingDoubts(TerminalReporter):
    """Shows doubts where standard error is no terminal, too: that a stock list limits nothing must stand in a log."""

    def doubt(self, text: str) -> None:
        """Show a doubt."""
        self._print(text, "yellow")


def selection_from(given: Mapping[str, Any]) -> Selection:
    """Return the selection that the options name."""
    files = {name: (read_item_list(given[name]),) if given.get(name) else () for name in ("available", "exclude_file")}
    only, exclude = ((frozenset(ids_in(given[name])),) if given.get(name) else () for name in ("items", "exclude"))
    return Selection(
        only, files["available"], (*exclude, *files["exclude_file"]), bool(given.get("seen")), given.get("where")
    )


def ids_in(given: Sequence[str]) -> list[str]:
    """Return ids that are separated by commas, each once and without blanks around it; an id with a comma is quoted."""
    stripped = (one.strip() for row in csv.reader(given, skipinitialspace=True) for one in row)
    return list(dict.fromkeys(one for one in stripped if one))
