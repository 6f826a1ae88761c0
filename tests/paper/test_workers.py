import multiprocessing
import os
from dataclasses import replace

import pytest

from erasable.data import ColumnNames
from erasable.errors import Refused
from erasable.paper._cells import Cell, CellStore, in_batches
from erasable.paper._reproduce import Bench, measure_into, run_batches
from erasable.paper._workbench import DataSource, Workbench, data_digest
from kit.ray_here import ClusterHere, RayHere

SETTINGS = {"model": "dmf", "grouping": "random", "groups": 2, "epochs": 2, "holdout": 0.2, "seed": 0}


def cell(request="learn", measurement="utility", **settings):
    details = {"request": request, "protocols": ["whole-catalogue"]}
    return Cell(measurement, _Data.digest, {**SETTINGS, **settings}, details)


class _Data:
    digest = ""


@pytest.fixture
def bench(tmp_path, ratings_file):
    source = DataSource(ratings_file, ColumnNames())
    _Data.digest = data_digest(*source.read())
    return Bench(source, CellStore(tmp_path), workers=2, threads=1)


@pytest.mark.full
def test_cells_are_measured_by_processes_of_their_own_as_here(bench, tmp_path):
    cells = [cell(), cell("rand@5"), cell(seed=1)]
    heard = []
    run_batches(in_batches(cells), bench, heard.append)
    assert heard[0].cells == {"utility": (0, 3)}
    assert heard[-1].cells == {"utility": (3, 3)}
    assert heard[-1].running == ()
    assert any(progress.running for progress in heard)
    here = CellStore(tmp_path / "here")
    for one in cells:
        measure_into(here, one, Workbench(bench.source, 1))
        assert _timeless(bench.store.get(one)) == _timeless(here.get(one))


@pytest.mark.full
def test_cells_that_are_written_down_are_measured_as_here(bench, tmp_path):
    cells, heard = [cell(), cell("rand@5"), cell(seed=1)], []
    run_batches(in_batches(cells), replace(bench, cluster=ClusterHere(RayHere())), heard.append)
    assert heard[-1].cells == {"utility": (3, 3)}
    here = CellStore(tmp_path / "here")
    for one in cells:
        measure_into(here, one, Workbench(bench.source, 1))
        assert _timeless(bench.store.get(one)) == _timeless(here.get(one))
    assert [path for path in tmp_path.iterdir() if path.name.startswith("work-")] == []


def test_what_a_killed_run_left_is_removed_by_the_next(bench, tmp_path):
    (tmp_path / "work-dead").mkdir()
    (tmp_path / "work-dead" / "order.json").write_text("{}")
    with bench.store.scratch() as scratch:
        assert [path for path in tmp_path.iterdir() if path.is_dir()] == [scratch.folder]


def _timeless(result):
    forgetting = dict(result["forgetting"] or {})
    forgetting.pop("seconds", None)
    return {**result, "forgetting": forgetting}


def test_what_is_there_is_not_measured_again(bench):
    for one in (cell(), cell("one")):
        bench.store.put(one, {"value": 1.0}, {})
    heard = []
    run_batches(in_batches([cell(), cell("one")]), bench, heard.append)
    assert [progress.cells for progress in heard] == [{"utility": (2, 2)}]
    assert bench.store.get(cell()) == {"value": 1.0}


@pytest.mark.full
def test_a_cell_that_is_refused_ends_the_run_in_words(bench):
    with pytest.raises(Refused, match=r"utility dmf .*lower min_interactions"):
        run_batches([[cell(min_interactions=1000)]], bench, lambda progress: None)


@pytest.mark.full
def test_any_failure_is_said_and_what_is_finished_stays(bench):
    with pytest.raises(Refused, match=r"KeyError: 'nothing of the kind'; finished results are kept"):
        run_batches([[cell(), cell(measurement="nothing of the kind")]], bench, lambda progress: None)
    assert cell() in bench.store


@pytest.mark.full
def test_a_worker_that_ends_by_itself_is_noticed(bench):
    def end_a_worker(progress):
        if progress.running:
            for worker in multiprocessing.active_children():
                worker.kill()

    with pytest.raises(Refused, match=r"a worker process died \(exit code -9\).*finished results are kept"):
        run_batches([[cell(epochs=2000)]], bench, end_a_worker)


@pytest.mark.full
def test_other_data_than_the_cell_is_about_are_refused(bench):
    other = Cell("utility", "other data", SETTINGS, {"request": "learn", "protocols": ["whole-catalogue"]})
    with pytest.raises(Refused, match="the data have changed"):
        run_batches([[other]], bench, lambda progress: None)


@pytest.mark.full
def test_workers_are_started_so_that_they_import_nothing_from_where_they_stand(bench, monkeypatch):
    seen = []
    start = multiprocessing.get_context("spawn").Process.start
    monkeypatch.setattr(
        multiprocessing.context.SpawnProcess,
        "start",
        lambda process: seen.append(os.environ.get("PYTHONSAFEPATH")) or start(process),
    )
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    run_batches([[cell()]], bench, lambda progress: None)
    assert seen == ["1"]
    assert "PYTHONSAFEPATH" not in os.environ
