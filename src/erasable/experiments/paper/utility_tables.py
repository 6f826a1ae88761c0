"""Utility in numbers, as Markdown: by method and number of groups, by other protocols, and what forgetting costs."""

from collections.abc import Iterator

from erasable.experiments.experiment import usual_groups
from erasable.experiments.paper.comparisons import METRICS, REQUESTS, judged
from erasable.experiments.tables import Row, Table, crossed, labels, pick, summary

COST = "cost"
"""The protocol that is none: what forgetting took."""


def tables(table: Table) -> str:
    """Return the metrics by method and number of groups, the other protocols, and the cost of forgetting."""
    return "\n".join([*_by_groups(judged(table)), *_other_protocols(table), *_costs(table)])


def _by_groups(rows: Table) -> Iterator[str]:
    for metric in METRICS:
        for model in labels(rows, "model"):
            for request in REQUESTS:
                found = pick(rows, metric=metric, model=model, request=request)
                if found:
                    title = (
                        f"{metric.upper()} of {model.upper()}, {request}, {found[0]['protocol']}, by number of groups"
                    )
                    yield f"**{title}**\n\n{crossed(found, 'method', 'groups')}"


def _other_protocols(table: Table) -> Iterator[str]:
    others = [name for name in labels(table, "protocol")[1:] if name != COST]
    groups = usual_groups(labels(table, "groups"))
    rows = [
        {**row, "measured": f"{row['model'].upper()} {row['protocol']} {row['metric'].upper()}"}
        for row in pick(table, groups=groups, request="learn")
        if row["protocol"] in others and row["metric"] in METRICS
    ]
    if rows:
        title = f"After learning with {groups} groups, by the other protocols"
        yield f"**{title}**\n\n{crossed(rows, 'measured', 'method')}"


def _costs(table: Table) -> Iterator[str]:
    rows = pick(table, protocol=COST, metric="cost_ratio")
    for request in [request for request in REQUESTS if request in labels(rows, "request")]:
        title = f"Samples visited to forget, against retraining: {request}, by number of groups"
        yield f"**{title}**\n\n{crossed(pick(rows, request=request), 'method', 'groups', _mean)}"


def _mean(found: list[Row]) -> str:
    return f"{summary(found).mean:.3f}"
