"""Cells: one small measurement each, stored in a file named by the fingerprint of its inputs; and their settings."""

import json
import os
import platform
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from erasable import fingerprint
from erasable.chain.dataset import Dataset
from erasable.chain.settings import Config
from erasable.chain.strategies import LaserSettings
from erasable.checked_settings import CheckedSettings
from erasable.data.interactions import Interactions
from erasable.errors import DataRefused
from erasable.evaluation.protocols import PROTOCOLS, Protocol
from erasable.grouping.registry import MOST_GROUPS
from erasable.seeding import child_key, id_keys
from erasable.workspace.scratch import Scratch, remove_unused, scratch_below

REVISION = 1
"""Increased when the same cell would be measured differently, so that older files no longer count."""

Result = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Cell:
    """One measurement: its kind, the data, the settings of the chain, and further details."""

    measurement: str
    data: str
    """The digest of the interactions."""
    settings: Mapping[str, Any]
    details: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def facts(self) -> dict[str, Any]:
        """Everything that determines the result."""
        return {
            "measurement": self.measurement,
            "data": self.data,
            "settings": dict(self.settings),
            "details": dict(self.details),
            "revision": REVISION,
        }

    @cached_property
    def name(self) -> str:
        """The fingerprint of the facts."""
        return fingerprint.of_value(self.facts)[:32]

    def __str__(self) -> str:
        chosen = [self.settings[name] for name in ("model", "strategy", "grouping") if name in self.settings]
        groups = [f"{self.settings['groups']} groups"] if "groups" in self.settings else []
        details = [value for value in self.details.values() if isinstance(value, str)]
        return " ".join([self.measurement, *chosen, *groups, f"seed {self.settings.get('seed', 0)}", *details])


class CellStore:
    """Stores the results of cells in a folder, one file each; an incomplete file counts as missing."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def __contains__(self, cell: Cell) -> bool:
        return self._read(cell) is not None

    def get(self, cell: Cell) -> Result:
        """Return the result of a cell that was measured."""
        return self._kept(cell)["result"]

    def circumstances(self, cell: Cell) -> Result:
        """Return where and how a cell was measured."""
        return self._kept(cell)["circumstances"]

    def put(self, cell: Cell, result: Result, circumstances: Mapping[str, Any]) -> None:
        """Store the result of a cell, with the circumstances of its measurement."""
        content = {"cell": cell.facts, "result": result, "circumstances": circumstances}
        text = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
        partial = self._folder / f".{cell.name}.{os.getpid()}.partial"
        try:
            partial.write_text(text, encoding="utf-8")
            partial.replace(self._file(cell))
        finally:
            partial.unlink(missing_ok=True)

    def scratch(self) -> AbstractContextManager[Scratch]:
        """Make a folder among the cells for the files of remote tasks, and remove those that killed commands left."""
        remove_unused(self._folder.parent, self._folder.name)
        return scratch_below(self._folder.parent, self._folder.name)

    def _kept(self, cell: Cell) -> Result:
        kept = self._read(cell)
        if kept is None:
            raise DataRefused(f"{self._file(cell)}: is missing or damaged: run the same command again")
        return kept

    def _read(self, cell: Cell) -> Result | None:
        try:
            kept = json.loads(self._file(cell).read_text(encoding="utf-8"))
            whole = kept["cell"] == json.loads(json.dumps(cell.facts)) and {"result", "circumstances"} <= set(kept)
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None
        return kept if whole else None

    def _file(self, cell: Cell) -> Path:
        return self._folder / f"{cell.name}.json"


def about_groups(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that determine the groups and their order; for one group only those that select users."""
    config = config_of(settings)
    names = ["groups", "seed", "holdout", "min_interactions", "rating_scale"]
    names += [] if config.groups == 1 else ["grouping", "order", "reach"]
    return {name: getattr(config, name) for name in names}


def config_of(settings: Mapping[str, Any]) -> Config:
    """Return the configuration of a cell's settings; `retrain` has no groups and no epoch budget."""
    unused = LaserSettings.model_fields if settings.get("strategy") == "retrain" else ()
    return Config.of({name: value for name, value in settings.items() if name not in unused})


def in_batches(cells: Iterable[Cell]) -> list[list[Cell]]:
    """Return each cell once, in batches that need the same groups; cells of one chain are next to each other."""
    batches: dict[str, dict[str, Cell]] = {}
    for cell in cells:
        batches.setdefault(fingerprint.of_value(about_groups(cell.settings)), {})[cell.name] = cell
    return [sorted(batch.values(), key=_chain_and_request) for batch in batches.values()]


def _chain_and_request(cell: Cell) -> tuple[str, str]:
    chain = {name: value for name, value in cell.settings.items() if name != "aggregate"}
    return fingerprint.of_value(chain), str(cell.details.get("request"))


def processor() -> str:
    """Name the processor."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


MethodName = Literal[
    "Retrain", "C-SISA", "C-SISA own", "L-Rand", "L-BKM", "L-CBKM", "L-CBKM hard", "L-Near", "L-CLPA", "L-CGMM"
]

METHODS: Mapping[MethodName, Mapping[str, Any]] = {
    "Retrain": {"strategy": "retrain"},
    "C-SISA": {"strategy": "sisa", "aggregate": "mean", "grouping": "random"},
    "C-SISA own": {"strategy": "sisa", "aggregate": "own", "grouping": "random"},
    "L-Rand": {"strategy": "laser", "grouping": "random"},
    "L-BKM": {"strategy": "laser", "grouping": "bkm"},
    "L-CBKM": {"strategy": "laser", "grouping": "cbkm"},
    "L-CBKM hard": {"strategy": "laser", "grouping": "cbkm", "order": "hard"},
    "L-Near": {"strategy": "laser", "grouping": "cbkm-near"},
    "L-CLPA": {"strategy": "laser", "grouping": "clpa"},
    "L-CGMM": {"strategy": "laser", "grouping": "cgmm"},
}
RequestName = Literal[
    "learn", "rand@2.5", "rand@5", "top@2.5", "top@5", "one", "first group@5", "random group@5", "last group@5"
]


def method_settings(method: MethodName, groups: int) -> dict[str, Any]:
    """Return the settings of a method; with one group every method is the same as Retrain."""
    if method == "Retrain" or groups == 1:
        return dict(METHODS["Retrain"])
    return {**METHODS[method], "groups": groups}


def users_to_forget(dataset: Dataset, request: RequestName) -> list[str]:
    """Return the users that a request names; the choice depends only on the seed, the ids and the ratings.

    rand@K and top@K are K per cent of all users, at random or those with most ratings; one is a single random user; the
    others are K per cent of the users of the first, a random or the last group of the chain.
    """
    kind, _, share = request.partition("@")
    if kind == "learn":
        return []
    users, ratings = _users(dataset) if kind in ("rand", "top", "one") else _group(dataset, kind)
    count = 1 if kind == "one" else max(1, round(float(share) / 100 * len(users)))
    keys = id_keys(dataset.config.seed, "experiment request", users)
    order = np.lexsort((keys, -ratings)) if kind == "top" else np.argsort(keys, kind="stable")
    return [users[place] for place in order[:count].tolist()]


def _users(dataset: Dataset) -> tuple[list[str], NDArray[np.int64]]:
    everyone = Interactions.merge([*dataset.groups, dataset.held_out])
    return everyone.users.texts(), np.diff(everyone.user_starts)


def _group(dataset: Dataset, kind: str) -> tuple[list[str], NDArray[np.int64]]:
    last = len(dataset.groups) - 1
    random = child_key(dataset.config.seed, "experiment group") % (last + 1)
    group = dataset.groups[{"first group": 0, "random group": random, "last group": last}[kind]]
    return group.users.texts(), np.diff(group.user_starts)


class ExperimentSettings(CheckedSettings):
    """The grid of an experiment and the training of its chains; no setting is chosen by looking at test data."""

    models: tuple[Literal["dmf", "nmf"], ...] = Field(("dmf", "nmf"), min_length=1)
    """The models."""

    methods: tuple[MethodName, ...] = ("Retrain", "C-SISA", "C-SISA own", "L-Rand", "L-BKM", "L-CBKM")
    """What is compared in utility; L-Near, L-CLPA and L-CGMM are there too."""

    groups: tuple[Annotated[int, Field(ge=1, le=MOST_GROUPS)], ...] = Field((1, 2, 4, 8, 16), min_length=1)
    """The numbers of groups, the paper's S."""

    requests: tuple[RequestName, ...] = ("learn", "rand@2.5", "rand@5", "top@2.5", "top@5")
    """What is forgotten before utility is measured; learn is nothing."""

    seeds: int = Field(3, ge=1, le=100)
    """How many runs, with the seeds 0, 1, 2 and so on."""

    epochs: int = Field(20, ge=1, le=10_000)
    """The paper's T, the total number of training epochs."""

    epoch_budget: Literal["shared", "full"] = "shared"
    """Whether the groups share the epochs or each gets all of them."""

    batch: int = Field(2048, ge=1, le=1_000_000)
    """How many samples one step looks at."""

    negatives: int = Field(4, ge=0, le=100)
    """How many items that the user has not are sampled for each interaction."""

    learning_rate: float | None = Field(None, gt=0, le=1)
    """Adam's step size; 0.001 for nmf and 0.005 for dmf if not given."""

    holdout: float = Field(0.1, gt=0, lt=1)
    """The share of interactions that is kept for testing."""

    min_interactions: int = Field(0, ge=0)
    """Drop users and items with fewer interactions, repeatedly; the paper's text says 5, its statistics say 0."""

    protocols: tuple[Protocol, ...] = Field(PROTOCOLS, min_length=1)
    """How utility is measured; figures and verdicts are about the first."""

    time_model: Literal["dmf", "nmf"] = "dmf"
    """The model whose running time is measured; the paper's choice is dmf."""

    time_seeds: int = Field(2, ge=1, le=100)
    """With how many seeds running times are measured; the median counts."""

    repeats: int = Field(1, ge=1, le=100)
    """How often each running time is measured with each seed."""

    poisoned: float = Field(3.0, gt=0, le=50)
    """Fake users, in per cent of the users."""
