"""What an experiment is: a grid of cells with labels, a tidy table of what they gave, claims about it, figures."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from erasable.errors import DataRefused
from erasable.experiments.cells import Cell, Result
from erasable.experiments.methods import MethodName, method_settings
from erasable.experiments.settings import ExperimentSettings
from erasable.experiments.tables import Row, Table
from erasable.experiments.workbench import Workbench
from erasable.models import find_model

_OF_CHAINS = {"epochs", "epoch_budget", "batch", "negatives", "holdout", "min_interactions"}
_USUAL_GROUPS = 8
Verdict = Literal["holds", "holds in part", "does not hold", "not decided"]
Measure = Callable[[Workbench, Cell], dict[str, Any]]
"""A function of a workbench and a cell, which returns what JSON can say."""


@dataclass(frozen=True)
class Claim:
    """What the paper says, what was measured, and whether the one follows from the other by a rule that is stated."""

    said: str
    rule: str
    """When the claim holds, and when it holds in part."""
    measured: str
    verdict: Verdict


@dataclass(frozen=True, eq=False)
class Entry:
    """A cell of the grid, with the labels of its place; the same cell may stand at several places."""

    labels: Row
    cell: Cell


@dataclass(frozen=True)
class Experiment:
    """One of the paper's experiments."""

    name: str
    title: str
    about: str
    """What is measured and how, in a few sentences for the report."""
    entries: Callable[[ExperimentSettings, str], list[Entry]]
    """The grid, for some settings and the digest of the data."""
    values: Callable[[Result], list[Row]]
    """What a cell gave, as rows of a tidy table: labels of their own, and `value`."""
    claims: Callable[[Table], list[Claim]]
    tables: Callable[[Table], str]
    """The figures that matter, as Markdown."""
    figures: Callable[[Table], Mapping[str, Any]]
    """The figures to draw, by the stem of their files."""
    measurements: Mapping[str, Measure] = field(default_factory=dict)
    """How each kind of cell is measured that no other experiment measures."""
    timed: bool = False
    """Whether cells are measured one at a time, with all cores, since their seconds count."""

    def table(self, entries: Sequence[Entry], result_of: Callable[[Cell], Result]) -> list[Row]:
        """Return the tidy table of the cells of a grid."""
        return [{**entry.labels, **row} for entry in entries for row in self._rows(entry.cell, result_of(entry.cell))]

    def _rows(self, cell: Cell, result: Result) -> list[Row]:
        try:
            return self.values(result)
        except (KeyError, TypeError, ValueError, AttributeError):
            raise DataRefused(
                f"the result in cells/{cell.name}.json is none of {self.name}: delete the file and run this again"
            ) from None


class ChainLabels(NamedTuple):
    """What names a chain in an experiment."""

    model: str
    method: MethodName
    groups: int
    seed: int


def chain_settings(settings: ExperimentSettings, chain: ChainLabels, **more: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return all settings of a chain that an experiment decides; what it leaves out keeps its default."""
    method = method_settings(chain.method, chain.groups)
    alone = {"epoch_budget": "shared"} if method["strategy"] == "retrain" else {}  # one group gets all epochs anyway
    return {
        "model": chain.model,
        **method,
        **settings.model_dump(include=_OF_CHAINS),
        **alone,
        "learning_rate": settings.learning_rate or find_model(chain.model)().settings.model_dump()["learning_rate"],
        "seed": chain.seed,
        **more,
    }


def usual_groups(groups: Iterable[int]) -> int:
    """Return the paper's usual number of groups, 8, or else the largest below it that there is.

    >>> usual_groups([1, 2, 4, 8, 16]), usual_groups([1, 2, 4]), usual_groups([1, 16])
    (8, 4, 8)
    """
    return max((number for number in groups if 1 < number <= _USUAL_GROUPS), default=_USUAL_GROUPS)


def share_verdict(share: float, whole: float = 0.95, part: float = 0.5) -> Verdict:
    """Return whether something that should be so always is so in (nearly) all cases, in most, or not.

    >>> share_verdict(1.0), share_verdict(0.7), share_verdict(0.2)
    ('holds', 'holds in part', 'does not hold')
    """
    return "holds" if share >= whole else "holds in part" if share >= part else "does not hold"


def rounded(values: Mapping[str, float]) -> dict[str, float]:
    """Return values as they are kept in a cell: more digits say nothing."""
    return {name: round(value, 6) for name, value in values.items()}
