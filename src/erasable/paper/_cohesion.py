"""The test loss of groups trained alone, against their rank by cohesion ρ (the ablation study and Appendix D.3)."""

import statistics
from collections.abc import Callable, Sequence
from typing import Any

from erasable.chain.dataset import Dataset
from erasable.evaluation.protocols import group_losses
from erasable.grouping.registry import GroupingName
from erasable.paper._cells import Cell, ExperimentSettings, Result
from erasable.paper._report import COLOURS
from erasable.paper._utility_claims import rank_correlation
from erasable.paper._workbench import (
    ChainLabels,
    Entry,
    Experiment,
    PaperClaim,
    Row,
    Table,
    Verdict,
    Workbench,
    chain_settings,
    labels,
    markdown,
    over_seeds,
    pick,
    summary,
    usual_groups,
)
from erasable.plots import panels

GROUPINGS: tuple[GroupingName, ...] = ("cbkm", "cbkm-near", "bkm")
"""The paper's first; the others are a check, since its vectors say little if nearly everyone shares an item."""
RELATED = 0.5
"""A rank correlation above this counts as a relation."""


def entries(settings: ExperimentSettings, data: str) -> list[Entry]:
    """Return the grid: seeds, groupings and models; cells with the same grouping are together."""
    groups = usual_groups(settings.groups)
    return [
        Entry({"model": model, "grouping": grouping, "groups": groups, "seed": seed}, Cell("cohesion", data, chain))
        for seed in range(settings.seeds)
        for grouping in GROUPINGS
        for model in settings.models
        for chain in [_alone(settings, grouping, ChainLabels(model, "C-SISA own", groups, seed))]
    ]


def _alone(settings: ExperimentSettings, grouping: GroupingName, chain: ChainLabels) -> dict[str, Any]:
    """Return settings that train each group from scratch, for all epochs, and score it by its own model."""
    return chain_settings(settings, chain, grouping=grouping, order="easy", epoch_budget="full")


def measure(workbench: Workbench, cell: Cell) -> dict[str, Any]:
    """Train each group alone and measure the loss on its users' held-out interactions, in the order of descending ρ."""
    chain = workbench.learned(cell.settings)
    dataset = chain.state.dataset
    losses = group_losses(chain.state, chain.checkpoints, dataset.held_out, workbench.threads)
    return {
        "groups": [
            {**_about(dataset, position), "loss": loss if loss is None else round(loss, 6)}
            for position, loss in enumerate(losses)
        ]
    }


def _about(dataset: Dataset, position: int) -> dict[str, Any]:
    group, cohesion = dataset.groups[position], dataset.cohesion[position]
    return {
        "cohesion": cohesion and round(cohesion.value, 6),
        "users": len(group.users),
        "interactions": len(group),
        "held_out": len(dataset.held_out.of_users(group.users.texts())),
    }


def values(result: Result) -> list[Row]:
    """Return rows with the facts of each group; position 1 has the highest ρ."""
    return [
        {"position": position, "metric": metric, "value": value}
        for position, group in enumerate(result["groups"], 1)
        for metric, value in {**group, "per user": _per_user(group)}.items()
        if value is not None
    ]


def _per_user(group: dict[str, Any]) -> float | None:
    return round(group["interactions"] / group["users"], 4) if group["users"] else None


def correlations(table: Table, one: str, other: str) -> list[Row]:
    """Return the rank correlation of two metrics (or the position) over the groups of each model, grouping and seed."""
    chains = dict.fromkeys((row["model"], row["grouping"], row["seed"]) for row in table)
    return [
        {
            "model": model,
            "grouping": grouping,
            "seed": seed,
            "value": _correlation(pick(table, model=model, grouping=grouping, seed=seed), one, other),
        }
        for model, grouping, seed in chains
    ]


def _correlation(chain: Table, one: str, other: str) -> float:
    groups: dict[int, dict[str, float]] = {}
    for row in chain:
        groups.setdefault(row["position"], {"position": row["position"]})[row["metric"]] = row["value"]
    both = [(group[one], group[other]) for group in groups.values() if one in group and other in group]
    return rank_correlation([left for left, _ in both], [right for _, right in both])


def claims(table: Table) -> list[PaperClaim]:
    """Judge for each model whether the loss grows as ρ falls, with the paper's grouping."""
    return [_claim(pick(table, model=model), model) for model in labels(table, "model")]


def _claim(table: Table, model: str) -> PaperClaim:
    growth, confounded = correlations(table, "position", "loss"), correlations(table, "per user", "loss")
    paper, *others = GROUPINGS
    said = ", ".join(f"{grouping} {summary(pick(growth, grouping=grouping))}" for grouping in others)
    activity = ", ".join(
        f"{grouping} {summary(pick(confounded, grouping=grouping)).mean:.2f}" for grouping in GROUPINGS
    )
    found = pick(growth, grouping=paper)
    return PaperClaim(
        said=f"{model.upper()}'s test loss generally grows with the order of groups: ρ is negatively related to it.",
        rule=f"the rank correlation of position (descending ρ) and loss under {paper}, mean over seeds, is above "
        f"{RELATED}; in part if it is above 0 with every seed.",
        measured=f"Rank correlation with {paper} {summary(found)}; as a check with {said}. The rank correlation "
        f"of the loss with the number of interactions per user: {activity}.",
        verdict=_verdict([row["value"] for row in found]),
    )


def _verdict(found: Sequence[float]) -> Verdict:
    if statistics.mean(found) > RELATED:
        return "holds"
    return "holds in part" if min(found) > 0 else "does not hold"


def tables(table: Table) -> str:
    """Return the loss at each position, and its rank correlations."""
    return _losses(pick(table, metric="loss")) + "\n" + _correlations(table)


def _losses(losses: Table) -> str:
    positions = sorted(labels(losses, "position"))
    body = [
        [f"{model}, {grouping}", *(_mean(pick(losses, model=model, grouping=grouping, position=p)) for p in positions)]
        for model in labels(losses, "model")
        for grouping in labels(losses, "grouping")
    ]
    return markdown(["test loss of the group at position", *map(str, positions)], body)


def _mean(found: Table) -> str:
    return f"{summary(found).mean:.4f}" if found else ""


def _correlations(table: Table) -> str:
    pairs = {
        "position and loss": ("position", "loss"),
        "interactions per user and loss": ("per user", "loss"),
        "position and interactions per user": ("position", "per user"),
    }
    found = {title: correlations(table, *pair) for title, pair in pairs.items()}
    body = [
        [f"{model}, {grouping}", *(str(summary(pick(one, model=model, grouping=grouping))) for one in found.values())]
        for model in labels(table, "model")
        for grouping in labels(table, "grouping")
    ]
    return markdown(["rank correlation of", *pairs], body)


def figures(table: Table) -> dict[str, Any]:
    """Draw the loss against the position, and against the interactions per user."""
    return {"cohesion": _draw(table, _draw_positions), "cohesion-interactions": _draw(table, _draw_interactions)}


def _draw(table: Table, draw: Callable[[Any, Table, str], None]) -> Any:  # noqa: ANN401 - matplotlib is untyped here
    """Draw a row of panels for each model and a column for each grouping."""
    models, groupings = labels(table, "model"), labels(table, "grouping")
    figure, axes = panels(len(models), len(groupings), sharey="row")
    for row, model in zip(axes, models, strict=True):
        for axis, grouping in zip(row, groupings, strict=True):
            draw(axis, pick(table, model=model, grouping=grouping), COLOURS[models.index(model)])
        row[0].set_ylabel(f"test loss of {model.upper()}")
    return figure


def _draw_positions(axis: Any, found: Table, colour: str) -> None:  # noqa: ANN401 - as above
    losses = over_seeds(pick(found, metric="loss"))
    places = [row["position"] for row, _ in losses]
    axis.errorbar(
        places,
        [loss.mean for _, loss in losses],
        [loss.deviation for _, loss in losses],
        color=colour,
        marker="o",
        capsize=3,
    )
    axis.set_xticks(places)
    axis.set_xlabel("position, highest ρ first")
    axis.set_title(_title(found, "position"), fontsize=9)


def _draw_interactions(axis: Any, found: Table, colour: str) -> None:  # noqa: ANN401 - as above
    places = {(row["seed"], row["position"]): row["value"] for row in pick(found, metric="per user")}
    losses = pick(found, metric="loss")
    across = [places[row["seed"], row["position"]] for row in losses]
    axis.scatter(across, [row["value"] for row in losses], color=colour, alpha=0.7, linewidths=0)
    axis.set_xlabel("training interactions per user of the group")
    axis.set_title(_title(found, "per user"), fontsize=9)


def _title(found: Table, metric: str) -> str:
    correlation = summary(correlations(found, metric, "loss")).mean
    return f"{found[0]['grouping']}: mean rank correlation {correlation:.2f}"


EXPERIMENT = Experiment(
    name="cohesion",
    title="test loss of groups against their cohesion (ablation study, Appendix D.3)",
    about="Each group is trained alone, from scratch, for all T epochs, and its model is tested on what was held out "
    "of its own users (binary cross entropy, with sampled negatives as in training). Groups stand in the order of "
    "descending ρ, so the paper expects the loss to grow. It groups by `cbkm`; `cbkm-near` and `bkm` are a check. "
    "Users with few interactions have short rating rows close to each other, and another loss for that reason alone, "
    "so the number of interactions per user is shown as well. Rank correlations (Spearman) are over the groups of one "
    "seed, then averaged; with 8 groups a single one of 0.6 is still within chance.",
    entries=entries,
    measurements={"cohesion": measure},
    values=values,
    claims=claims,
    tables=tables,
    figures=figures,
)
