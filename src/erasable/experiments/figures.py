"""How figures look, and how they are written; matplotlib comes with the extra `plots`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from erasable.errors import WrongUse

# Told apart by the colour-blind (Okabe and Ito); markers and lines tell them apart in print.
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
_PANEL = (3.4, 2.8)
_LEGEND_WIDTH = 1.7
"""Inches for one entry of a legend."""


def figure_class() -> Any:  # noqa: ANN401 - matplotlib is untyped here
    """Return matplotlib's figure; without it, say how to get it."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise WrongUse("figures need matplotlib: pip install 'erasable[plots]'") from None
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


def save_figure(figure: Any, stem: Path) -> list[Path]:  # noqa: ANN401 - matplotlib is untyped here
    """Write a figure as PNG and as SVG; the same figure gives the same bytes."""
    from matplotlib import rc_context

    files = [stem.with_name(stem.name + ending) for ending in (".png", ".svg")]
    with rc_context({"svg.hashsalt": "erasable"}):
        figure.savefig(files[0], dpi=130)
        figure.savefig(files[1], metadata={"Date": None})
    return files
