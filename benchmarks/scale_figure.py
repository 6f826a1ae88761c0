"""Draws what forgetting one person costs over the number of people, from results/scale/: a line for each model.

scripts/bench scale_figure
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.ticker import LogLocator

from erasable.plots import panels
from reporting import RESULTS, documented_parser

KEPT = RESULTS / "scale"
PICTURE = Path(__file__).parents[1] / "docs" / "pictures" / "forgetting-growth.png"
_LOOKS = {"als": ("ALS, 5 % anchors", "#d55e00", "o"), "ease": ("EASE, 100 neighbours", "#0072b2", "s")}
_SMALLEST = 0.001  # of the processor's seconds: what is below can't be told from nothing


def growth() -> dict[str, list[tuple[int, float]]]:
    """Return (people, the processor's seconds for one person beyond start and scan) of each model, as measured."""
    kept = [json.loads(file.read_text()) for file in KEPT.glob("*-forget-one-*.json")]
    points: dict[str, list[tuple[int, float]]] = {}
    for one in sorted((one for one in kept if one["size"] != "trial"), key=lambda one: one["users"]):
        points.setdefault(one["model"], []).append((one["users"], max(_SMALLEST, one["cpu_beyond_start_and_scan"])))
    return points


def exponent(points: Sequence[tuple[int, float]]) -> float | None:
    """Return the slope of the line through points, both axes logarithmic: 1 is in proportion to people, 0 is constant.

    >>> round(exponent([(10, 1.0), (100, 10.0), (1000, 100.0)]), 6)
    1.0
    """
    if len(points) < 2:
        return None
    people, seconds = np.log(np.array(points, dtype=float)).T
    return float(np.polyfit(people, seconds, 1)[0])


def draw(points: Mapping[str, Sequence[tuple[int, float]]], file: Path) -> Path:
    """Draw the curves, each with its exponent, beside one that grows in proportion to people."""
    figure, axes = panels(1, 1)
    figure.set_size_inches(5.6, 4.6)
    axis = axes[0, 0]
    for model, measured in points.items():
        name, colour, marker = _LOOKS[model]
        slope = exponent(measured)
        label = name if slope is None else f"{name}: grows as people$^{{{slope:.2f}}}$"
        axis.plot(*zip(*measured, strict=True), color=colour, marker=marker, label=label, linewidth=1.6)
    people = sorted({one for measured in points.values() for one, _ in measured})
    lowest = min(seconds for measured in points.values() for _, seconds in measured)
    ends = [people[0], people[-1]]
    axis.plot(ends, [lowest * one / ends[0] for one in ends], ":", color="#8a8a8a", label="in proportion to people")
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xticks(people, [f"{one / 1e6:g} M" for one in people])
    axis.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.minorticks_off()
    axis.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axis.set_xlabel("people in the workspace")
    axis.set_ylabel("CPU seconds to forget one person")
    axis.set_title("Forgetting one person, certified,\nwithout the start of the process and the scan", fontsize=9)
    figure.legend(loc="outside lower center", ncols=1, frameon=False, fontsize=8.5)
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=190)
    return file


def main() -> None:
    parser = documented_parser(__doc__)
    parser.add_argument("--picture", type=Path, default=PICTURE)
    print(f"written to {draw(growth(), parser.parse_args().picture)}")


if __name__ == "__main__":
    main()
