"""Repeat experiments from end to end: measure the cells that are missing, then write tables, figures and a report."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from erasable.data import Interactions, k_core
from erasable.errors import DataRefused, Refused, WrongUse
from erasable.experiments.cells import CellStore, in_batches
from erasable.experiments.every import EXPERIMENTS
from erasable.experiments.experiment import Claim, Entry, Experiment
from erasable.experiments.figures import figure_class, save_figure
from erasable.experiments.report import Chapter, DataFacts, Finding, Setting, write_report
from erasable.experiments.settings import ExperimentSettings
from erasable.experiments.tables import write_csv
from erasable.experiments.workbench import DataSource, data_digest
from erasable.experiments.workers import Bench, Watcher, run_batches

PAPER_FILTER = 5


@dataclass(frozen=True)
class Reproduced:
    """What came out: the report, how many cells it rests on and were measured now, and the verdicts."""

    report: Path
    cells: int
    measured: int
    findings: tuple[Finding, ...]


@dataclass(frozen=True)
class Workforce:
    """Who measures: worker processes, cores shared among them, and who watches."""

    workers: int
    cores: int
    watch: Watcher


def reproduce(
    experiments: Sequence[Experiment],
    source: DataSource,
    out: Path,
    settings: ExperimentSettings,
    workforce: Workforce,
) -> Reproduced:
    """Repeat experiments on some data; cells lie in `out`/cells, the rest in a folder named after the data.

    All experiments together give `report.md`; fewer give a report named after the first.
    """
    figure_class()  # refuses before any work if figures can't be drawn
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
    """Make the folders of cells and of the report, before any work."""
    folder = out / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return CellStore(out / "cells"), folder
    except OSError as error:
        raise WrongUse(f"--out {out} can't be made or written to ({error.strerror}): name another folder") from None


def _measure(
    grids: Sequence[Sequence[Entry]], timed: bool, store: CellStore, source: DataSource, workforce: Workforce
) -> None:
    """Measure the cells of some grids; timed ones one after the other, each with all cores."""
    workers = 1 if timed else workforce.workers
    bench = Bench(source, store, workers, max(1, workforce.cores // workers))
    batches = in_batches(entry.cell for grid in grids for entry in grid)
    run_batches(batches, bench, workforce.watch)


def _chapter(experiment: Experiment, entries: Sequence[Entry], store: CellStore, folder: Path) -> Chapter:
    table = experiment.table(entries, store.get)
    write_csv(table, folder / f"{experiment.name}.csv")
    figures = [save_figure(figure, folder / stem)[0].name for stem, figure in experiment.figures(table).items()]
    claims: list[Claim] = experiment.claims(table)
    return Chapter(experiment, tuple(claims), experiment.tables(table), tuple(figures), f"{experiment.name}.csv")


def _facts(name: str, interactions: Interactions) -> list[DataFacts]:
    """Return the statistics of the data as they are, and with the filter of the paper's text."""
    try:
        filtered = k_core(interactions, PAPER_FILTER)
    except DataRefused:  # nothing is left
        return [DataFacts.of(name, interactions)]
    return [DataFacts.of(name, interactions), DataFacts.of(f"{name}, {PAPER_FILTER}-core", filtered)]
