"""The paper's proofs: the expected cost of forgetting (Appendix B.2), and what the measurements say about it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from erasable.chain.checkpoints import Link
from erasable.chain.dataset import (
    Dataset,
    State,
)
from erasable.chain.plan import Erasure, Plan, plan_change
from erasable.chain.tasks import link_names
from erasable.grouping.registry import anchors_among
from erasable.paper._report import STYLES, draw_bars, mark_groups
from erasable.paper._workbench import (
    PaperClaim,
    Row,
    Table,
    Verdict,
    crossed,
    labels,
    markdown,
    paired,
    pick,
    share_verdict,
    summary,
)
from erasable.plots import one_legend, panels
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


SLACK = 0.01
NEAR = 0.05
SAME = 1e-12
_IN_THE_PAPER = "L-CBKM"
_UNBALANCED = "k-means"
_UNBALANCED_STYLE: Mapping[str, Any] = {"color": "#d55e00", "marker": "D"}
_MARKS = (1, 5, 30, 200, 1000, 5000)
_BOUND: Mapping[str, Any] = {"color": "#000000", "linestyle": "--", "linewidth": 1}


def claims(table: Table) -> list[PaperClaim]:
    """Judge the claims that were measured."""
    costs, proof = pick(table, part="cost"), pick(table, part="theorem 1")
    return [
        *([_bound(costs), _chance_of_a_group(costs)] if costs else []),
        *([_identity(proof), _sign(proof)] if proof else []),
    ]


def _bound(costs: Table) -> PaperClaim:
    rows = pick(costs, quantity="by cost")
    over = {method: [_over_bound(row) for row in pick(rows, method=method)] for method in labels(rows, "method")}
    best = {method for method in over if method != _UNBALANCED and _reaches_bound(rows, method)}
    bounded = min(min(ratios) for ratios in over.values()) >= 1 - SLACK
    every = best == over.keys() - {_UNBALANCED}
    verdict: Verdict = "holds" if bounded and every else "holds in part" if bounded and best else "does not hold"
    found = ", ".join(f"{method} {min(ratios):.3f} to {max(ratios):.3f}" for method, ratios in over.items())
    return PaperClaim(
        said="Balanced grouping maximises unlearning efficiency: E(C) ≥ (Z/2)(1 + 1/S), with equality for balanced "
        "groups.",
        rule=f"holds if E(C), taken by cost, is nowhere more than {SLACK:.0%} below the bound, and with all groupings "
        f"into equal numbers of users at most {NEAR:.0%} above it and below plain k-means for each S and seed; in part "
        "if that is so of some of them.",
        measured=f"E(C) over the bound: {found}. Equal are the numbers of users, not the costs.",
        verdict=verdict,
    )


def _over_bound(row: Row) -> float:
    return row["value"] / balanced_share(row["groups"])


def _reaches_bound(rows: Table, method: str) -> bool:
    near = all(_over_bound(row) <= 1 + NEAR for row in pick(rows, method=method))
    return near and all(one["value"] < other["value"] for one, other in paired(rows, "method", method, _UNBALANCED))


def _chance_of_a_group(costs: Table) -> PaperClaim:
    balanced = [row for row in costs if row["method"] != _UNBALANCED]
    ratios = [head["value"] / cost["value"] for head, cost in paired(balanced, "quantity", "by head", "by cost")]
    near = [abs(ratio - 1) <= NEAR for ratio in ratios]
    return PaperClaim(
        said="Users ask with equal probability, so a request hits group i with probability c_i / Z.",
        rule=f"holds if E(C) by head is within {NEAR:.0%} of E(C) by cost in at least 95% of the cases of balanced "
        "groups; in part from half of them on.",
        measured=f"E(C) by head is {min(ratios):.3f} to {max(ratios):.3f} of that by cost; within {NEAR:.0%} in "
        f"{sum(near)} of {len(near)} cases. Groups of equal numbers of users differ in cost.",
        verdict=share_verdict(sum(near) / len(near)),
    )


def _identity(proof: Table) -> PaperClaim:
    largest = max(row["value"] for row in pick(proof, quantity="error"))
    return PaperClaim(
        said="U_p(θ) = U(θ) + Cov[U_θ, p] (Theorem 1).",
        rule=f"holds if both sides differ by at most {SAME:g} everywhere.",
        measured=f"They differ by at most {largest:.1e}. It is true of any numbers whose p sum to 1, the covariance "
        "being a sum over groups; both sides are about the same θ, so it says nothing about how θ was trained.",
        verdict="holds" if largest <= SAME else "does not hold",
    )


def _sign(proof: Table) -> PaperClaim:
    rows = pick(proof, quantity="covariance")
    counts = {method: _positive(pick(rows, method=method)) for method in labels(rows, "method")}
    ours = counts.get(_IN_THE_PAPER) or (0, 0)
    others = ", ".join(
        f"{method} {some} of {cases}" for method, (some, cases) in counts.items() if method != _IN_THE_PAPER
    )
    found = pick(proof, quantity="correlation", method=_IN_THE_PAPER)
    return PaperClaim(
        said="ρ is positively related to U, so SeqTrain improves utility.",
        rule=f"holds if Cov[U, p] > 0 for all models and seeds of {_IN_THE_PAPER}; in part if for at least 80%.",
        measured=f"{_IN_THE_PAPER}: positive in {ours[0]} of {ours[1]}"
        + (f", correlation {summary(found).mean:.2f} on average" if found else "")
        + (f"; {others}." if others else "."),
        verdict=share_verdict(ours[0] / ours[1] if ours[1] else 0.0, whole=1.0, part=0.8),
    )


def _positive(rows: Table) -> tuple[int, int]:
    return sum(row["value"] > 0 for row in rows), len(rows)


def tables(table: Table) -> str:
    """Return the expected costs for one and several users, the seconds, and both sides of Theorem 1."""
    costs, proof = pick(table, part="cost"), pick(table, part="theorem 1")
    parts = [
        *(_costs(costs, chance) for chance in ("by cost", "formula", "by head") if costs),
        *([_together(table)] if costs else []),
        *([_seconds(pick(table, part="seconds"))] if pick(table, part="seconds") else []),
        *([_both_sides(proof)] if proof else []),
    ]
    return "\n".join(parts)


def _costs(costs: Table, chance: str) -> str:
    bounds: list[Row] = [
        {"method": "(1 + 1/S) / 2", "groups": groups, "value": balanced_share(groups)}
        for groups in labels(costs, "groups")
    ]
    rows = [*pick(costs, quantity=chance), *bounds]
    return f"E(C) / Z {chance}, against the number of groups:\n\n" + crossed(rows, "method", "groups")


def groups_learned(table: Table) -> int:
    """Return the number of groups of the chains that were trained, or else the largest."""
    learned = labels(pick(table, part="seconds"), "groups")
    return learned[0] if learned else max(labels(table, "groups"))


def _together(table: Table) -> str:
    groups = groups_learned(table)
    costs = pick(table, part="cost", groups=groups)
    arithmetic = [{**row, "method": "arithmetic"} for row in pick(costs, quantity="arithmetic", method="L-Rand")]
    rows = [*arithmetic, *pick(costs, quantity="drawn")]
    head = f"Share of the chain that is rerun when some random users ask at once, S = {groups}:\n\n"
    return head + crossed(rows, "method", "asking")


def _seconds(rows: Table) -> str:
    body = [[name, str(summary(pick(rows, quantity=name)))] for name in labels(rows, "quantity")]
    model, groups = rows[0]["model"], rows[0]["groups"]
    head = f"E(C) / Z from the seconds that each stage took ({model}, L-Rand, S = {groups}), and their sum:\n\n"
    return head + markdown(["", "mean ± deviation"], body)


def _both_sides(proof: Table) -> str:
    rows = [
        {**row, "chain": f"{row['model']} {row['method']}"}
        for row in proof
        if row["quantity"] in ("U", "U_p", "covariance", "correlation")
    ]
    return "Theorem 1:\n\n" + crossed(rows, "chain", "quantity", _finely)


def _finely(found: list[Row]) -> str:
    """Write more digits than `Summary`: covariances are small."""
    mean, deviation, seeds = summary(found)
    return f"{mean:.5f} ± {deviation:.5f}" if seeds > 1 else f"{mean:.5f}"


def figures(table: Table) -> dict[str, Any]:
    """Return a figure for each proof that was measured."""
    costs, proof = pick(table, part="cost"), pick(table, part="theorem 1")
    return {
        **({"theory-cost": _cost_figure(table, costs)} if costs else {}),
        **({"theory-covariance": _covariance_figure(proof)} if proof else {}),
    }


def _cost_figure(table: Table, costs: Table) -> Any:  # noqa: ANN401 - matplotlib is untyped here
    figure, axes = panels(1, 3)
    for axis, chance in zip(axes[0], ("by cost", "by head"), strict=False):
        _draw_against_groups(axis, pick(costs, quantity=chance))
        axis.set_title(f"one user, P(group) {chance}" + (" (the paper)" if chance == "by cost" else ""), fontsize=9)
    groups = groups_learned(table)
    _draw_together(axes[0, 2], pick(costs, groups=groups, quantity="drawn"), groups)
    axes[0, 2].set_title(f"several users at once, S = {groups}", fontsize=9)
    one_legend(figure, axes)
    return figure


def _draw_against_groups(axis: Any, rows: Table) -> None:  # noqa: ANN401 - matplotlib is untyped here
    numbers = sorted(labels(rows, "groups"))
    places = np.linspace(numbers[0], numbers[-1], 100)
    axis.plot(places, [balanced_share(place) for place in places], **_BOUND, label="(1 + 1/S) / 2")
    for method in labels(rows, "method"):
        found = [summary(pick(rows, method=method, groups=groups)) for groups in numbers]
        means, deviations = [one.mean for one in found], [one.deviation for one in found]
        axis.errorbar(numbers, means, deviations, linestyle="", capsize=2, markersize=5, label=method, **_style(method))
    mark_groups(axis, numbers)
    axis.set_xlabel("groups S")
    axis.set_ylabel("E(C) / Z")


def _draw_together(axis: Any, rows: Table, groups: int) -> None:  # noqa: ANN401 - matplotlib is untyped here
    numbers = sorted(labels(rows, "users"))
    places = np.unique(np.geomspace(1, numbers[-1], 60).round()).astype(int).tolist()
    axis.plot(
        places,
        [balanced_share_for(groups, place) for place in places],
        **{**_BOUND, "linestyle": ":"},
        label="equal groups, n users",
    )
    for method in labels(rows, "method"):
        means = [summary(pick(rows, method=method, users=users)).mean for users in numbers]
        axis.plot(numbers, means, linestyle="", markersize=5, **_style(method))
    axis.set_xscale("log")
    axis.set_xticks(_MARKS, [str(mark) for mark in _MARKS])
    axis.set_xlim(numbers[0] * 0.8, numbers[-1] * 1.25)
    axis.minorticks_off()
    axis.set_xlabel("users who ask at once")
    axis.set_ylabel("share of the chain rerun")


def _style(method: str) -> dict[str, Any]:
    style = STYLES.get(method, _UNBALANCED_STYLE)
    return {"color": style["color"], "marker": style["marker"]}


def _covariance_figure(proof: Table) -> Any:  # noqa: ANN401 - matplotlib is untyped here
    figure, axes = panels(1, 2)
    titles = {"covariance": "Cov[U, p], a sum over groups", "correlation": "correlation of U and p"}
    for axis, (quantity, title) in zip(axes[0], titles.items(), strict=True):
        rows = pick(proof, quantity=quantity)
        methods, models = labels(rows, "method"), labels(rows, "model")
        means = {model: [summary(pick(rows, model=model, method=method)) for method in methods] for model in models}
        draw_bars(axis, [method.replace(" ", "\n") for method in methods], means)
        axis.axhline(0, color="#000000", linewidth=0.8)
        axis.set_title(title, fontsize=9)
    one_legend(figure, axes)
    return figure
