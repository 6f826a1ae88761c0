import json

import pytest

from erasable.evaluation import measure_all
from erasable.paper._cells import ExperimentSettings, users_to_forget
from erasable.paper._report import save_figure
from erasable.paper._utility import EXPERIMENT, measure, utility_entry
from erasable.paper._workbench import ChainLabels, labels, learn_chain
from kit.small_bench import small_bench
from kit.utility_rows import claim_about, utility_rows

GOOD = {"Retrain": 0.5, "C-SISA": 0.2, "C-SISA own": 0.45, "L-Rand": 0.3, "L-BKM": 0.301, "L-CBKM": 0.4}
SMALL = ExperimentSettings(epochs=2, groups=(1, 2, 4), seeds=1)


def as_the_paper_says(row):
    """Retrain and one group are best; what several groups lose stays the same; all groupings meet with 16."""
    if row["method"] == "Retrain" or row["groups"] == 1:
        return 0.5
    if row["model"] == "nmf" and row["groups"] == 16 and row["method"].startswith("L-"):
        return 0.36
    return GOOD[row["method"]]


def verdict(value, words, **grid):
    return claim_about(EXPERIMENT.claims, utility_rows(value, **grid), words).verdict


def test_what_the_paper_says_holds_where_it_is_so():
    claims = EXPERIMENT.claims(utility_rows(as_the_paper_says, seeds=2))
    assert len(claims) == 10
    assert {claim.verdict for claim in claims} == {"holds"}


@pytest.mark.parametrize(
    ("lost_at", "expected"), [((), "holds"), ((16,), "holds in part"), ((4, 8, 16), "does not hold")]
)
def test_random_groups_in_a_chain_are_judged_against_the_mean_of_separate_models(lost_at, expected):
    def value(row):
        lost = row["method"] == "L-Rand" and row["groups"] in lost_at
        return 0.1 if lost else as_the_paper_says(row)

    claim = claim_about(EXPERIMENT.claims, utility_rows(value), "L-Rand outperforms")
    assert claim.verdict == expected
    assert "(C-SISA own) it is higher in 0 of 48 cases" in claim.measured


@pytest.mark.parametrize(
    ("course", "expected"),
    [((9, 6, 5, 5, 5), "holds"), ((9, 8, 7, 6, 5), "does not hold"), ((9, 9, 9, 9, 1), "does not hold")],
)
def test_a_gap_is_stable_if_its_last_change_is_small(course, expected):
    def value(row):
        return 9.0 if row["method"] == "Retrain" else course[(1, 2, 4, 8, 16).index(row["groups"])]

    assert verdict(value, "becomes stable") == expected


def test_a_gap_of_half_of_the_cases_is_stable_in_part():
    def value(row):
        return 9.0 - (row["groups"] if row["model"] == "dmf" else row["groups"] > 1)

    claim = claim_about(EXPERIMENT.claims, utility_rows(value), "becomes stable")
    assert claim.verdict == "holds in part"
    assert claim.measured.startswith("Stable in 24 of 48 cases.")


@pytest.mark.parametrize(("after", "expected"), [(1, "holds"), (0, "does not hold"), (-1, "does not hold")])
def test_learning_leads_to_unlearning_if_both_rank_alike(after, expected):
    def value(row):
        return GOOD[row["method"]] * (1 if row["request"] == "learn" else after)

    assert verdict(value, "leads to") == expected


@pytest.mark.full
@pytest.mark.parametrize(
    ("random", "rows", "expected"),
    [(0.3, 0.3, "holds"), (0.5, 0.3, "holds in part"), (0.5, 0.5, "does not hold"), (0.4, 0.5, "not decided")],
)
def test_cohesive_groups_must_beat_both_rivals(random, rows, expected):
    found = {**GOOD, "L-Rand": random, "L-BKM": rows}
    for words in ("DMF: L-CBKM", "NMF: as for DMF"):
        assert verdict(lambda row: found[row["method"]], words) == expected


def test_what_the_seeds_explain_is_no_win():
    def value(row):
        return GOOD[row["method"]] * (1.0 if row["seed"] == 0 else -0.5)

    assert verdict(value, "DMF: L-CBKM", seeds=3) == "not decided"
    assert verdict(lambda row: GOOD[row["method"]], "DMF: L-CBKM", seeds=1) == "not decided"
    assert verdict(lambda row: GOOD[row["method"]], "DMF: L-CBKM", seeds=3) == "holds"


@pytest.mark.parametrize(("rows", "expected"), [(0.303, "holds"), (0.4, "does not hold")])
def test_rows_are_as_good_as_chance_if_the_means_are_near(rows, expected):
    found = {**GOOD, "L-BKM": rows}
    assert verdict(lambda row: found[row["method"]], "similar performance to L-Rand") == expected


def test_groupings_meet_with_16_groups_only_if_they_do():
    assert verdict(lambda row: GOOD[row["method"]], "NMF with 16 groups") == "does not hold"


def test_fewer_users_agree_with_more_if_both_rank_alike():
    def value(row):
        return -as_the_paper_says(row) if "2.5" in row["request"] else as_the_paper_says(row)

    assert verdict(value, "K = 2.5") == "does not hold"


@pytest.mark.parametrize(
    ("noisy", "expected"), [((), "holds"), (("dmf",), "holds in part"), (("dmf", "nmf"), "does not hold")]
)
def test_deviations_are_counted_once_for_each_cell(noisy, expected):
    def value(row):
        return row["seed"] * (0.01 if row["model"] in noisy else 0.0001)

    claim = claim_about(EXPERIMENT.claims, utility_rows(value, seeds=2), "Standard deviations")
    assert claim.verdict == expected
    assert f"of {2 * 2 * 5 * (1 + 5 * 4)} cases" in claim.measured


def test_claims_about_what_was_not_measured_are_left_out():
    rows = utility_rows(as_the_paper_says, ("Retrain",), (1, 2), ("learn",), seeds=1)
    assert EXPERIMENT.claims(rows) == []
    assert EXPERIMENT.claims([]) == []


def test_the_grid_is_that_of_the_paper_and_one_group_is_the_same_for_all_methods():
    entries = EXPERIMENT.entries(ExperimentSettings(seeds=2), "data")
    assert len(entries) == 2 * 5 * 6 * 2 * 5
    assert len({entry.cell.name for entry in entries}) == 2 * (1 + 5 * 4) * 2 * 5
    single = {entry.cell.name for entry in entries if entry.labels["groups"] == 1}
    assert single == {entry.cell.name for entry in entries if entry.labels["method"] == "Retrain"}


@pytest.mark.parametrize("method", ["Retrain", "C-SISA", "L-BKM"])
def test_what_is_measured_after_forgetting_is_what_learning_without_them_gives(tmp_path, method):
    bench = small_bench(tmp_path)
    entry = utility_entry(SMALL, "data", ChainLabels("nmf", method, 4, 0), "rand@5")
    found = measure(bench, entry.cell)
    dataset = bench.grouped(entry.cell.settings)
    users = users_to_forget(dataset, "rand@5")
    assert found["forgetting"]["users"] == len(users) == 3
    never = learn_chain(dataset.without(users, ()), bench.effort)
    expected = measure_all(never.state, never.checkpoints, never.state.dataset.held_out, 1)
    assert found["model"] == never.state.chain[-1].fingerprint[:16]
    for name, utility in expected.items():
        assert found["protocols"][name] == pytest.approx({"users": utility.users, **utility.values}, abs=1e-6)
    assert json.loads(json.dumps(found)) == found


def test_rows_are_the_metrics_and_what_forgetting_cost():
    forgetting = {"users": 3, "cost_ratio": 0.5, "chain_ratio": 1.0}
    metrics = {"whole-catalogue": {"users": 57, "hr@10": 0.5}}
    assert EXPERIMENT.values({"protocols": metrics, "forgetting": forgetting}) == [
        {"protocol": "whole-catalogue", "metric": "hr@10", "value": 0.5},
        {"protocol": "cost", "metric": "cost_ratio", "value": 0.5},
        {"protocol": "cost", "metric": "chain_ratio", "value": 1.0},
    ]
    assert len(EXPERIMENT.values({"protocols": metrics, "forgetting": None})) == 1


def test_tables_show_each_metric_model_and_request_and_the_other_protocol():
    rows = utility_rows(as_the_paper_says, seeds=2)
    cost = [{**row, "protocol": "cost", "metric": "cost_ratio", "value": 0.25} for row in rows]
    text = EXPERIMENT.tables([*rows, *cost])
    assert text.count("by number of groups**") == 2 * 2 * 3 + 3
    assert "| L-CBKM | 0.5000 ± 0.0000 | 0.4000 ± 0.0000 |" in text
    assert "**After learning with 8 groups, by the other protocols**" in text
    assert "| NMF one-of-100 NDCG@10 | 0.0000 ± 0.0000 |" in text
    assert "| Retrain | 0.250 | 0.250 |" in text


@pytest.mark.full
@pytest.mark.parametrize("seeds", [3, pytest.param(1, marks=pytest.mark.full)])
def test_figures_have_a_panel_for_each_model_and_request(tmp_path, seeds):
    rows = utility_rows(lambda row: as_the_paper_says(row) + row["seed"] / 100, seeds=seeds)
    drawn = EXPERIMENT.figures(rows)
    assert list(drawn) == ["utility-ndcg", "utility-hr", "utility-ndcg-fewer", "utility-hr-fewer"]
    assert [len(figure.axes) for figure in drawn.values()] == [6, 6, 4, 4]
    figure = drawn["utility-ndcg"]
    assert figure.axes[0].get_title() == "DMF, learn"
    assert [tick.get_text() for tick in figure.axes[3].get_xticklabels()] == ["1", "2", "4", "8", "16"]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == labels(rows, "method")
    for file in save_figure(figure, tmp_path / "utility"):
        assert file.stat().st_size > 5_000


def test_requests_that_were_not_measured_are_not_drawn():
    drawn = EXPERIMENT.figures(utility_rows(as_the_paper_says, requests=("learn", "top@5")))
    assert [len(figure.axes) for figure in drawn.values()] == [4, 4]
    assert EXPERIMENT.figures([]) == {}
