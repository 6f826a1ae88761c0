"""Commands that later versions bring; each says so and ends with exit code 2."""

from collections.abc import Callable
from typing import Annotated

import typer

from erasable.errors import NotYet

NAMES = {
    "serve": "run the erasure service",
    "token": "manage the service's tokens",
}


def register(app: typer.Typer) -> None:
    """Add the commands that are not there yet."""
    for name, purpose in NAMES.items():
        settings = {"ignore_unknown_options": True, "allow_extra_args": True}
        app.command(name, help=f"Not there yet: {purpose}.", context_settings=settings)(_refusal(name))


def _refusal(name: str) -> Callable[..., None]:
    def refuse(arguments: Annotated[list[str] | None, typer.Argument(hidden=True)] = None) -> None:
        raise NotYet(f"{name} is not there yet: it comes with a later version")

    return refuse
