"""Cells measured by worker processes; what is finished stays, so that a run may stop at any time and go on later."""

import multiprocessing
import queue
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from typing import Any

from erasable import __version__
from erasable.errors import DataRefused, ErasableError, Refused
from erasable.experiments.cells import Cell, CellStore
from erasable.experiments.every import MEASUREMENTS
from erasable.experiments.machine import processor
from erasable.experiments.workbench import DataSource, Workbench
from erasable.interrupts import kept_from_children
from erasable.operations.processes import safe_path
from erasable.training import Config, numeric_environment

_SPAWN = multiprocessing.get_context("spawn")
_LOOK_EVERY = 0.5
_END_WITHIN = 5.0


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


@safe_path()
def run_batches(batches: Sequence[Batch], bench: Bench, watch: Watcher) -> None:
    """Measure the cells that are not there yet; those of a batch share what they need and go to the same worker."""
    run = _Run(batches, bench.store, watch)
    run.say()
    missing = [[cell for cell in batch if cell.name in run.missing] for batch in batches]
    waiting = [batch for batch in missing if batch]
    if not waiting:
        return
    orders, news = _SPAWN.Queue(), _SPAWN.Queue()
    for batch in waiting:
        orders.put(batch)
    count = min(bench.workers, len(waiting))
    for _ in range(count):
        orders.put(None)
    workers: list[BaseProcess] = []
    try:
        for _ in range(count):
            worker = _SPAWN.Process(target=_work, args=(orders, news, bench), daemon=True)
            with kept_from_children():
                worker.start()
            workers.append(worker)
        while run.missing:
            run.hear(_next_news(news, workers))
    finally:
        orders.cancel_join_thread()  # what no worker has taken must not keep this process from ending
        for started in workers:
            started.terminate()
        for started in workers:
            started.join(_END_WITHIN)


def _work(orders: Any, news: Any, bench: Bench) -> None:  # noqa: ANN401 - queues of a context
    """Measure batches until there are no more."""
    workbench = Workbench(bench.source, bench.threads)
    while (batch := _next_order(orders)) is not None:
        for cell in batch:
            news.put(("began", cell.name))
            try:
                measure_into(bench.store, cell, workbench)
            except Exception as error:
                news.put(("failed", _in_words(cell, error)))
                return
            news.put(("done", cell.name))


def _next_order(orders: Any) -> Batch | None:  # noqa: ANN401 - a queue of a context
    """Return the next batch; none if there is none, or nobody left who would hear of it."""
    parent = multiprocessing.parent_process()
    while parent is None or parent.is_alive():
        try:
            return orders.get(timeout=_LOOK_EVERY)
        except queue.Empty:
            continue
    return None


def _in_words(cell: Cell, error: Exception) -> str:
    said = str(error) if isinstance(error, ErasableError) else f"{type(error).__name__}: {error}"
    return f"{cell}: {said}; what is finished stays"


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


def _next_news(news: Any, workers: Iterable[BaseProcess]) -> tuple[str, str] | None:  # noqa: ANN401 - a queue
    try:
        return news.get(timeout=_LOOK_EVERY)
    except queue.Empty:
        ended = [worker.exitcode for worker in workers if worker.exitcode]
        if ended:
            raise Refused(
                f"a worker ended by itself (exit code {ended[0]}), perhaps for want of memory: run the same command "
                "again, with fewer --workers; what is finished stays"
            ) from None
        return None


class _Run:
    """Counts what is done and tells who watches."""

    def __init__(self, batches: Sequence[Batch], store: CellStore, watch: Watcher) -> None:
        cells = [cell for batch in batches for cell in batch]
        self.missing = {cell.name: cell for cell in cells if cell not in store}
        self._total = Counter(cell.measurement for cell in cells)
        self._weight = sum(map(_weight, self.missing.values()))
        self._running: dict[str, Cell] = {}
        self._watch, self._began = watch, time.perf_counter()

    def hear(self, news: tuple[str, str] | None) -> None:
        """Take in what a worker said, if anything."""
        match news:
            case ("began", name):
                self._running[name] = self.missing[name]
            case ("done", name):
                self._running.pop(name)
                self.missing.pop(name)
            case ("failed", text):
                raise Refused(text)
        self.say()

    def say(self) -> None:
        """Tell who watches."""
        left = Counter(cell.measurement for cell in self.missing.values())
        done = {kind: (total - left[kind], total) for kind, total in self._total.items()}
        self._watch(Progress(done, tuple(map(str, self._running.values())), self._seconds_left()))

    def _seconds_left(self) -> float | None:
        left = sum(map(_weight, self.missing.values()))
        measured = self._weight - left
        return (time.perf_counter() - self._began) / measured * left if measured else None


def _weight(cell: Cell) -> int:
    """Guess how long a cell takes, in epochs over all data: those it trains, and one for the rest."""
    return 1 + (Config.of(cell.settings).stage_epochs if "epochs" in cell.settings else 0)
