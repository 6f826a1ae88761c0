import pytest

from erasable.paper import _utility as utility
from erasable.paper._cells import ExperimentSettings
from erasable.paper._order import EXPERIMENT
from erasable.paper._report import save_figure
from kit.utility_rows import utility_rows

ORDERS = ("L-CBKM", "L-CBKM hard", "L-Rand")


def table(value, seeds=2):
    return utility_rows(value, ORDERS, (8,), ("learn", "rand@5", "top@5"), seeds)


def test_the_grid_is_both_orders_and_random_groups():
    entries = EXPERIMENT.entries(ExperimentSettings(), "data")
    assert len(entries) == len({entry.cell.name for entry in entries}) == 3 * 3 * 2 * 3
    assert {entry.labels["groups"] for entry in entries} == {8}


def test_all_but_the_reverse_order_are_cells_of_utility():
    settings = ExperimentSettings(groups=(1, 2, 4))
    known = {entry.cell.name for entry in utility.EXPERIMENT.entries(settings, "data")}
    shared = {entry.labels["method"]: entry.cell.name in known for entry in EXPERIMENT.entries(settings, "data")}
    assert shared == {"L-CBKM": True, "L-CBKM hard": False, "L-Rand": True}


def test_requests_that_are_not_asked_for_are_left_out():
    settings = ExperimentSettings(requests=("learn", "rand@2.5"))
    assert {entry.labels["request"] for entry in EXPERIMENT.entries(settings, "data")} == {"learn"}


@pytest.mark.parametrize(
    ("lost", "expected"),
    [((), "holds"), (("top@5",), "holds in part"), (("rand@5", "top@5"), "does not hold")],
)
def test_easy_to_hard_must_be_better_in_all_cases(lost, expected):
    def value(row):
        return 0.2 if row["method"] != "L-CBKM" else 0.1 if row["request"] in lost else 0.3

    (claim,) = EXPERIMENT.claims(table(value))
    assert claim.verdict == expected
    assert f"SeqTrain is higher in {12 - 4 * len(lost)} of 12 cases" in claim.measured
    assert "Against L-Rand, anti-SeqTrain (hard to easy) is higher in 0 of 12 cases, tied in 12" in claim.measured


def test_what_chance_explains_does_not_count():
    (claim,) = EXPERIMENT.claims(table(lambda row: (row["method"] == "L-CBKM") * 10.0 * row["seed"], seeds=2))
    assert claim.verdict == "not decided"


def test_the_table_has_a_line_for_each_case():
    text = EXPERIMENT.tables(table(lambda row: 0.2, seeds=1))
    assert text.count("\n") == 2 + 12
    assert "| DMF rand@5 NDCG@10 | 0.2000 | 0.2000 | 0.2000 |" in text


@pytest.mark.parametrize("seeds", [3, pytest.param(1, marks=pytest.mark.full)])
def test_the_figure_has_bars_for_each_request(tmp_path, seeds):
    drawn = EXPERIMENT.figures(table(lambda row: 0.2 + row["seed"] / 100, seeds))
    figure = drawn["order"]
    assert [axis.get_title() for axis in figure.axes] == ["DMF", "DMF", "NMF", "NMF"]
    assert [tick.get_text() for tick in figure.axes[0].get_xticklabels()] == ["learn", "rand@5", "top@5"]
    assert len(figure.axes[0].patches) == 9
    assert figure.legends[0].get_texts()[1].get_text() == "anti-SeqTrain (hard to easy)"
    for file in save_figure(figure, tmp_path / "order"):
        assert file.stat().st_size > 5_000


def test_nothing_measured_gives_nothing():
    assert (EXPERIMENT.claims([]), EXPERIMENT.tables([]), EXPERIMENT.figures([])) == ([], "", {})
