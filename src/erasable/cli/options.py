"""Options that several commands share, and options made from settings so that each setting is written once."""

import inspect
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from typer.core import TyperCommand

from erasable.cli.output import TerminalReporter, be_quiet, print_error
from erasable.data import ColumnNames
from erasable.grouping import grouping_names
from erasable.models import BUILT_IN, Model, every_model, find_model, model_names
from erasable.models.settings import wrong_setting
from erasable.operations import Work, available_cores
from erasable.training.settings import USUAL_MODEL, listed, settings_classes
from erasable.training.strategies import STRATEGIES

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output and nothing else.")]
Quiet = Annotated[
    bool,
    typer.Option("--quiet", "-q", callback=be_quiet, help="Print nothing but errors, and JSON where it is asked for."),
]
OnlyTheAnswer = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but the answer, and errors.")]
Threads = Annotated[
    int | None,
    typer.Option(min=1, max=1024, help="How many threads to use; changes no byte.", show_default="all cores"),
]
Issuer = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Who issues the certificates; kept until another name, or none (''), is given."),
]
Folder = Annotated[Path, typer.Argument(metavar="DIR", help="The workspace folder.", show_default=False)]


class Sectioned(TyperCommand):
    """A command whose help shows options that belong together under a heading of their own."""

    def format_options(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401 - typer's own
        """Write arguments and options, those without a heading first."""
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                usual = "Arguments" if parameter.param_type_name == "argument" else "Options"
                sections.setdefault(getattr(parameter, "rich_help_panel", None) or usual, []).append(record)
        for heading, records in sections.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)


def work_with(threads: int | None, quiet: bool = False) -> Work:
    """Return how a command works: threads, and progress on the terminal."""
    return Work(threads or available_cores(), TerminalReporter(quiet))


def settings_options(
    *fields: Mapping[str, inspect.Parameter],
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command an option for each setting; its last parameters receive the given ones as dictionaries.

    The command's own options win: a setting of the same name, of another package's model, can be given in a file only.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(command)
        own = list(signature.parameters.values())[: -len(fields)]
        receivers = list(signature.parameters)[-len(fields) :]
        taken = {parameter.name for parameter in own}
        free = [{name: one for name, one in part.items() if name not in taken} for part in fields]

        @wraps(command)
        def call(**values: Any) -> None:  # noqa: ANN401 - what the options give
            options = [{name: values.pop(name) for name in part} for part in free]
            given = [{name: value for name, value in part.items() if value is not None} for part in options]
            command(**values, **dict(zip(receivers, given, strict=True)))

        parameters = [*own, *(parameter for part in free for parameter in part.values())]
        parameters = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in parameters]
        call.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return call

    return decorate


def parameters_of(model: type[BaseModel], suffix: str = "") -> dict[str, inspect.Parameter]:
    """Return one optional parameter for each field of a settings class, with its sentence as help."""
    return {
        name + suffix: _parameter(
            name + suffix,
            _without_none(field.annotation),
            field.description or "",
            metavar=_metavar(field.annotation),
            show_default=_default_text(field.default),
        )
        for name, field in model.model_fields.items()
    }


def _parameter(name: str, kind: Any, sentence: str, **shown: Any) -> inspect.Parameter:  # noqa: ANN401 - a type
    """Return a parameter for an option that may be left out."""
    annotation = Annotated[kind | None, typer.Option(help=sentence, **shown)]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def columns_from(given: Mapping[str, Any]) -> ColumnNames:
    """Build column names from the options given."""
    try:
        return ColumnNames(**{name.removesuffix("_column"): value for name, value in given.items()})
    except ValidationError as error:
        raise wrong_setting(error, suffix="_column") from None


def _without_none(annotation: Any) -> Any:  # noqa: ANN401 - a type
    """Return the type of an option; what may be one of several types is taken as text, and read by the settings."""
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        kinds = [part for part in typing.get_args(annotation) if part is not type(None)]
        return kinds[0] if len(kinds) == 1 else str
    return annotation


def _metavar(annotation: Any) -> str | None:  # noqa: ANN401 - a type
    if typing.get_origin(_without_none(annotation)) is tuple:
        return "LOW HIGH"
    words = [word for part in typing.get_args(annotation) for word in typing.get_args(part) if isinstance(word, str)]
    return "|".join(["NUMBER", *words]) if words and _without_none(annotation) is str else None


def _default_text(default: Any) -> str | bool:  # noqa: ANN401 - whatever the field holds
    return False if default is None else str(default)


def _named_options() -> dict[str, inspect.Parameter]:
    """Return the options that choose a model and a strategy."""
    return {
        "model": _parameter(
            "model",
            str,
            "The model: ease or als (closed forms), nmf or dmf (trained by steps), or one that a package registers.",
            metavar="|".join(model_names()),
            show_default=USUAL_MODEL,
        ),
        "strategy": _parameter(
            "strategy",
            str,
            "How to learn: laser (groups in sequence), sisa (a model for each group) or retrain (all at once).",
            metavar="|".join(STRATEGIES),
            show_default="laser for nmf and dmf, retrain for ease and als",
        ),
    }


def config_options(
    models: Mapping[str, type[Model]] = BUILT_IN, chosen: str = USUAL_MODEL
) -> dict[str, inspect.Parameter]:
    """Return an option for each setting of models and strategies; one that several have says what each means.

    It has the type that it has in the chosen model, if that has it.
    """
    fields: dict[str, dict[str, FieldInfo]] = {}
    for owner, kind in settings_classes(models).items():
        for name, field in kind.model_fields.items():
            fields.setdefault(name, {})[owner] = field
    return {**_named_options(), **{name: _shared_option(name, of, chosen) for name, of in fields.items()}}


def of_another_package(model: object) -> dict[str, type[Model]]:
    """Return the model of a name by that name if a package registers it, which is imported; else none."""
    named = isinstance(model, str) and model not in BUILT_IN and model in model_names()
    return {str(model): find_model(str(model))} if named else {}


def models_that_load() -> dict[str, type[Model]]:
    """Import every model that packages register, and say in a line each which of them can't be used."""
    found, faults = every_model()
    for fault in faults:
        print_error(fault)
    return found


def _shared_option(name: str, fields: Mapping[str, FieldInfo], chosen: str) -> inspect.Parameter:
    owners = list(fields)
    meanings: dict[str, list[str]] = {}
    defaults: dict[str, list[str]] = {}
    for owner, field in fields.items():
        meanings.setdefault(field.description or "", []).append(owner)
        defaults.setdefault(str(_default_text(field.default) or ""), []).append(owner)
    typed = fields.get(chosen, fields[owners[0]]).annotation
    return _parameter(
        name,
        _without_none(typed),
        " ".join(text if len(meanings) == 1 else f"{listed(of)}: {text}" for text, of in meanings.items()),
        metavar=f"<{'|'.join(grouping_names())}>" if name == "grouping" else _metavar(typed),
        show_default=", ".join(
            text if len(defaults) == 1 else f"{text} for {listed(of)}" for text, of in defaults.items() if text
        )
        or False,
        rich_help_panel=_panel(owners),
    )


def _panel(owners: Sequence[str]) -> str:
    """Say whose settings stand together in the help."""
    if "" in owners:
        return "Settings"
    of_strategies = ("strategy " if len(owners) == 1 else "strategies ") if owners[0] in STRATEGIES else ""
    return f"Settings of {of_strategies}{listed(owners)}"


CONFIG_OPTIONS = config_options()
"""Those of the models that are built in; a command imports another one only if it is named."""
COLUMN_OPTIONS = parameters_of(ColumnNames, suffix="_column")
