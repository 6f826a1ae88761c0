"""The `erasable` command: its subcommands, and one place where errors become messages and exit codes."""

import sys
from typing import Annotated, NoReturn

import typer

from erasable import __version__
from erasable.cli import (
    audit,
    data,
    demo,
    doctor,
    evaluate,
    forget,
    groups,
    learn,
    plan,
    recommend,
    reproduce,
    scan,
    serve,
    show,
    status,
    token,
    upgrade,
    verify,
)
from erasable.cli.options import Sectioned
from erasable.cli.output import be_quiet, print_error, print_line
from erasable.errors import ErasableError, exit_code
from erasable.interrupts import INTERRUPTED, STOPPED, received, take_last_word

app = typer.Typer(
    help="Recommender systems that can forget: learn, recommend, erase a person, and prove it byte for byte.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
for module in (
    demo,
    learn,
    recommend,
    show,
    plan,
    forget,
    verify,
    scan,
    audit,
    evaluate,
    groups,
    status,
    upgrade,
    reproduce,
    serve,
    doctor,
):
    app.command(module.NAME, cls=learn.LearnCommand if module is learn else Sectioned)(module.command)
app.add_typer(data.app, name=data.NAME)
app.add_typer(token.app, name=token.NAME)


def _print_version(wanted: bool) -> None:
    if wanted:
        print_line(f"erasable {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and end."),
    ] = False,
) -> None:
    """Recommender systems that can forget: learn, recommend, erase a person, and prove it byte for byte."""
    be_quiet(False)  # a process may run several commands


def main() -> None:
    """Run the command."""
    try:
        app(prog_name="erasable")
    except ErasableError as error:
        code = exit_code(error)
        if received() and code != INTERRUPTED:  # what Ctrl-C broke off failed in its own words
            _end_interrupted()
        take_last_word()
        print_error(error.of_command)
        sys.exit(code)
    except SystemExit as end:
        if end.code == INTERRUPTED:  # what typer makes of Ctrl-C, without a word
            _end_interrupted()
        raise


def _end_interrupted() -> NoReturn:
    take_last_word()
    print_error(STOPPED)
    sys.exit(INTERRUPTED)
