"""Lines of methods against the number of groups, as in the paper's figures; matplotlib comes with `plots`."""

from collections.abc import Mapping, Sequence
from typing import Any

from erasable.experiments.figures import STYLES
from erasable.experiments.tables import Summary

_FALLBACK: Mapping[str, Any] = {"color": "#000000", "linestyle": "-", "marker": "x"}


def draw_line(axis: Any, method: str, course: Mapping[int, Summary]) -> None:  # noqa: ANN401 - matplotlib is untyped here
    """Draw a method's values, with bars for the deviations; Retrain, which has no groups, is a level."""
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
    """Lay the numbers of groups out evenly, doubling by doubling, each with its label."""
    axis.set_xscale("log", base=2)
    axis.set_xticks(groups, [str(number) for number in groups])
    axis.xaxis.minorticks_off()
