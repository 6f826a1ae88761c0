"""Commands with a verdict: 0 and 1 are theirs alone."""

import pytest
import typer

from erasable.cli.output import with_verdict
from erasable.errors import DataRefused, Refused, Unfinished, WorkspaceBusy, WrongUse


def ended(error: Exception) -> int:
    """Return the exit code of a command that ends with an error."""

    @with_verdict
    def command() -> None:
        """Fail."""
        raise error

    with pytest.raises(typer.Exit) as end:
        command()
    return end.value.exit_code


@pytest.mark.parametrize("error", [Refused("x"), DataRefused("x"), WorkspaceBusy("x"), WrongUse("x")])
def test_what_is_refused_is_no_verdict(error, capsys):
    assert ended(error) == 2
    assert capsys.readouterr().err == "erasable: x\n"


@pytest.mark.parametrize("error", [KeyError("x"), OSError("x"), RuntimeError("x"), AssertionError("x")])
def test_a_fault_of_ours_is_no_verdict_and_is_shown_whole(error, capsys):
    assert ended(error) == 2
    assert "Traceback" in capsys.readouterr().err


def test_what_ends_otherwise_still_does():
    assert ended(Unfinished("x")) == 130
    assert [ended(typer.Exit(code)) for code in (0, 1, 3)] == [0, 1, 3]


def test_the_command_keeps_its_name_and_its_sentence():
    @with_verdict
    def command(folder: str) -> None:
        """Say something."""

    assert (command.__name__, command.__doc__) == ("command", "Say something.")
    assert command("x") is None
