"""The figure of a recommender's groups; matplotlib comes with the extra `plots`."""

import os
from pathlib import Path
from typing import Any

import numpy as np

from erasable.errors import WrongUse
from erasable.experiments.figures import figure_class
from erasable.experiments.group_study import GroupStudy
from erasable.seeding import mix

FORMATS = (".png", ".svg", ".pdf")
_MANY = 5_000
_MOST_TICKS = 20
_COLOURS = ("#999999", "#e69f00", "#0072b2")  # told apart by the colour-blind (Okabe and Ito)


def figure_file(file: Path, workspace: Path | None = None) -> Path:
    """Return the file if a figure can be drawn into it, outside the workspace; said before anything is computed."""
    if workspace is not None and file.resolve().is_relative_to(workspace.resolve()):
        raise WrongUse(f"{file}: a figure in the workspace would outlive whom it shows: name a file elsewhere")
    if file.suffix.lower() not in FORMATS:
        raise WrongUse(f"{file}: a figure ends in .png, .svg or .pdf: name it so")
    if file.is_dir() or not os.access(file if file.exists() else file.parent, os.W_OK):
        raise WrongUse(f"{file}: can't be written: name another file, in a folder that is there")
    figure_class()
    return file


def draw_groups(study: GroupStudy, file: Path) -> None:
    """Draw group sizes, cohesion and a map of the users side by side."""
    figure = figure_class()(figsize=(16, 5.2), layout="constrained")
    sizes, cohesion, users = figure.subplots(1, 3)
    _draw_sizes(sizes, study)
    _draw_cohesion(cohesion, study)
    _draw_map(users, study)
    figure.savefig(file, dpi=130, metadata={"Date": None} if file.suffix.lower() == ".svg" else None)


def _shades(groups: int) -> Any:  # noqa: ANN401 - matplotlib is untyped here
    """Return one colour for each position, from dark (first) to light (last); told apart without hue."""
    from matplotlib import colormaps

    return colormaps["viridis"].resampled(groups)


def _draw_sizes(axes: Any, study: GroupStudy) -> None:  # noqa: ANN401
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


def _draw_cohesion(axes: Any, study: GroupStudy) -> None:  # noqa: ANN401
    for place, (name, cohesion) in enumerate(study.cohesion.items()):
        colour = _COLOURS[2] if name == study.grouping else _COLOURS[0]
        axes.scatter(np.full(len(cohesion), place), cohesion, color=colour, alpha=0.7, linewidths=0)
        axes.hlines(cohesion.mean(), place - 0.3, place + 0.3, color="black")
    axes.set_xticks(range(len(study.cohesion)), [_marked(name, study) for name in study.cohesion])
    axes.set(
        title="How cohesive groups are, in one space", ylabel="cohesion ρ between rating rows (a line is the mean)"
    )


def _marked(name: str, study: GroupStudy) -> str:
    return f"{name}\n(this one)" if name == study.grouping else name


def _draw_map(axes: Any, study: GroupStudy) -> None:  # noqa: ANN401
    groups = int(study.positions.max()) + 1
    # The last drawn hides the first, so users are drawn in the order of no group.
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
