"""Cohesion of groups by rating rows and by vectors, each measured in its own space and in one space (Appendix D.2)."""

import math
import statistics
from typing import Any, NamedTuple

from erasable.grouping.groups import check_room, cohesion_of_groups, label_users
from erasable.grouping.registry import GroupingName, GroupingSettings
from erasable.paper._cells import Cell, ExperimentSettings, Result
from erasable.paper._report import STYLES
from erasable.paper._workbench import (
    SPACES,
    Entry,
    Experiment,
    PaperClaim,
    Row,
    Summary,
    Table,
    Verdict,
    Workbench,
    labels,
    markdown,
    over_seeds,
    paired,
    pick,
    summary,
    training_part,
    training_space,
    ungrouped_settings,
    usual_groups,
)
from erasable.plots import panels

COMPARED: tuple[GroupingName, ...] = ("random", "bkm", "cbkm", "cbkm-near")
MUCH_HIGHER = 2.0
"""The ratio that counts as much higher, if each grouping is measured in its own space."""
HIGHER = 1.1
"""The ratio that counts as higher, if all groupings are measured in one space."""
_STYLE_OF = {"random": "L-Rand", "bkm": "L-BKM", "cbkm": "L-CBKM", "cbkm-near": "L-Near"}


class Ruler(NamedTuple):
    """A grouping and the space in which its groups are measured."""

    grouping: GroupingName
    space: str


SPARSE, EMBEDDED = Ruler("bkm", SPACES["bkm"]), Ruler("cbkm", SPACES["cbkm"])
"""The two that the paper compares."""


def entries(settings: ExperimentSettings, data: str) -> list[Entry]:
    """Return the grid: one cell for each seed, with all groupings and spaces."""
    groups = usual_groups(settings.groups)
    return [
        Entry(
            {"groups": groups, "seed": seed},
            Cell("embedding", data, ungrouped_settings(settings, seed), {"groups": groups}),
        )
        for seed in range(settings.seeds)
    ]


def measure(workbench: Workbench, cell: Cell) -> dict[str, Any]:
    """Group the users of the training part in several ways, and measure the groups in each space."""
    dataset, threads, groups = workbench.grouped(cell.settings), workbench.threads, cell.details["groups"]
    training, seed = training_part(dataset), dataset.config.seed
    of = {name: GroupingSettings(grouping=name, groups=groups) for name in COMPARED}
    check_room(training, of["bkm"])
    spaces = {name: training_space(dataset, name, threads) for name in SPACES}
    found = {name: label_users(spaces.get(name, spaces["bkm"]), training, of[name], seed, threads) for name in COMPARED}
    measured = {
        space: {name: cohesion_of_groups(points, chosen, groups, seed, threads) for name, chosen in found.items()}
        for space, points in spaces.items()
    }
    return {
        "cohesion": {
            space: {name: [round(group.value, 6) for group in cohesion] for name, cohesion in by_grouping.items()}
            for space, by_grouping in measured.items()
        },
        "clamped": {
            space: round(max(group.clamped for cohesion in by_grouping.values() for group in cohesion), 6)
            for space, by_grouping in measured.items()
        },
    }


def values(result: Result) -> list[Row]:
    """Return the mean ρ of each grouping in each space, and the share of pairs that were clamped."""
    cohesion: list[Row] = [
        {"space": SPACES[space], "grouping": grouping, "value": statistics.mean(found)}
        for space, by_grouping in result["cohesion"].items()
        for grouping, found in by_grouping.items()
    ]
    return cohesion + [
        {"space": SPACES[space], "measure": "clamped", "value": share} for space, share in result["clamped"].items()
    ]


def over_random(table: Table) -> list[Row]:
    """Return each ρ divided by that of random groups in the same space, with the same seed."""
    return [
        {**one, "value": _ratio(one["value"], other["value"])}
        for grouping in labels(table, "grouping")
        for one, other in paired(table, "grouping", grouping, "random")
    ]


def ratio(table: Table, one: Ruler, other: Ruler) -> Summary:
    """Return the ratio of two groupings' ρ, each measured by its own ruler, over the seeds."""
    others = {row["seed"]: row["value"] for row in pick(table, **other._asdict())}
    ones = pick(table, **one._asdict())
    return summary([{"value": _ratio(row["value"], others[row["seed"]])} for row in ones])


def _ratio(one: float, other: float) -> float:
    return one / other if other else math.nan


def claims(table: Table) -> list[PaperClaim]:
    """Judge the paper's comparison in two spaces, and the same in one space."""
    return [_by_own_rulers(table), _by_one_ruler(table)]


def _by_own_rulers(table: Table) -> PaperClaim:
    paper = ratio(table, EMBEDDED, SPARSE)
    random = ratio(table, EMBEDDED._replace(grouping="random"), SPARSE._replace(grouping="random"))
    return PaperClaim(
        said="Collaborative embedding achieves a much higher cohesion than the sparse data (each in its own space).",
        rule=f"ρ of CBKM's groups between vectors is at least {MUCH_HIGHER:g} times ρ of BKM's groups between rating "
        "rows (mean over seeds); in part if it is higher at all.",
        measured=f"{paper.mean:.4g} times. Random groups, measured by the same two rulers, "
        f"{random.mean:.4g} times: ρ depends on the scale of the space.{_clamped(table)}",
        verdict=_step_verdict(paper.mean, MUCH_HIGHER, 1.0),
    )


def _clamped(table: Table) -> str:
    """Say how many pairs of users were so similar that 1 / distance was clamped."""
    most = {
        space: max((row["value"] for row in pick(table, measure="clamped", space=space)), default=0.0)
        for space in labels(table, "space")
    }
    said = ", ".join(f"{share:.2%} in {space}" for space, share in most.items() if share)
    return f" Pairs of users too alike for 1 / distance, counted as further apart: up to {said}." if said else ""


def _step_verdict(value: float, whole: float, part: float) -> Verdict:
    return "holds" if value >= whole else "holds in part" if value > part else "does not hold"


def _by_one_ruler(table: Table) -> PaperClaim:
    spaces = list(SPACES.values())
    paper = {space: ratio(table, Ruler("cbkm", space), Ruler("bkm", space)).mean for space in spaces}
    near = {space: ratio(table, Ruler("cbkm-near", space), Ruler("bkm", space)).mean for space in spaces}
    return PaperClaim(
        said="Collaborative embedding achieves a higher cohesion than the sparse data (both in one space).",
        rule=f"ρ of CBKM's groups is at least {HIGHER:g} times that of BKM's (mean over seeds): holds if in all three "
        "spaces, in part if in one that is not CBKM's own.",
        measured=f"CBKM over BKM {_listed(paper)}; with vectors of nearest neighbours instead {_listed(near)}.",
        verdict=_one_ruler_verdict(paper),
    )


def _listed(ratios: dict[str, float]) -> str:
    return ", ".join(f"{value:.3f} in {space}" for space, value in ratios.items())


def _one_ruler_verdict(ratios: dict[str, float]) -> Verdict:
    higher = {space for space, value in ratios.items() if value >= HIGHER}
    return "holds" if len(higher) == len(ratios) else "holds in part" if higher - {EMBEDDED.space} else "does not hold"


def tables(table: Table) -> str:
    """Return ρ of each grouping in each space, and its ratio to random groups."""
    spaces, relative = labels(table, "space"), over_random(table)
    body = [
        [
            grouping,
            *(
                f"{summary(pick(table, space=space, grouping=grouping)).mean:.5g} "
                f"(× {summary(pick(relative, space=space, grouping=grouping))})"
                for space in spaces
            ),
        ]
        for grouping in labels(table, "grouping")
    ]
    return markdown(["ρ (times that of random groups)", *spaces], body)


def figures(table: Table) -> dict[str, Any]:
    """Draw the paper's comparison in two spaces, then all groupings in each space."""
    spaces = labels(table, "space")
    figure, axes = panels(1, 1 + len(spaces))
    _draw_own_rulers(axes[0, 0], table)
    for axis, space in zip(axes[0, 1:], spaces, strict=True):
        found = over_seeds(pick(over_random(table), space=space))
        _draw_bars(axis, [row["grouping"] for row, _ in found], [value for _, value in found], ".2f")
        axis.axhline(1, color="black", linewidth=1, linestyle="--")
        axis.set_title(f"one ruler: {space}", fontsize=10)
        axis.set_ylabel("ρ / ρ of random groups")
        axis.set_xticks(range(len(found)), [row["grouping"] for row, _ in found])
    return {"embedding": figure}


def _draw_own_rulers(axis: Any, table: Table) -> None:  # noqa: ANN401 - matplotlib is untyped here
    """Draw what the paper compares, and random groups in the same spaces; ρ differs by orders of magnitude."""
    rulers = [ruler for own in (SPARSE, EMBEDDED) for ruler in (own._replace(grouping="random"), own)]
    found = [summary(pick(table, **ruler._asdict())) for ruler in rulers]
    _draw_bars(axis, [ruler.grouping for ruler in rulers], found, ".4g")
    axis.set_yscale("log")
    axis.set_title("two rulers, as in the paper", fontsize=10)
    axis.set_ylabel("ρ (log scale)")
    axis.set_xticks(range(len(rulers)), [ruler.grouping for ruler in rulers])
    for place, own in ((0.5, SPARSE), (2.5, EMBEDDED)):
        axis.annotate(
            own.space, (place, 0), (0, -26), ("data", "axes fraction"), "offset points", ha="center", fontsize=10
        )


def _draw_bars(axis: Any, names: list[str], found: list[Summary], form: str) -> None:  # noqa: ANN401 - as above
    spread = [value.deviation for value in found] if found[0].seeds > 1 else None
    colours = [STYLES[_STYLE_OF[name]]["color"] for name in names]
    bars = axis.bar(range(len(found)), [value.mean for value in found], yerr=spread, color=colours, capsize=3)
    axis.bar_label(bars, [format(value.mean, form) for value in found], padding=2, fontsize=8)
    axis.margins(y=0.12)


EXPERIMENT = Experiment(
    name="embedding",
    title="cohesion of groups by ratings and by vectors (Appendix D.2)",
    about="The cohesion ρ of groups, averaged over the groups, of BKM (users compared by their rating rows) and of "
    "CBKM (by vectors of walks on a hypergraph). The paper measures each grouping in its own space. But ρ is a sum of "
    "inverse distances: where all distances are small, all groups are cohesive, random ones too. So the groups of each "
    "grouping are also measured in one and the same space, against random groups there; a grouping is at an advantage "
    "in the space it was made in.",
    entries=entries,
    measurements={"embedding": measure},
    values=values,
    claims=claims,
    tables=tables,
    figures=figures,
)
