"""Figures: groups, a membership attack, models compared; matplotlib comes with the extra `plots`."""

import os
from collections.abc import Mapping
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from erasable.errors import WrongUse
from erasable.extensions import install_command
from erasable.seeding import mix
from erasable.wording import duration

if TYPE_CHECKING:
    from erasable.operations.attack import Probe
    from erasable.operations.compare import ModelComparison
    from erasable.operations.inspect import GroupStudy

FORMATS = (".png", ".svg", ".pdf")
_PANEL = (3.4, 2.8)
_LEGEND_WIDTH = 1.7
"""Inches for one entry of a legend."""
_MANY = 5_000
_MOST_TICKS = 20
_COLOURS = ("#999999", "#e69f00", "#0072b2")  # distinct for the colour-blind (Okabe and Ito)
_KINDS: Mapping[str, Mapping[str, Any]] = {
    # Distinct for the colour-blind (Okabe and Ito); markers distinguish them in print.
    "before": {"label": "before forgetting", "color": "#d55e00", "marker": "o"},
    "forgotten": {"label": "after forgetting", "color": "#0072b2", "marker": "s"},
    "never": {"label": "never knew them", "color": "#666666", "marker": "^"},
}
_APART = 0.22


def figure_class() -> Any:  # noqa: ANN401 - matplotlib is untyped here
    """Return matplotlib's `Figure`; if it is missing, the error says how to install it."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise WrongUse(f"figures need matplotlib: {install_command('plots')}") from None
    return Figure


def panels(rows: int, columns: int, **sharing: Any) -> tuple[Any, Any]:  # noqa: ANN401 - matplotlib is untyped here
    """Return a figure and its axes, always as a two-dimensional array."""
    figure = figure_class()(figsize=(_PANEL[0] * columns, _PANEL[1] * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, **sharing)
    for axis in axes.flat:
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(axis="y", color="#dddddd", linewidth=0.6)
        axis.set_axisbelow(True)
    return figure, axes


def one_legend(figure: Any, axes: Any) -> None:  # noqa: ANN401 - matplotlib is untyped here
    """Put one legend under all panels, each label once."""
    found: dict[str, Any] = {}
    for axis in axes.flat:
        handles, names = axis.get_legend_handles_labels()
        found |= {name: handle for name, handle in zip(names, handles, strict=True) if name not in found}
    columns = max(1, int(figure.get_figwidth() / _LEGEND_WIDTH))
    figure.legend(found.values(), found.keys(), loc="outside lower center", ncols=columns, frameon=False)


def figure_file(file: Path, workspace: Path | None = None) -> Path:
    """Return the file if a figure can be written there, outside the workspace; checked before anything is computed."""
    if workspace is not None and file.resolve().is_relative_to(workspace.resolve()):
        raise WrongUse(f"{file}: a figure in the workspace would outlive the people it shows: name a file elsewhere")
    if file.suffix.lower() not in FORMATS:
        raise WrongUse(f"{file}: a figure ends in .png, .svg or .pdf: name it so")
    if file.is_dir() or not os.access(file if file.exists() else file.parent, os.W_OK):
        raise WrongUse(f"{file}: can't be written: name another file, in a folder that is there")
    figure_class()
    return file


def draw_groups(study: "GroupStudy", file: Path) -> None:
    """Draw group sizes, cohesion and a map of the users, side by side."""
    drawn = (_draw_sizes, _draw_cohesion, _draw_map)
    figure = figure_class()(figsize=(16 / 3 * len(drawn), 5.2), layout="constrained")
    for draw, axes in zip(drawn, figure.subplots(1, len(drawn)), strict=True):
        draw(axes, study)
    figure.savefig(file, dpi=130, metadata={"Date": None} if file.suffix.lower() == ".svg" else None)


def _shades(groups: int) -> Any:  # noqa: ANN401 - matplotlib is untyped here
    """Return a colour map with one shade for each position, from dark (first) to light (last)."""
    from matplotlib import colormaps

    return colormaps["viridis"].resampled(groups)


def _draw_sizes(axes: Any, study: "GroupStudy") -> None:  # noqa: ANN401
    groups = len(next(iter(study.sizes.values())))
    width = 0.8 / len(study.sizes)
    for number, (name, sizes) in enumerate(study.sizes.items()):
        axes.bar(
            np.arange(1, groups + 1) + (number - 1) * width,
            sizes,
            width,
            label=_marked(name, study),
            color=_COLOURS[number],
        )
    ceiling = -(-len(study.positions) // groups)
    axes.axhline(ceiling, color="black", linewidth=1, linestyle="--", label=f"ceiling {ceiling:,} = users / groups")
    axes.set(title="How large the groups are", xlabel="group, largest first", ylabel="users")
    axes.legend(frameon=False)


def _draw_cohesion(axes: Any, study: "GroupStudy") -> None:  # noqa: ANN401
    for place, (name, cohesion) in enumerate(study.cohesion.items()):
        colour = _COLOURS[2] if name == study.grouping else _COLOURS[0]
        axes.scatter(np.full(len(cohesion), place), cohesion, color=colour, alpha=0.7, linewidths=0)
        axes.hlines(cohesion.mean(), place - 0.3, place + 0.3, color="black")
    axes.set_xticks(range(len(study.cohesion)), [_marked(name, study) for name in study.cohesion])
    axes.set(
        title="How cohesive groups are, in one space", ylabel="cohesion ρ between rating rows (a line is the mean)"
    )


def _marked(name: str, study: "GroupStudy") -> str:
    return f"{name}\n(this one)" if name == study.grouping else name


def _draw_map(axes: Any, study: "GroupStudy") -> None:  # noqa: ANN401
    groups = int(study.positions.max()) + 1
    # Later points hide earlier ones, so users are drawn in random order, not group by group.
    order = np.argsort(mix(np.zeros(1, np.uint64), np.arange(len(study.places), dtype=np.uint64)), kind="stable")
    points = axes.scatter(
        *study.places[order].T,
        c=study.positions[order] + 1,
        cmap=_shades(groups),
        vmin=0.5,
        vmax=groups + 0.5,
        s=4 if len(order) > _MANY else 12,
        linewidths=0,
        rasterized=True,
    )
    axes.set(title=f"Users, coloured by group ({study.grouping})", xticks=[], yticks=[])
    axes.set_xlabel("vectors of cbkm-near, the two directions of most variance")
    ticks = range(1, groups + 1) if groups <= _MOST_TICKS else None
    axes.figure.colorbar(points, ax=axes, label="position in the chain", ticks=ticks)


def draw_membership(probe: "Probe", file: Path) -> None:
    """Draw the AUC of each attack on the three kinds of models, with intervals, and the line of chance."""
    figure, axes = panels(1, 1)
    figure.set_size_inches(9, 4.6)
    axis = axes[0, 0]
    for shift, (kind, style) in zip((-_APART, 0.0, _APART), _KINDS.items(), strict=True):
        found = [getattr(finding, kind) for finding in probe.findings]
        means = [one.mean for one in found]
        errors = [[one.mean - one.low for one in found], [one.high - one.mean for one in found]]
        places = [place + shift for place in range(len(found))]
        axis.errorbar(places, means, yerr=errors, linestyle="", capsize=4, markersize=8, **style)
    axis.axhline(0.5, color="black", linewidth=1, linestyle="--", label="a guess (0.5)")
    names = [f"{one.attack}\n{one.view}\n→ {one.verdict}" for one in probe.findings]
    axis.set_xticks(range(len(names)), names)
    axis.set(title=_title(probe), ylabel="AUC of the attack: 1 tells all, 0.5 none", xlim=(-0.5, len(names) - 0.5))
    one_legend(figure, axes)
    figure.savefig(file, dpi=130, metadata={"Date": None} if file.suffix.lower() == ".svg" else None)


def _title(probe: "Probe") -> str:
    others = "who were never learned" if probe.pretended else "who are still there"
    return (
        f"Can an attack tell {probe.people:,} erased people from {probe.others:,} {others}?\n"
        f"Means and 95 % intervals over {probe.seeds} seeds, all attacks together"
    )


_MARKERS = "os^DvPX*"
_LEAST_COST = 1e-5  # what costs nothing has no place on a logarithmic axis


def draw_comparison(comparison: "ModelComparison", file: Path) -> None:
    """Draw each model's quality against the cost of forgetting one person, and beside it the seconds of both."""
    figure, axes = panels(1, 2)
    rows = [row for row in comparison.table.to_pylist() if row["failed"] is None]
    figure.set_size_inches(11 + 0.09 * max(len(row["model"]) for row in rows), max(4.6, 1.8 + 0.5 * len(rows)))
    quality, seconds = axes[0]
    for row, colour, marker in zip(rows, _several(len(rows)), cycle(_MARKERS), strict=False):
        cost = max(row["forget_cost"], _LEAST_COST)
        look = {"color": colour, "marker": marker, "s": 60, "zorder": 3}
        quality.scatter([cost], [row["ndcg@10"]], label=row["model"], **look)
    quality.set(xscale="log", xlim=(_LEAST_COST / 2, 4), ylim=(0, None))
    quality.set(xlabel="cost of forgetting one person\n(1 is training everyone; left edge: none)", ylabel="NDCG@10")
    quality.set_title("Better is up, cheaper to forget is left")
    quality.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False)  # beside points that may lie on each other
    places = np.arange(len(rows))
    for shift, name, colour in ((-0.2, "learn", _COLOURS[0]), (0.2, "forget", _COLOURS[2])):
        taken = [row[f"{name}_seconds"] for row in rows]
        bars = seconds.barh(places + shift, taken, 0.38, label=name, color=colour)
        seconds.bar_label(bars, [duration(one) for one in taken], padding=3, fontsize=8)
    seconds.set_yticks(places, [row["model"] for row in rows])
    seconds.invert_yaxis()
    seconds.margins(x=0.18)
    seconds.grid(axis="x", color="#dddddd", linewidth=0.6)
    seconds.grid(axis="y", visible=False)
    seconds.set(title="To learn everyone, and to forget one", xlabel="seconds")
    seconds.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
    figure.savefig(file, dpi=130, metadata={"Date": None} if file.suffix.lower() == ".svg" else None)


def _several(count: int) -> list[Any]:
    """Return so many colours."""
    from matplotlib import colormaps

    return [colormaps["viridis"](place / max(1, count)) for place in range(count)]
