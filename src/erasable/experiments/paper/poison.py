"""Active unlearning, which the paper's introduction promises: forgetting polluted data repairs a recommender."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from erasable.data import Interactions, k_core
from erasable.evaluation import compare, measure
from erasable.evaluation.cases import Case, cases_of, for_each_case
from erasable.experiments.cells import Cell, Result
from erasable.experiments.experiment import ChainLabels, Entry, Experiment, chain_settings, rounded, usual_groups
from erasable.experiments.fake_users import FakeUsers, make_fake_users, with_fake_users
from erasable.experiments.methods import MethodName
from erasable.experiments.paper.poison_claims import claims, figures, tables
from erasable.experiments.settings import ExperimentSettings
from erasable.experiments.tables import Row
from erasable.experiments.workbench import Chain, Workbench, arrange_into_groups, forget_users, learn_chain
from erasable.grouping import GroupingEffort
from erasable.models.ranking import top_items
from erasable.seeding import id_keys
from erasable.training import Knowledge, Scoring, arrange

METHOD: MethodName = "L-Rand"
TOP = 10
MOST_ASKED = 10_000
"""How many real users are asked what they get of the pushed items."""


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
    """Learn with fake users among the real ones, forget them, and learn once more as if they had never been."""
    real, settings, effort = workbench.interactions, dict(cell.settings), workbench.effort
    if least := settings.pop("min_interactions", 0):  # a filter that fake users pass would count them in
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


def never_polluted(polluted: Knowledge, fakes: FakeUsers, threads: int) -> Knowledge:
    """Return the real users' data in the same groups, split into training and holdout from scratch."""
    places = {user: position for position, group in enumerate(polluted.groups) for user in group.users}
    everything = Interactions.merge([*polluted.groups, polluted.held_out])
    frame = replace(polluted, groups=(), cohesion=())
    return arrange(everything.without(users=fakes.ids), frame, GroupingEffort(threads), given=places)


def utility_for_real(chain: Chain, fakes: FakeUsers, threads: int) -> dict[str, float]:
    """Return how good recommendations are for the real users, and how far the pushed items come."""
    test = chain.state.knowledge.held_out.without(users=fakes.ids)
    found = measure(chain.state, chain.checkpoints, test, threads).values
    return rounded({name: found[name] for name in ("ndcg@10", "hr@10")} | push_success(chain, fakes, threads))


def push_success(chain: Chain, fakes: FakeUsers, threads: int) -> dict[str, float]:
    """Return the share of real users who get a pushed item in their top ten, and the mean place of pushed items.

    A place is the share of the items that a user does not have which score higher; items a user has are not counted.
    """
    knowledge = chain.state.knowledge
    scoring = Scoring(chain.state, chain.checkpoints)
    numbers = knowledge.items.positions(fakes.pushed.texts())
    pushed = numbers[numbers >= 0]  # the filter may have dropped some

    def found(case: Case, scores: NDArray[np.float32]) -> tuple[bool, list[float]]:
        owned = scoring.owned(case.position, case.row)
        new, top = np.setdiff1d(pushed, owned), top_items(scores, TOP, excluded=owned)
        others = np.delete(scores, owned)
        return bool(np.isin(top, pushed).any()), [float(np.mean(others > scores[item])) for item in new]

    real = some_users(Interactions.merge(knowledge.groups).without(users=fakes.ids), knowledge.config.seed)
    exposed, places = zip(*for_each_case(scoring, cases_of(knowledge, real), found, threads), strict=True)
    every_place = np.concatenate(places)
    return {"exposure": float(np.mean(exposed)), "place": float(every_place.mean()) if every_place.size else 1.0}


def some_users(interactions: Interactions, seed: int) -> Interactions:
    """Return the interactions of all users, or of so many, chosen by hash, that asking each does not take hours."""
    users = interactions.users.texts()
    order = np.argsort(id_keys(seed, "asked about pushed items", users), kind="stable")
    return interactions.of_users([users[place] for place in order[:MOST_ASKED].tolist()])


def values(result: Result) -> list[Row]:
    """Return a row for each state and metric, for whether bytes are the same, and for what forgetting cost."""
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
