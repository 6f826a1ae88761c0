"""Tasks: one stage to be made, described by names and settings alone, so that it can be carried out anywhere.

A task holds no data: its inputs have names, and whoever carries it out finds them by these, in memory or on a disk.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

from erasable import fingerprint
from erasable.data import Interactions, RatingScale
from erasable.errors import Refused, option, said
from erasable.models import Amends, Arrays, Change, Effort, Model, Parameters, Stage, calls, one_blas_thread
from erasable.training.checkpoint import Checkpoint
from erasable.training.environment import environment_of
from erasable.training.state import Link, RowsName

ORIGIN = "origin"


class Inputs(Protocol):
    """Finds what tasks name; where it lies is its own business."""

    def rows(self, name: RowsName) -> Interactions:
        """Return the rows of a name."""

    def checkpoint(self, name: str) -> Checkpoint:
        """Return the checkpoint of a name."""

    def model(self, task: "Task") -> Model:
        """Return a task's model with its settings; nothing is imported because a task names it."""


@dataclass(frozen=True)
class Shortcut:
    """What a stage is amended from: its checkpoint as it was made earlier, the rows, and what making it took."""

    checkpoint: str = field(repr=False)
    rows: RowsName
    samples: int
    seconds: float


@dataclass(frozen=True)
class Task:
    """One stage to be made: the names of its inputs, and all else that decides its bytes; plain values only."""

    parent: str = field(repr=False)
    """The checkpoint that it starts from, or `ORIGIN`."""
    position: int
    rows: RowsName = field(repr=False)
    """The learners' rows, in the stage's own numbering of items."""
    settings: Mapping[str, Any]
    """The name of the model, its revision, its settings as far as they reach a stage, and the epochs."""
    scale: tuple[float, float]
    seed: int
    solves_rows: bool
    """Whether user rows are solved when they are needed, so that none are kept."""
    brings_items: bool
    """Whether the stage knows more items than the one that it follows."""
    samples: int
    """How many samples training from the start visits."""
    visits: int
    """How many samples making it visits: fewer where there is a shortcut."""
    beside: Mapping[str, str] = field(default_factory=dict)
    """What its bytes depend on beside the model: versions and sources of what decided the groups, if that counts."""
    shortcut: Shortcut | None = field(default=None, repr=False)
    """Where there is a short way, what it starts from."""

    @cached_property
    def name(self) -> str:
        """The fingerprint of its checkpoint: its parent, and all else that its outcome depends on."""
        facts = {
            "parent": self.parent,
            "position": self.position,
            "rows": self.rows.rows,
            "catalogue": self.rows.items,
            "scale": self.scale,
            "settings": self.settings,
            "seed": self.seed,
            **({"rows solved": True} if self.solves_rows else {}),
        }
        return fingerprint.of_value(facts)

    @property
    def label(self) -> str:
        """What it is called."""
        return label_of(self.position)

    @property
    def begins_from(self) -> str:
        """The checkpoint that making it reads, or `ORIGIN`."""
        return self.shortcut.checkpoint if self.shortcut else self.parent

    def run(self, inputs: Inputs, effort: Effort) -> tuple[Checkpoint, Link]:
        """Make the stage, and return its checkpoint and what making it from scratch takes; nothing is kept."""
        model, rows = inputs.model(self), inputs.rows(self.rows)
        stage = Stage(rows, RatingScale(*self.scale), self.settings["epochs"], self.seed, self.position)
        start = self.begins_from
        shared = None if start == ORIGIN else inputs.checkpoint(start).parameters.shared
        began = time.perf_counter()
        with one_blas_thread():  # a model that is not ours need not think of it
            if self.shortcut is None:
                parameters = self._trained(model, shared, stage, effort)
            else:
                parameters = self._amended(model, shared or {}, inputs.rows(self.shortcut.rows), stage, effort)
        seconds = time.perf_counter() - began
        if not parameters.all_finite():
            raise Refused(f"training {model.name} diverged at {self.label}: ", self._remedy())
        environment = environment_of(model, self.beside)
        link = Link(self.name, self.parent, self.samples, self._from_scratch(seconds), environment)
        by_item = calls.by_item(model, parameters.shared, len(rows.items))
        return Checkpoint(self.name, self.parent, parameters, environment, by_item), link

    def _amended(self, model: Model, made: Arrays, rows: Interactions, stage: Stage, effort: Effort) -> Parameters:
        """Take the short way from what was made earlier of other rows."""
        if not isinstance(model, Amends):
            raise Refused(f"{model.name} has no short way from other rows: plan again")
        return Parameters(calls.amended(model, made, Change.between(rows, stage.interactions), effort), {})

    def _trained(self, model: Model, shared: Arrays | None, stage: Stage, effort: Effort) -> Parameters:
        """Train from the parent's shared parameters, which have not seen the stage's data."""
        items = stage.interactions.items
        if shared is None:
            shared = calls.started(model, items, self.seed)
        elif self.brings_items:
            shared = calls.extended(model, shared, items, self.seed)
        trained = calls.trained(model, shared, stage, effort)
        return Parameters(trained.shared, {}) if self.solves_rows else trained

    def _from_scratch(self, seconds: float) -> float:
        """Return how long the whole stage takes at the rate that was measured; at that of earlier if too little was."""
        if self.shortcut is not None and 2 * self.visits < self.samples:
            earlier = self.shortcut
            return earlier.seconds * self.samples / earlier.samples if earlier.samples else 0.0
        return seconds * self.samples / self.visits if self.visits else 0.0

    def _remedy(self) -> str:
        """Say what keeps the model's training from diverging."""
        settings = self.settings["settings"]
        if settings.get("learning_rate"):
            return said("give a smaller ", option("learning_rate"))
        if settings.get("regularisation"):
            return said("give a larger ", option("regularisation"))
        return "change the model's settings"


def label_of(position: int) -> str:
    """Return what the stage at a position is called."""
    return f"stage {position + 1}"
