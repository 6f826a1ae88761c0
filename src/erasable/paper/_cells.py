"""Cells: one small measurement each, stored in a file named by the fingerprint of its inputs."""

import json
import os
import platform
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from erasable import fingerprint
from erasable.chain.settings import Config
from erasable.chain.strategies import LaserSettings
from erasable.errors import DataRefused

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
