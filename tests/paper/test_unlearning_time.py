import json

import pytest

from erasable.paper._cells import ExperimentSettings, users_to_forget
from erasable.paper._report import save_figure
from erasable.paper._time import EXPERIMENT, measure
from erasable.paper._workbench import ChainLabels, chain_settings
from kit.small_bench import small_bench
from kit.utility_rows import claim_about

REQUESTS = ("last group@5", "random group@5", "first group@5", "one", "rand@5")
GROUPS = (1, 2, 4, 8)


def table(seconds, repeats=1, requests=REQUESTS):
    """Write what each method, number of groups and request took; with one group all methods are Retrain."""
    rows = []
    for groups in GROUPS:
        for method in ("Retrain", "C-SISA", "L-CBKM"):
            for request in requests:
                taken = 8.0 if method == "Retrain" or groups == 1 else seconds(method, groups, request)
                result = {
                    "seconds": [taken * (1 + 0.01 * repeat) for repeat in range(repeats)],
                    "cpu_seconds": [taken] * repeats,
                    "threads": 2,
                    "forgetting": {"users": 5, "stages_rerun": 1, "cost_ratio": 0.1, "chain_ratio": 0.2},
                }
                place = {"model": "dmf", "method": method, "groups": groups, "request": request}
                rows += [{**place, **row} for row in EXPERIMENT.values(result)]
    return rows


def as_the_paper_says(method, groups, request):
    """One stage for the last group and under C-SISA; all stages of a chain for others."""
    return 8 / groups**2 if method == "C-SISA" or request == "last group@5" else 8 / groups


def verdict(seconds, words):
    return claim_about(EXPERIMENT.claims, table(seconds), words).verdict


def test_all_holds_where_only_the_last_group_is_cheap():
    claims = EXPERIMENT.claims(table(as_the_paper_says, repeats=3))
    assert [claim.verdict for claim in claims] == ["holds"] * 4
    assert "C-SISA with 2 groups 4.0" in claims[0].measured
    assert (
        "8.0 times as fast as Retrain for 5 per cent of all users (1 of 8 stages, cost ratio 0.100)"
        in claims[3].measured
    )


@pytest.mark.parametrize(("slow_at", "expected"), [((), "holds"), ((8,), "holds in part"), ((4, 8), "does not hold")])
def test_being_faster_than_retraining_is_judged_for_every_number_of_groups(slow_at, expected):
    def seconds(method, groups, request):
        return 9.0 if method == "L-CBKM" and groups in slow_at else 1.0

    assert verdict(seconds, "faster than Retrain") == expected


@pytest.mark.parametrize(
    ("slow_at", "expected"), [((), "holds"), ((8,), "holds in part"), ((2, 4, 8), "does not hold")]
)
def test_comparable_is_half_as_long_again(slow_at, expected):
    def seconds(method, groups, request):
        return (1.6 if groups in slow_at else 1.4) if method == "L-CBKM" else 1.0

    assert verdict(seconds, "almost as long as C-SISA") == expected


@pytest.mark.parametrize(
    ("course", "expected"),
    [({2: 4, 4: 2, 8: 1}, "holds"), ({2: 4, 4: 2, 8: 3}, "does not hold"), ({2: 9, 4: 10, 8: 11}, "does not hold")],
)
def test_more_groups_must_take_less_time(course, expected):
    assert verdict(lambda method, groups, request: course[groups], "the more groups") == expected


@pytest.mark.parametrize(
    ("dear", "expected"),
    [(("one", "rand@5"), "holds"), (("rand@5",), "holds in part"), ((), "does not hold")],
)
def test_the_last_group_is_the_best_case_if_others_save_half_at_most(dear, expected):
    assert verdict(lambda method, groups, request: 4.0 if request in dear else 1.0, "not in the paper") == expected


def test_without_the_other_requests_nothing_is_said_about_them():
    claims = EXPERIMENT.claims(table(as_the_paper_says, requests=("last group@5",)))
    assert len(claims) == 3
    assert EXPERIMENT.claims([]) == []


def test_one_group_is_measured_once_for_all_methods_and_parts_of_a_group():
    entries = EXPERIMENT.entries(ExperimentSettings(time_seeds=1), "data")
    assert len(entries) == 5 * 3 * 5
    assert len({entry.cell.name for entry in entries}) == 2 + 2 * 4 * 5
    alone = {entry.cell.details["request"] for entry in entries if entry.labels["method"] == "Retrain"}
    assert alone == {"one", "rand@5"}


def test_forgetting_is_timed_again_and_again_from_the_same_chain(tmp_path):
    settings = ExperimentSettings(epochs=2, repeats=2, groups=(1, 2, 4))
    bench = small_bench(tmp_path, threads=2)
    chain = ChainLabels("dmf", "C-SISA", 4, 0)
    found = {
        entry.labels["request"]: measure(bench, entry.cell)
        for entry in EXPERIMENT.entries(settings, "data")
        if entry.cell.settings == chain_settings(settings, chain)
    }
    assert list(found) == list(REQUESTS)
    for result in found.values():
        assert [len(result["seconds"]), len(result["cpu_seconds"]), result["threads"]] == [2, 2, 2]
        assert min(result["seconds"]) > 0
        assert json.loads(json.dumps(result)) == result
    dataset = bench.grouped(chain_settings(settings, chain))
    hit = {dataset.find(user)[0] for user in users_to_forget(dataset, "rand@5")}
    assert [result["forgetting"]["stages_rerun"] for result in found.values()] == [1, 1, 1, 1, len(hit)]


def test_a_chain_is_trained_again_from_the_group_that_was_hit_on(tmp_path):
    settings = ExperimentSettings(epochs=1, repeats=1, groups=(4,))
    bench = small_bench(tmp_path)
    entries = EXPERIMENT.entries(settings, "data")
    chosen = [entry for entry in entries if entry.labels["method"] == "L-CBKM" and "t group" in entry.labels["request"]]
    found = {entry.labels["request"]: measure(bench, entry.cell)["forgetting"] for entry in chosen}
    assert found["last group@5"]["stages_rerun"] == 1
    assert (found["first group@5"]["stages_rerun"], found["first group@5"]["chain_ratio"]) == (4, 1.0)


def test_tables_show_the_median_and_the_range():
    text = EXPERIMENT.tables(table(as_the_paper_says, repeats=3))
    assert text.startswith("Measured with DMF; threads: 2.\n\n**Seconds to forget 5 % of the last group")
    assert text.count("**Seconds to forget") == 5
    assert "| L-CBKM | 8.08 (8.00 to 8.16) | 2.02 (2.00 to 2.04) |" in text
    assert text.count("**Samples L-CBKM visits to forget") == 2
    assert EXPERIMENT.tables([]) == ""


@pytest.mark.parametrize(("requests", "panels"), [pytest.param(REQUESTS, 5, marks=pytest.mark.full), (REQUESTS[:1], 1)])
def test_the_figure_has_a_panel_for_each_request(tmp_path, requests, panels):
    figure = EXPERIMENT.figures(table(as_the_paper_says, 3, requests))["time"]
    assert len(figure.axes) == panels
    assert figure.axes[0].get_title() == "5 % of the last group (the paper's)"
    assert figure.axes[0].get_yscale() == "log"
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["Retrain", "C-SISA", "L-CBKM"]
    for file in save_figure(figure, tmp_path / "time"):
        assert file.stat().st_size > 5_000


def test_nothing_measured_is_not_drawn():
    assert EXPERIMENT.figures([]) == {}
