"""The running time of unlearning against the number of groups: the paper's last group, and requests it leaves out."""

import time
from typing import Any

from erasable.experiments.cells import Cell, Result
from erasable.experiments.experiment import ChainLabels, Entry, Experiment, chain_settings, rounded
from erasable.experiments.machine import processor
from erasable.experiments.methods import MethodName
from erasable.experiments.paper.time_claims import claims
from erasable.experiments.paper.time_report import REQUESTS, figures, tables
from erasable.experiments.requests import RequestName, users_to_forget
from erasable.experiments.settings import ExperimentSettings
from erasable.experiments.tables import Row
from erasable.experiments.workbench import Chain, Workbench
from erasable.models import Effort
from erasable.operations import available_cores
from erasable.requests import Request
from erasable.training import Knowledge
from erasable.unlearning import Erasure, forget, plan_change

_METHODS: tuple[MethodName, ...] = ("Retrain", "C-SISA", "L-CBKM")
_TIMES = ("seconds", "cpu_seconds")


def entries(settings: ExperimentSettings, data: str) -> list[Entry]:
    """Return the grid: seeds, numbers of groups, methods and requests, for one model."""
    return [
        _entry(settings, data, ChainLabels(settings.time_model, method, groups, seed), request)
        for seed in range(settings.time_seeds)
        for groups in settings.groups
        for method in _METHODS
        for request in REQUESTS
    ]


def _entry(settings: ExperimentSettings, data: str, chain: ChainLabels, request: RequestName) -> Entry:
    """Return a cell with its labels; one group is everyone, so that part of it is part of everyone.

    Seconds say something about one machine only, so it is part of what names the cell.
    """
    chosen = chain_settings(settings, chain)
    alone = chosen["strategy"] == "retrain" and "group@" in request
    details = {
        "request": "rand@5" if alone else request,
        "repeats": settings.repeats,
        "processor": processor(),
        "cores": available_cores(),
    }
    return Entry({**chain._asdict(), "request": request}, Cell("time", data, chosen, details))


def measure(workbench: Workbench, cell: Cell) -> dict[str, Any]:
    """Learn, which also compiles what forgetting runs, then time forgetting again and again from the same chain."""
    chain = workbench.learned(cell.settings)
    users = users_to_forget(chain.state.knowledge, cell.details["request"])
    after = Erasure.of([Request(user) for user in users]).apply(chain.state.knowledge)
    planned = plan_change(chain.state, after)
    taken = [time_forgetting(chain, after, workbench.effort) for _ in range(cell.details["repeats"])]
    seconds, cpu_seconds = ([round(value, 4) for value in column] for column in zip(*taken, strict=True))
    costs = {"cost_ratio": planned.cost_ratio, "chain_ratio": planned.chain_ratio}
    return {
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
        "threads": workbench.threads,
        "forgetting": {"users": len(users), "stages_rerun": planned.stages_rerun, **rounded(costs)},
    }


def time_forgetting(chain: Chain, after: Knowledge, effort: Effort) -> tuple[float, float]:
    """Return the seconds, by the clock and of all cores together, of going from a chain to one that knows less."""
    checkpoints = chain.checkpoints.copy()
    began, used = time.perf_counter(), time.process_time()
    forget(chain.state, after, checkpoints, effort)
    return time.perf_counter() - began, time.process_time() - used


def values(result: Result) -> list[Row]:
    """Return a row for each repeat and kind of time, one for each cost, and one for the number of threads."""
    times = [
        {"measure": name, "repeat": repeat, "value": value}
        for name in _TIMES
        for repeat, value in enumerate(result[name])
    ]
    others = {**result["forgetting"], "threads": result["threads"]}
    return times + [{"measure": name, "value": value} for name, value in others.items()]


EXPERIMENT = Experiment(
    name="time",
    title="The running time of unlearning",
    about=(
        "The time from the last usable checkpoint to a model that never knew whoever is forgotten, with all threads; "
        "taking the rows out of the data is not in it. The median over the seeds counts. C-SISA trains the groups "
        "that were hit side by side, as many at once as there are cores. The paper forgets 5 per cent of the last "
        "group only, where a chain has least to train again; here also of the first and of a random group, one random "
        "user (a draw for each seed), and 5 per cent of all users. Retrain has one group, so for part of a group it "
        "is timed forgetting 5 per cent of everyone, a little less work than if only part of one of S groups left. "
        "With the epoch budget `shared` each group gets T/S epochs, rounded up, so a chain visits only about 1/S of "
        "Retrain's samples even if it is trained again from the start: part of every saving is fewer epochs, not "
        "checkpoints."
    ),
    entries=entries,
    measurements={"time": measure},
    values=values,
    claims=claims,
    tables=tables,
    figures=figures,
    timed=True,
)
