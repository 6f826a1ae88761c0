"""The style of the experiments' figures, drawing and saving them; matplotlib comes with the extra `paper`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from erasable.paper._experiment import Summary

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
