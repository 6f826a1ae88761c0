"""What the paper says about the running time of unlearning, and what it leaves out, judged."""

import statistics
from itertools import pairwise

from erasable.experiments.experiment import Claim, share_verdict
from erasable.experiments.tables import Table, labels, pick

LAST, ONE, MANY = "last group@5", "one", "rand@5"
_COMPARABLE = 1.5
_NAMES = {
    LAST: "5 per cent of the last group",
    "first group@5": "5 per cent of the first group",
    "random group@5": "5 per cent of a random group",
    ONE: "one random user",
    MANY: "5 per cent of all users",
}


def median(table: Table, measure: str = "seconds", **where: object) -> float | None:
    """Return the median of what was measured in a case, if it was."""
    found = [row["value"] for row in pick(table, measure=measure, **where)]
    return statistics.median(found) if found else None


def claims(table: Table) -> list[Claim]:
    """Judge the paper's claims, and one of our own."""
    found = (_faster_than_retraining(table), _comparable(table), _falls(table), _saves_less(table))
    return [claim for claim in found if claim is not None]


def _faster_than_retraining(table: Table) -> Claim | None:
    speedups = {
        f"{method} with {groups} groups": speedup
        for method in ("C-SISA", "L-CBKM")
        for groups in _several(table)
        if (speedup := _speedup(table, LAST, groups, method))
    }
    if not speedups:
        return None
    return Claim(
        "C-SISA and L-CBKM unlearn faster than Retrain (5 per cent of the last group).",
        "A case is a method and a number of groups above 1. It holds if the median time is shorter in all cases, in "
        "part if in at least 80 per cent.",
        "Times as fast: " + ", ".join(f"{name} {speedup:.1f}" for name, speedup in speedups.items()) + ".",
        share_verdict(sum(speedup > 1 for speedup in speedups.values()) / len(speedups), whole=1.0, part=0.8),
    )


def _comparable(table: Table) -> Claim | None:
    ratios = _against_sisa(table, LAST)
    if not ratios:
        return None
    near = sum(ratio <= _COMPARABLE for ratio in ratios.values())
    return Claim(
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


def _falls(table: Table) -> Claim | None:
    courses = {method: _course(table, method) for method in ("C-SISA", "L-CBKM")}
    steps = [later < earlier for course in courses.values() for earlier, later in pairwise(course.values())]
    if not steps:
        return None
    said = [f"{method}: {', '.join(_seconds(course))}" for method, course in courses.items() if course]
    return Claim(
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


def _saves_less(table: Table) -> Claim | None:
    groups = max(_several(table), default=0)
    speedups = {request: _speedup(table, request, groups) for request in labels(table, "request")}
    known = {request: speedup for request, speedup in speedups.items() if speedup}
    if not {LAST, ONE, MANY} <= set(known):
        return None
    less = sum(known[request] <= known[LAST] / 2 for request in (ONE, MANY))
    said = "; ".join(_saving(table, request, groups, known[request]) for request in known)
    return Claim(
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
    """Return how many times as fast as Retrain a method is."""
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
