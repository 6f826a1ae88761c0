"""The expected cost of forgetting, from the costs of the stages (the paper's Appendix B.2); nothing is trained."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from erasable.chain.chain import link_names
from erasable.chain.dataset import Dataset, Link, State
from erasable.chain.plan import Erasure, Plan, plan_change
from erasable.grouping.registry import anchors_among
from erasable.requests.request import Request
from erasable.seeding import child_key, id_keys, mix

DRAWS = 200
"""How many random sets of users are drawn."""


def retraining_costs(costs: Sequence[float]) -> list[float]:
    """Return the cost of training again from each stage i on: the sum of c_j over the stages j ≥ i.

    >>> retraining_costs([1, 2, 3])
    [6.0, 5.0, 3.0]
    """
    return np.cumsum(np.asarray(costs, np.float64)[::-1])[::-1].tolist()


def expected_share(reruns: Sequence[float], chances: Sequence[float], whole: float) -> float:
    """Return E(C) / Z: the mean cost of a request, weighted by the chance of each group, over the cost of the chain.

    >>> round(expected_share([6, 5, 3], [1, 2, 3], 6), 4)
    0.6944
    """
    return float(np.average(reruns, weights=chances) / whole)


def formula_share(costs: Sequence[float]) -> float:
    """Return E(C) / Z by the paper's formula (Z² + Σ c²) / 2Z, where a request hits a group in proportion to c.

    >>> round(formula_share([1, 2, 3]), 4)
    0.6944
    """
    whole = float(np.sum(costs))
    return float((whole**2 + np.square(np.asarray(costs, np.float64)).sum()) / (2 * whole**2))


def balanced_share(groups: int) -> float:
    """Return the paper's lower bound of E(C) / Z, reached by groups of equal cost.

    >>> balanced_share(4)
    0.625
    """
    return (1 + 1 / groups) / 2


def balanced_share_for(groups: int, users: int) -> float:
    """Return the expected share of a chain of equal groups that is rerun when some random users ask at once.

    A stage is kept if all of them are in later groups; for stage i of S that has the probability ((S − i) / S)^n.

    >>> [round(balanced_share_for(8, users), 3) for users in (1, 5, 10, 30)]
    [0.562, 0.889, 0.959, 0.998]
    """
    return 1 - float(np.mean((np.arange(groups) / groups) ** users))


def asking_together(users: int) -> dict[str, int]:
    """Return how many users ask at once, by their label in tables; never more than there are.

    >>> asking_together(1000)
    {'1': 1, '5': 5, '10': 10, '30': 30, '1 %': 10, '5 %': 50}
    """
    counts = {str(count): count for count in (1, 5, 10, 30) if count <= users}
    return {**counts, **{f"{share} %": max(1, round(share * users / 100)) for share in (1, 5)}}


def drawn_shares(dataset: Dataset, costs: Sequence[float]) -> dict[str, float]:
    """Return the mean share of the chain that is rerun for several users at once, over random draws."""
    users = _everyone(dataset)
    positions = np.repeat(np.arange(len(dataset.groups)), [len(group.users) for group in dataset.groups])
    shares = np.array(retraining_costs(costs)) / np.sum(costs)
    first = [np.minimum.accumulate(positions[order]) for order in _random_orders(dataset, users, DRAWS)]
    asking = asking_together(len(users))
    return {name: float(np.mean([shares[found[count - 1]] for found in first])) for name, count in asking.items()}


def plans_by_group(dataset: Dataset) -> list[Plan | None]:
    """Return, for each group, the plan of forgetting one of its users; None for an empty group.

    The user is the one whose number of interactions is nearest to the group's mean, so that the mean over groups is the
    mean over all users to within a fraction of one user's rows.
    """
    names = link_names(dataset)
    state = State(dataset, tuple(Link(name, "", 0, 0.0) for name in names))
    return [
        _plan_without(state, [group.users[_typical(np.diff(group.user_starts))]]) if len(group) else None
        for group in dataset.groups
    ]


class LikelyPlan(NamedTuple):
    """A plan, and the share of all users whose request costs about the same."""

    share: float
    plan: Plan


def likely_plans(state: State, among: Callable[[str], bool] = lambda user: True) -> list[LikelyPlan]:
    """Return the possible plans of forgetting one random user; their shares sum to the share of users `among` accepts.

    Anchors of one group cost about the same, and so do its other users: the plan is that of the one whose number of
    interactions is nearest to their mean.
    """
    dataset, found = state.dataset, []
    for group in dataset.groups:
        anchors = anchors_among(group.users, dataset.config.anchors, dataset.config.seed)
        asking = np.array([among(user) for user in group.users], dtype=bool)
        counts = np.diff(group.user_starts)
        for alike in (np.flatnonzero(anchors & asking), np.flatnonzero(~anchors & asking)):
            if len(alike):
                typical = group.users[int(alike[_typical(counts[alike])])]
                found.append(LikelyPlan(len(alike) / dataset.users, _plan_without(state, [typical])))
    return found


def drawn_plans(state: State, share: float, draws: int) -> list[Plan]:
    """Return the plans of forgetting a random share of all users at once, one for each draw."""
    users = _everyone(state.dataset)
    count = max(1, round(share * len(users)))
    orders = _random_orders(state.dataset, users, draws)
    return [_plan_without(state, [users[place] for place in order[:count]]) for order in orders]


def _plan_without(state: State, users: Sequence[str]) -> Plan:
    return plan_change(state, Erasure.of([Request(user) for user in users]).apply(state.dataset))


def _typical(counts: NDArray[np.int64]) -> int:
    return int(np.argmin(np.abs(counts - counts.mean())))


def _everyone(dataset: Dataset) -> list[str]:
    return [user for group in dataset.groups for user in group.users]


def _random_orders(dataset: Dataset, users: Sequence[str], draws: int) -> list[NDArray[np.int64]]:
    """Return random permutations of the users, each by a hash of seed, id and draw."""
    keys = id_keys(child_key(dataset.config.seed, "asking together"), "user", users)
    return [np.argsort(mix(keys, np.array(draw, np.uint64)), kind="stable") for draw in range(draws)]
