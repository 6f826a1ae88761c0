"""The steps of a chain: a stage shapes shared parameters, and rows belong to the users of one group.

Every step says what names it, how many samples it visits, and makes its parameters from its parent's shared ones. It
may be told of the same step as it was made earlier, under the same parent, and keep what still holds of it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from erasable.data import Interactions, differing_rows, unchanged_users
from erasable.models import Arrays, Change, Effort, Model, Parameters, Stage, make_model
from erasable.training.state import Knowledge

_Step = TypeVar("_Step")


@dataclass(frozen=True)
class Made(Generic[_Step]):
    """A step as it was made earlier, and what came of it."""

    step: _Step
    parameters: Parameters


class Step(Protocol):
    """One step of a chain."""

    @property
    def knowledge(self) -> Knowledge:
        """What it is made from."""

    @property
    def position(self) -> int:
        """Which group it is about."""

    @property
    def label(self) -> str:
        """What it is called."""

    @property
    def facts(self) -> Mapping[str, object]:
        """Everything that its outcome depends on beside its parent."""

    @property
    def samples(self) -> int:
        """How many samples it visits from scratch."""

    def visits(self, earlier: Self | None) -> int:
        """Return how many samples it visits, given the same step as it was made earlier, if it was."""

    def run(self, shared: Arrays | None, earlier: Made[Self] | None, effort: Effort) -> Parameters:
        """Return its outcome from its parent's shared parameters, or from the start."""


@dataclass(frozen=True, eq=False)
class StageStep:
    """Trains shared parameters, and rows of their own where those are not solved, on the learners of one group."""

    knowledge: Knowledge
    position: int

    @property
    def label(self) -> str:
        """What it is called."""
        return f"stage {self.position + 1}"

    @property
    def facts(self) -> Mapping[str, object]:
        """Return the learners' rows, the items known, settings and seed, and whether personal rows are left out."""
        return {
            "position": self.position,
            "rows": self.stage.interactions.digest(),
            "catalogue": self.knowledge.catalogue.digest(self.knowledge.items_known(self.position)),
            "scale": self.knowledge.scale.high,
            "settings": self.knowledge.config.stage_facts(),
            "seed": self.knowledge.config.seed,
            **({"rows solved": True} if self.knowledge.solves_rows else {}),
        }

    @cached_property
    def stage(self) -> Stage:
        """The data of the stage, and all that decides what training on it gives."""
        config = self.knowledge.config
        learners = self.knowledge.learners(self.position)
        return Stage(learners, self.knowledge.scale, config.stage_epochs, config.seed, self.position)

    @property
    def samples(self) -> int:
        """How many samples training visits."""
        return self._model.samples(self.stage.interactions, self.stage.epochs)

    def visits(self, earlier: "StageStep | None") -> int:
        """Return how many samples training visits, or the short way from what was trained earlier."""
        change = self._change(earlier)
        short = None if change is None else self._model.samples_amended(self.stage.interactions, change)
        return self.samples if short is None else short

    def run(self, shared: Arrays | None, earlier: "Made[StageStep] | None", effort: Effort) -> Parameters:
        """Train from the parent's shared parameters, which have not seen the stage's data."""
        change = self._change(earlier.step) if earlier else None
        if shared is None and earlier is not None and change is not None:
            amended = self._model.amended(earlier.parameters.shared, change, effort)
            if amended is not None:
                return Parameters(amended, {})
        trained = self._model.train(self._start(shared), self.stage, effort)
        return Parameters(trained.shared, {}) if self.knowledge.solves_rows else trained

    def _start(self, shared: Arrays | None) -> Arrays:
        """Return the shared parameters to begin with, with rows for all items that the stage knows."""
        items, seed = self.stage.interactions.items, self.knowledge.config.seed
        if shared is None:
            return self._model.start(items, seed)
        known = self.knowledge.items_known(self.position - 1)
        return shared if known == len(items) else self._model.extended(shared, items, seed)

    def _change(self, earlier: "StageStep | None") -> Change | None:
        if earlier is None or self.position > 0:
            return None
        before, after = earlier.stage.interactions, self.stage.interactions
        return Change(*differing_rows(before, after)) if before.items == after.items else None

    @property
    def _model(self) -> Model:
        return make_model(self.knowledge.config)


@dataclass(frozen=True, eq=False)
class RowsStep:
    """Solves the personal row of every user of a group under the shared parameters of the last stage."""

    knowledge: Knowledge
    position: int

    @property
    def label(self) -> str:
        """What it is called."""
        return f"rows of group {self.position + 1}"

    @property
    def facts(self) -> Mapping[str, object]:
        """Return the users' data, settings and seed; a row depends on nothing else."""
        config = self.knowledge.config
        return {
            "users": self.knowledge.groups[self.position].users.digest(),
            "rows": self._known.digest(),
            "scale": self.knowledge.scale.high,
            "settings": config.row_facts(),
            "seed": config.seed,
        }

    @property
    def samples(self) -> int:
        """How many samples solving every row visits."""
        return self._samples(self._known)

    def visits(self, earlier: "RowsStep | None") -> int:
        """Return how many samples solving the rows visits that can't be kept."""
        return self._samples(self._known.select(self._to_solve(earlier)))

    def run(self, shared: Arrays | None, earlier: "Made[RowsStep] | None", effort: Effort) -> Parameters:
        """Solve the rows of users whose data are new or changed; the others' are what they were."""
        if shared is None:
            raise ValueError("rows follow from a stage")
        users, seed = self.knowledge.groups[self.position].users, self.knowledge.config.seed
        rows = {name: array.copy() for name, array in self._model.newcomers(shared, users, seed).items()}
        if earlier is not None:
            before = self._places_before(earlier.step)
            for name, array in rows.items():
                array[before >= 0] = earlier.parameters.rows[name][before[before >= 0]]
        wanted = self._known.select(self._to_solve(earlier.step if earlier else None))
        if len(wanted):
            places = users.positions_of(wanted.users.array)
            for name, solved in self._model.solve(shared, self._stage(wanted), effort).items():
                rows[name][places] = solved
        return Parameters({}, rows)

    @cached_property
    def _known(self) -> Interactions:
        """Return the group's interactions with items that the shared parameters know."""
        group = self.knowledge.groups[self.position]
        return group.of_first_items(self.knowledge.items_known(self.knowledge.stages - 1))

    def _stage(self, wanted: Interactions) -> Stage:
        config = self.knowledge.config
        return Stage(wanted, self.knowledge.scale, config.row_epochs, config.seed, position=0)

    def _samples(self, wanted: Interactions) -> int:
        return self._model.samples_of_rows(wanted, self.knowledge.config.row_epochs)

    def _places_before(self, earlier: "RowsStep") -> NDArray[np.int64]:
        group, before = self.knowledge.groups[self.position], earlier.knowledge.groups[self.position]
        return unchanged_users(before, group)

    def _to_solve(self, earlier: "RowsStep | None") -> NDArray[np.bool_]:
        """Return which known interactions belong to users whose rows can't be kept."""
        known, group = self._known, self.knowledge.groups[self.position]
        if earlier is None:
            return np.ones(len(known), dtype=bool)
        changed = group.users.take(np.flatnonzero(self._places_before(earlier) < 0))
        return (changed.positions_of(known.users.array) >= 0)[known.user_index]

    @property
    def _model(self) -> Model:
        return make_model(self.knowledge.config)
