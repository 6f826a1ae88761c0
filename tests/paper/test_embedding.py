import math

import pytest

from erasable.data import split_holdout
from erasable.grouping.groups import cohesion_between_rows
from erasable.paper._cells import ExperimentSettings
from erasable.paper._embedding import COMPARED, EXPERIMENT, measure, over_random
from erasable.paper._report import save_figure
from erasable.paper._workbench import SPACES
from kit.small_bench import small_bench

ROWS, PAPERS, NEAR = SPACES
ALIKE = (10, 10, 10, 10)


def table(rows, documents, near, seeds=1, clamped=0.0):
    """Write ρ of random, bkm, cbkm and cbkm-near in each space."""
    found = zip(SPACES, (rows, documents, near), strict=True)
    result = {
        "cohesion": {space: {name: [one, one] for name, one in zip(COMPARED, ρ, strict=True)} for space, ρ in found},
        "clamped": {ROWS: clamped, PAPERS: 0.0, NEAR: 0.0},
    }
    return [{"groups": 2, "seed": seed, **row} for seed in range(seeds) for row in EXPERIMENT.values(result)]


@pytest.mark.parametrize(
    ("bkm", "cbkm", "verdict"),
    [(10, 20, "holds"), (10, 11, "holds in part"), (10, 10, "does not hold"), (10, 9, "does not hold")],
)
def test_by_two_rulers_much_higher_is_twice(bkm, cbkm, verdict):
    claim, _ = EXPERIMENT.claims(table((10, bkm, 99, 99), (10, 99, cbkm, 99), ALIKE))
    assert claim.verdict == verdict


def test_pairs_too_alike_are_said():
    claim, _ = EXPERIMENT.claims(table(ALIKE, ALIKE, ALIKE, clamped=0.125))
    assert "counted as further apart: up to 12.50% in rating rows." in claim.measured
    assert "further apart" not in EXPERIMENT.claims(table(ALIKE, ALIKE, ALIKE))[0].measured


@pytest.mark.parametrize(
    ("in_rows", "in_documents", "in_near", "verdict"),
    [
        (11, 11, 11, "holds"),
        (11, 9, 9, "holds in part"),
        (9, 11, 11, "holds in part"),
        (10, 20, 10, "does not hold"),
        (10.9, 10.9, 10.9, "does not hold"),
    ],
)
def test_by_one_ruler_the_own_space_alone_does_not_count(in_rows, in_documents, in_near, verdict):
    _, claim = EXPERIMENT.claims(table(*((10, 10, cbkm, 10) for cbkm in (in_rows, in_documents, in_near))))
    assert claim.verdict == verdict


def test_what_random_groups_gain_by_the_change_of_ruler_is_said():
    claim, _ = EXPERIMENT.claims(table((10, 12, 10, 10), (500, 500, 600, 500), ALIKE))
    assert claim.measured.startswith("50 times. Random groups, measured by the same two rulers, 50 times")


def test_cohesion_is_set_against_that_of_random_groups_in_the_same_space():
    relative = over_random(table((10, 12, 10, 10), (500, 500, 600, 500), (0, 1, 1, 1), seeds=2))
    assert len(relative) == 2 * 3 * 4
    values = {(row["space"], row["grouping"]): row["value"] for row in relative}
    assert values[SPACES[ROWS], "bkm"] == values[SPACES[PAPERS], "cbkm"] == 1.2
    assert math.isnan(values[SPACES[NEAR], "bkm"])


def test_the_table_shows_cohesion_and_how_many_times_that_of_random_groups_it_is():
    text = EXPERIMENT.tables(table((10, 12, 10, 10), (500, 500, 600, 500), ALIKE))
    assert "| bkm | 12 (× 1.2000) | 500 (× 1.0000) | 10 (× 1.0000) |" in text


def test_each_grouping_in_its_own_space_is_as_cohesive_as_when_it_is_learned(tmp_path):
    bench, settings = small_bench(tmp_path), ExperimentSettings(groups=(1, 4), seeds=2)
    entry = EXPERIMENT.entries(settings, "data")[1]
    assert entry.labels == {"groups": 4, "seed": 1}
    found = measure(bench, entry.cell)["cohesion"]
    for grouping in SPACES:
        learned = bench.grouped(
            {"model": "nmf", "grouping": grouping, "groups": 4, "seed": 1, "holdout": settings.holdout}
        )
        expected = [cohesion.value for cohesion in learned.cohesion]
        assert sorted(found[grouping][grouping], reverse=True) == pytest.approx(expected, abs=1e-6)


def test_other_groupings_are_measured_in_the_same_space(tmp_path):
    bench, settings = small_bench(tmp_path), ExperimentSettings(groups=(4,), seeds=1)
    found = measure(bench, EXPERIMENT.entries(settings, "data")[0].cell)["cohesion"]
    training, _ = split_holdout(bench.interactions, settings.holdout, 0)
    for grouping in COMPARED:
        chosen = bench.grouped(
            {"model": "nmf", "grouping": grouping, "groups": 4, "seed": 0, "holdout": settings.holdout}
        ).groups
        assert sum(map(len, chosen)) == len(training)
        expected = [cohesion.value for cohesion in cohesion_between_rows(chosen, bench.scale, 0, 1)]
        assert sorted(found[ROWS][grouping]) == pytest.approx(sorted(expected), abs=1e-6)


@pytest.mark.full
@pytest.mark.parametrize("seeds", [3, pytest.param(1, marks=pytest.mark.full)])
def test_the_figure_can_be_drawn(seeds, tmp_path):
    made = table((10, 12, 10, 10), (500, 500, 600, 500), ALIKE, seeds=seeds)
    (figure,) = EXPERIMENT.figures(made).values()
    assert len(figure.axes) == 1 + 3
    assert all(file.stat().st_size > 5_000 for file in save_figure(figure, tmp_path / "embedding"))
