"""Exit codes of commands with a verdict: 0 and 1 are the verdict, and what keeps them from one is 2."""

import traceback
from collections.abc import Callable
from functools import wraps
from typing import Any

import typer

from erasable.cli.output import print_error
from erasable.errors import ErasableError, exit_code

_REFUSED, _NO_VERDICT = 1, 2


def with_verdict(command: Callable[..., None]) -> Callable[..., None]:
    """Have a command end with 2 where another one would end with 1 without having reached a verdict."""

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
        except Exception:  # whatever it is
            # A fault of ours ends with 1 in Python, which would read as a verdict.
            traceback.print_exc()
            raise typer.Exit(_NO_VERDICT) from None

    return call
