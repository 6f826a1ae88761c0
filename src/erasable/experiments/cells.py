"""Cells: one small measurement each, kept as a file named by the fingerprint of all that decides it."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from erasable import fingerprint
from erasable.errors import DataRefused

REVISION = 1
"""Goes up when the same cell would be measured differently, so that older files no longer count."""

ABOUT_GROUPS = ("strategy", "grouping", "groups", "order", "reach", "seed", "holdout", "min_interactions")
"""The settings that decide who is in which group, and in which order."""

Result = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Cell:
    """One measurement: what is measured, on which data, learned with which settings, and further details."""

    measurement: str
    data: str
    """The digest of the interactions."""
    settings: Mapping[str, Any]
    details: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def facts(self) -> dict[str, Any]:
        """All that decides the result."""
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
        said = [*self.settings.values(), *self.details.values()]
        return " ".join([self.measurement, *(str(value) for value in said if isinstance(value, str | int))])


class CellStore:
    """Keeps the results of cells in a folder, a file each; a file is there whole or not at all."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def __contains__(self, cell: Cell) -> bool:
        return self._file(cell).exists()

    def get(self, cell: Cell) -> Result:
        """Return the result of a cell that is there."""
        file = self._file(cell)
        try:
            kept = json.loads(file.read_text(encoding="utf-8"))
            same = kept["cell"] == json.loads(json.dumps(cell.facts))
        except (ValueError, KeyError, TypeError):
            same = False
        if not same:
            raise DataRefused(f"{file}: is not the result of its cell: delete it, and it is measured again")
        return kept["result"]

    def put(self, cell: Cell, result: Result, circumstances: Mapping[str, Any]) -> None:
        """Keep the result of a cell, with the circumstances of its measurement."""
        file = self._file(cell)
        content = {"cell": cell.facts, "result": result, "circumstances": circumstances}
        partial = file.with_suffix(".partial")
        partial.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        partial.replace(file)

    def _file(self, cell: Cell) -> Path:
        return self._folder / f"{cell.name}.json"


def in_batches(cells: Iterable[Cell]) -> list[list[Cell]]:
    """Return each cell once, together with those that need the same groups, next to those of the same chain."""
    batches: dict[str, dict[str, Cell]] = {}
    for cell in cells:
        groups = {name: cell.settings[name] for name in ABOUT_GROUPS if name in cell.settings}
        batches.setdefault(fingerprint.of_value(groups), {})[cell.name] = cell
    return [sorted(batch.values(), key=_chain_and_request) for batch in batches.values()]


def _chain_and_request(cell: Cell) -> tuple[str, str]:
    chain = {name: value for name, value in cell.settings.items() if name != "aggregate"}
    return fingerprint.of_value(chain), str(cell.details.get("request"))
