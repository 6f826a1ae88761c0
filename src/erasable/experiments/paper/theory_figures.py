"""Figures about the paper's proofs: expected cost against its bound, and the covariance of Theorem 1."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from erasable.experiments.expected_cost import balanced_share, balanced_share_for
from erasable.experiments.figures import STYLES, one_legend, panels
from erasable.experiments.paper.bars import draw_bars
from erasable.experiments.paper.group_lines import mark_groups
from erasable.experiments.paper.theory_claims import groups_learned
from erasable.experiments.tables import Table, labels, pick, summary

_UNBALANCED_STYLE: Mapping[str, Any] = {"color": "#d55e00", "marker": "D"}
_MARKS = (1, 5, 30, 200, 1000, 5000)
_BOUND: Mapping[str, Any] = {"color": "#000000", "linestyle": "--", "linewidth": 1}


def figures(table: Table) -> dict[str, Any]:
    """Return a figure for each proof that was looked at."""
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
