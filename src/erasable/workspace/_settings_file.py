"""The settings file of a workspace, in every format ever released, and how version 0.1 named checkpoints."""

import json
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from erasable import fingerprint
from erasable.chain.checkpoints import (
    ORIGIN,
    Link,
)
from erasable.chain.dataset import (
    Dataset,
    RowsName,
)
from erasable.chain.settings import Config, OwnSettings, Written
from erasable.chain.strategies import STRATEGIES
from erasable.chain.tasks import stages_of
from erasable.data.ids import Ids
from erasable.data.interactions import Interactions
from erasable.documents import format_in, newer, read_json
from erasable.errors import NewerDocument, Refused, WorkspaceDamaged, WorkspaceError, WrongSetting, WrongUse, said
from erasable.grouping.registry import anchors_among
from erasable.models.base import Model
from erasable.models.registry import (
    BUILT_IN,
    GROUP,
    AbsentModel,
    absent_model,
    find_model,
    is_ours,
    made_with,
    make_model,
    model_names,
    source_digest,
)
from erasable.workspace.manifest import damaged

FORMAT = 2
"""Format 1 is the flat file of version 0.1, which has no format number."""


class _Named(BaseModel):
    """The strategy, with its settings; fields that a newer version added are kept."""

    model_config = ConfigDict(strict=True, extra="allow")
    name: str = Field(min_length=1)
    settings: dict[str, Any]


class _NamedModel(_Named):
    """The model, with its revision and settings."""

    revision: int


class _Document(BaseModel):
    """The settings file in the current format."""

    model_config = ConfigDict(strict=True, extra="allow")
    format: int
    model: _NamedModel
    strategy: _Named
    settings: dict[str, Any]


def encode_settings(config: Config) -> bytes:
    """Write a configuration, together with fields that a newer version added."""
    learner = make_model(config)
    if not is_ours(learner) and not source_digest(learner):
        raise Refused(
            f"the model {config.model!r} has no source file, so nobody could open it again: define it in its own "
            "module, or keep the recommender in memory"
        )
    named = _dumped(config.learner.settings, config.written.unnamed)
    model = {"name": config.model, "revision": config.revision, "settings": named}
    strategy = {"name": config.strategy, "settings": _dumped(config.learning.settings)}
    further = dict(config.written.further)
    document = {
        "format": FORMAT,
        "model": {**model, **further.pop("model", {})},
        "strategy": {**strategy, **further.pop("strategy", {})},
        "settings": config.own.written(),
        **further,
    }
    return (json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()


def decode_settings(content: bytes, file: str, handed_over: type[Model] | None = None) -> Config:
    """Read a configuration; its model is a registered one, or the class passed in.

    If neither is found, a placeholder takes its place: the data can still be inspected, but whatever needs the model
    is refused.
    """
    document = _read(content, file)
    model, strategy = document.model, document.strategy
    kind = _model_class(document, handed_over)
    learner = _learner(kind, {**kind.settings_class.earlier, **model.settings}, file)
    unnamed = frozenset(kind.settings_class.model_fields) - model.settings.keys()
    try:
        how = STRATEGIES[strategy.name]
        learning = how(**{**how.settings_class.earlier, **strategy.settings})
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
    """Return the model with the settings of a file, or name the setting that this version lacks or refuses.

    Settings are neither dropped nor filled in: that would train a different model under the same name.
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
    """Return the remedy when the installed model is not the version that wrote the workspace."""
    learn = "learn again from the data into another folder"
    if kind.name in BUILT_IN:
        return f"use the version of erasable that wrote it, or {learn}"
    return f"install the version that wrote it, pass it with Recommender.load(folder, model=…), or {learn}"


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
    """Return the fields that this version does not know: at the top level, and of the model and the strategy."""
    parts = {"model": document.model.model_extra, "strategy": document.strategy.model_extra}
    return {**(document.model_extra or {}), **{name: further for name, further in parts.items() if further}}


def _dumped(settings: Any, without: Collection[str] = ()) -> dict[str, Any]:  # noqa: ANN401 - any settings
    dumped: dict[str, Any] = settings.model_dump(mode="json", exclude=set(without))
    return dumped


NAMED_BY_0_1 = "0.1"
_OF_A_STAGE = ("model", "batch", "negatives", "learning_rate", "factors", "regularisation")
_OF_A_ROW = (*_OF_A_STAGE, "row_epochs")


class Named(NamedTuple):
    """The names that version 0.1 gave a checkpoint and its parent."""

    fingerprint: str
    parent: str


class _Settings(BaseModel):
    """The settings that version 0.1 put into the names of checkpoints."""

    model_config = ConfigDict(strict=True, extra="allow")
    model: str
    strategy: str
    rows: Literal["stage", "solved"]
    groups: int = Field(ge=1)
    anchors: float = Field(gt=0, le=1)
    seed: int = Field(ge=0)
    epochs: int = Field(ge=1)
    epoch_budget: Literal["shared", "full"]
    batch: Any
    negatives: Any
    learning_rate: Any
    factors: Any
    regularisation: Any
    row_epochs: Any


def settings_of_0_1(content: bytes, file: str) -> dict[str, Any]:
    """Return the settings of a 0.1 file, which lists them flat for every model."""
    try:
        settings: dict[str, Any] = read_json(content)
        _Settings.model_validate(settings)
    except ValueError as error:
        raise damaged(file) from error
    return settings


_REVISION = 1
"""The revision of every model of 0.1, which wrote none."""


def config_of_0_1(settings: Mapping[str, Any], file: str) -> Config:
    """Return the configuration of a 0.1 file: only the settings that its model and strategy have."""
    try:
        chosen = Config(model=settings["model"], strategy=settings["strategy"])
        known = [*chosen.flat(), *OwnSettings.model_fields]
        given = {name: settings[name] for name in dict.fromkeys(known) if name in settings}
        earlier = {**chosen.learner.settings.earlier, **chosen.learning.settings.earlier}
        config = Config(**{**earlier, **given})
        return Config.joined(config.learner, config.learning, config.own, replace(config.written, revision=_REVISION))
    except WrongUse as error:
        raise damaged(file) from error


def names_of_0_2(dataset: Dataset) -> list[Named]:
    """Return the names that version 0.2 gave the checkpoints of a chain: it hashed the rows of a stage as a whole."""
    found: list[Named] = []
    for task in stages_of(dataset):
        parent = ORIGIN if not found or dataset.config.strategy == "sisa" else found[-1].fingerprint
        learners = dataset.learners(task.position).by_id()
        rows = RowsName(learners.digest(), learners.items.digest())
        found.append(Named(replace(task, parent=parent, rows=rows).name, parent))
    return found


def renamed_chain(recorded: Sequence[Link], names: Sequence[Named], new: Sequence[str]) -> tuple[Link, ...]:
    """Check the names that an earlier release gave the checkpoints, and return the chain under today's names."""
    if [Named(link.fingerprint, link.parent) for link in recorded] != list(names):
        raise WorkspaceDamaged(
            "the checkpoints do not follow from the data in the workspace: restore a copy made after the last erasure"
        )
    renamed = {ORIGIN: ORIGIN, **{old.fingerprint: name for old, name in zip(names, new, strict=False)}}
    return tuple(
        replace(link, fingerprint=name, parent=renamed[link.parent]) for name, link in zip(new, recorded, strict=False)
    )


@dataclass(frozen=True, eq=False)
class Recipe:
    """How version 0.1 named the checkpoints of a chain."""

    settings: Mapping[str, Any]
    items: Ids
    versions: Sequence[int]
    highest_rating: float
    groups: Sequence[Interactions]

    def names(self) -> list[Named]:
        """Return the names of all steps: the stages, then the rows of each group if they were solved."""
        facts = [self._stage_facts(position) for position in range(self._stages)]
        facts += [self._row_facts(position) for position in range(len(self.groups) if self._solves_rows else 0)]
        found: list[Named] = []
        for place, step in enumerate(facts):
            follows = min(place, self._stages) - 1
            begins = follows < 0 or self.settings["strategy"] == "sisa"
            parent = "origin" if begins else found[follows].fingerprint
            found.append(Named(fingerprint.of_value({"parent": parent, **step}), parent))
        return found

    @property
    def _solves_rows(self) -> bool:
        return bool(self.settings["rows"] == "solved")

    @property
    def _stages(self) -> int:
        count = len(self.groups)
        return min(self.settings["groups"], count) if self._solves_rows else count

    def _stage_facts(self, position: int) -> dict[str, Any]:
        known = self._items_known(position)
        settings = {name: self.settings[name] for name in _OF_A_STAGE}
        return {
            "position": position,
            "rows": _of_first_items(self._of_anchors(self.groups[position]), known).digest(),
            "catalogue": Ids(self.items.array[:known]).digest(),
            "scale": self.highest_rating,
            "settings": {**settings, "epochs": self._stage_epochs},
            "seed": self.settings["seed"],
            **({"rows solved": True} if self._solves_rows else {}),
        }

    def _row_facts(self, position: int) -> dict[str, Any]:
        group = self.groups[position]
        return {
            "users": group.users.digest(),
            "rows": _of_first_items(group, self._items_known(self._stages - 1)).digest(),
            "scale": self.highest_rating,
            "settings": {name: self.settings[name] for name in _OF_A_ROW},
            "seed": self.settings["seed"],
        }

    @property
    def _stage_epochs(self) -> int:
        epochs: int = self.settings["epochs"]
        shared = self.settings["epoch_budget"] == "shared"
        return math.ceil(epochs / self.settings["groups"]) if shared else epochs

    def _items_known(self, position: int) -> int:
        """Return how many items the shared parameters cover after a stage: those of the last version that it needs."""
        if len(self.versions) == 1:
            return self.versions[0]
        first = position if self.settings["strategy"] == "sisa" else 0
        groups = (self._of_anchors(self.groups[place]) for place in range(first, position + 1))
        largest = max((int(np.max(group.item_index, initial=-1)) for group in groups), default=-1)
        return next(items for items in self.versions if items > largest)

    def _of_anchors(self, rows: Interactions) -> Interactions:
        anchors = anchors_among(rows.users, self.settings["anchors"], self.settings["seed"])
        return rows if anchors.all() else rows.select(anchors[rows.user_index])


def _of_first_items(rows: Interactions, count: int) -> Interactions:
    return rows if count == len(rows.items) else rows.select(rows.item_index < count)
