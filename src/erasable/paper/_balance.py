"""The group sizes of plain k-means in several spaces (the paper's Appendix B.1)."""

import statistics
from collections.abc import Sequence
from typing import Any

import numpy as np

from erasable.grouping.balanced_clustering import plain_k_means
from erasable.grouping.groups import check_room
from erasable.grouping.registry import GroupingSettings
from erasable.paper._cells import Cell, ExperimentSettings, Result
from erasable.paper._report import COLOURS
from erasable.paper._workbench import (
    SPACES,
    Entry,
    Experiment,
    PaperClaim,
    Row,
    Table,
    Verdict,
    Workbench,
    labels,
    markdown,
    over_seeds,
    pick,
    summary,
    training_part,
    training_space,
    ungrouped_settings,
)
from erasable.plots import panels

PAPER_NUMBERS = (2, 4, 8, 16)
UNBALANCED = 1.5
"""Groups are highly unbalanced if the largest has this many times the mean size."""
_FEWEST = 4
"""With fewer groups than this the largest can hardly be so much larger than the mean."""
_MOST_TICKS = 8


def entries(settings: ExperimentSettings, data: str) -> list[Entry]:
    """Return the grid: seeds and spaces; a cell has all numbers of groups, since computing the space takes longest."""
    numbers = [groups for groups in settings.groups if groups > 1] or list(PAPER_NUMBERS)
    return [
        Entry(
            {"space": name, "seed": seed},
            Cell("balance", data, ungrouped_settings(settings, seed), {"space": space, "groups": numbers}),
        )
        for seed in range(settings.seeds)
        for space, name in SPACES.items()
    ]


def measure(workbench: Workbench, cell: Cell) -> dict[str, Any]:
    """Cluster the users of the training part by plain k-means, and count each cluster."""
    dataset, threads = workbench.grouped(cell.settings), workbench.threads
    training, name, numbers = training_part(dataset), cell.details["space"], cell.details["groups"]
    check_room(training, GroupingSettings(grouping=name, groups=max(numbers)))
    space = training_space(dataset, name, threads)
    found = {groups: plain_k_means(space, groups, dataset.config.seed, threads) for groups in numbers}
    return {"sizes": [np.sort(np.bincount(found[groups], minlength=groups))[::-1].tolist() for groups in numbers]}


def values(result: Result) -> list[Row]:
    """Return rows for each number of groups: each group's size, the largest first, and the extremes over the mean."""
    return [row for sizes in result["sizes"] for row in _values(sizes)]


def _values(sizes: Sequence[int]) -> list[Row]:
    groups, mean = {"groups": len(sizes)}, statistics.mean(sizes)
    return [
        *({**groups, "place": place, "metric": "users", "value": size} for place, size in enumerate(sizes, 1)),
        {**groups, "metric": "largest / mean", "value": round(sizes[0] / mean, 6)},
        {**groups, "metric": "smallest / mean", "value": round(sizes[-1] / mean, 6)},
    ]


def claims(table: Table) -> list[PaperClaim]:
    """Judge how unbalanced the groups of plain k-means are."""
    numbers = [groups for groups in labels(table, "groups") if groups >= _FEWEST]
    if not numbers:
        return []
    largest = {
        space: [summary(pick(table, space=space, groups=groups, metric="largest / mean")).mean for groups in numbers]
        for space in labels(table, "space")
    }
    unbalanced = [space for space, ratios in largest.items() if min(ratios) >= UNBALANCED]
    said = "; ".join(
        f"on {space} {' / '.join(f'{ratio:.2f}' for ratio in ratios)}" for space, ratios in largest.items()
    )
    k = " / ".join(map(str, numbers))
    return [
        PaperClaim(
            said="The grouping distributions of k-means are highly unbalanced.",
            rule=f"the largest group has at least {UNBALANCED} times the mean size (mean over seeds) for every k from "
            f"{_FEWEST} on: holds if in all spaces, in part if in some.",
            measured=f"Largest group over mean size with k = {k}: {said}.",
            verdict=_verdict(len(unbalanced), len(largest)),
        )
    ]


def _verdict(unbalanced: int, spaces: int) -> Verdict:
    return "holds" if unbalanced == spaces else "holds in part" if unbalanced else "does not hold"


def tables(table: Table) -> str:
    """Return the sizes of the largest and the smallest groups over the mean."""
    metrics = ("largest / mean", "smallest / mean")
    body = [
        [space, str(groups), *(str(summary(pick(table, space=space, groups=groups, metric=name))) for name in metrics)]
        for space in labels(table, "space")
        for groups in labels(table, "groups")
    ]
    return markdown(["plain k-means on", "k", *metrics], body)


def figures(table: Table) -> dict[str, Any]:
    """Draw the sizes of groups, largest first: a row of panels for each space, a column for each number of groups."""
    spaces, numbers = labels(table, "space"), labels(table, "groups")
    figure, axes = panels(len(spaces), len(numbers), sharey="col")
    for row, space in zip(axes, spaces, strict=True):
        for axis, groups in zip(row, numbers, strict=True):
            _draw_sizes(axis, pick(table, space=space, groups=groups, metric="users"), COLOURS[spaces.index(space)])
            axis.set_title(f"{space}, k = {groups}", fontsize=10)
        row[0].set_ylabel("users")
    for axis in axes[-1]:
        axis.set_xlabel("group, largest first")
        axis.set_ylim(bottom=0)  # after drawing, since it fixes the top for the whole column
    return {"balance": figure}


def _draw_sizes(axis: Any, found: Table, colour: str) -> None:  # noqa: ANN401 - matplotlib is untyped here
    sizes = over_seeds(found)
    even = sum(size.mean for _, size in sizes) / len(sizes)
    spread = [size.deviation for _, size in sizes] if sizes[0][1].seeds > 1 else None
    places = [group["place"] for group, _ in sizes]
    axis.bar(places, [size.mean for _, size in sizes], yerr=spread, color=colour, capsize=2, ecolor="#444444")
    axis.axhline(even, color="black", linewidth=1, linestyle="--")
    axis.annotate(
        f"even: {even:,.0f}",
        (1, even),
        (1, 2),
        xycoords=("axes fraction", "data"),
        textcoords="offset points",
        ha="right",
        fontsize=8,
    )
    axis.set_xticks(places[:: 1 if len(places) <= _MOST_TICKS else 3])


EXPERIMENT = Experiment(
    name="balance",
    title="group sizes of plain k-means (Appendix B.1)",
    about="Plain k-means, which ignores sizes, divides the users of the training part into k groups. The paper does "
    "not say what it clusters, so users are compared by their rating rows, by the paper's vectors (`cbkm`), and by "
    "vectors from a hypergraph of nearest neighbours (`cbkm-near`). Dashed lines are where even groups would be; "
    "error bars are deviations over seeds.",
    entries=entries,
    measurements={"balance": measure},
    values=values,
    claims=claims,
    tables=tables,
    figures=figures,
)
