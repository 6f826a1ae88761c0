"""What a command prints: results on standard output, progress and notes on standard error; exit codes of verdicts."""

import json
import os
import re
import shlex
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import Any

import typer

from erasable.errors import ErasableError, exit_code, of_command
from erasable.progress import Bars
from erasable.wording import counted

_REFUSED, _NO_VERDICT = 1, 2
_LINES_AT_ONCE = 1000
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class _Results:
    """Whether results are printed."""

    quiet = False


def be_quiet(quiet: bool) -> bool:
    """Print nothing but JSON on standard output from now on, if `quiet`."""
    _Results.quiet = quiet
    return quiet


def shows_progress() -> bool:
    """Whether standard error is a terminal, where progress is worth showing."""
    return sys.stderr is not None and sys.stderr.isatty()


def can_ask() -> bool:
    """Whether somebody at a terminal can be asked."""
    return sys.stdin is not None and sys.stdin.isatty() and shows_progress()


class TerminalReporter(Bars):
    """Shows notes and progress bars on standard error; silent when that is no terminal."""

    def __init__(self, quiet: bool = False) -> None:
        super().__init__(shows_progress() and not quiet)

    def note(self, text: str) -> None:
        """Show a note."""
        if self._shown:
            self._print(text, "dim")

    def doubt(self, text: str) -> None:
        """Show a doubt."""
        if self._shown:
            self._print(text, "yellow")

    def _print(self, text: str, style: str) -> None:
        self.console.print(shown(of_command(text)), style=style, markup=False, emoji=False)


def of_newcomers(items: int, folder: Path) -> str:
    """Say that some items can't be recommended, and what helps.

    >>> of_newcomers(1, Path("shop"))
    "1 item belongs only to people who came later, and can't be recommended before erasable learn --again --into shop"
    """
    belong = counted(items, "item belongs", "items belong")
    again = f"erasable learn --again --into {shlex.quote(str(folder))}"
    return f"{belong} only to people who came later, and can't be recommended before {again}"


def print_json(value: dict[str, Any]) -> None:
    """Print one JSON object."""
    _write(json.dumps(_in_commands_words(value), ensure_ascii=False, indent=2))


def _in_commands_words(value: Any) -> Any:  # noqa: ANN401 - whatever JSON has
    """Return a value with all its texts worded for the command line."""
    if isinstance(value, Mapping):
        return {name: _in_commands_words(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_in_commands_words(part) for part in value]
    return of_command(value) if isinstance(value, str) else value


def print_line(text: str, **style: Any) -> None:  # noqa: ANN401 - what typer takes
    """Print a line of the result."""
    if not _Results.quiet:
        _write(shown(of_command(text)), **style)


def print_table(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a small table with numbers right-aligned; no id is cut or wrapped."""
    columns = [_column(heading, [row[place] for row in rows]) for place, heading in enumerate(headings)]
    first, *others = ("  ".join(cells).rstrip() for cells in zip(*columns, strict=True))
    print_line(first, bold=True)
    for start in range(0, len(others), _LINES_AT_ONCE):  # one by one, 60,000 lines take two seconds
        print_line("\n".join(others[start : start + _LINES_AT_ONCE]))


def print_facts(facts: Mapping[str, object]) -> None:
    """Print names and values, one a line."""
    width = max(map(len, facts))
    for name, value in facts.items():
        print_line(f"{name.replace('_', ' '):<{width}}  {_cell(value)}")


def print_error(text: str) -> None:
    """Say on standard error why a command ends."""
    _write(f"erasable: {shown(text)}", err=True, fg="red")


def _write(text: str, err: bool = False, **style: Any) -> None:  # noqa: ANN401 - what typer takes
    """Write lines, as they are: typer leaves out the style where nobody sees it."""
    plain = not style or bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
    try:
        typer.echo(text if plain else typer.style(text, **style), err=err)
    except BrokenPipeError:  # whoever reads has seen enough
        raise
    except OSError as error:
        if err:
            raise
        raise ErasableError(
            f"the result can't be printed ({error.strerror}), and what it tells of is done: send it to another place"
        ) from error


def shown(text: str) -> str:
    r"""Return a text with control characters escaped: an id or a file may hold any.

    >>> shown("a\x1b[31mb")
    'a\\x1b[31mb'
    """
    return _CONTROLS.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def _column(heading: str, values: Sequence[object]) -> list[str]:
    cells = [heading, *map(_cell, values)]
    widths = [_width(cell) for cell in cells]
    width, numeric = max(widths), bool(values) and all(isinstance(value, int | float) for value in values)
    gaps = (" " * (width - own) for own in widths)
    return [gap + cell if numeric else cell + gap for cell, gap in zip(cells, gaps, strict=True)]


def _width(cell: str) -> int:
    """Return how many places a terminal needs: two for a Chinese letter."""
    if cell.isascii() and cell.isprintable():
        return len(cell)
    from rich.cells import cell_len

    return cell_len(cell)


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def with_verdict(command: Callable[..., None]) -> Callable[..., None]:
    """Make a command end with 2 instead of 1 where it has reached no verdict: its 1 is a verdict."""

    @wraps(command)
    def call(*arguments: Any, **options: Any) -> None:  # noqa: ANN401 - what the options give
        try:
            command(*arguments, **options)
        except ErasableError as error:
            print_error(error.of_command)
            code = exit_code(error)
            raise typer.Exit(_NO_VERDICT if code == _REFUSED else code) from None
        except (typer.Exit, typer.Abort):
            raise
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # so that Python does not try again
            raise typer.Exit(_NO_VERDICT) from None
        except Exception:
            # Python would end with 1, which would read as a verdict.
            traceback.print_exc()
            raise typer.Exit(_NO_VERDICT) from None

    return call
