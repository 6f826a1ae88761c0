import csv
from typing import get_args

import pytest

from erasable.data import ColumnNames
from erasable.paper import EXPERIMENTS, ExperimentSettings, Workforce, reproduce
from erasable.paper._workbench import DataSource, Verdict

SETTINGS = ExperimentSettings(
    models=("dmf",),
    groups=(1, 2),
    methods=("Retrain", "C-SISA", "L-Rand"),
    requests=("learn", "rand@5"),
    seeds=1,
    epochs=2,
)


@pytest.fixture(scope="module")
def run(ratings_file, tmp_path_factory):
    out = tmp_path_factory.mktemp("reports")

    def again(*names):
        heard = []
        source = DataSource(ratings_file, ColumnNames(), given_name="shop")
        experiments = [EXPERIMENTS[name] for name in names]
        return out, reproduce(experiments, source, out, SETTINGS, Workforce(1, 1, heard.append)), heard

    again("utility")
    return again


@pytest.mark.full
def test_cells_tables_figures_and_a_report(run):
    out, done, _ = run("utility")
    assert done.report == out / "shop" / "utility.md"
    assert {"utility.csv", "utility.md"} <= {file.name for file in (out / "shop").iterdir()}
    pictures = [file for file in (out / "shop").iterdir() if file.suffix in (".png", ".svg")]
    assert {file.suffix for file in pictures} == {".png", ".svg"}
    assert {finding.experiment for finding in done.findings} == {"utility"}
    for finding in done.findings:
        assert finding.claim.verdict in get_args(Verdict)
        assert finding.claim.measured in done.report.read_text()


@pytest.mark.full
def test_one_group_is_measured_once_for_all_methods(run):
    out, done, _ = run("utility")
    assert done.cells == 3 * 2  # Retrain, and two methods with two groups, each for two requests
    assert len(list((out / "cells").iterdir())) >= done.cells
    with (out / "shop" / "utility.csv").open() as stream:
        rows = [row for row in csv.DictReader(stream) if row["metric"] == "ndcg@10" and row["request"] == "learn"]
    alone = {row["value"] for row in rows if row["groups"] == "1" and row["protocol"] == "whole-catalogue"}
    assert len(alone) == 1


@pytest.mark.full
def test_a_second_run_measures_nothing_and_writes_the_same(run):
    out, _, _ = run("utility")
    before = {file.name: file.read_bytes() for file in (out / "shop").iterdir()}
    _, _, heard = run("utility")
    done, total = heard[0].cells["utility"]
    assert done == total
    assert {file.name: file.read_bytes() for file in (out / "shop").iterdir()} == before


@pytest.mark.full
@pytest.mark.full
def test_experiments_share_cells(run):
    _, done, heard = run("order")
    done_before, total = heard[0].cells["utility"]
    assert done_before > 0  # its random groups are those of utility
    assert total == done.cells
