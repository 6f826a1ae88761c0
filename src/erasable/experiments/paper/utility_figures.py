"""The paper's big figures: a metric against the number of groups, for each model and request."""

from collections.abc import Mapping, Sequence
from typing import Any

from erasable.experiments.figures import one_legend, panels
from erasable.experiments.paper.comparisons import METRICS, REQUESTS, judged
from erasable.experiments.paper.group_lines import draw_line, mark_groups
from erasable.experiments.tables import Table, labels, pick, summary

_SETS: Mapping[str, Sequence[str]] = {"": REQUESTS, "-fewer": ("rand@2.5", "top@2.5")}


def figures(table: Table) -> dict[str, Any]:
    """Return a figure for each metric, and one more for the requests of the appendix, as far as they were measured."""
    rows = judged(table)
    drawn = {}
    for ending, wanted in _SETS.items():
        requests = [request for request in wanted if request in labels(rows, "request")]
        for metric in METRICS if requests else ():
            drawn[f"utility-{metric.partition('@')[0]}{ending}"] = _figure(pick(rows, metric=metric), requests)
    return drawn


def _figure(rows: Table, requests: Sequence[str]) -> Any:  # noqa: ANN401 - matplotlib is untyped here
    models, metric = labels(rows, "model"), rows[0]["metric"].upper()
    figure, axes = panels(len(models), len(requests), sharex=True, sharey="row")
    for line, model in zip(axes, models, strict=True):
        for axis, request in zip(line, requests, strict=True):
            _draw_panel(axis, pick(rows, model=model, request=request))
            axis.set_title(f"{model.upper()}, {request}", fontsize=10)
        line[0].set_ylabel(metric)
    for axis in axes[-1]:
        axis.set_xlabel("groups")
    one_legend(figure, axes)
    return figure


def _draw_panel(axis: Any, rows: Table) -> None:  # noqa: ANN401 - matplotlib is untyped here
    groups = sorted(labels(rows, "groups"))
    for method in labels(rows, "method"):
        found = {number: pick(rows, method=method, groups=number) for number in groups}
        draw_line(axis, method, {number: summary(cell) for number, cell in found.items() if cell})
    mark_groups(axis, groups)
