"""Reproduce experiments: measure missing cells in worker processes, then write tables and a report.

Finished cells are kept: a run may stop at any time; run again to resume.
"""

import json
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from erasable import __version__
from erasable.chain.tasks import numeric_environment
from erasable.data.catalogue import k_core
from erasable.data.columns import ColumnNames
from erasable.data.interactions import Interactions
from erasable.data.sources import absolute_source
from erasable.errors import DataRefused, Refused, WrongUse
from erasable.fingerprint import canonical_json
from erasable.models.base import Effort
from erasable.operations.remote import CarryOut, Facts
from erasable.operations.work import Processes, RayCluster
from erasable.paper import _balance as balance
from erasable.paper import _cohesion as cohesion
from erasable.paper import _embedding as embedding
from erasable.paper import _order as order
from erasable.paper import _poison as poison
from erasable.paper import _theory as theory
from erasable.paper import _time as unlearning_time
from erasable.paper import _utility as utility
from erasable.paper._cells import Cell, CellStore, ExperimentSettings, config_of, in_batches, processor
from erasable.paper._report import Chapter, DataFacts, ExperimentFinding, Setting, save_figure, write_report
from erasable.paper._workbench import (
    DataSource,
    Entry,
    Experiment,
    Measure,
    PaperClaim,
    Workbench,
    data_digest,
    write_csv,
)
from erasable.plots import figure_class
from erasable.workspace.scratch import Scratch

EXPERIMENTS: Mapping[str, Experiment] = {
    module.EXPERIMENT.name: module.EXPERIMENT
    for module in (utility, unlearning_time, order, cohesion, balance, embedding, theory, poison)
}

MEASUREMENTS: Mapping[str, Measure] = {
    kind: measure for experiment in EXPERIMENTS.values() for kind, measure in experiment.measurements.items()
}
Batch = Sequence[Cell]
PAPER_FILTER = 5


@dataclass(frozen=True)
class Bench:
    """Where cells are measured: the data, the folder of results, the workers and the threads of each."""

    source: DataSource
    store: CellStore
    workers: int
    threads: int
    cluster: RayCluster | None = None
    """Where Ray runs, if cells are measured on it instead."""


@dataclass(frozen=True)
class RunProgress:
    """The progress of a run: cells done and in total by kind, those being measured, and the estimated time left."""

    cells: Mapping[str, tuple[int, int]]
    running: tuple[str, ...]
    seconds_left: float | None


Watcher = Callable[[RunProgress], None]


def run_batches(batches: Sequence[Batch], bench: Bench, watch: Watcher) -> None:
    """Measure the missing cells; those of a batch share their preparation and go to the same worker."""
    run = _Run(batches, bench.store, watch)
    run.say(())
    batch_of = {cell.name: number for number, batch in enumerate(batches) for cell in batch}
    executor = Processes(bench.workers, run.say, lambda cell: batch_of[cell.name])
    missing = list(run.missing.values())
    if not missing:
        return
    if bench.cluster is not None:
        _run_remotely([[cell for cell in batch if cell.name in run.missing] for batch in batches], bench, run)
        return
    with closing(executor.map(_Measuring(bench), missing, Effort(bench.threads))) as measured:
        for cell, _ in measured:
            run.missing.pop(cell.name)


def _run_remotely(batches: Sequence[Batch], bench: Bench, run: "_Run") -> None:
    """Measure batches on a cluster, each as one task; cells are kept as soon as each is measured."""
    cluster = bench.cluster or RayCluster()
    left = [batch for batch in batches if batch]
    with bench.store.scratch() as scratch, cluster.executor(scratch) as executor:
        effort = Effort(bench.threads, lambda cells: run.look(bench.store))
        for batch, _ in executor.run(RemoteCells(bench), left, effort):
            for cell in batch:
                run.missing.pop(cell.name, None)
            run.say(())


class RemoteCells:
    """Measuring a batch of cells remotely."""

    @property
    def carry_out(self) -> CarryOut:
        """Measures cells."""
        return measure_batch

    def __init__(self, bench: Bench) -> None:
        source = bench.source
        self._source = {
            "file": absolute_source(source.file),
            "columns": source.columns.model_dump(),
            "rating_scale": source.rating_scale,
            "given_name": source.given_name,
        }

    def order(self, task: Batch, scratch: Scratch) -> Facts:
        """Write down the data and the cells."""
        return {"source": self._source, "cells": [_written(cell) for cell in task]}

    def outcome(self, task: Batch, facts: Facts, scratch: Scratch) -> None:
        """Return nothing: cells are in their own files."""


def _written(cell: Cell) -> dict[str, Any]:
    return {name: getattr(cell, name) for name in ("measurement", "data", "settings", "details")}


def measure_batch(scratch: Scratch, facts: Facts, effort: Effort) -> Facts:
    """Measure a batch of cells, in a worker."""
    workbench = _workbench_of(canonical_json(facts["source"]), effort.threads)
    store = CellStore(scratch.folder.parent)
    for cell in (Cell(**one) for one in facts["cells"]):
        measure_into(store, cell, workbench)
        effort.advance(1)
    return {}


@lru_cache(maxsize=1)
def _workbench_of(source: bytes, threads: int) -> Workbench:
    facts = json.loads(source)
    scale = None if facts["rating_scale"] is None else tuple(facts["rating_scale"])
    columns = ColumnNames(**facts["columns"])
    return Workbench(DataSource(Path(facts["file"]), columns, scale, facts["given_name"]), threads)


@dataclass(frozen=True)
class _Measuring:
    """Measures cells in a worker process; the workbench is shared by its cells."""

    bench: Bench

    def __call__(self, cell: Cell, effort: Effort) -> None:
        measure_into(self.bench.store, cell, self._workbench)

    @cached_property
    def _workbench(self) -> Workbench:
        return Workbench(self.bench.source, self.bench.threads)


def measure_into(store: CellStore, cell: Cell, workbench: Workbench) -> None:
    """Measure one cell and store the result with its circumstances; refuse if the data has changed."""
    if cell.data != workbench.data_digest:
        raise DataRefused("the data have changed since the run began: run the same command again")
    began, used = time.perf_counter(), time.process_time()
    result = MEASUREMENTS[cell.measurement](workbench, cell)
    circumstances = {
        "seconds": round(time.perf_counter() - began, 2),
        "cpu_seconds": round(time.process_time() - used, 2),
        "threads": workbench.threads,
        "processor": processor(),
        **{name: numeric_environment()[name] for name in ("numpy", "numba", "kernels")},
        "erasable": __version__,
    }
    store.put(cell, result, circumstances)


class _Run:
    """Counts finished cells and reports progress."""

    def __init__(self, batches: Sequence[Batch], store: CellStore, watch: Watcher) -> None:
        cells = [cell for batch in batches for cell in batch]
        self.missing = {cell.name: cell for cell in cells if cell not in store}
        self._total = Counter(cell.measurement for cell in cells)
        self._weight = sum(map(_weight, self.missing.values()))
        self._watch, self._began = watch, time.perf_counter()

    def look(self, store: CellStore) -> None:
        """Find the cells that were measured remotely, and report progress."""
        for cell in [cell for cell in self.missing.values() if cell in store]:
            self.missing.pop(cell.name)
        self.say(())

    def say(self, running: Sequence[Cell]) -> None:
        """Report progress, with the cells that are being measured."""
        left = Counter(cell.measurement for cell in self.missing.values())
        done = {kind: (total - left[kind], total) for kind, total in self._total.items()}
        self._watch(RunProgress(done, tuple(map(str, running)), self._seconds_left()))

    def _seconds_left(self) -> float | None:
        left = sum(map(_weight, self.missing.values()))
        measured = self._weight - left
        return (time.perf_counter() - self._began) / measured * left if measured else None


def _weight(cell: Cell) -> int:
    """Estimate how long a cell takes, in epochs over all data: those it trains, and one for the rest."""
    return 1 + (config_of(cell.settings).stage_epochs if "epochs" in cell.settings else 0)


@dataclass(frozen=True)
class Reproduced:
    """The outcome: the report, how many cells it uses, how many were measured now, and the findings."""

    report: Path
    cells: int
    measured: int
    findings: tuple[ExperimentFinding, ...]


@dataclass(frozen=True)
class Workforce:
    """The worker processes, the cores that they share, and the callback for progress."""

    workers: int
    cores: int
    watch: Watcher
    cluster: RayCluster | None = None
    """Where Ray runs, if cells are measured on it; timed ones are measured here all the same."""


def reproduce(
    experiments: Sequence[Experiment],
    source: DataSource,
    out: Path,
    settings: ExperimentSettings,
    workforce: Workforce,
) -> Reproduced:
    """Reproduce experiments on some data; cells are in `out`/cells, the rest in a folder named after the data.

    All experiments together give `report.md`; fewer give a report named after the first.
    """
    figure_class()  # refuses before any work if matplotlib is not installed
    interactions, scale = source.read()
    _check_groups(settings, interactions)
    store, folder = _folders(out, source.name)
    grids = {one.name: one.entries(settings, data_digest(interactions, scale)) for one in experiments}
    cells = {entry.cell.name: entry.cell for grid in grids.values() for entry in grid}
    kept = sum(cell in store for cell in cells.values())
    for timed in (False, True):
        _measure([grids[one.name] for one in experiments if one.timed is timed], timed, store, source, workforce)
    chapters = [_chapter(one, grids[one.name], store, folder) for one in experiments]
    machines = [store.circumstances(cell) for cell in cells.values()]
    report = folder / ("report.md" if len(experiments) == len(EXPERIMENTS) else f"{experiments[0].name}.md")
    write_report(report, chapters, Setting(_facts(source.name, interactions), settings, machines))
    findings = tuple(finding for chapter in chapters for finding in chapter.findings)
    return Reproduced(report, len(cells), len(cells) - kept, findings)


def _check_groups(settings: ExperimentSettings, interactions: Interactions) -> None:
    most, users = max(settings.groups), len(interactions.users)
    if most > users:
        raise Refused(f"there are only {users} users for {most} groups: set groups to {users} or fewer")


def _folders(out: Path, name: str) -> tuple[CellStore, Path]:
    """Make the folders for cells and report, before any work."""
    folder = out / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return CellStore(out / "cells"), folder
    except OSError as error:
        raise WrongUse(f"--out {out} can't be made or written to ({error.strerror}): name another folder") from None


def _measure(
    grids: Sequence[Sequence[Entry]], timed: bool, store: CellStore, source: DataSource, workforce: Workforce
) -> None:
    """Measure the cells of some grids; timed ones one at a time, each with all cores."""
    workers = 1 if timed else workforce.workers
    cluster = None if timed else workforce.cluster
    bench = Bench(source, store, workers, max(1, workforce.cores // workers), cluster)
    batches = in_batches(entry.cell for grid in grids for entry in grid)
    run_batches(batches, bench, workforce.watch)


def _chapter(experiment: Experiment, entries: Sequence[Entry], store: CellStore, folder: Path) -> Chapter:
    table = experiment.table(entries, store.get)
    write_csv(table, folder / f"{experiment.name}.csv")
    figures = [save_figure(figure, folder / stem)[0].name for stem, figure in experiment.figures(table).items()]
    claims: list[PaperClaim] = experiment.claims(table)
    return Chapter(experiment, tuple(claims), experiment.tables(table), tuple(figures), f"{experiment.name}.csv")


def _facts(name: str, interactions: Interactions) -> list[DataFacts]:
    """Return the statistics of the data as they are, and with the filter of the paper's text."""
    try:
        filtered = k_core(interactions, PAPER_FILTER)
    except DataRefused:  # the filter leaves nothing
        return [DataFacts.of(name, interactions)]
    return [DataFacts.of(name, interactions), DataFacts.of(f"{name}, {PAPER_FILTER}-core", filtered)]
