"""The options about the do-not-learn list, and what they mean together; the names of 0.1 stay, hidden."""

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from erasable.errors import WrongUse
from erasable.proof.suppression import Suppression

_LIST = typer.Option(
    metavar="LIST", help="Another do-not-learn list than the one beside DIR: who was erased and must not come back."
)
_KEY = typer.Option(metavar="KEY", help="The key of that list, which lies in another folder.")
_WITHOUT = typer.Option("--no-do-not-learn", help="Keep no do-not-learn list: an old file may bring people back.")
_READMIT = typer.Option(metavar="U", help="Take someone off the do-not-learn list who really comes back; repeatable.")


def _option(name: str, kind: Any, option: Any, default: Any = None) -> inspect.Parameter:  # noqa: ANN401 - of typer
    annotation = Annotated[kind, option]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


PLACES = {
    "do_not_learn": _option("do_not_learn", Path | None, _LIST),
    "do_not_learn_key": _option("do_not_learn_key", Path | None, _KEY),
    "suppression": _option("suppression", Path | None, typer.Option(hidden=True)),
    "suppression_key": _option("suppression_key", Path | None, typer.Option(hidden=True)),
}
FORGETTING = PLACES | {"no_do_not_learn": _option("no_do_not_learn", bool, _WITHOUT, default=False)}
LEARNING = FORGETTING | {
    "readmit": _option("readmit", list[str] | None, _READMIT),
    "drop_suppressed": _option("drop_suppressed", bool, typer.Option("--drop-suppressed", hidden=True), default=False),
}


def suppression_from(given: Mapping[str, Any]) -> Suppression | None:
    """Return the list that the options name; a list without its key, or the other way round, makes no sense."""
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
    return Suppression(list_file, key_file)
