"""The ablation of the order: groups trained from easy to hard (the paper's SeqTrain) or from hard to easy."""

from collections.abc import Mapping
from typing import Any

from erasable.paper._cells import ExperimentSettings, MethodName
from erasable.paper._report import draw_bars
from erasable.paper._utility import utility_entry, values
from erasable.paper._utility_claims import COUNTS, METRICS, REQUESTS, compare, grouped, judged, mean_difference, tally
from erasable.paper._workbench import (
    ChainLabels,
    Entry,
    Experiment,
    PaperClaim,
    Table,
    crossed,
    labels,
    pick,
    summary,
    usual_groups,
)
from erasable.plots import one_legend, panels

_EASY: MethodName = "L-CBKM"
_HARD: MethodName = "L-CBKM hard"
_RANDOM: MethodName = "L-Rand"
_SHOWN: Mapping[MethodName, str] = {
    _EASY: "SeqTrain (easy to hard)",
    _HARD: "anti-SeqTrain (hard to easy)",
    _RANDOM: "L-Rand",
}


def entries(settings: ExperimentSettings, data: str) -> list[Entry]:
    """Return the grid: both orders and random groups, with the paper's 8 groups; most cells are shared with utility."""
    groups = usual_groups(settings.groups)
    return [
        utility_entry(settings, data, ChainLabels(model, method, groups, seed), request)
        for seed in range(settings.seeds)
        for method in _SHOWN
        for model in settings.models
        for request in REQUESTS
        if request in settings.requests
    ]


def claims(table: Table) -> list[PaperClaim]:
    """Judge whether easy to hard is the better order."""
    rows = grouped(judged(table))
    pairs = compare(rows, _EASY, _HARD)
    if not pairs:
        return []
    measured = f"SeqTrain is {tally(pairs)}; {mean_difference(pairs)}."
    for method in (_EASY, _HARD):
        against = compare(rows, method, _RANDOM)
        if against:
            measured += f" Against L-Rand, {_SHOWN[method]} is {tally(against)}; {mean_difference(against)}."
    return [
        PaperClaim(
            "SeqTrain (easy to hard) outperforms anti-SeqTrain (hard to easy) in all testing cases.",
            f"A case is a model, a request and a metric. {COUNTS} It holds if SeqTrain is higher in at least 95 per "
            "cent of the cases, in part if in at least half; it is not decided if the ties could change that.",
            measured,
            tally(pairs).verdict(),
        )
    ]


def tables(table: Table) -> str:
    """Return both orders and random groups, for each model and request."""
    rows = [
        {
            **row,
            "case": f"{row['model'].upper()} {row['request']} {row['metric'].upper()}",
            "order": _SHOWN[row["method"]],
        }
        for row in judged(table)
    ]
    return crossed(rows, "case", "order") if rows else ""


def figures(table: Table) -> dict[str, Any]:
    """Return bars for each request, a row of panels for each model, a column for each metric."""
    rows = judged(table)
    if not rows:
        return {}
    models = labels(rows, "model")
    figure, axes = panels(len(models), len(METRICS))
    for line, model in zip(axes, models, strict=True):
        for axis, metric in zip(line, METRICS, strict=True):
            _draw_panel(axis, pick(rows, model=model, metric=metric))
            axis.set_title(model.upper(), fontsize=10)
            axis.set_ylabel(metric.upper())
    one_legend(figure, axes)
    return {"order": figure}


def _draw_panel(axis: Any, rows: Table) -> None:  # noqa: ANN401 - matplotlib is untyped here
    requests = labels(rows, "request")
    series = {
        _SHOWN[method]: [summary(pick(rows, method=method, request=request)) for request in requests]
        for method in labels(rows, "method")
    }
    draw_bars(axis, requests, series)


EXPERIMENT = Experiment(
    name="order",
    title="The order of the groups",
    about=(
        "L-CBKM with the paper's 8 groups (or the largest number below that was set), trained from the most cohesive "
        "group to the least (SeqTrain) and the other way round (anti-SeqTrain), measured after learning and after "
        "forgetting 5 per cent of the users. L-Rand, whose groups have no such order, shows how large a difference is."
    ),
    entries=entries,
    values=values,
    claims=claims,
    tables=tables,
    figures=figures,
)
