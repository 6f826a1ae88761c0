"""The running time of unlearning by number of groups: for the paper's last group, and for other requests."""

import statistics
import time
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from erasable.chain.dataset import Dataset
from erasable.chain.plan import Erasure, forget, plan_change
from erasable.models.base import Effort
from erasable.operations.work import available_cores
from erasable.paper._cells import Cell, ExperimentSettings, MethodName, RequestName, Result, processor, users_to_forget
from erasable.paper._report import draw_line, mark_groups
from erasable.paper._workbench import (
    Chain,
    ChainLabels,
    Entry,
    Experiment,
    PaperClaim,
    Row,
    Summary,
    Table,
    Workbench,
    chain_settings,
    crossed,
    labels,
    pick,
    rounded,
    share_verdict,
)
from erasable.plots import one_legend, panels
from erasable.requests.request import Request

LAST, ONE, MANY = "last group@5", "one", "rand@5"
_COMPARABLE = 1.5
_NAMES = {
    LAST: "5 per cent of the last group",
    "first group@5": "5 per cent of the first group",
    "random group@5": "5 per cent of a random group",
    ONE: "one random user",
    MANY: "5 per cent of all users",
}
REQUESTS: tuple[RequestName, ...] = ("last group@5", "random group@5", "first group@5", "one", "rand@5")
_TITLES = {
    LAST: "5 % of the last group (the paper's)",
    "random group@5": "5 % of a random group",
    "first group@5": "5 % of the first group",
    ONE: "one random user",
    MANY: "5 % of all users",
}
_ACROSS = 3
_METHODS: tuple[MethodName, ...] = ("Retrain", "C-SISA", "L-CBKM")
_TIMES = ("seconds", "cpu_seconds")


def median(table: Table, measure: str = "seconds", **where: object) -> float | None:
    """Return the median of a measure in one case; None if it was not measured."""
    found = [row["value"] for row in pick(table, measure=measure, **where)]
    return statistics.median(found) if found else None


def claims(table: Table) -> list[PaperClaim]:
    """Judge the paper's claims, and one of our own."""
    found = (_faster_than_retraining(table), _comparable(table), _falls(table), _saves_less(table))
    return [claim for claim in found if claim is not None]


def _faster_than_retraining(table: Table) -> PaperClaim | None:
    speedups = {
        f"{method} with {groups} groups": speedup
        for method in ("C-SISA", "L-CBKM")
        for groups in _several(table)
        if (speedup := _speedup(table, LAST, groups, method))
    }
    if not speedups:
        return None
    return PaperClaim(
        "C-SISA and L-CBKM unlearn faster than Retrain (5 per cent of the last group).",
        "A case is a method and a number of groups above 1. It holds if the median time is shorter in all cases, in "
        "part if in at least 80 per cent.",
        "Times as fast: " + ", ".join(f"{name} {speedup:.1f}" for name, speedup in speedups.items()) + ".",
        share_verdict(sum(speedup > 1 for speedup in speedups.values()) / len(speedups), whole=1.0, part=0.8),
    )


def _comparable(table: Table) -> PaperClaim | None:
    ratios = _against_sisa(table, LAST)
    if not ratios:
        return None
    near = sum(ratio <= _COMPARABLE for ratio in ratios.values())
    return PaperClaim(
        "L-CBKM takes almost as long as C-SISA trained in parallel (5 per cent of the last group).",
        f"A case is a number of groups above 1; comparable means at most {_COMPARABLE} times as long. It holds if that "
        "is so in all cases, in part if in at least half.",
        f"L-CBKM's time over C-SISA's: {_told(ratios)}.",
        share_verdict(near / len(ratios), whole=1.0),
    )


def _against_sisa(table: Table, request: str) -> dict[int, float]:
    """Return L-CBKM's time over C-SISA's for each number of groups."""
    ratios = {}
    for groups in _several(table):
        laser, sisa = (median(table, method=method, groups=groups, request=request) for method in ("L-CBKM", "C-SISA"))
        if laser is not None and sisa:
            ratios[groups] = laser / sisa
    return ratios


def _several(table: Table) -> list[int]:
    return [groups for groups in sorted(labels(table, "groups")) if groups > 1]


def _told(ratios: dict[int, float]) -> str:
    return ", ".join(f"{ratio:.2f} with {groups} groups" for groups, ratio in ratios.items())


def _falls(table: Table) -> PaperClaim | None:
    courses = {method: _course(table, method) for method in ("C-SISA", "L-CBKM")}
    steps = [later < earlier for course in courses.values() for earlier, later in pairwise(course.values())]
    if not steps:
        return None
    said = [f"{method}: {', '.join(_seconds(course))}" for method, course in courses.items() if course]
    return PaperClaim(
        "C-SISA and L-CBKM take less time the more groups there are (5 per cent of the last group).",
        "A case is a method and a step from one number of groups to the next. It holds if the median time falls in at "
        "least 95 per cent of the cases, in part if in at least 80.",
        f"It falls in {sum(steps)} of {len(steps)} cases. {'; '.join(said)}.",
        share_verdict(sum(steps) / len(steps), part=0.8),
    )


def _course(table: Table, method: str) -> dict[int, float]:
    found = {
        groups: median(table, method=method, groups=groups, request=LAST) for groups in sorted(labels(table, "groups"))
    }
    return {groups: seconds for groups, seconds in found.items() if seconds is not None}


def _seconds(course: dict[int, float]) -> list[str]:
    return [f"{seconds:.3g} s with {groups}" for groups, seconds in course.items()]


def _saves_less(table: Table) -> PaperClaim | None:
    groups = max(_several(table), default=0)
    speedups = {request: _speedup(table, request, groups) for request in labels(table, "request")}
    known = {request: speedup for request, speedup in speedups.items() if speedup}
    if not {LAST, ONE, MANY} <= set(known):
        return None
    less = sum(known[request] <= known[LAST] / 2 for request in (ONE, MANY))
    said = "; ".join(_saving(table, request, groups, known[request]) for request in known)
    return PaperClaim(
        "(not in the paper) The last group is the best case: for one random user, and for 5 per cent of all users, "
        "L-CBKM saves less.",
        "With the largest number of groups: how many times as fast as Retrain L-CBKM is. It holds if that is at most "
        "half of what it is for the last group for both requests, in part if for one.",
        f"With {groups} groups: {said}. Where every stage is trained again, what is left of the saving comes from "
        "fewer epochs for each group, not from checkpoints. L-CBKM's time over C-SISA's: "
        f"{_others_against_sisa(table, groups)}.",
        share_verdict(less / 2),
    )


def _speedup(table: Table, request: str, groups: int, method: str = "L-CBKM") -> float | None:
    """Return the speedup of a method over Retrain."""
    faster, retrain = (median(table, method=name, groups=groups, request=request) for name in (method, "Retrain"))
    return retrain / faster if faster and retrain else None


def _saving(table: Table, request: str, groups: int, speedup: float) -> str:
    where = {"method": "L-CBKM", "groups": groups, "request": request}
    stages, ratio = median(table, "stages_rerun", **where), median(table, "cost_ratio", **where)
    cost = f" ({stages:g} of {groups} stages, cost ratio {ratio:.3f})" if stages is not None else ""
    return f"{speedup:.1f} times as fast as Retrain for {_NAMES.get(request, request)}{cost}"


def _others_against_sisa(table: Table, groups: int) -> str:
    found = {request: _against_sisa(table, request).get(groups) for request in labels(table, "request")}
    return ", ".join(f"{ratio:.2f} for {_NAMES.get(request, request)}" for request, ratio in found.items() if ratio)


def tables(table: Table) -> str:
    """Return the seconds for each request, and the samples that are trained again."""
    return "\n".join([*_circumstances(table), *_seconds_by_groups(table), *_costs(table)])


def _circumstances(table: Table) -> Iterator[str]:
    threads = sorted({row["value"] for row in pick(table, measure="threads")})
    if threads:
        model = labels(table, "model")[0].upper()
        yield f"Measured with {model}; threads: {', '.join(map(str, threads))}.\n"


def _seconds_by_groups(table: Table) -> Iterator[str]:
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
    """Return a cell with its labels; with one group, a part of the group is a part of everyone.

    Seconds are about one machine only, so the machine is part of the cell's name.
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
    """Learn, which also compiles the kernels, then time forgetting several times from the same chain."""
    chain = workbench.learned(cell.settings)
    users = users_to_forget(chain.state.dataset, cell.details["request"])
    after = Erasure.of([Request(user) for user in users]).apply(chain.state.dataset)
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


def time_forgetting(chain: Chain, after: Dataset, effort: Effort) -> tuple[float, float]:
    """Return the wall-clock and CPU seconds of forgetting."""
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
        "The time from the last usable checkpoint to a model that never knew the forgotten users, with all threads; "
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
