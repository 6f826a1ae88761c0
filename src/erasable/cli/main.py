"""The `erasable` command: its subcommands, and one place where errors become messages and exit codes.

A subcommand is imported when it is called, so that none waits for the imports of another.
"""

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated, NoReturn

import typer

from erasable import __version__
from erasable.cli.options import Sectioned
from erasable.cli.output import be_quiet, print_error, print_line
from erasable.errors import ErasableError, exit_code
from erasable.interrupts import INTERRUPTED, STOPPED, received, take_last_word

COMMANDS = (
    *("demo", "learn", "sync", "recommend", "similar", "items", "show", "plan", "forget", "verify", "scan", "attack"),
    *("evaluate", "compare", "tune", "groups", "status", "upgrade", "reproduce", "serve", "doctor", "data", "token"),
)
"""The subcommands in the order of the help; each is the module of that name."""
EARLIER_NAMES = {"audit": "attack"}
"""Subcommands that had another name up to 0.1: it still works, and no help shows it."""


def make_app(names: Sequence[str] = COMMANDS) -> typer.Typer:
    """Make the command with these subcommands; only their modules are imported."""
    app = typer.Typer(
        help="Recommender systems that can forget: learn, recommend, erase a person, and prove it byte for byte.",
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )
    app.callback()(_root)
    for module in (import_module(f"erasable.cli.{name}") for name in names):
        if hasattr(module, "app"):
            app.add_typer(module.app, name=module.NAME)
        else:
            app.command(module.NAME, cls=getattr(module, "COMMAND_CLASS", Sectioned))(module.command)
    for earlier, name in EARLIER_NAMES.items():
        if name in names:
            app.command(earlier, cls=Sectioned, hidden=True)(import_module(f"erasable.cli.{name}").command)
    return app


def _print_version(wanted: bool) -> None:
    if wanted:
        print_line(f"erasable {__version__}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    """Recommender systems that can forget: learn, recommend, erase a person, and prove it byte for byte."""
    be_quiet(False)  # a process may run several commands


def main() -> None:
    """Run the command."""
    called = [name for name in map(_present_name, sys.argv[1:2]) if name in COMMANDS]
    try:
        make_app(called or COMMANDS)(prog_name="erasable")
    except ErasableError as error:
        code = exit_code(error)
        if received() and code != INTERRUPTED:  # Ctrl-C made it fail with another message
            _end_interrupted()
        take_last_word()
        print_error(error.of_command)
        sys.exit(code)
    except SystemExit as end:
        if end.code == INTERRUPTED:  # typer turns Ctrl-C into this, without a message
            _end_interrupted()
        raise


def _present_name(given: str) -> str:
    return EARLIER_NAMES.get(given, given)


def _end_interrupted() -> NoReturn:
    take_last_word()
    print_error(STOPPED)
    sys.exit(INTERRUPTED)
