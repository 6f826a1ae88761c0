"""Cells measured by worker processes; what is finished stays, so that a run may stop at any time and go on later."""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property

from erasable import __version__
from erasable.errors import DataRefused
from erasable.experiments.cells import Cell, CellStore, config_of
from erasable.experiments.every import MEASUREMENTS
from erasable.experiments.machine import processor
from erasable.experiments.workbench import DataSource, Workbench
from erasable.models import Effort
from erasable.operations.processes import Processes
from erasable.training import numeric_environment


@dataclass(frozen=True)
class Bench:
    """Where cells are measured: the data, the folder of results, how many workers, threads for each."""

    source: DataSource
    store: CellStore
    workers: int
    threads: int


@dataclass(frozen=True)
class Progress:
    """How far a run has come: cells done and in all by kind, those being measured, and a guess of the time left."""

    cells: Mapping[str, tuple[int, int]]
    running: tuple[str, ...]
    seconds_left: float | None


Watcher = Callable[[Progress], None]
Batch = Sequence[Cell]


def run_batches(batches: Sequence[Batch], bench: Bench, watch: Watcher) -> None:
    """Measure the cells that are not there yet; those of a batch share what they need and go to the same worker."""
    run = _Run(batches, bench.store, watch)
    run.say(())
    batch_of = {cell.name: number for number, batch in enumerate(batches) for cell in batch}
    executor = Processes(bench.workers, run.say, lambda cell: batch_of[cell.name])
    missing = list(run.missing.values())
    if not missing:
        return
    with closing(executor.map(_Measuring(bench), missing, Effort(bench.threads))) as measured:
        for cell, _ in measured:
            run.missing.pop(cell.name)


@dataclass(frozen=True)
class _Measuring:
    """Measures cells in a process of its own; what one cell has made is used again for the next."""

    bench: Bench

    def __call__(self, cell: Cell, effort: Effort) -> None:
        measure_into(self.bench.store, cell, self._workbench)

    @cached_property
    def _workbench(self) -> Workbench:
        return Workbench(self.bench.source, self.bench.threads)


def measure_into(store: CellStore, cell: Cell, workbench: Workbench) -> None:
    """Measure one cell and keep the result with its circumstances; other data than the cell is about are refused."""
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
    """Counts what is done and tells who watches."""

    def __init__(self, batches: Sequence[Batch], store: CellStore, watch: Watcher) -> None:
        cells = [cell for batch in batches for cell in batch]
        self.missing = {cell.name: cell for cell in cells if cell not in store}
        self._total = Counter(cell.measurement for cell in cells)
        self._weight = sum(map(_weight, self.missing.values()))
        self._watch, self._began = watch, time.perf_counter()

    def say(self, running: Sequence[Cell]) -> None:
        """Tell who watches, with the cells that are being measured."""
        left = Counter(cell.measurement for cell in self.missing.values())
        done = {kind: (total - left[kind], total) for kind, total in self._total.items()}
        self._watch(Progress(done, tuple(map(str, running)), self._seconds_left()))

    def _seconds_left(self) -> float | None:
        left = sum(map(_weight, self.missing.values()))
        measured = self._weight - left
        return (time.perf_counter() - self._began) / measured * left if measured else None


def _weight(cell: Cell) -> int:
    """Guess how long a cell takes, in epochs over all data: those it trains, and one for the rest."""
    return 1 + (config_of(cell.settings).stage_epochs if "epochs" in cell.settings else 0)
