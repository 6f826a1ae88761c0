"""The paper's proofs checked with real numbers: the expected cost of forgetting (Appendix B.2), and Theorem 1."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from erasable.chain.dataset import Dataset
from erasable.data.interactions import Interactions
from erasable.evaluation.protocols import group_losses
from erasable.grouping.balanced_clustering import plain_k_means
from erasable.grouping.groups import cohesion_of_groups, positions_of_groups
from erasable.grouping.points import bipartite_graph, rating_rows
from erasable.models.registry import make_model
from erasable.paper._cells import Cell, ExperimentSettings, MethodName, Result, config_of
from erasable.paper._theory_claims import (
    asking_together,
    balanced_share_for,
    claims,
    drawn_shares,
    expected_share,
    figures,
    formula_share,
    plans_by_group,
    retraining_costs,
    tables,
)
from erasable.paper._workbench import (
    ChainLabels,
    Entry,
    Experiment,
    Row,
    Workbench,
    chain_settings,
    learn_chain,
    usual_groups,
)

BALANCED: tuple[MethodName, ...] = ("L-Rand", "L-BKM", "L-CBKM")
WEIGHED: tuple[MethodName, ...] = ("L-CBKM", "L-CBKM hard", "L-Near", "L-BKM")


def entries(settings: ExperimentSettings, data: str) -> list[Entry]:
    """Return the grid: costs for each number of groups; seconds and losses for the largest that is at most 8."""
    several = [groups for groups in settings.groups if groups > 1]
    grid: list[Entry] = []
    for seed in range(settings.seeds):
        for groups in several:
            grid += _cost_entries(settings, data, groups, seed)
        grid += _learned_entries(settings, data, usual_groups(settings.groups), seed)
    return grid


def _cost_entries(settings: ExperimentSettings, data: str, groups: int, seed: int) -> list[Entry]:
    """Return the cells that count samples, for which the model does not matter; plain k-means starts from L-Rand."""

    def entry(label: str, method: MethodName, grouping: str) -> Entry:
        chain = chain_settings(settings, ChainLabels(settings.models[0], method, groups, seed))
        cell = Cell("expected cost", data, chain, {"grouping": grouping})
        return Entry({"part": "cost", "method": label, "groups": groups, "seed": seed}, cell)

    return [*(entry(method, method, "as set") for method in BALANCED), entry("k-means", "L-Rand", "plain k-means")]


def _learned_entries(settings: ExperimentSettings, data: str, groups: int, seed: int) -> list[Entry]:
    def entry(part: str, measurement: str, chain: ChainLabels) -> Entry:
        return Entry({"part": part, **chain._asdict()}, Cell(measurement, data, chain_settings(settings, chain)))

    timed = "nmf" if "nmf" in settings.models else settings.models[0]
    return [
        entry("seconds", "expected seconds", ChainLabels(timed, "L-Rand", groups, seed)),
        *(
            entry("theorem 1", "prior and losses", ChainLabels(model, method, groups, seed))
            for method in WEIGHED
            for model in settings.models
        ),
    ]


def measure_cost(workbench: Workbench, cell: Cell) -> dict[str, Any]:
    """Plan to forget one user of each group, and count the samples; nothing is trained."""
    dataset = workbench.grouped(cell.settings)
    if cell.details["grouping"] == "plain k-means":
        dataset = plainly_clustered(dataset, workbench.threads)
    model, epochs = make_model(dataset.config), dataset.config.stage_epochs
    samples = [model.samples(group, epochs) for group in dataset.groups]
    plans = plans_by_group(dataset)
    return {
        "users": [len(group.users) for group in dataset.groups],
        "samples": samples,
        "planned": [plan.samples if plan else 0 for plan in plans],
        "stages": [plan.stages_rerun if plan else 0 for plan in plans],
        "together": drawn_shares(dataset, samples),
    }


def plainly_clustered(dataset: Dataset, threads: int) -> Dataset:
    """Return the data in groups of plain k-means on rating rows, of any size, the most cohesive first."""
    training, groups, seed = Interactions.merge(dataset.groups), len(dataset.groups), dataset.config.seed
    rows = rating_rows(bipartite_graph(training, dataset.scale))
    labels = plain_k_means(rows, groups, seed, threads)
    cohesion = cohesion_of_groups(rows, labels, groups, seed, threads)
    positions = positions_of_groups("easy", cohesion, np.zeros(groups, np.int64))[labels][training.user_index]
    divided = tuple(training.select(positions == position) for position in range(groups))
    return dataset.with_groups(divided)


def measure_seconds(workbench: Workbench, cell: Cell) -> dict[str, Any]:
    """Train a chain and record the seconds of each stage; a short chain before it compiles the kernels."""
    dataset = workbench.grouped(cell.settings)
    short = config_of({**cell.settings, "groups": 1, "epochs": 1})
    learn_chain(replace(dataset.with_groups(dataset.groups[:1]), config=short), workbench.effort)
    chain = learn_chain(dataset, workbench.effort).state.chain
    users = [len(group.users) for group in dataset.groups]
    return {"users": users, "seconds": [round(link.seconds, 4) for link in chain]}


def measure_prior(workbench: Workbench, cell: Cell) -> dict[str, Any]:
    """Train a chain and record, for each group, the final model's loss on its holdout and the group's ρ."""
    chain = workbench.learned(cell.settings)
    dataset = workbench.grouped(cell.settings)
    losses = group_losses(chain.state, chain.checkpoints, dataset.held_out, workbench.threads)
    return {"losses": losses, "cohesion": [known.value if known else None for known in dataset.cohesion]}


def values(result: Result) -> list[Row]:
    """Return the rows of one of the three measurements."""
    if "samples" in result:
        return _cost_values(result)
    return _seconds_values(result) if "seconds" in result else prior_values(result)


def _cost_values(result: Result) -> list[Row]:
    users, samples, planned = result["users"], result["samples"], result["planned"]
    whole, groups = sum(samples), len(samples)
    shares = {
        "by cost": expected_share(planned, samples, whole),
        "by head": expected_share(planned, users, whole),
        "formula": formula_share(samples),
        "largest group": max(users) / sum(users),
        "largest cost": max(samples) / whole,
    }
    rows: list[Row] = [{"quantity": name, "value": value} for name, value in shares.items()]
    for name, count in asking_together(sum(users)).items():
        asking = {"asking": name, "users": count}
        rows.append({"quantity": "drawn", **asking, "value": result["together"][name]})
        rows.append({"quantity": "arithmetic", **asking, "value": balanced_share_for(groups, count)})
    return rows


def _seconds_values(result: Result) -> list[Row]:
    seconds, whole = result["seconds"], sum(result["seconds"])
    reruns = retraining_costs(seconds)
    return [
        {"quantity": "by cost", "value": expected_share(reruns, seconds, whole)},
        {"quantity": "by head", "value": expected_share(reruns, result["users"], whole)},
        {"quantity": "whole chain", "value": whole},
    ]


def prior_values(result: Result) -> list[Row]:
    """Return both sides of Theorem 1: U, U_p, the covariance (a sum over groups), and the correlation."""
    known = [pair for pair in zip(result["losses"], result["cohesion"], strict=True) if None not in pair]
    if not known:
        return []
    losses, cohesion = np.array(known, np.float64).T
    utility, prior = (
        np.exp(-losses),
        cohesion / cohesion.sum() if cohesion.any() else np.full(len(known), 1 / len(known)),
    )
    covariance = float(((utility - utility.mean()) * (prior - prior.mean())).sum())
    weighed, plain = float((utility * prior).sum()), float(utility.mean())
    spread = float(np.sqrt(np.square(utility - plain).sum() * np.square(prior - prior.mean()).sum()))
    quantities = {
        "U": plain,
        "U_p": weighed,
        "covariance": covariance,
        "correlation": covariance / spread if spread else 0.0,
        "error": abs(weighed - plain - covariance),
    }
    return [{"quantity": name, "value": value} for name, value in quantities.items()]


MEASURED: Mapping[str, Callable[[Workbench, Cell], dict[str, Any]]] = {
    "expected cost": measure_cost,
    "expected seconds": measure_seconds,
    "prior and losses": measure_prior,
}

EXPERIMENT = Experiment(
    name="theory",
    title="what the paper proves, with real numbers",
    about=(
        "Appendix B.2: what forgetting one user is expected to cost. For each group, forgetting one of its users is "
        "planned as for a real request, and the samples of the stages to rerun are counted (what `time` measures by "
        "the clock); the mean over groups is taken by cost, as the paper does (a request hits group i with "
        "probability c_i / Z), and by head, which is what users who ask with equal probability give. k-means is plain "
        "k-means on rating rows, which ignores sizes. Users who ask at once (not in the paper) are drawn at random, "
        "200 times. Theorem 1: L is the final "
        "model's loss on a group's held-out rows, with as many sampled negatives as in training; U = exp(−L); "
        "p = ρ / Σρ; the covariance is the paper's, a sum over groups. L-CBKM hard trains the same groups in the "
        "opposite order, which tells what comes from ρ and what from being trained early."
    ),
    entries=entries,
    measurements=MEASURED,
    values=values,
    claims=claims,
    tables=tables,
    figures=figures,
)
