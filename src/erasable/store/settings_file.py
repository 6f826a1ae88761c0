"""The file of settings in a workspace: the model, the strategy and the rest, each by name; a number says its format."""

import json
from collections.abc import Collection, Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from erasable.documents import format_in, newer, read_json
from erasable.errors import NewerDocument, Refused, WorkspaceError, WrongSetting, WrongUse, said
from erasable.models import (
    BUILT_IN,
    AbsentModel,
    Model,
    absent_model,
    find_model,
    is_ours,
    make_model,
    model_names,
    source_digest,
)
from erasable.models.registry import GROUP, made_with
from erasable.store.manifest import damaged
from erasable.training import Config
from erasable.training.settings import OwnSettings, Written
from erasable.training.strategies import STRATEGIES

FORMAT = 2
"""0.1's flat file, which has no number, was the first."""


class _Named(BaseModel):
    """A strategy by its name; what a newer version has added is kept."""

    model_config = ConfigDict(strict=True, extra="allow")
    name: str = Field(min_length=1)
    settings: dict[str, Any]


class _NamedModel(_Named):
    """A model by its name."""

    revision: int


class _Document(BaseModel):
    """The file as it is written."""

    model_config = ConfigDict(strict=True, extra="allow")
    format: int
    model: _NamedModel
    strategy: _Named
    settings: dict[str, Any]


def encode_settings(config: Config) -> bytes:
    """Write a configuration; what a newer version had written beside it stays."""
    learner = make_model(config)
    if not is_ours(learner) and not source_digest(learner):
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
    """Read a configuration; its model is one that is registered, or the one that was handed over.

    Where it is neither, a stand-in takes its place: what is held can be looked at, and whatever needs the model is
    refused.
    """
    document = _read(content, file)
    model, strategy = document.model, document.strategy
    kind = _model_class(document, handed_over)
    learner = _learner(kind, {**kind.settings_class.earlier, **model.settings}, file)
    unnamed = frozenset(kind.settings_class.model_fields) - model.settings.keys()
    try:
        learning = STRATEGIES[strategy.name](**strategy.settings)
        own = OwnSettings(**document.settings)
        return Config.joined(learner, learning, own, Written(model.revision, _further(document), unnamed))
    except (WrongUse, ValueError, KeyError, TypeError) as error:
        raise WorkspaceError(
            f"{file} has settings that this version of erasable does not know: use the version that wrote it"
        ) from error


def _read(content: bytes, file: str) -> _Document:
    try:
        fields = read_json(content)
        found = format_in(fields)
        if found is not None and found > FORMAT:
            raise NewerDocument(f"{file} {newer(found, FORMAT)}")
        document = _Document.model_validate(fields)
    except ValueError as error:
        raise damaged(file) from error
    if found != FORMAT:
        raise damaged(file)
    return document


def _learner(kind: type[Model], settings: Mapping[str, Any], file: str) -> Model:
    """Return the model with the settings of a file; one that this version of the model has not, or refuses, is named.

    Nothing is left out or made up: what is learned would be another model under the old one's name.
    """
    unknown = sorted(settings.keys() - kind.settings_class.model_fields.keys())
    if unknown and not issubclass(kind, AbsentModel):
        names = ", ".join(f"{name} = {json.dumps(settings[name])}" for name in unknown)
        what = f"names the setting {names}, which this version of the model {kind.name!r} does not have"
        raise WorkspaceError(f"{file} {what}: {_other_version(kind)}")
    try:
        return made_with(kind, settings)
    except WrongSetting as error:
        what = f"{file} has a setting that this version of the model {kind.name!r} refuses ("
        raise WorkspaceError(what, error.said, f"): {_other_version(kind)}") from error


def _other_version(kind: type[Model]) -> str:
    """Say what helps where the model is not of the version that wrote a workspace."""
    learn = "learn again from the data into another folder"
    if kind.name in BUILT_IN:
        return f"use the version of erasable that wrote it, or {learn}"
    return f"install the version that wrote it, hand it over with Recommender.load(folder, model=…), or {learn}"


def _model_class(document: _Document, handed_over: type[Model] | None) -> type[Model]:
    name = document.model.name
    if handed_over is not None and handed_over.name == name:
        return handed_over
    try:
        return find_model(name)
    except WrongSetting as error:
        if name in model_names():
            why = said("can't be used here: ", error.said)
        else:
            why = said(
                f"no installed package brings (entry point group {GROUP}): install it, or open the workspace with "
                "Recommender.load(…, model=YourClass)"
            )
        trains_rows = document.settings.get("rows") == "stage"
        reason = said(f"this workspace's model is {name!r}, which ", why)
        return absent_model(name, document.model.revision, trains_rows, reason)


def _further(document: _Document) -> dict[str, Any]:
    """Return what this version does not know of a document, at its top and beside the names of model and strategy."""
    parts = {"model": document.model.model_extra, "strategy": document.strategy.model_extra}
    return {**(document.model_extra or {}), **{name: further for name, further in parts.items() if further}}


def _dumped(settings: Any, without: Collection[str] = ()) -> dict[str, Any]:  # noqa: ANN401 - any settings
    dumped: dict[str, Any] = settings.model_dump(mode="json", exclude=set(without))
    return dumped
