"""Running times as tables and as a figure: seconds by method and number of groups, for each request."""

from collections.abc import Iterator
from typing import Any

from erasable.experiments.figures import one_legend, panels
from erasable.experiments.paper.group_lines import draw_line, mark_groups
from erasable.experiments.paper.time_claims import LAST, MANY, ONE, median
from erasable.experiments.requests import RequestName
from erasable.experiments.tables import Row, Summary, Table, crossed, labels, pick

REQUESTS: tuple[RequestName, ...] = ("last group@5", "random group@5", "first group@5", "one", "rand@5")
_TITLES = {
    LAST: "5 % of the last group (the paper's)",
    "random group@5": "5 % of a random group",
    "first group@5": "5 % of the first group",
    ONE: "one random user",
    MANY: "5 % of all users",
}
_ACROSS = 3


def tables(table: Table) -> str:
    """Return the seconds for each request, and how much is trained again."""
    return "\n".join([*_circumstances(table), *_seconds(table), *_costs(table)])


def _circumstances(table: Table) -> Iterator[str]:
    threads = sorted({row["value"] for row in pick(table, measure="threads")})
    if threads:
        model = labels(table, "model")[0].upper()
        yield f"Measured with {model}; threads: {', '.join(map(str, threads))}.\n"


def _seconds(table: Table) -> Iterator[str]:
    rows = pick(table, measure="seconds")
    for request in labels(rows, "request"):
        title = f"Seconds to forget {_TITLES[request]}, median (least to most) by number of groups"
        yield f"**{title}**\n\n{crossed(pick(rows, request=request), 'method', 'groups', _spread)}"


def _spread(found: list[Row]) -> str:
    values = [row["value"] for row in found]
    return f"{median(found):.2f} ({min(values):.2f} to {max(values):.2f})"


def _costs(table: Table) -> Iterator[str]:
    shown = {"cost_ratio": "against retraining", "chain_ratio": "against training the whole chain again"}
    for measure, against in shown.items():
        rows = pick(table, measure=measure, method="L-CBKM")
        if rows:
            title = f"Samples L-CBKM visits to forget, {against}, by number of groups"
            yield f"**{title}**\n\n{crossed(rows, 'request', 'groups', _first)}"


def _first(found: list[Row]) -> str:
    return f"{found[0]['value']:.3f}"


def figures(table: Table) -> dict[str, Any]:
    """Return one figure, a panel for each request, with seconds on a logarithmic scale."""
    rows = pick(table, measure="seconds")
    requests = labels(rows, "request")
    if not requests:
        return {}
    across = min(_ACROSS, len(requests))
    figure, axes = panels(-(-len(requests) // across), across, sharey=True)
    for axis, request in zip(axes.flat, requests, strict=False):
        _draw_panel(axis, pick(rows, request=request))
        axis.set_title(_TITLES[request], fontsize=10)
    for axis in axes[:, 0]:
        axis.set_ylabel("seconds to forget")
    for axis in list(axes.flat)[len(requests) :]:
        axis.remove()
    one_legend(figure, axes)
    return {"time": figure}


def _draw_panel(axis: Any, rows: Table) -> None:  # noqa: ANN401 - matplotlib is untyped here
    groups = sorted(labels(rows, "groups"))
    for method in labels(rows, "method"):
        found = {number: median(rows, method=method, groups=number) for number in groups}
        course = {number: Summary(seconds, 0.0, 1) for number, seconds in found.items() if seconds is not None}
        draw_line(axis, method, course)
    axis.set_yscale("log")
    axis.yaxis.set_major_formatter("{x:g}")
    axis.set_xlabel("groups")
    mark_groups(axis, groups)
