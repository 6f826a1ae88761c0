"""The file of settings in a workspace: the model, the strategy and the rest, each by name; a number says its format."""

import json
from collections.abc import Collection, Mapping
from typing import Any

from erasable.documents import format_in, newer
from erasable.errors import NewerDocument, Refused, UnknownModel, WorkspaceError, WrongSetting
from erasable.models import Model, find_model, is_ours, model_names, source_digest
from erasable.training import Config
from erasable.training.settings import OwnSettings, Written
from erasable.training.strategies import STRATEGIES

FORMAT = 2
"""0.1's flat file, which has no number, was the first."""
_PARTS = {"model": ("name", "revision", "settings"), "strategy": ("name", "settings")}


def encode_settings(config: Config) -> bytes:
    """Write a configuration; what a newer version had written beside it stays."""
    if not is_ours(config.learner) and not source_digest(config.learner):
        raise Refused(
            f"the model {config.model!r} has no source file, so nobody could open it again: define it in a module of "
            "its own, or keep the recommender in memory"
        )
    named = _dumped(config.learner.settings, config.written.unnamed)
    model = {"name": config.model, "revision": config.revision, "settings": named}
    strategy = {"name": config.strategy, "settings": _dumped(config.learning.settings)}
    further = dict(config.written.further)
    document = {
        "format": FORMAT,
        "model": {**model, **further.pop("model", {})},
        "strategy": {**strategy, **further.pop("strategy", {})},
        "settings": _dumped(config.own),
        **further,
    }
    return (json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()


def decode_settings(content: bytes, file: str, handed_over: type[Model] | None = None) -> Config:
    """Read a configuration; its model is one that is registered, or the one that was handed over."""
    document = json.loads(content)  # its hash is right, so it was written like this
    found = format_in(document)
    if found is None or found < FORMAT:
        raise WorkspaceError(f"{file} has no format that was ever written: restore it from a copy")
    if found > FORMAT:
        raise NewerDocument(f"{file} {newer(found, FORMAT)}")
    model, strategy = document["model"], document["strategy"]
    kind = _model_class(model["name"], file, handed_over)
    try:
        parts = kind(**model["settings"]), STRATEGIES[strategy["name"]](**strategy["settings"])
        own = OwnSettings(**document["settings"])
    except (WrongSetting, ValueError, KeyError) as error:
        raise WorkspaceError(
            f"{file} has settings that this version of erasable does not know: use the version that wrote it"
        ) from error
    unnamed = frozenset(kind.settings_class.model_fields) - model["settings"].keys()
    return Config.joined(*parts, own, Written(model["revision"], _further(document), unnamed))


def _model_class(name: str, file: str, handed_over: type[Model] | None) -> type[Model]:
    if handed_over is not None and handed_over.name == name:
        return handed_over
    try:
        return find_model(name)
    except WrongSetting as error:
        if name in model_names():
            raise UnknownModel(f"{file} can't be used here: {error}") from error
        raise UnknownModel(
            f"{file} names the model {name!r}, which is not registered here: install the package that registers it, or "
            "open the workspace with its object, Recommender.load(folder, model=…)"
        ) from error


def _further(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return what this version does not know of a document, at its top and beside the names of model and strategy."""
    top = {name: value for name, value in document.items() if name not in ("format", "settings", *_PARTS)}
    for part, known in _PARTS.items():
        unknown = {name: value for name, value in document[part].items() if name not in known}
        top |= {part: unknown} if unknown else {}
    return top


def _dumped(settings: Any, without: Collection[str] = ()) -> dict[str, Any]:  # noqa: ANN401 - any settings
    dumped: dict[str, Any] = settings.model_dump(mode="json", exclude=set(without))
    return dumped
