"""Options that several commands share, and what is built from them: settings, requests, do-not-learn list, columns.

Options for settings are made from the settings classes, so that each is written once.
"""

import csv
import inspect
import json
import tomllib
import types
import typing
from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from difflib import get_close_matches
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from typer.core import TyperCommand

from erasable.chain.settings import USUAL_MODEL, settings_classes
from erasable.chain.strategies import STRATEGIES
from erasable.checked_settings import sentences_of
from erasable.cli.output import TerminalReporter, be_quiet, print_error
from erasable.data.columns import ColumnNames
from erasable.data.values import OnBadRow
from erasable.errors import DataRefused, WrongUse
from erasable.grouping.registry import grouping_names
from erasable.models.base import Model
from erasable.models.registry import BUILT_IN, every_model, find_model, model_names
from erasable.models.settings import wrong_setting
from erasable.operations.people import NOT_SERVED, SERVED_WITHOUT
from erasable.operations.work import RayCluster, Work, available_cores
from erasable.proof.do_not_learn import DoNotLearnFiles
from erasable.requests.request import Request
from erasable.wording import listed


def read_config(path: Path | None, known: Collection[str] | None = None) -> dict[str, Any]:
    """Read settings from a file, and refuse names that are not `known`; without a file there are none."""
    if path is None:
        return {}
    try:
        text = path.read_text(encoding="utf-8")
        settings = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except OSError:
        raise WrongUse(f"{path}: can't be read: give --config a TOML or JSON file") from None
    except ValueError as error:
        raise WrongUse(f"{path}: neither TOML nor JSON ({error}): correct it") from None
    if not isinstance(settings, dict):
        raise WrongUse(f"{path}: holds no settings: write lines such as groups = 8")
    unknown = [name for name in settings if known is not None and name not in known]
    if known is not None and unknown:
        near = get_close_matches(unknown[0], known, n=1)
        meant = f"did you mean {near[0]!r}? T" if near else "t"
        raise WrongUse(f"{path}: there is no setting {unknown[0]!r}: {meant}he settings are {', '.join(sorted(known))}")
    return settings


Users = Annotated[
    list[str] | None,
    typer.Option("--user", metavar="U", help="A user's id, exactly as in the data; may be repeated."),
]
UsersFile = Annotated[
    Path | None,
    typer.Option("--users-file", help="A file with one user id a line, or CSV user_id[,item_id]."),
]
Items = Annotated[
    list[str] | None,
    typer.Option("--item", metavar="I", help="Only this item of the one user given; may be repeated."),
]


def requests_from(users: list[str] | None, users_file: Path | None, items: list[str] | None) -> list[Request]:
    """Return the requests that the options name."""
    if items and (users_file is not None or len(users or []) != 1):
        raise WrongUse("--item needs exactly one --user: give one, and leave out --users-file")
    if not users and users_file is None:
        raise WrongUse("say who: give --user U (may be repeated) or --users-file F")
    named = [Request(user, tuple(items) if items else None) for user in users or []]
    return named + (read_requests(users_file) if users_file else [])


def until_then(people: int, served: int, done: bool = False) -> str:
    """Return whether those who ask are served until they are erased.

    >>> until_then(1, 1), until_then(3, 0, done=True)
    ('until that is done: served without these items', 'while that was done: not served')
    >>> until_then(3, 1)
    'until that is done: 1 served without the items asked for, 2 not served'
    """
    when = "while that was done" if done else "until that is done"
    if served and served < people:
        return f"{when}: {served} served without the items asked for, {people - served} {NOT_SERVED}"
    return f"{when}: {SERVED_WITHOUT if served else NOT_SERVED}"


def read_requests(path: Path) -> list[Request]:
    """Read requests from a file with one user id a line, or CSV with the header user_id[,item_id].

    With an item column every line needs an item: a blank one must not be taken to mean the whole person.
    """
    lines = _numbered_lines(path)
    header = _fields(lines[0][1]) if lines else []
    if header[:1] == ["user_id"]:
        requests = _requests_of_rows(path, header, lines[1:])
    else:
        requests = [Request(line) for _, line in lines]
    if not requests:
        raise DataRefused(f"{path}: names no user: write one user id a line")
    return requests


def _requests_of_rows(path: Path, header: list[str], rows: list[tuple[int, str]]) -> list[Request]:
    if header not in (["user_id"], ["user_id", "item_id"]):
        # Ignoring a column of another name could forget more than was asked.
        raise DataRefused(f"{path}, line 1: the columns are {', '.join(header)}: give user_id or user_id,item_id")
    items: dict[str, list[str]] = {}
    for number, row in rows:
        fields = next(csv.reader([row]))
        if len(fields) != len(header) or not all(fields):
            raise DataRefused(
                f"{path}, line {number}: is no {','.join(header)}: correct it (whole people: leave out the item column)"
            )
        items.setdefault(fields[0], []).extend(fields[1:])
    return [Request(user, tuple(named) or None) for user, named in items.items()]


def _fields(header: str) -> list[str]:
    return [name.strip() for name in next(csv.reader([header]))]


def _numbered_lines(path: Path) -> list[tuple[int, str]]:
    """Return the lines that are not empty, each with its number from 1."""
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except OSError:
        raise DataRefused(f"{path}: can't be read: give a file with one user id a line") from None
    except UnicodeDecodeError:
        raise DataRefused(f"{path}: not UTF-8 text: save it as UTF-8") from None
    return [(number, line) for number, line in enumerate(lines, start=1) if line]


_LIST = typer.Option(
    metavar="LIST", help="Another do-not-learn list than the one beside DIR: who was erased and must not come back."
)
_KEY = typer.Option(metavar="KEY", help="The key of that list, in another folder.")
_WITHOUT = typer.Option("--no-do-not-learn", help="Keep no do-not-learn list: an old file may bring people back.")
_READMIT = typer.Option(
    metavar="U", help="Take someone who really comes back off the do-not-learn list; may be repeated."
)

_EXECUTOR = typer.Option(help="Where tasks run: in this process, or on Ray (needs the extra ray); changes no byte.")
_ADDRESS = typer.Option(
    metavar="HOST:PORT",
    help="The Ray cluster, whose nodes all see the workspace; else Ray is started for this command alone.",
)


def option(name: str, kind: Any, option: Any, default: Any = None) -> inspect.Parameter:  # noqa: ANN401 - of typer
    """Return a parameter of a command for an option."""
    annotation = Annotated[kind, option]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


PLACES = {
    "do_not_learn": option("do_not_learn", Path | None, _LIST),
    "do_not_learn_key": option("do_not_learn_key", Path | None, _KEY),
    "suppression": option("suppression", Path | None, typer.Option(hidden=True)),
    "suppression_key": option("suppression_key", Path | None, typer.Option(hidden=True)),
}
EXECUTOR = {
    "executor": option("executor", Literal["local", "ray"], _EXECUTOR, default="local"),
    "address": option("address", str | None, _ADDRESS),
}
FORGETTING = PLACES | {"no_do_not_learn": option("no_do_not_learn", bool, _WITHOUT, default=False)}
LEARNING = FORGETTING | {
    "readmit": option("readmit", list[str] | None, _READMIT),
    "drop_suppressed": option("drop_suppressed", bool, typer.Option("--drop-suppressed", hidden=True), default=False),
}


def do_not_learn_from(given: Mapping[str, Any]) -> DoNotLearnFiles | None:
    """Return the do-not-learn list that the options name; a list and its key must be given together."""
    list_file = given.get("do_not_learn") or given.get("suppression")
    key_file = given.get("do_not_learn_key") or given.get("suppression_key")
    if list_file is None and key_file is None:
        return None
    if given.get("no_do_not_learn"):
        raise WrongUse("--no-do-not-learn keeps no list: leave out --do-not-learn and --do-not-learn-key")
    if key_file is None:
        raise WrongUse("--do-not-learn needs its key: give --do-not-learn-key KEY too")
    if list_file is None:
        raise WrongUse("--do-not-learn-key needs its list: give --do-not-learn LIST too")
    return DoNotLearnFiles(list_file, key_file)


Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output and nothing else.")]
Quiet = Annotated[
    bool,
    typer.Option("--quiet", "-q", callback=be_quiet, help="Print nothing but errors, and JSON where it is asked for."),
]
OnlyTheAnswer = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but the answer, and errors.")]
Wait = Annotated[
    bool, typer.Option("--wait", help="If another command is writing the workspace, wait for it instead of refusing.")
]
Threads = Annotated[
    int | None,
    typer.Option(min=1, max=1024, help="How many threads to use; changes no byte.", show_default="all cores"),
]
BadRows = Annotated[
    OnBadRow, typer.Option(help="What to do about rows that can't be used: refuse the input, or leave them out.")
]
Issuer = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Who issues the certificates; kept until another name, or none (''), is given."),
]
Folder = Annotated[Path, typer.Argument(metavar="DIR", help="The workspace folder.", show_default=False)]


class Sectioned(TyperCommand):
    """A command whose help groups its options under headings."""

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


def work_with(threads: int | None, quiet: bool = False, executor: Mapping[str, Any] | None = None) -> Work:
    """Return the threads and the progress reporter of a command, and where its tasks run."""
    return Work(threads or available_cores(), TerminalReporter(quiet), cluster=cluster_from(executor or {}, threads))


def cluster_from(given: Mapping[str, Any], threads: int | None = None) -> RayCluster | None:
    """Return the Ray cluster that the options name, if they name one."""
    address = given.get("address")
    if given.get("executor") == "ray":
        return RayCluster.at(address, threads)
    if address is not None:
        raise WrongUse("--address is that of a Ray cluster: give --executor ray too")
    return None


def settings_options(
    *fields: Mapping[str, inspect.Parameter],
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command an option for each setting; its last parameters receive those given as dictionaries.

    The command's own options win: a setting of the same name in another package's model can be given in a file only.
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
    sentences = sentences_of(model)
    return {
        name + suffix: _parameter(
            name + suffix,
            _without_none(field.annotation),
            sentences[name],
            metavar=_metavar(field.annotation),
            show_default=_default_text(field.default),
        )
        for name, field in model.model_fields.items()
    }


def _parameter(name: str, kind: Any, sentence: str, **shown: Any) -> inspect.Parameter:  # noqa: ANN401 - a type
    """Return a parameter for an option that may be left out."""
    annotation = Annotated[kind | None, typer.Option(help=sentence, **shown)]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def with_default(options: Mapping[str, inspect.Parameter], name: str, shown: object) -> dict[str, inspect.Parameter]:
    """Return the options, one of them with the default that a command of its own has for it."""
    kind, told = typing.get_args(options[name].annotation)
    other = copy(told)
    other.show_default = str(shown)
    return {**options, name: options[name].replace(annotation=Annotated[kind, other])}


def columns_from(given: Mapping[str, Any]) -> ColumnNames:
    """Build column names from the options given."""
    try:
        return ColumnNames(**{name.removesuffix("_column"): value for name, value in given.items()})
    except ValidationError as error:
        raise wrong_setting(error, suffix="_column") from None


def _without_none(annotation: Any) -> Any:  # noqa: ANN401 - a type
    """Return the type of an option; where several types are allowed it is text, which the settings parse."""
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
            "The model: ease or als (closed forms), item-knn or popular (counts), nmf or dmf (trained by steps), "
            "sasrec or two-tower (PyTorch), or one that a package registers.",
            metavar="|".join(model_names()),
            show_default=USUAL_MODEL,
        ),
        "strategy": _parameter(
            "strategy",
            str,
            "How to learn: laser (groups in sequence), sisa (a model for each group) or retrain (all at once).",
            metavar="|".join(STRATEGIES),
            show_default="laser for nmf and dmf, retrain for the others",
        ),
    }


def config_options(
    models: Mapping[str, type[Model]] = BUILT_IN, chosen: str = USUAL_MODEL
) -> dict[str, inspect.Parameter]:
    """Return an option for each setting of models and strategies; a shared one says what it means for each.

    Its type is that of the chosen model, if the model has it.
    """
    fields: dict[str, dict[str, tuple[FieldInfo, str]]] = {}
    for owner, kind in settings_classes(models).items():
        sentences = sentences_of(kind)
        for name, field in kind.model_fields.items():
            fields.setdefault(name, {})[owner] = field, sentences[name]
    return {**_named_options(), **{name: _shared_option(name, of, chosen) for name, of in fields.items()}}


def of_another_package(model: object) -> dict[str, type[Model]]:
    """Import a model that a package registers, and return it by its name; nothing for other names."""
    named = isinstance(model, str) and model not in BUILT_IN and model in model_names()
    return {str(model): find_model(str(model))} if named else {}


def models_that_load() -> dict[str, type[Model]]:
    """Import every model that packages register, and print a line for each that can't be used."""
    found, faults = every_model()
    for fault in faults:
        print_error(fault)
    return found


def _shared_option(name: str, fields: Mapping[str, tuple[FieldInfo, str]], chosen: str) -> inspect.Parameter:
    owners = list(fields)
    meanings: dict[str, list[str]] = {}
    defaults: dict[str, list[str]] = {}
    for owner, (field, sentence) in fields.items():
        meanings.setdefault(sentence, []).append(owner)
        defaults.setdefault(str(_default_text(field.default) or ""), []).append(owner)
    typed = fields.get(chosen, fields[owners[0]])[0].annotation
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
    """Return the heading in the help for the settings of some owners."""
    if "" in owners:
        return "Settings"
    of_strategies = ("strategy " if len(owners) == 1 else "strategies ") if owners[0] in STRATEGIES else ""
    return f"Settings of {of_strategies}{listed(owners)}"


if TYPE_CHECKING:
    CONFIG_OPTIONS: dict[str, inspect.Parameter]
    """The options of the built-in models; another model is imported only if it is named."""
    COLUMN_OPTIONS: dict[str, inspect.Parameter]


def __getattr__(name: str) -> object:
    """Make options on first use: some commands need none of these, and their sentences are read from source files."""
    if name == "CONFIG_OPTIONS":
        found = config_options()
    elif name == "COLUMN_OPTIONS":
        found = parameters_of(ColumnNames, suffix="_column")
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found
    return found
