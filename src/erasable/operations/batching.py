"""Batching: which requests that could wait are better carried out together with those that are due."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from erasable.operations.home import Home
from erasable.operations.work import QUIET_WORK, Work
from erasable.training import State
from erasable.unlearning import Erasure, Plan, Request, known_requests, plan_change

_HARDLY = 0.1  # of what they would cost by themselves


@dataclass(frozen=True)
class Batch:
    """Requests to carry out together, and what that touches."""

    users: frozenset[str]
    plan: Plan


def batch(home: Home, due: Sequence[Request], waiting: Sequence[Request], work: Work = QUIET_WORK) -> Batch:
    """Return those who are due, and those who wait and cost hardly anything besides.

    Who is in a group that is trained again anyway costs next to nothing now, and a training of its own later.
    """
    with home.reading() as session:
        loaded = session.state()
        state = replace(loaded, knowledge=replace(loaded.knowledge, groups=tuple(loaded.knowledge.groups)))
    chosen = known_requests(due, state.knowledge, ignore_unknown=True)
    planned = _planned(state, chosen, work)
    for alike in _kinds(state, known_requests(waiting, state.knowledge, ignore_unknown=True)):
        together = _planned(state, [*chosen, *alike], work)
        if together.samples - planned.samples <= _HARDLY * _planned(state, alike, work).samples:
            chosen, planned = [*chosen, *alike], together
    return Batch(frozenset(request.user for request in (*due, *chosen)), planned)


def _planned(state: State, requests: Sequence[Request], work: Work) -> Plan:
    return plan_change(state, Erasure.of(requests).apply(state.knowledge, work.grouping))


def _kinds(state: State, requests: Sequence[Request]) -> Iterable[list[Request]]:
    """Return requests by group and by whether they shape what is shared: those of one kind cost about the same."""
    shaping = set(state.knowledge.lessons_of([request.user for request in requests]).users) if requests else set()
    kinds: dict[tuple[int, bool], list[Request]] = {}
    for request in requests:
        kinds.setdefault((state.knowledge.find(request.user)[0], request.user in shaping), []).append(request)
    return [kinds[kind] for kind in sorted(kinds, reverse=True)]
