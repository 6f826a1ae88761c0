"""The report: each claim of the paper with what was measured and a verdict; tables, figures and the protocol."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from erasable.data.interactions import Interactions
from erasable.paper._cells import ExperimentSettings
from erasable.paper._workbench import Experiment, PaperClaim, Summary, markdown

_WORDS = """\
- DMF, NMF: the two models (deep and neural matrix factorisation), in the paper's sizes.
- S: the number of groups. T: the number of epochs. With the budget `shared` each group gets T/S of them, rounded up;
  with `full` all of them.
- Retrain: everyone at once, trained again from scratch to forget. It is the same for every S.
- C-SISA: a model for each random group, scores averaged over all models; C-SISA own: only the user's group's model.
- L-Rand, L-BKM, L-CBKM (LASER): one model trained on the groups in sequence. The groups are random, by rating rows, or
  by the paper's vectors (hypergraph, walks, Word2Vec). L-Near: by vectors from nearest neighbours. L-CBKM hard: the
  groups of L-CBKM, the hard ones first.
- learn: nothing is forgotten. rand@5, top@5: 5 per cent of all users are forgotten, at random or those with most
  ratings. last group@5: 5 per cent of the users of the last group. one: one random user.
- ρ: the paper's cohesion of a group, higher if its users are closer to each other. Groups with a high ρ are easy.
- cost ratio: samples visited to forget, over those that Retrain visits.
- whole-catalogue, one-of-100, held-out-only: what is ranked for a user (docs/reference/protocols.md).
- not decided: the seeds do not tell; more of them would.
"""


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
class ExperimentFinding:
    """A claim with its verdict, and the experiment that it comes from."""

    experiment: str
    claim: PaperClaim


@dataclass(frozen=True)
class Chapter:
    """The results of one experiment."""

    experiment: Experiment
    claims: tuple[PaperClaim, ...]
    tables: str
    figures: tuple[str, ...]
    csv: str

    @property
    def findings(self) -> tuple[ExperimentFinding, ...]:
        """The claims, each with the experiment's name."""
        return tuple(ExperimentFinding(self.experiment.name, claim) for claim in self.claims)


@dataclass(frozen=True)
class Setting:
    """The basis of a report: the data, the settings, and the circumstances of each cell."""

    facts: Sequence[DataFacts]
    settings: ExperimentSettings
    circumstances: Sequence[Mapping[str, Any]]

    @property
    def machines(self) -> str:
        """The processors and versions that the cells were measured with, and their total time."""
        seconds = sum(one["cpu_seconds"] for one in self.circumstances)
        versions = {
            name: ", ".join(sorted({str(one[name]) for one in self.circumstances if name in one}))
            for name in ("processor", "numpy", "numba", "erasable")
        }
        told = "; ".join(f"{name} {value}" for name, value in versions.items() if value)
        took = f"{seconds / 3600:.1f} hours" if seconds >= 3600 else f"{seconds / 60:.0f} minutes"
        return f"{told}; {len(self.circumstances):,} cells, {took} of one core"


def write_report(file: Path, chapters: Sequence[Chapter], setting: Setting) -> None:
    """Write the report as Markdown, with figures and tables beside it."""
    facts = setting.facts
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
        _protocol(setting),
        "## Words",
        _WORDS,
        *(_written(chapter) for chapter in chapters),
    ]
    file.write_text("\n\n".join(part.strip() for part in parts) + "\n", encoding="utf-8")


def _verdicts(chapters: Sequence[Chapter]) -> str:
    rows = [
        [f"[{chapter.experiment.name}](#{_anchor(chapter)})", claim.said, claim.measured, f"**{claim.verdict}**"]
        for chapter in chapters
        for claim in chapter.claims
    ]
    return markdown(["experiment", "the paper says", "measured", "verdict"], rows, numbers=False)


def _data_table(facts: Sequence[DataFacts]) -> str:
    rows = [[one.name, f"{one.users:,}", f"{one.items:,}", f"{one.ratings:,}", f"{one.sparsity:.3%}"] for one in facts]
    return markdown(["data", "users", "items", "ratings", "sparsity"], rows)


def _protocol(setting: Setting) -> str:
    settings = setting.settings
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
        "machine": setting.machines,
        "written": datetime.now(UTC).date().isoformat(),
    }
    return "".join(f"- {name}: {value}\n" for name, value in facts.items())


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


# Distinct for the colour-blind (Okabe and Ito); markers and lines distinguish them in print.
STYLES: Mapping[str, Mapping[str, Any]] = {
    "Retrain": {"color": "#000000", "linestyle": "--", "marker": ""},
    "C-SISA": {"color": "#d55e00", "linestyle": ":", "marker": "s"},
    "C-SISA own": {"color": "#e69f00", "linestyle": ":", "marker": "D"},
    "L-Rand": {"color": "#999999", "linestyle": "-", "marker": "o"},
    "L-BKM": {"color": "#009e73", "linestyle": "-", "marker": "^"},
    "L-CBKM": {"color": "#0072b2", "linestyle": "-", "marker": "v"},
    "L-CBKM hard": {"color": "#56b4e9", "linestyle": "-.", "marker": "v"},
    "L-Near": {"color": "#cc79a7", "linestyle": "-", "marker": "P"},
    "L-CLPA": {"color": "#f0e442", "linestyle": "-", "marker": "X"},
    "L-CGMM": {"color": "#56b4e9", "linestyle": "-", "marker": "*"},
}
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#999999", "#000000")
HATCHES = ("", "//", "..", "xx", "\\\\", "++", "oo", "--")
_ROOM = 0.8
_FALLBACK: Mapping[str, Any] = {"color": "#000000", "linestyle": "-", "marker": "x"}


def save_figure(figure: Any, stem: Path) -> list[Path]:  # noqa: ANN401 - matplotlib is untyped here
    """Write a figure as PNG and as SVG; the same figure gives the same bytes."""
    from matplotlib import rc_context

    files = [stem.with_name(stem.name + ending) for ending in (".png", ".svg")]
    with rc_context({"svg.hashsalt": "erasable"}):
        figure.savefig(files[0], dpi=130)
        figure.savefig(files[1], metadata={"Date": None})
    return files


def draw_bars(axis: Any, places: Sequence[str], series: Mapping[str, Sequence[Summary]]) -> None:  # noqa: ANN401 - matplotlib is untyped here
    """Draw, at each place, a bar of each series, with deviations if there are several seeds."""
    width = _ROOM / len(series)
    for number, (name, found) in enumerate(series.items()):
        axis.bar(
            np.arange(len(places)) + (number - (len(series) - 1) / 2) * width,
            [value.mean for value in found],
            width * 0.95,
            yerr=[value.deviation for value in found] if any(value.deviation for value in found) else None,
            capsize=2,
            color=COLOURS[number],
            hatch=HATCHES[number],
            edgecolor="white",
            label=name,
        )
    axis.set_xticks(np.arange(len(places)), places, fontsize=8)


def draw_line(axis: Any, method: str, course: Mapping[int, Summary]) -> None:  # noqa: ANN401 - matplotlib is untyped here
    """Draw a method's values with error bars; Retrain, which has no groups, is a horizontal line."""
    style = STYLES.get(method, _FALLBACK)
    found = list(course.values())
    if method == "Retrain":
        draw_level(axis, found[0])
        return
    spread = [value.deviation for value in found]
    bars = {"yerr": spread, "capsize": 2, "elinewidth": 0.8} if any(spread) else {}
    means = [value.mean for value in found]
    axis.errorbar(list(course), means, **bars, **style, markersize=4.5, linewidth=1.3, label=method)


def draw_level(axis: Any, found: Summary) -> None:  # noqa: ANN401 - matplotlib is untyped here
    """Draw Retrain's value across all numbers of groups, with a band for its deviation."""
    if found.deviation:
        axis.axhspan(
            found.mean - found.deviation, found.mean + found.deviation, color="#000000", alpha=0.08, linewidth=0
        )
    axis.axhline(found.mean, color="#000000", linestyle="--", linewidth=1.3, label="Retrain")


def mark_groups(axis: Any, groups: Sequence[int]) -> None:  # noqa: ANN401 - matplotlib is untyped here
    """Show the numbers of groups on a logarithmic axis, each with its label."""
    axis.set_xscale("log", base=2)
    axis.set_xticks(groups, [str(number) for number in groups])
    axis.xaxis.minorticks_off()
