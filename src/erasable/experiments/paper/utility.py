"""HR@10 and NDCG@10 after learning and after forgetting, against the number of groups (the big figures and D.1)."""

from dataclasses import asdict
from typing import Any

from erasable.evaluation import measure_all
from erasable.experiments.cells import Cell, Result
from erasable.experiments.experiment import ChainLabels, Entry, Experiment, chain_settings, rounded
from erasable.experiments.paper.utility_claims import claims
from erasable.experiments.paper.utility_figures import figures
from erasable.experiments.paper.utility_tables import COST, tables
from erasable.experiments.requests import RequestName
from erasable.experiments.settings import ExperimentSettings
from erasable.experiments.tables import Row
from erasable.experiments.workbench import Workbench


def entries(settings: ExperimentSettings, data: str) -> list[Entry]:
    """Return the grid: seeds, numbers of groups, methods, models and requests; what shares a grouping is together."""
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
    """Learn, forget what the request names, and measure recommendations for whoever is left."""
    chain, forgetting = workbench.forgotten(cell.settings, cell.details["request"])
    state = chain.state
    held_out = state.knowledge.held_out
    found = measure_all(state, chain.checkpoints, held_out, workbench.threads, cell.details["protocols"])
    return {
        "forgetting": rounded(asdict(forgetting)) if forgetting else None,
        "model": state.chain[-1].fingerprint[:16],
        "protocols": {name: {"users": one.users, **rounded(one.values)} for name, one in found.items()},
    }


def values(result: Result) -> list[Row]:
    """Return a row for each protocol and metric, and what forgetting cost if anything was forgotten."""
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
        "measured for whoever is left. Retrain trains on everyone at once; with one group every method is the same. "
        "rand@K and top@K are K per cent of all users, at random or those with most ratings. Verdicts are about the "
        "first protocol."
    ),
    entries=entries,
    measurements={"utility": measure},
    values=values,
    claims=claims,
    tables=tables,
    figures=figures,
)
