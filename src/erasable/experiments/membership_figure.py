"""The figure of a membership probe; matplotlib comes with the extra `plots`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from erasable.experiments.figures import one_legend, panels
from erasable.operations.audit import Probe

_KINDS: Mapping[str, Mapping[str, Any]] = {
    # Told apart by the colour-blind (Okabe and Ito), and by their markers in print.
    "before": {"label": "before forgetting", "color": "#d55e00", "marker": "o"},
    "forgotten": {"label": "after forgetting", "color": "#0072b2", "marker": "s"},
    "never": {"label": "never knew them", "color": "#666666", "marker": "^"},
}
_APART = 0.22


def draw_membership(probe: Probe, file: Path) -> None:
    """Draw for each attack how well it does on the three kinds of models, with intervals, and the line of chance."""
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


def _title(probe: Probe) -> str:
    others = "who were never learned" if probe.pretended else "who are still there"
    return (
        f"Can an attack tell {probe.people:,} erased people from {probe.others:,} {others}?\n"
        f"Means and 95 % intervals over {probe.seeds} seeds, all attacks together"
    )
