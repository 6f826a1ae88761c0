"""Bars side by side, with deviations over seeds; matplotlib comes with `plots`."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from erasable.experiments.figures import COLOURS, HATCHES
from erasable.experiments.tables import Summary

_ROOM = 0.8


def draw_bars(axis: Any, places: Sequence[str], series: Mapping[str, Sequence[Summary]]) -> None:  # noqa: ANN401 - matplotlib is untyped here
    """Draw, at each place, a bar of each series; deviations are shown where there are several seeds."""
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
