import pytest

from erasable.evaluation.protocols import group_losses
from erasable.models import Effort
from erasable.paper._cells import ExperimentSettings
from erasable.paper._cohesion import EXPERIMENT, GROUPINGS, correlations, measure
from erasable.paper._report import save_figure
from erasable.paper._workbench import arrange_into_groups, learn_chain
from kit.small_bench import small_bench

GROWS, MOSTLY, FALLS = [1.0, 2.0, 3.0, 4.0], [1.0, 3.0, 4.0, 2.0], [4.0, 3.0, 2.0, 1.0]


def result(losses, interactions=(40, 30, 20, 10)):
    pairs = enumerate(zip(losses, interactions, strict=True))
    return {
        "groups": [
            {"cohesion": 9.0 - place, "users": 5, "interactions": count, "held_out": 3, "loss": loss}
            for place, (loss, count) in pairs
        ]
    }


def table(*losses_of_seeds, models=("dmf",)):
    return [
        {"model": model, "grouping": grouping, "groups": 4, "seed": seed, **row}
        for seed, losses in enumerate(losses_of_seeds)
        for grouping in GROUPINGS
        for model in models
        for row in EXPERIMENT.values(result(losses if grouping == "cbkm" else FALLS))
    ]


@pytest.mark.parametrize(
    ("losses", "verdict"),
    [
        ((GROWS, GROWS, MOSTLY), "holds"),
        ((MOSTLY, MOSTLY), "holds in part"),
        ((GROWS, GROWS, FALLS), "does not hold"),
        ((FALLS,), "does not hold"),
    ],
)
def test_the_claim_is_about_the_documents_grouping_and_rests_on_rank_correlation(losses, verdict):
    (claim,) = EXPERIMENT.claims(table(*losses))
    assert claim.verdict == verdict


def test_each_model_has_a_claim_of_its_own():
    claims = EXPERIMENT.claims(table(GROWS, models=("dmf", "nmf")))
    assert [claim.said[:3] for claim in claims] == ["DMF", "NMF"]


def test_the_checks_and_the_likely_confounder_are_said():
    (claim,) = EXPERIMENT.claims(table(GROWS, GROWS))
    assert "with cbkm 1.0000 ± 0.0000; as a check with cbkm-near -1.0000 ± 0.0000" in claim.measured
    assert "interactions per user: cbkm -1.00, cbkm-near 1.00, bkm 1.00" in claim.measured


def test_a_group_without_a_loss_is_left_out():
    made = table([1.0, None, 2.0, 3.0])
    (found,) = [row for row in correlations(made, "position", "loss") if row["grouping"] == "cbkm"]
    assert found["value"] == 1.0
    assert "| dmf, cbkm | 1.0000 |  | 2.0000 | 3.0000 |" in EXPERIMENT.tables(made)
    assert EXPERIMENT.figures(made)


def test_tables_show_losses_by_position_and_correlations():
    text = EXPERIMENT.tables(table(GROWS))
    assert "| dmf, cbkm | 1.0000 | 2.0000 | 3.0000 | 4.0000 |" in text
    assert "| dmf, bkm | -1.0000 | 1.0000 | -1.0000 |" in text


@pytest.mark.parametrize("model", ["dmf", "nmf"])
def test_what_is_measured_is_the_loss_of_groups_trained_alone(model, tmp_path):
    bench = small_bench(tmp_path)
    settings = ExperimentSettings(models=(model,), groups=(1, 4), seeds=1, epochs=3, holdout=0.2)
    entry = next(e for e in EXPERIMENT.entries(settings, "data") if e.labels["grouping"] == "bkm")
    assert entry.labels == {"model": model, "grouping": "bkm", "groups": 4, "seed": 0}
    chosen = {"strategy": "sisa", "aggregate": "own", "order": "easy", "epoch_budget": "full"}
    assert chosen.items() <= entry.cell.settings.items()
    found = measure(bench, entry.cell)["groups"]

    dataset = arrange_into_groups(bench.interactions, bench.scale, entry.cell.settings, 1)
    chain = learn_chain(dataset, Effort(1))
    expected = group_losses(chain.state, chain.checkpoints, dataset.held_out, 1)
    assert [group["loss"] for group in found] == pytest.approx(expected, abs=1e-6)
    assert [group["users"] for group in found] == [15] * 4
    assert [group["interactions"] for group in found] == [len(group) for group in dataset.groups]
    assert sum(group["held_out"] for group in found) == len(dataset.held_out)
    cohesion = [group["cohesion"] for group in found]
    assert cohesion == sorted(cohesion, reverse=True)


@pytest.mark.full
@pytest.mark.parametrize("seeds", [3, pytest.param(1, marks=pytest.mark.full)])
@pytest.mark.parametrize("models", [("dmf", "nmf"), pytest.param(("dmf",), marks=pytest.mark.full)])
def test_figures_can_be_drawn(seeds, models, tmp_path):
    figures = EXPERIMENT.figures(table(*[GROWS, MOSTLY, FALLS][:seeds], models=models))
    assert list(figures) == ["cohesion", "cohesion-interactions"]
    for stem, figure in figures.items():
        assert len(figure.axes) == 3 * len(models)
        assert all(file.stat().st_size > 5_000 for file in save_figure(figure, tmp_path / stem))
