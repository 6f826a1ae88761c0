"""What 0.1 wrote: its settings, and how it named checkpoints. Frozen: nothing here follows later changes.

A workspace of 0.1 is opened by working out 0.1's names from what it holds. Where they are those that its manifest has,
its checkpoints are handed on under the names of this version, without training.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from erasable import fingerprint
from erasable.data import Ids, Interactions
from erasable.documents import read_json
from erasable.errors import WorkspaceDamaged, WrongUse
from erasable.grouping import anchors_among
from erasable.store.manifest import damaged
from erasable.training import ORIGIN, Config, Knowledge, Link, link_names
from erasable.training.settings import OwnSettings

VERSION = "0.1"
_OF_A_STAGE = ("model", "batch", "negatives", "learning_rate", "factors", "regularisation")
_OF_A_ROW = (*_OF_A_STAGE, "row_epochs")


class Named(NamedTuple):
    """A checkpoint and the one that it followed from, as 0.1 named them."""

    fingerprint: str
    parent: str


class _Settings(BaseModel):
    """The settings that 0.1's names rest on."""

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
    """Return the settings of 0.1's file, all of them flat, whatever the model was."""
    try:
        settings: dict[str, Any] = read_json(content)
        _Settings.model_validate(settings)
    except ValueError as error:
        raise damaged(file) from error
    return settings


def config_of_0_1(settings: Mapping[str, Any], file: str) -> Config:
    """Return the configuration of 0.1's flat settings: those that its model and strategy have, and no others."""
    try:
        chosen = Config(model=settings["model"], strategy=settings["strategy"])
        known = [*chosen.flat(), *OwnSettings.model_fields]
        given = {name: settings[name] for name in dict.fromkeys(known) if name in settings}
        return Config(**{**chosen.learner.settings.earlier, **given})
    except WrongUse as error:
        raise damaged(file) from error


def chain_from_0_1(knowledge: Knowledge, recorded: Sequence[Link], names: Sequence[Named]) -> tuple[Link, ...]:
    """Return the chain under the names of this version, once 0.1's own names are found right."""
    if [Named(link.fingerprint, link.parent) for link in recorded] != list(names):
        raise WorkspaceDamaged(
            "the checkpoints are not those that the data held give: restore a copy made after the last erasure"
        )
    new = link_names(knowledge)
    renamed = {ORIGIN: ORIGIN, **{old.fingerprint: name for old, name in zip(names, new, strict=False)}}
    return tuple(
        replace(link, fingerprint=name, parent=renamed[link.parent]) for name, link in zip(new, recorded, strict=False)
    )


@dataclass(frozen=True, eq=False)
class Recipe:
    """How 0.1 named the checkpoints of a chain."""

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
        """Return how many items the shared parameters know after a stage: those of the last version that it needs."""
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
