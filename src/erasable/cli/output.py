"""What a command shows: a result on standard output, as words or as JSON; progress and notes on standard error."""

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table

from erasable.operations.reporting import Advance

out = Console(highlight=False, soft_wrap=True)
err = Console(stderr=True, highlight=False, soft_wrap=True)


class TerminalReporter:
    """Shows notes and progress bars on standard error; silent when that is no terminal."""

    def __init__(self, quiet: bool = False) -> None:
        self._shown = err.is_terminal and not quiet

    def note(self, text: str) -> None:
        """Show a note."""
        if self._shown:
            err.print(text, style="dim", markup=False)

    @contextmanager
    def track(self, label: str, total: int) -> Iterator[Advance]:
        """Show a bar with the time left; it vanishes when the work is done."""
        columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
        with Progress(*columns, console=err, transient=True, disable=not self._shown) as progress:
            task = progress.add_task(label, total=max(total, 1))
            yield lambda done: progress.advance(task, done)


def print_json(value: dict[str, Any]) -> None:
    """Print one JSON object."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=2) + "\n")


def print_line(text: str, style: str = "") -> None:
    """Print a line of the result."""
    out.print(text, style=style, markup=False)


def print_table(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a small table; numbers stand right."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for place, heading in enumerate(headings):
        numeric = bool(rows) and all(isinstance(row[place], int | float) for row in rows)
        table.add_column(heading, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*(_cell(value) for value in row))
    out.print(table)


def print_error(text: str) -> None:
    """Say on standard error why a command ends."""
    err.print(f"erasable: {text}", style="red" if err.is_terminal else "", markup=False)


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
