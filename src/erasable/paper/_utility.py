"""HR@10 and NDCG@10 after learning and after forgetting, by number of groups (the main figures and Appendix D.1)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from erasable.evaluation.protocols import measure_all
from erasable.paper._cells import Cell, ExperimentSettings, RequestName, Result
from erasable.paper._report import draw_line, mark_groups
from erasable.paper._utility_claims import METRICS, REQUESTS, claims, judged
from erasable.paper._workbench import (
    ChainLabels,
    Entry,
    Experiment,
    Row,
    Table,
    Workbench,
    chain_settings,
    crossed,
    labels,
    pick,
    rounded,
    summary,
    usual_groups,
)
from erasable.plots import one_legend, panels

COST = "cost"
"""In the column of protocols: the cost of forgetting."""
_SETS: Mapping[str, Sequence[str]] = {"": REQUESTS, "-fewer": ("rand@2.5", "top@2.5")}


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


def figures(table: Table) -> dict[str, Any]:
    """Return a figure for each metric, and one more for the appendix's requests if they were measured."""
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


def entries(settings: ExperimentSettings, data: str) -> list[Entry]:
    """Return the grid: seeds, numbers of groups, methods, models and requests; cells of one grouping are together."""
    return [
        utility_entry(settings, data, ChainLabels(model, method, groups, seed), request)
        for seed in range(settings.seeds)
        for groups in settings.groups
        for method in settings.methods
        for model in settings.models
        for request in settings.requests
    ]


def utility_entry(settings: ExperimentSettings, data: str, chain: ChainLabels, request: RequestName) -> Entry:
    """Return the cell that measures utility after a request, with its labels."""
    details = {"request": request, "protocols": list(settings.protocols)}
    cell = Cell("utility", data, chain_settings(settings, chain), details)
    return Entry({**chain._asdict(), "request": request}, cell)


def measure(workbench: Workbench, cell: Cell) -> dict[str, Any]:
    """Learn, forget the users that the request names, and measure recommendations for the others."""
    chain, forgetting = workbench.forgotten(cell.settings, cell.details["request"])
    state = chain.state
    held_out = state.dataset.held_out
    found = measure_all(state, chain.checkpoints, held_out, workbench.threads, cell.details["protocols"])
    return {
        "forgetting": rounded(asdict(forgetting)) if forgetting else None,
        "model": state.chain[-1].fingerprint[:16],
        "protocols": {name: {"users": one.users, **rounded(one.values)} for name, one in found.items()},
    }


def values(result: Result) -> list[Row]:
    """Return a row for each protocol and metric, and the cost of forgetting if anything was forgotten."""
    found = [
        {"protocol": protocol, "metric": metric, "value": value}
        for protocol, found in result["protocols"].items()
        for metric, value in found.items()
        if metric != "users"
    ]
    forgetting = result["forgetting"] or {}
    costs = [name for name in ("cost_ratio", "chain_ratio") if name in forgetting]
    return [*found, *({"protocol": COST, "metric": name, "value": forgetting[name]} for name in costs)]


EXPERIMENT = Experiment(
    name="utility",
    title="Utility after learning and after forgetting",
    about=(
        "Each method learns with each number of groups, then forgets what a request names; HR@10 and NDCG@10 are "
        "measured for the users who are left. Retrain trains on everyone at once; with one group every method is the "
        "same. rand@K and top@K are K per cent of all users, at random or those with most ratings. Verdicts are about "
        "the first protocol."
    ),
    entries=entries,
    measurements={"utility": measure},
    values=values,
    claims=claims,
    tables=tables,
    figures=figures,
)
