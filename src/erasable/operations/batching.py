"""Batching: which requests that could wait are better carried out together with those that are due."""

from collections.abc import Sequence

from erasable.requests import Request
from erasable.training import State
from erasable.unlearning import known_requests

_HARDLY = 0.1  # of what they would cost by themselves


def joined_cheaply(state: State, due: Sequence[Request], waiting: Sequence[Request]) -> list[Request]:
    """Return those who wait and cost hardly anything beside those who are due.

    Who is in a group that is trained again anyway costs next to nothing now, and a training of its own later. What
    requests cost together is the sum over the stages that any of them touches; nothing is planned for it. Where groups
    are decided anew everything is trained anyway.
    """
    known = known_requests(waiting, state.knowledge, ignore_unknown=True)
    if state.knowledge.config.policy == "regroup":
        return known
    touched = _touched(state, due)
    chosen: list[Request] = []
    for stages, alike in sorted(_by_stages(state, known).items(), key=lambda kind: sorted(kind[0]), reverse=True):
        if _cost(state, stages - touched) <= _HARDLY * _cost(state, stages):
            touched |= stages
            chosen += alike
    return chosen


def _by_stages(state: State, requests: Sequence[Request]) -> dict[frozenset[int], list[Request]]:
    """Return requests by the stages that they touch: those of one group who shape the same cost the same."""
    shaping = set(state.knowledge.lessons_of([request.user for request in requests]).users) if requests else set()
    kinds: dict[frozenset[int], list[Request]] = {}
    for request in requests:
        shapes = request.user in shaping
        stages = _from(state, state.knowledge.find(request.user)[0]) if shapes else frozenset[int]()
        kinds.setdefault(stages, []).append(request)
    return kinds


def _touched(state: State, requests: Sequence[Request]) -> frozenset[int]:
    return frozenset().union(*_by_stages(state, requests))


def _from(state: State, position: int) -> frozenset[int]:
    """Return the stages that are trained again where one is: itself, and whatever was begun from it."""
    names = [link.fingerprint for link in state.chain]
    touched = {position}
    for place, link in enumerate(state.chain):
        if link.parent in {names[one] for one in touched if one < len(names)}:
            touched.add(place)
    return frozenset(touched)


def _cost(state: State, stages: frozenset[int]) -> int:
    return sum(state.chain[place].samples for place in stages if place < len(state.chain))
