"""Options that several commands share, and options made from settings so that each setting is written once."""

import inspect
import types
import typing
from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import BaseModel, ValidationError

from erasable.cli.output import TerminalReporter
from erasable.data import ColumnNames
from erasable.operations import Work, available_cores
from erasable.training import Config
from erasable.training.settings import wrong_setting

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output and nothing else.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but the result.")]
Threads = Annotated[
    int | None,
    typer.Option(min=1, max=1024, help="How many threads to use; changes no byte.", show_default="all cores"),
]
Issuer = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Who issues the certificates; kept until another name, or none (''), is given."),
]
Folder = Annotated[Path, typer.Argument(metavar="DIR", help="The workspace folder.", show_default=False)]


def work_with(threads: int | None, quiet: bool = False) -> Work:
    """Return how a command works: threads, and progress on the terminal."""
    return Work(threads or available_cores(), TerminalReporter(quiet))


def settings_options(
    *fields: Mapping[str, inspect.Parameter],
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command an option for each setting; its last parameters receive the given ones as dictionaries."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(command)
        own = list(signature.parameters.values())[: -len(fields)]
        receivers = list(signature.parameters)[-len(fields) :]

        @wraps(command)
        def call(**values: Any) -> None:  # noqa: ANN401 - what the options give
            options = [{name: values.pop(name) for name in part} for part in fields]
            given = [{name: value for name, value in part.items() if value is not None} for part in options]
            command(**values, **dict(zip(receivers, given, strict=True)))

        parameters = [*own, *(parameter for part in fields for parameter in part.values())]
        parameters = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in parameters]
        call.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return call

    return decorate


def parameters_of(model: type[BaseModel], suffix: str = "") -> dict[str, inspect.Parameter]:
    """Return one optional parameter for each field of a settings class, with its sentence as help."""
    return {
        name + suffix: inspect.Parameter(
            name + suffix,
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[
                _without_none(field.annotation) | None,
                typer.Option(
                    metavar=_metavar(field.annotation),
                    help=field.description,
                    show_default=_default_text(field.default),
                ),
            ],
        )
        for name, field in model.model_fields.items()
    }


def columns_from(given: Mapping[str, Any]) -> ColumnNames:
    """Build column names from the options given."""
    try:
        return ColumnNames(**{name.removesuffix("_column"): value for name, value in given.items()})
    except ValidationError as error:
        raise wrong_setting(error, suffix="-column") from None


def _without_none(annotation: Any) -> Any:  # noqa: ANN401 - a type
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        return next(part for part in typing.get_args(annotation) if part is not type(None))
    return annotation


def _metavar(annotation: Any) -> str | None:  # noqa: ANN401 - a type
    return "LOW HIGH" if typing.get_origin(_without_none(annotation)) is tuple else None


def _default_text(default: Any) -> str | bool:  # noqa: ANN401 - whatever the field holds
    return False if default is None else str(default)


CONFIG_OPTIONS = parameters_of(Config)
COLUMN_OPTIONS = parameters_of(ColumnNames, suffix="_column")
