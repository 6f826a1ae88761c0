"""Active unlearning, which the paper's introduction promises: forgetting polluted data repairs a recommender.

The data is polluted by fake users who push some items into recommendations: a profile injection attack, drawn from a
seed.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from erasable.chain.arrangement import arrange
from erasable.chain.dataset import Dataset
from erasable.chain.scoring import Scoring
from erasable.data.catalogue import k_core
from erasable.data.ids import Ids
from erasable.data.interactions import Interactions, RatingScale
from erasable.evaluation.protocols import Case, cases_of, for_each_case, measure
from erasable.evaluation.replay import compare
from erasable.grouping.points import GroupingEffort
from erasable.models.machine import top_items
from erasable.paper._cells import Cell, ExperimentSettings, MethodName, Result
from erasable.paper._report import draw_bars
from erasable.paper._workbench import (
    Chain,
    ChainLabels,
    Entry,
    Experiment,
    PaperClaim,
    Row,
    Table,
    Workbench,
    arrange_into_groups,
    chain_settings,
    crossed,
    forget_users,
    labels,
    learn_chain,
    paired,
    pick,
    rounded,
    share_verdict,
    summary,
    usual_groups,
)
from erasable.plots import one_legend, panels
from erasable.seeding import child_key, id_keys, mix

PUSHED = 10
FILLERS = 30
_DRAWS = 8 * FILLERS
METRICS = {
    "ndcg@10": "NDCG@10",
    "hr@10": "HR@10",
    "exposure": "exposure: users with a pushed item",
    "place": "place of pushed items (0 is the top)",
}
STATES = {"poisoned": "poisoned", "forgotten": "after forgetting", "never": "never poisoned"}
MOST = 0.95
METHOD: MethodName = "L-Rand"
TOP = 10
MOST_ASKED = 10_000
"""At most so many real users are checked for pushed items."""


@dataclass(frozen=True, eq=False)
class FakeUsers:
    """The interactions of fake users, over the items of the real data, and the items they push."""

    interactions: Interactions
    pushed: Ids

    @property
    def ids(self) -> list[str]:
        """The ids of the fake users; no real user has one of them."""
        return self.interactions.users.texts()


def make_fake_users(real: Interactions, scale: RatingScale, count: int, seed: int) -> FakeUsers:
    """Generate users who give some unpopular items the highest rating, and rate popular ones to look real.

    Each gives the same 10 items of the less popular half the highest rating, and the highest or the middle one to 30
    fillers, drawn in proportion to how often items are rated.
    """
    pushed = _pushed_items(real, seed)
    users = _new_ids(real.users, count)
    keys = id_keys(seed, "fake user", users)
    rows = [_rows(real, scale, pushed, key) for key in keys]
    user_index = np.repeat(np.arange(count, dtype=np.int32), [len(items) for items, _ in rows])
    item_index, rating = (np.concatenate(column) for column in zip(*rows, strict=True))
    return FakeUsers(Interactions(users, real.items, user_index, item_index, rating), real.items.take(pushed))


def with_fake_users(real: Interactions, fakes: FakeUsers) -> Interactions:
    """Return the interactions of the real and of the fake users."""
    return Interactions.merge([real, fakes.interactions])


def _pushed_items(real: Interactions, seed: int) -> NDArray[np.int64]:
    """Return the numbers of the pushed items, chosen by the seed, their ids and their popularity."""
    ratings = np.bincount(real.item_index, minlength=len(real.items))
    unpopular = np.argsort(ratings, kind="stable")[: max(1, len(ratings) // 2)]
    keys = id_keys(seed, "pushed item", real.items)[unpopular]
    return np.sort(unpopular[np.argsort(keys, kind="stable")[:PUSHED]])


def _new_ids(known: Ids, count: int) -> Ids:
    """Return ids that sort by number; the prefix is repeated until no real id begins with it."""
    prefix = "fake-"
    while any(user.startswith(prefix) for user in known):
        prefix = "fake-" + prefix
    return Ids.of(f"{prefix}{number:0{max(5, len(str(count)))}d}" for number in range(1, count + 1))


def _rows(
    real: Interactions, scale: RatingScale, pushed: NDArray[np.int64], key: np.uint64
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return the items of one fake user, ascending, and their ratings."""
    fillers = _fillers(real, pushed, key)
    coins = mix(np.array(child_key(int(key), "rating"), np.uint64), fillers.astype(np.uint64)) >> np.uint64(63)
    ratings = np.where(coins == 1, scale.high, (scale.low + scale.high) / 2)
    items = np.concatenate([pushed, fillers])
    order = np.argsort(items, kind="stable")
    return items[order], np.concatenate([np.full(len(pushed), scale.high), ratings])[order].astype(np.float32)


def _fillers(real: Interactions, pushed: NDArray[np.int64], key: np.uint64) -> NDArray[np.int64]:
    """Return different items of random interactions, so that popular items are drawn more often."""
    rows = mix(np.array(key), np.arange(_DRAWS, dtype=np.uint64)) % np.uint64(len(real))
    drawn = dict.fromkeys(real.item_index[rows.astype(np.int64)].tolist())
    return np.array([item for item in drawn if item not in set(pushed.tolist())][:FILLERS], np.int64)


def claims(table: Table) -> list[PaperClaim]:
    """Judge what the introduction says of polluted data."""
    return [_restored(table), _utility_hurt(table), _pushed(table)] if table else []


def _changes(table: Table, metric: str, one: str, other: str) -> list[float]:
    """Return the difference of a metric between two states, run by run."""
    rows = paired(pick(table, metric=metric), "state", one, other)
    return [first["value"] - second["value"] for first, second in rows]


def _restored(table: Table) -> PaperClaim:
    runs = [pick(table, model=model, method=method, seed=seed) for model, method, seed in _runs(table)]
    restored = sum(_is_restored(run) for run in runs)
    apart = [abs(change) for metric in METRICS for change in _changes(table, metric, "forgotten", "never")]
    took = {name: summary(pick(table, metric=f"{name} ratio", method="L-Rand")).mean for name in ("chain", "cost")}
    return PaperClaim(
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


def _utility_hurt(table: Table) -> PaperClaim:
    changes = _changes(table, "ndcg@10", "forgotten", "poisoned")
    before = summary(pick(table, metric="ndcg@10", state="poisoned")).mean
    better = sum(change > 0 for change in changes)
    mean = float(np.mean(changes))
    return PaperClaim(
        said="The performance of recommenders is sensitive to polluted training data.",
        rule="holds if NDCG@10 of the real users is higher after forgetting the fake ones in at least 95% of the "
        "runs; in part from 80% on.",
        measured=f"NDCG@10 is higher in {better} of {len(changes)} runs; it changes by {mean:+.4f} on average, from "
        f"{before:.4f}.",
        verdict=share_verdict(better / len(changes), part=0.8),
    )


def _pushed(table: Table) -> PaperClaim:
    changes = _changes(table, "exposure", "poisoned", "never")
    more = sum(change > 0 for change in changes)
    up = sum(change < 0 for change in _changes(table, "place", "poisoned", "never"))
    exposure, place = (_means(table, metric) for metric in ("exposure", "place"))
    verdict = share_verdict(more / len(changes), part=0.8)
    return PaperClaim(
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


def entries(settings: ExperimentSettings, data: str) -> list[Entry]:
    """Return the grid: seeds and models, random groups, with the largest number of groups that is at most 8."""
    return [
        _entry(settings, data, ChainLabels(model, METHOD, usual_groups(settings.groups), seed))
        for seed in range(settings.seeds)
        for model in settings.models
    ]


def _entry(settings: ExperimentSettings, data: str, chain: ChainLabels) -> Entry:
    cell = Cell("poison", data, chain_settings(settings, chain), {"poisoned": settings.poisoned})
    return Entry(dict(chain._asdict()), cell)


def measure_poison(workbench: Workbench, cell: Cell) -> dict[str, Any]:
    """Learn with the fake users, forget them, and learn once more without them."""
    real, settings, effort = workbench.interactions, dict(cell.settings), workbench.effort
    if least := settings.pop("min_interactions", 0):  # filter first: fake users would count in the filter
        real = k_core(real, least)
    count = max(1, round(cell.details["poisoned"] / 100 * len(real.users)))
    fakes = make_fake_users(real, workbench.scale, count, cell.settings["seed"])
    polluted = arrange_into_groups(with_fake_users(real, fakes), workbench.scale, settings, workbench.threads)
    poisoned = learn_chain(polluted, effort)
    forgotten, forgetting = forget_users(poisoned, fakes.ids, effort)
    never = learn_chain(never_polluted(polluted, fakes, workbench.threads), effort)
    same = compare(forgotten.state, forgotten.checkpoints, never.checkpoints)
    states = {"poisoned": poisoned, "forgotten": forgotten, "never": never}
    return {
        "fakes": count,
        "pushed": fakes.pushed.texts(),
        "states": {name: utility_for_real(chain, fakes, workbench.threads) for name, chain in states.items()},
        "identical": same.identical,
        "compared": same.compared,
        "forgetting": rounded(asdict(forgetting)),
    }


def never_polluted(polluted: Dataset, fakes: FakeUsers, threads: int) -> Dataset:
    """Return the real users' data in the same groups, split into training and holdout from scratch."""
    places = {user: position for position, group in enumerate(polluted.groups) for user in group.users}
    everything = Interactions.merge([*polluted.groups, polluted.held_out])
    return arrange(everything.without(users=fakes.ids), polluted, GroupingEffort(threads), given=places)


def utility_for_real(chain: Chain, fakes: FakeUsers, threads: int) -> dict[str, float]:
    """Return the utility for the real users, and how high the pushed items rank."""
    test = chain.state.dataset.held_out.without(users=fakes.ids)
    found = measure(chain.state, chain.checkpoints, test, threads).values
    return rounded({name: found[name] for name in ("ndcg@10", "hr@10")} | push_success(chain, fakes, threads))


def push_success(chain: Chain, fakes: FakeUsers, threads: int) -> dict[str, float]:
    """Return the share of real users who get a pushed item in their top ten, and the mean place of pushed items.

    The place of an item is the share of the other items new to the user that score higher.
    """
    dataset = chain.state.dataset
    scoring = Scoring(chain.state, chain.checkpoints)
    numbers = dataset.items.positions(fakes.pushed.texts())
    pushed = numbers[numbers >= 0]  # the filter may have dropped some

    def found(case: Case, scores: NDArray[np.float32]) -> tuple[bool, list[float]]:
        owned = scoring.owned(case.place)
        new, top = np.setdiff1d(pushed, owned), top_items(scores, TOP, excluded=owned)
        others = np.delete(scores, owned)
        return bool(np.isin(top, pushed).any()), [float(np.mean(others > scores[item])) for item in new]

    real = some_users(Interactions.merge(dataset.groups).without(users=fakes.ids), dataset.config.seed)
    exposed, places = zip(*for_each_case(scoring, cases_of(dataset, real), found, threads), strict=True)
    every_place = np.concatenate(places)
    return {"exposure": float(np.mean(exposed)), "place": float(every_place.mean()) if every_place.size else 1.0}


def some_users(interactions: Interactions, seed: int) -> Interactions:
    """Return the interactions of at most 10,000 users, chosen by hash, so that checking them does not take hours."""
    users = interactions.users.texts()
    order = np.argsort(id_keys(seed, "asked about pushed items", users), kind="stable")
    return interactions.of_users([users[place] for place in order[:MOST_ASKED].tolist()])


def values(result: Result) -> list[Row]:
    """Return a row for each state and metric, for equal bytes, and for the cost of forgetting."""
    states: Sequence[Row] = [
        {"state": state, "metric": metric, "value": value}
        for state, found in result["states"].items()
        for metric, value in found.items()
    ]
    return [
        *states,
        {"state": "forgotten", "metric": "identical", "value": float(result["identical"])},
        {"state": "forgotten", "metric": "cost ratio", "value": result["forgetting"]["cost_ratio"]},
        {"state": "forgotten", "metric": "chain ratio", "value": result["forgetting"]["chain_ratio"]},
    ]


EXPERIMENT = Experiment(
    name="poison",
    title="forgetting fake users who push items",
    about=(
        "Fake users are added (`poisoned` per cent of the users): each gives ten items of the less popular half the "
        "highest rating, and thirty popular ones the highest or the middle rating. Recommendations for the real users "
        "are measured with the fake ones learned (poisoned), after forgetting them all (forgotten), and learned "
        "without them in the same groups (never). Exposure is the share of real users (of 10,000 if there are more) "
        "with a pushed item among their ten recommendations; the place of a pushed item is the share of the items new "
        "to a user that score higher, 0 being the top. Utility is HR@10 and NDCG@10 over the whole catalogue, on the "
        "real users' holdout, which is the same in all three."
    ),
    entries=entries,
    measurements={"poison": measure_poison},
    values=values,
    claims=claims,
    tables=tables,
    figures=figures,
)
