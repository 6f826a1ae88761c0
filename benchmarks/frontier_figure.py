"""Draws the frontier from results/frontier.json: quality against the share of a retraining, and against seconds.

scripts/bench frontier_figure [--of book-crossing]
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np

from erasable.plots import panels
from reporting import RESULTS, documented_parser

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
SIZE, DOTS = (9.4, 5.6), 190
NAME_SIZE, POINT_SIZE, TICK_SIZE = 8.5, 7.0, 8.0


@dataclass(frozen=True)
class Look:
    """How a family is drawn: others' methods in grey, ours in colours that the colour-blind tell apart."""

    caption: str
    colour: str
    marker: str
    line: str = "-"
    ours: bool = False


LOOKS = {
    "Retrain NMF": Look("Retrain NMF", "#000000", "*"),
    "LASER, shared epochs": Look("LASER, shared epochs", "#8a8a8a", "o", line=":"),
    "LASER, full epochs": Look("LASER, full epochs", "#5f5f5f", "o"),
    "C-SISA, S = 8": Look("C-SISA, S = 8", "#8a8a8a", "s", line=""),
    "Retrain item-kNN": Look("Retrain item-kNN", "#000000", "x"),
    "Retrain implicit's ALS": Look("Retrain implicit's ALS", "#000000", "x"),
    "Retrain dense EASE": Look("Retrain dense EASE", "#000000", "x"),
    "EASE, nearest items": Look("EASE, K nearest items", "#b8860b", "P", ours=True),
    "Solved rows": Look("NMF, solved rows", "#0072b2", "^", ours=True),
    "Anchored": Look("NMF, anchors", "#009e73", "v", ours=True),
    "ALS": Look("ALS, anchors", "#d55e00", "D", ours=True),
    "Dense EASE": Look("Dense EASE, anchors", "#a8518a", "s", ours=True),
}


@dataclass(frozen=True)
class Panel:
    """One horizontal axis: which figure, from where on, and how its values are written."""

    figure: str
    title: str
    floor: float
    unit: str
    factor: float
    room: float
    """How many times the largest value still fits: names stand to the right of what is retrained."""


PANELS = (
    Panel("cost_one", "Expected cost of forgetting one random user,\nas a share of retraining", 1e-4, " %", 100, 14),
    Panel("seconds_one", "Expected seconds of training to forget\none random user", 1e-3, " s", 1, 3),
)


Curves = Mapping[str, Sequence[Mapping[str, Any]]]


def results_name(data: str) -> str:
    """Return what results and picture of a data set are called."""
    return "frontier" if data == "ml-1m" else f"frontier-{data}"


def picture(name: str) -> Path:
    """Return where a picture goes."""
    return PICTURES / f"{name}.png"


def draw(result: Mapping[str, Any], path: Path) -> Path:
    """Draw what is there of a result."""
    figure, axes = panels(1, len(PANELS), sharey=True)
    figure.set_size_inches(*SIZE)
    figure.set_dpi(DOTS)
    curves = {family: [line for line in result["lines"] if line["family"] == family] for family in LOOKS}
    curves = {family: points for family, points in curves.items() if points}
    for axis, panel in zip(axes.flat, PANELS, strict=True):
        _draw_curves(axis, panel, curves)
        if result["best_retrained"]:  # else nothing was retrained yet
            axis.axhline(result["best_retrained"], color="#000000", linewidth=0.7, linestyle=(0, (4, 3)), zorder=1)
        _finish_axis(axis, panel, [point["mean"][panel.figure] for points in curves.values() for point in points])
    axes.flat[0].set_ylabel(f"NDCG@10 ({result['data']})", fontsize=TICK_SIZE + 1)
    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # labels are placed where things are now
    for axis, panel in zip(axes.flat, PANELS, strict=True):
        Labels(axis, panel, curves, result["best_retrained"]).place()
    figure.savefig(path, dpi=DOTS, metadata={"Software": None})
    return path


def _place(line: Mapping[str, Any], panel: Panel) -> tuple[float, float]:
    return max(line["mean"][panel.figure], panel.floor), line["mean"]["ndcg@10"]


def _draw_curves(axis: Any, panel: Panel, curves: Curves) -> None:
    for family, points in curves.items():
        look = LOOKS[family]
        across, up = zip(*(_place(point, panel) for point in points), strict=True)
        width = (
            {"linewidth": 1.8, "markersize": 6.5}
            if look.ours
            else {"linewidth": 1.2, "markersize": 5.5, "markeredgewidth": 1.5}
        )
        face = look.colour if look.ours or look.line != ":" else "white"
        style = {"color": look.colour, "marker": look.marker, "linestyle": look.line, "markerfacecolor": face}
        axis.plot(across, up, **style, **width, zorder=4 if look.marker == "x" else 3 if look.ours else 2)


def _finish_axis(axis: Any, panel: Panel, values: Sequence[float]) -> None:
    """Set limits and ticks; what lies below the floor stands at it, and the tick there says so."""
    low, high = (max(value, panel.floor) for value in (min(values), max(values)))
    axis.set_xscale("log")
    axis.set_xlim(low / 2.5, high * panel.room)
    axis.margins(y=0.12)
    ticks = [10.0**power for power in range(-4, 5) if low / 2.5 <= 10.0**power <= high * 1.01]
    names = [f"{tick * panel.factor:g}{panel.unit}" for tick in ticks]
    if min(values) < panel.floor:
        names[0] = f"{names[0]} or less"
    axis.set_xticks(ticks, names)
    axis.xaxis.set_minor_formatter("")
    axis.tick_params(labelsize=TICK_SIZE)
    axis.set_xlabel(panel.title, fontsize=TICK_SIZE + 1)


Pixel = tuple[float, float]
Box = tuple[float, float, float, float]
Places = Callable[[float, float], Iterable[Box]]


class Labels:
    """Puts names at curves and labels at points where they cover nothing; a label that fits nowhere is left out."""

    def __init__(self, axis: Any, panel: Panel, curves: Curves, best: float) -> None:
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        self._axis, self._curves = axis, curves
        self._renderer = FigureCanvasAgg(axis.figure).get_renderer()
        self._frame = axis.get_window_extent(self._renderer)
        self._dot = axis.figure.dpi / 72
        self._pixels = {
            family: axis.transData.transform([_place(point, panel) for point in points])
            for family, points in curves.items()
        }
        self._taken = {family: list(self._of_curve(family)) for family in curves}
        up = axis.transData.transform((1, best))[1]
        self._taken[""] = [(self._frame.x0, up - self._dot, self._frame.x1, up + self._dot)]

    def place(self) -> None:
        """Place the names, then the labels, then the note which way is better."""
        for family in self._curves:
            self._name(family)
        for family, points in self._curves.items():
            for number, point in enumerate(points):
                short = point["label"].removeprefix("S = ").removesuffix(" of users")
                self._label(family, number, [short] if number else [point["label"], short])
        style = {"fontsize": 11, "color": "#666666", "fontstyle": "italic"}
        self._put("↖ better", "", self._corners, style, needed=True)

    def _name(self, family: str) -> None:
        look, places = LOOKS[family], self._pixels[family]
        middles = [np.add(one, other) / 2 for one, other in pairwise(places)] if look.line else []
        around = partial(self._around, (6, 10, 15, 22), [*places, *middles])
        style = {"fontsize": NAME_SIZE, "color": look.colour, "fontweight": "bold" if look.ours else "normal"}
        self._put(look.caption, family, around, style, needed=True)

    def _label(self, family: str, number: int, texts: Sequence[str]) -> None:
        """Write the first of some texts at a point that fits there."""
        around = partial(self._around, (6, 8), [self._pixels[family][number]])
        style = {"fontsize": POINT_SIZE, "color": LOOKS[family].colour}
        any(self._put(text, family, around, style, needed=False) for text in texts if text)

    def _put(self, text: str, family: str, places: Places, style: Mapping[str, Any], needed: bool) -> bool:
        """Write a text where it covers least; if it need not be there, only where it covers nothing; say whether."""
        shown = self._axis.text(0, 0, text, transform=None, **style)
        extent = shown.get_window_extent(self._renderer)
        boxes = list(places(extent.width, extent.height))
        best = min(boxes, key=partial(self._badness, family))
        if self._covered(best) > 0 and not needed:
            shown.remove()
            return False
        shown.set_position(np.subtract(best[:2], (extent.x0, extent.y0)))
        self._taken.setdefault(family, []).append(best)
        return True

    def _badness(self, family: str, box: Box) -> float:
        """Return how much of everything a box covers, and a little for being near to others or far from its own."""
        others = [name for name in self._taken if name != family]
        far = min((_gap(box, own) for own in self._taken.get(family, ())), default=0.0)
        return (
            self._covered(box)
            + self._covered(_larger(box, 5 * self._dot), others) / 50
            + 3 * max(0.0, far - 6 * self._dot)
        )

    def _around(
        self, distances: Iterable[float], anchors: Sequence[Pixel], width: float, height: float
    ) -> Iterator[Box]:
        """Yield boxes around points: right, left, above, below and between, near ones first."""
        sides = ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, 1), (1, -1), (-1, -1))
        for distance, anchor, (across, up) in product(distances, anchors, sides):
            left = anchor[0] + across * distance * self._dot - width * (1 - across) / 2
            bottom = anchor[1] + up * distance * self._dot - height * (1 - up) / 2
            yield left, bottom, left + width, bottom + height

    def _corners(self, width: float, height: float) -> Iterator[Box]:
        """Yield boxes all over the panel, from its upper left on."""
        for down, across in product(np.linspace(0.01, 0.99, 25), np.linspace(0.02, 0.98, 25)):
            left = self._frame.x0 + across * (self._frame.width - width)
            bottom = self._frame.y1 - height - down * (self._frame.height - height)
            yield left, bottom, left + width, bottom + height

    def _covered(self, box: Box, families: Iterable[str] | None = None) -> float:
        """Return how much a box covers; to leave the panel is as bad as anything."""
        frame = self._frame
        outside = box[0] < frame.x0 or box[2] > frame.x1 or box[1] < frame.y0 or box[3] > frame.y1
        named = self._taken if families is None else families
        return 1e6 * outside + sum(_overlap(box, other) for family in named for other in self._taken[family])

    def _of_curve(self, family: str) -> Iterator[Box]:
        """Yield small boxes that cover the markers of a curve and the lines between them."""
        places = self._pixels[family]
        for across, up in places:
            yield _box(across, up, 4.5 * self._dot)
        for one, other in pairwise(places) if LOOKS[family].line else ():
            steps = max(2, int(np.hypot(*np.subtract(other, one)) / (2 * self._dot)))
            for across, up in np.linspace(one, other, steps):
                yield _box(across, up, 1.5 * self._dot)


def _box(across: float, up: float, half: float) -> Box:
    return across - half, up - half, across + half, up + half


def _larger(box: Box, margin: float) -> Box:
    return box[0] - margin, box[1] - margin, box[2] + margin, box[3] + margin


def _gap(one: Box, other: Box) -> float:
    across = max(one[0] - other[2], other[0] - one[2], 0.0)
    up = max(one[1] - other[3], other[1] - one[3], 0.0)
    return float(np.hypot(across, up))


def _overlap(one: Box, other: Box) -> float:
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    return width * height if width > 0 and height > 0 else 0.0


def main() -> None:
    parser = documented_parser(__doc__)
    parser.add_argument("--of", default="ml-1m", help="the data set")
    name = results_name(parser.parse_args().of)
    result = json.loads((RESULTS / f"{name}.json").read_text())
    print(f"written to {draw(result, picture(name))}")


if __name__ == "__main__":
    main()
