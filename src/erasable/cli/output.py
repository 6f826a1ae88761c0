"""What a command shows: a result on standard output, as words or as JSON; progress and notes on standard error."""

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from rich.cells import cell_len
from rich.console import Console

from erasable.operations.reporting import Bars

out = Console(highlight=False, soft_wrap=True)
err = Console(stderr=True, highlight=False, soft_wrap=True)


def shows_progress() -> bool:
    """Whether standard error is a terminal, where progress is worth showing."""
    return sys.stderr.isatty()


def can_ask() -> bool:
    """Whether somebody sits at a terminal, who can be asked."""
    return sys.stdin.isatty() and sys.stderr.isatty()


class TerminalReporter(Bars):
    """Shows notes and progress bars on standard error; silent when that is no terminal."""

    def __init__(self, quiet: bool = False) -> None:
        super().__init__(shows_progress() and not quiet, err)

    def note(self, text: str) -> None:
        """Show a note."""
        if self._shown:
            err.print(text, style="dim", markup=False, emoji=False)

    def doubt(self, text: str) -> None:
        """Show a doubt."""
        if self._shown:
            err.print(text, style="yellow", markup=False, emoji=False)


def print_json(value: dict[str, Any]) -> None:
    """Print one JSON object."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=2) + "\n")


def print_line(text: str, style: str = "") -> None:
    """Print a line of the result, as it is: an id may look like rich's own notation ([red], :smile:)."""
    out.print(text, style=style, markup=False, emoji=False)


def print_table(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a small table; numbers stand right, and no id is cut or broken over two lines (rich's table would)."""
    columns = [_column(heading, [row[place] for row in rows]) for place, heading in enumerate(headings)]
    for number, cells in enumerate(zip(*columns, strict=True)):
        print_line("  ".join(cells).rstrip(), style="" if number else "bold")


def print_facts(facts: Mapping[str, object]) -> None:
    """Print names and values, one a line."""
    width = max(map(len, facts))
    for name, value in facts.items():
        print_line(f"{name.replace('_', ' '):<{width}}  {_cell(value)}")


def print_error(text: str) -> None:
    """Say on standard error why a command ends."""
    err.print(f"erasable: {text}", style="red", markup=False, emoji=False)


def counted(number: int, one: str, more: str | None = None) -> str:
    """Say how many of something there are.

    >>> counted(1, "group"), counted(1200, "user"), counted(2, "person", "people")
    ('1 group', '1,200 users', '2 people')
    """
    return f"{number:,} {one if number == 1 else more or one + 's'}"


def _column(heading: str, values: Sequence[object]) -> list[str]:
    cells = [heading, *map(_cell, values)]
    width = max(map(cell_len, cells))
    numeric = bool(values) and all(isinstance(value, int | float) for value in values)
    gaps = (" " * (width - cell_len(cell)) for cell in cells)
    return [gap + cell if numeric else cell + gap for cell, gap in zip(cells, gaps, strict=True)]


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
