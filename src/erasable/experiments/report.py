"""The report: each claim of the paper beside what was measured, with a verdict; tables, figures and the protocol."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from erasable.data import Interactions
from erasable.experiments.experiment import Claim, Experiment
from erasable.experiments.settings import ExperimentSettings
from erasable.experiments.tables import markdown
from erasable.experiments.workers import processor
from erasable.training import numeric_environment


@dataclass(frozen=True)
class DataFacts:
    """The statistics of a data set, as in the paper's table."""

    name: str
    users: int
    items: int
    ratings: int

    @property
    def sparsity(self) -> float:
        """The share of (user, item) pairs without a rating."""
        return 1 - self.ratings / (self.users * self.items)

    @staticmethod
    def of(name: str, interactions: Interactions) -> "DataFacts":
        """Count users, items and ratings."""
        return DataFacts(name, len(interactions.users), len(interactions.items), len(interactions))


@dataclass(frozen=True)
class Finding:
    """A claim with its verdict, and the experiment that tells."""

    experiment: str
    claim: Claim


@dataclass(frozen=True)
class Chapter:
    """What one experiment gave."""

    experiment: Experiment
    claims: tuple[Claim, ...]
    tables: str
    figures: tuple[str, ...]
    csv: str

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The claims, each with the experiment's name."""
        return tuple(Finding(self.experiment.name, claim) for claim in self.claims)


def write_report(
    file: Path, chapters: Sequence[Chapter], facts: Sequence[DataFacts], settings: ExperimentSettings
) -> None:
    """Write the report as Markdown, with figures and tables beside it."""
    parts = [
        f"# The paper's experiments on {facts[0].name}",
        (
            "Written by `erasable reproduce`. Each claim of the LASER paper (IJCAI 2022) stands beside what was "
            "measured, with a verdict by a rule that is stated further below."
        ),
        "## Verdicts",
        _verdicts(chapters),
        "## Data, protocol and machine",
        _data_table(facts),
        _protocol(settings),
        *(_written(chapter) for chapter in chapters),
    ]
    file.write_text("\n\n".join(part.strip() for part in parts) + "\n", encoding="utf-8")


def _verdicts(chapters: Sequence[Chapter]) -> str:
    rows = [
        [f"[{chapter.experiment.name}](#{_anchor(chapter)})", claim.said, claim.measured, f"**{claim.verdict}**"]
        for chapter in chapters
        for claim in chapter.claims
    ]
    rule = "| --- | --- | --- | --- |\n"
    header = "| experiment | the paper says | measured | verdict |\n"
    return header + rule + "".join("| " + " | ".join(row) + " |\n" for row in rows)


def _data_table(facts: Sequence[DataFacts]) -> str:
    rows = [[one.name, f"{one.users:,}", f"{one.items:,}", f"{one.ratings:,}", f"{one.sparsity:.3%}"] for one in facts]
    return markdown(["data", "users", "items", "ratings", "sparsity"], rows)


def _protocol(settings: ExperimentSettings) -> str:
    rate = f"{settings.learning_rate:g}" if settings.learning_rate else "0.001 for nmf, 0.005 for dmf"
    filtering = f"{settings.min_interactions}-core" if settings.min_interactions else "no filter"
    facts = {
        "holdout": f"{settings.holdout:.0%} of the interactions, {filtering}; erased users are not tested",
        "training": f"T = {settings.epochs} epochs, budget {settings.epoch_budget}, Adam {rate}, batch "
        f"{settings.batch}, {settings.negatives} negatives for each interaction",
        "seeds": f"{settings.seeds}; ± is the standard deviation over them",
        "ranking": f"{settings.protocols[0]} unless another is named",
        "choices": "test data choose no epoch, checkpoint or setting in a run; the usual rate of dmf and the usual "
        "number of epochs were once set by looking at those of MovieLens 1M (docs/decisions)",
        "machine": f"{processor()}; {', '.join(f'{name} {value}' for name, value in _environment().items())}",
        "written": datetime.now(UTC).date().isoformat(),
    }
    return "".join(f"- {name}: {value}\n" for name, value in facts.items())


def _environment() -> dict[str, str]:
    return {name: str(value) for name, value in numeric_environment().items() if name != "cpu"}


def _written(chapter: Chapter) -> str:
    experiment = chapter.experiment
    rules = "\n".join(f"- {claim.said} *{claim.rule}*" for claim in chapter.claims)
    figures = "\n".join(f"![{experiment.title}]({name})" for name in chapter.figures)
    parts = (
        f"## {_title(chapter)}",
        experiment.about,
        figures,
        chapter.tables,
        f"Rules of the verdicts:\n\n{rules}" if rules else "",
        f"All numbers: [{chapter.csv}]({chapter.csv})",
    )
    return "\n\n".join(part.strip() for part in parts if part.strip())


def _title(chapter: Chapter) -> str:
    return f"{chapter.experiment.name}: {chapter.experiment.title}"


def _anchor(chapter: Chapter) -> str:
    """Return the anchor that Markdown viewers give a heading."""
    kept = "".join(letter for letter in _title(chapter).lower() if letter.isalnum() or letter in " -")
    return kept.replace(" ", "-")
