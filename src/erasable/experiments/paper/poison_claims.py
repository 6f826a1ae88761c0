"""What forgetting fake users brought back: verdicts, a table and a figure."""

from typing import Any

import numpy as np

from erasable.experiments.experiment import Claim, share_verdict
from erasable.experiments.figures import one_legend, panels
from erasable.experiments.paper.bars import draw_bars
from erasable.experiments.tables import Table, crossed, labels, paired, pick, summary

METRICS = {
    "ndcg@10": "NDCG@10",
    "hr@10": "HR@10",
    "exposure": "exposure: users with a pushed item",
    "place": "place of pushed items (0 is the top)",
}
STATES = {"poisoned": "poisoned", "forgotten": "after forgetting", "never": "never poisoned"}
MOST = 0.95


def claims(table: Table) -> list[Claim]:
    """Return what the introduction says of polluted data, each part with its verdict."""
    return [_restored(table), _utility_hurt(table), _pushed(table)] if table else []


def _changes(table: Table, metric: str, one: str, other: str) -> list[float]:
    """Return how much more the one state has than the other, run by run."""
    rows = paired(pick(table, metric=metric), "state", one, other)
    return [first["value"] - second["value"] for first, second in rows]


def _restored(table: Table) -> Claim:
    runs = [pick(table, model=model, method=method, seed=seed) for model, method, seed in _runs(table)]
    restored = sum(_is_restored(run) for run in runs)
    apart = [abs(change) for metric in METRICS for change in _changes(table, metric, "forgotten", "never")]
    took = {name: summary(pick(table, metric=f"{name} ratio", method="L-Rand")).mean for name in ("chain", "cost")}
    return Claim(
        said="Active unlearning: forgetting polluted data restores performance.",
        rule="holds if in every run all checkpoints after forgetting are byte for byte those of a chain that never had "
        "the fake users, and all metrics are the same; in part if in at least half of them.",
        measured=f"The same in {restored} of {len(runs)} runs; the largest difference in a metric is {max(apart):g}. "
        f"With L-Rand, forgetting all fake users trains {took['chain']:.0%} of the chain again, {took['cost']:.0%} of "
        "the samples of Retrain.",
        verdict=share_verdict(restored / len(runs), whole=1.0),
    )


def _runs(table: Table) -> list[tuple[str, str, int]]:
    return list(dict.fromkeys((row["model"], row["method"], row["seed"]) for row in table))


def _is_restored(run: Table) -> bool:
    identical = all(row["value"] for row in pick(run, metric="identical"))
    return identical and not any(change for metric in METRICS for change in _changes(run, metric, "forgotten", "never"))


def _utility_hurt(table: Table) -> Claim:
    changes = _changes(table, "ndcg@10", "forgotten", "poisoned")
    before = summary(pick(table, metric="ndcg@10", state="poisoned")).mean
    better = sum(change > 0 for change in changes)
    mean = float(np.mean(changes))
    return Claim(
        said="The performance of recommenders is sensitive to polluted training data.",
        rule="holds if NDCG@10 of the real users is higher after forgetting the fake ones in at least 95% of the "
        "runs; in part from 80% on.",
        measured=f"NDCG@10 is higher in {better} of {len(changes)} runs; it changes by {mean:+.4f} on average, from "
        f"{before:.4f}.",
        verdict=share_verdict(better / len(changes), part=0.8),
    )


def _pushed(table: Table) -> Claim:
    changes = _changes(table, "exposure", "poisoned", "never")
    more = sum(change > 0 for change in changes)
    up = sum(change < 0 for change in _changes(table, "place", "poisoned", "never"))
    exposure, place = (_means(table, metric) for metric in ("exposure", "place"))
    verdict = share_verdict(more / len(changes), part=0.8)
    return Claim(
        said="Recommenders can be poisoned by intentional attack.",
        rule="holds if the pushed items reach the top ten of more real users with the fake users than without in at "
        "least 95% of the runs; in part from 80% on, or if they move up in at least 95% of the runs.",
        measured=f"More real users get a pushed item in {more} of {len(changes)} runs ({exposure['poisoned']:.1%} of "
        f"them, {exposure['forgotten']:.1%} after forgetting); the pushed items stand higher in {up} "
        f"({place['poisoned']:.2f}, {place['forgotten']:.2f} after forgetting).",
        verdict="holds in part" if verdict == "does not hold" and up / len(changes) >= MOST else verdict,
    )


def _means(table: Table, metric: str) -> dict[str, float]:
    return {state: summary(pick(table, metric=metric, state=state)).mean for state in STATES}


def tables(table: Table) -> str:
    """Return each metric in each state, for each model and method."""
    rows = [
        {**row, "chain": f"{row['model']} {row['method']}", "measured": f"{row['metric']}, {row['state']}"}
        for metric in METRICS
        for row in pick(table, metric=metric)
    ]
    costs = [
        {**row, "chain": f"{row['model']} {row['method']}", "measured": "cost of forgetting over retraining"}
        for row in pick(table, metric="cost ratio")
    ]
    return crossed([*rows, *costs], "measured", "chain")


def figures(table: Table) -> dict[str, Any]:
    """Return the figure: a panel for each metric, bars for each state."""
    return {"poison": _figure(table)} if table else {}


def _figure(table: Table) -> Any:  # noqa: ANN401 - matplotlib is untyped here
    figure, axes = panels(2, 2)
    for axis, (metric, name) in zip(axes.flat, METRICS.items(), strict=True):
        rows = pick(table, metric=metric)
        chains = [(model, method) for model in labels(rows, "model") for method in labels(rows, "method")]
        draw_bars(
            axis,
            [f"{model}\n{method}" for model, method in chains],
            {
                said: [summary(pick(rows, state=state, model=model, method=method)) for model, method in chains]
                for state, said in STATES.items()
            },
        )
        axis.set_title(name, fontsize=9)
        axis.set_ylim(bottom=0)
    one_legend(figure, axes)
    return figure
