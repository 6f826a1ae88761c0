import json
import math

import pytest

from erasable.evaluation.protocols import group_losses
from erasable.paper._cells import ExperimentSettings
from erasable.paper._report import save_figure
from erasable.paper._theory import BALANCED, EXPERIMENT, MEASURED, WEIGHED, plainly_clustered, prior_values
from erasable.paper._theory_claims import balanced_share, formula_share
from erasable.paper._workbench import pick
from kit.small_bench import small_bench
from kit.utility_rows import claim_about

SMALL = ExperimentSettings(epochs=2, groups=(1, 2, 4), seeds=1)
BALANCED_COSTS, UNBALANCED_COSTS = [10, 10, 10, 10], [31, 3, 3, 3]


def cost_result(samples, users=None):
    planned = [sum(samples[place:]) for place in range(len(samples))]
    together = dict.fromkeys(("1", "5", "10", "30", "1 %", "5 %"), 0.9)
    return {"users": users or [10] * len(samples), "samples": samples, "planned": planned, "together": together}


def rows_of(part, method, result, seeds=1, model="nmf"):
    place = {"part": part, "model": model, "method": method, "groups": 4}
    return [{**place, "seed": seed, **row} for seed in range(seeds) for row in EXPERIMENT.values(result)]


def cost_table(of_methods=BALANCED_COSTS, of_k_means=UNBALANCED_COSTS, bkm=None, seeds=1):
    samples = dict.fromkeys(BALANCED, of_methods) | {"L-BKM": bkm or of_methods, "k-means": of_k_means}
    return [row for method, costs in samples.items() for row in rows_of("cost", method, cost_result(costs), seeds)]


def prior_table(signs, seeds=1):
    """Write Theorem 1's numbers for each method and model; a sign says whether cohesive groups have less loss."""
    losses = {1: [0.1, 0.2, 0.3, 0.4], -1: [0.4, 0.3, 0.2, 0.1]}
    return [
        row
        for method in WEIGHED
        for model, sign in zip(("dmf", "nmf"), signs, strict=True)
        for row in rows_of(
            "theorem 1", method, {"losses": losses[sign], "cohesion": [4.0, 3.0, 2.0, 1.0]}, seeds, model
        )
    ]


def seconds_rows(seeds=1):
    return rows_of("seconds", "L-Rand", {"users": [5, 5, 5, 5], "seconds": [4.0, 2.0, 1.0, 1.0]}, seeds)


def values_of(rows):
    return {row["quantity"]: row["value"] for row in rows if "asking" not in row}


def test_expected_costs_by_hand():
    found = values_of(EXPERIMENT.values(cost_result([1, 2, 3], users=[1, 1, 2])))
    assert [found["by cost"], found["formula"]] == pytest.approx([25 / 36, 25 / 36])
    assert found["by head"] == pytest.approx((6 + 5 + 2 * 3) / 4 / 6)
    assert (found["largest group"], found["largest cost"]) == (0.5, 0.5)


def test_expected_seconds_by_hand():
    found = values_of(seconds_rows())
    assert found["by head"] == pytest.approx((8 + 4 + 2 + 1) / 4 / 8)
    assert found["by cost"] == pytest.approx(formula_share([4, 2, 1, 1]))
    assert found["whole chain"] == 8


def test_both_sides_of_theorem_1_by_hand():
    # U = 1/2 and 1/4, p = 3/4 and 1/4: mean U 3/8, weighed 7/16, and 1/8 · 1/4 + 1/8 · 1/4 = 1/16 between them.
    found = values_of(prior_values({"losses": [math.log(2), math.log(4)], "cohesion": [3.0, 1.0]}))
    assert found["U"] == pytest.approx(3 / 8)
    assert found["U_p"] == pytest.approx(7 / 16)
    assert found["covariance"] == pytest.approx(1 / 16)
    assert found["correlation"] == pytest.approx(1)
    assert found["error"] < 1e-15


def test_groups_without_a_loss_are_left_out_of_theorem_1():
    whole, part = ({"losses": [0.5, 0.2, *more], "cohesion": [2.0, 1.0, *more]} for more in ([], [None]))
    assert prior_values(whole) == prior_values(part)
    assert prior_values({"losses": [None], "cohesion": [1.0]}) == []
    assert values_of(prior_values({"losses": [0.1, 0.2], "cohesion": [0.0, 0.0]}))["covariance"] == 0


@pytest.mark.parametrize(
    ("costs", "verdict"),
    [
        ({}, "holds"),
        ({"bkm": [25, 5, 5, 5]}, "holds in part"),
        ({"of_k_means": BALANCED_COSTS}, "does not hold"),
        ({"of_methods": [25, 5, 5, 5]}, "does not hold"),
    ],
)
def test_balanced_groups_must_reach_the_bound_and_stay_below_k_means(costs, verdict):
    claim = claim_about(EXPERIMENT.claims, cost_table(**costs), "maximises unlearning efficiency")
    assert claim.verdict == verdict
    assert "L-Rand" in claim.measured


def test_a_bound_that_is_broken_does_not_hold():
    table = [{**row, "value": 0.5} if row["quantity"] == "by cost" else row for row in cost_table()]
    assert claim_about(EXPERIMENT.claims, table, "maximises unlearning efficiency").verdict == "does not hold"


@pytest.mark.parametrize(("bkm", "verdict"), [(BALANCED_COSTS, "holds"), ([5, 5, 5, 25], "holds in part")])
def test_a_group_is_hit_by_its_users_not_by_its_cost(bkm, verdict):
    assert claim_about(EXPERIMENT.claims, cost_table(bkm=bkm), "c_i / Z").verdict == verdict


def test_costs_that_lie_at_one_end_everywhere_do_not_follow_from_heads():
    claim = claim_about(EXPERIMENT.claims, cost_table([5, 5, 5, 25]), "c_i / Z")
    assert claim.verdict == "does not hold"
    assert "within 5% in 0 of 3 cases" in claim.measured


@pytest.mark.parametrize(
    ("signs", "verdict"), [((1, 1), "holds"), ((1, -1), "does not hold"), ((-1, -1), "does not hold")]
)
def test_the_covariance_must_be_positive_for_all_models_and_seeds(signs, verdict):
    claim = claim_about(EXPERIMENT.claims, prior_table(signs, seeds=2), "positively related")
    assert claim.verdict == verdict
    assert claim.measured.startswith(f"L-CBKM: positive in {sum(sign > 0 for sign in signs) * 2} of 4")


def test_theorem_1_is_an_identity():
    claim = claim_about(EXPERIMENT.claims, prior_table((1, -1)), "Theorem 1")
    assert claim.verdict == "holds"
    assert "any numbers" in claim.measured
    broken = [{**row, "value": 0.1} if row["quantity"] == "error" else row for row in prior_table((1, 1))]
    assert claim_about(EXPERIMENT.claims, broken, "Theorem 1").verdict == "does not hold"


def test_nothing_measured_gives_nothing():
    assert (EXPERIMENT.claims([]), EXPERIMENT.tables([]), EXPERIMENT.figures([])) == ([], "", {})


def test_the_tables_show_the_bound_beside_what_was_measured():
    text = EXPERIMENT.tables([*cost_table(), *seconds_rows(), *prior_table((1, 1))])
    assert f"| (1 + 1/S) / 2 | {balanced_share(4):.4f} |" in text
    assert "| arithmetic | 0.6250 |" in text
    assert "| by head | 0.4688 |" in text
    assert "| dmf L-CBKM | 0." in text


@pytest.mark.full
@pytest.mark.parametrize("seeds", [3, pytest.param(1, marks=pytest.mark.full)])
def test_the_figures_are_drawn(tmp_path, seeds):
    figures = EXPERIMENT.figures([*cost_table(seeds=seeds), *seconds_rows(seeds), *prior_table((1, -1), seeds)])
    assert list(figures) == ["theory-cost", "theory-covariance"]
    for stem, figure in figures.items():
        assert all(file.stat().st_size > 5_000 for file in save_figure(figure, tmp_path / stem))


def test_the_grid_needs_no_training_for_costs_and_one_number_of_groups_for_the_rest():
    entries = EXPERIMENT.entries(SMALL, "data")
    assert len(entries) == len({entry.cell.name for entry in entries}) == 2 * 4 + 1 + 4 * 2
    assert {entry.labels["groups"] for entry in entries if entry.labels["part"] != "cost"} == {4}
    assert 1 not in {entry.labels["groups"] for entry in entries}


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    return small_bench(tmp_path_factory.mktemp("theory"))


def measured(bench, **labels):
    entries = EXPERIMENT.entries(SMALL, bench.interactions.digest())
    (entry,) = [entry for entry in entries if labels.items() <= entry.labels.items()]
    return json.loads(json.dumps(MEASURED[entry.cell.measurement](bench, entry.cell))), entry.cell


def test_balanced_groups_are_planned_from_each_group_on(bench):
    result, cell = measured(bench, part="cost", method="L-BKM", groups=4)
    groups = bench.grouped(cell.settings).groups
    assert result["users"] == [15] * 4
    assert result["samples"] == [5 * len(group) for group in groups]
    assert result["stages"] == [4, 3, 2, 1]
    tails = [sum(result["samples"][place:]) for place in range(4)]
    # What is missing is one user's rows: about ten interactions, each with four negatives.
    assert all(0 < tail - planned <= 5 * 10 for tail, planned in zip(tails, result["planned"], strict=True))


def test_plain_k_means_holds_the_same_users_in_groups_of_any_size(bench):
    result, cell = measured(bench, part="cost", method="k-means", groups=4)
    dataset = bench.grouped(cell.settings)
    plain = plainly_clustered(dataset, 1)
    assert result["users"] == [len(group.users) for group in plain.groups]
    assert sum(result["users"]) == 60
    assert sorted(user for group in plain.groups for user in group.users) == sorted(
        user for group in dataset.groups for user in group.users
    )


def test_seconds_are_those_of_a_chain(bench):
    result, _ = measured(bench, part="seconds")
    assert len(result["seconds"]) == len(result["users"]) == 4
    assert all(seconds >= 0 for seconds in result["seconds"])


def test_losses_are_the_final_models_and_cohesion_stands_by_position(bench):
    result, cell = measured(bench, part="theorem 1", method="L-CBKM", model="dmf")
    chain = bench.learned(cell.settings)
    dataset = bench.grouped(cell.settings)
    assert result["losses"] == group_losses(chain.state, chain.checkpoints, dataset.held_out, 1)
    assert result["cohesion"] == sorted(result["cohesion"], reverse=True)
    assert pick(EXPERIMENT.values(result), quantity="error")[0]["value"] < 1e-12
