"""The frontier between what forgetting one random user costs and how good recommendations are.

    scripts/bench frontier --data DIR [--of book-crossing] [--seeds 0 1 2] [--methods laser als-30 ...] [--again als]

DIR holds ml-1m/ratings.csv, and book-crossing/ratings.csv for the frontier of sparse data: its 5-core is taken. Each
finished (method, seed) is one file under results/frontier/ or results/frontier-book-crossing/, so a run that was
stopped goes on from there; a file made from other data or settings is made again, and after a change of code those that
--again names. Tables and picture show everything that is there, chosen or not. A name stands for all that begin with
it: als for als-all, als-50 and so on. Rivals that can only be retrained are shown as `scripts/bench rivals` found them,
on the same split; "of retraining" is over the best of them.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from erasable.chain import Config, State
from erasable.data import ColumnNames, RatingScale, SyntheticSettings, synthesise
from erasable.evaluation import measure
from erasable.models import Effort
from erasable.paper import (
    Chain,
    DataSource,
    Latest,
    Workbench,
    arrange_into_groups,
    drawn_plans,
    learn_chain,
    likely_plans,
)
from frontier_figure import draw, picture, results_name
from reporting import RESULTS, documented_parser, markdown_table, print_table, save, verdict, warn_if_busy

HOLDOUT = 0.1
AT_ONCE, DRAWS = 0.05, 5
GROUPS = (2, 4, 8, 16)
FIGURES = ("ndcg@10", "hr@10", "cost_one", "cost_five_percent", "seconds_one", "seconds_five_percent")
EFFORTS = ("learning_seconds", "learning_cpu_seconds")
NOTES = {
    "ndcg@10": "whole catalogue, holdout 0.1; mean over seeds",
    "cost_one": "expected samples visited to forget one random user, over those of retraining that model",
    "cost_five_percent": "the same for 5 % of all users at once, mean of 5 draws",
    "seconds_one": "expected seconds of training, at the rates of learning, by the processor's time on all threads; "
    "reading, writing and checking come on top",
    "learning_seconds": "sum over all steps of the chain; grouping comes on top",
    "rivals": "from results/rivals.json: settings chosen on validation rows; they can only be retrained",
}


@dataclass(frozen=True)
class Method:
    """A named line of settings, and which curve it is a point of."""

    name: str
    family: str
    label: str
    settings: Mapping[str, Any]

    def is_named(self, names: Iterable[str]) -> bool:
        """Whether one of these names stands for it."""
        return any(self.name == name or self.name.startswith(f"{name}-") for name in names)


def _laser(budget: str, groups: int) -> Method:
    settings = {"model": "nmf", "strategy": "laser", "grouping": "cbkm", "order": "easy"}
    settings |= {"groups": groups, "epoch_budget": budget}
    return Method(f"laser-{budget}-{groups}", f"LASER, {budget} epochs", f"S = {groups}", settings)


def _sisa(aggregate: str) -> Method:
    settings = {"model": "nmf", "strategy": "sisa", "grouping": "random", "groups": 8, "aggregate": aggregate}
    return Method(f"sisa-{aggregate}", "C-SISA, S = 8", aggregate, settings)


def _solved(groups: int) -> Method:
    settings = {"model": "nmf", "strategy": "laser", "grouping": "random", "groups": groups, "rows": "solved"}
    return Method(f"solved-{groups}", "Solved rows", f"S = {groups}", settings)


def _anchored(family: str, share: float, settings: Mapping[str, Any]) -> Method:
    part = "all" if share == 1 else f"{share:.0%}".removesuffix("%")
    label = "all users" if share == 1 else f"{part} % of users"
    return Method(f"{family.lower().removeprefix('dense ')}-{part}", family, label, {**settings, "anchors": share})


def _nearest(number: int) -> Method:
    settings = {"model": "ease", "neighbours": number}
    return Method(f"nearest-{number}", "EASE, nearest items", f"K = {number}", settings)


DENSE = {"model": "ease", "neighbours": "all", "regularisation": 500}
METHODS = (
    Method("retrain", "Retrain NMF", "", {"model": "nmf", "strategy": "retrain"}),
    *(_laser(budget, groups) for budget in ("shared", "full") for groups in GROUPS),
    *map(_sisa, ("mean", "own")),
    *map(_solved, GROUPS),
    *(_anchored("Anchored", share, {"model": "nmf", "groups": 1}) for share in (0.1, 0.2, 0.3, 0.4, 0.5)),
    *(_anchored("ALS", share, {"model": "als"}) for share in (0.1, 0.3, 0.5, 1.0)),
    *(_anchored("Dense EASE", share, DENSE) for share in (0.3, 1.0)),
    *map(_nearest, (50, 100, 200)),
)


SETS: Mapping[str, Mapping[str, Any]] = {"ml-1m": {}, "book-crossing": {"min_interactions": 5}}
"""What can be looked at, and the settings that go with it."""
RIVALS = {
    "item-kNN": "Retrain item-kNN",
    "implicit-best": "Retrain implicit's ALS",
    "ease-all": "Retrain dense EASE",
}


@dataclass(frozen=True)
class Bar:
    """What a method has to reach: a figure of its own, or its share of another method's."""

    method: str
    figure: str
    bound: float
    share_of: str | None = None
    at_most: bool = False

    def row(self, lines: Mapping[str, Mapping[str, Any]]) -> list[str] | None:
        """Return what was found against it; nothing if not all of it was measured."""
        if {self.method, self.share_of or self.method} - lines.keys():
            return None
        value = lines[self.method]["mean"][self.figure]
        value /= lines[self.share_of]["mean"][self.figure] if self.share_of else 1
        what = f"{self.figure}, share of {self.share_of}'s" if self.share_of else self.figure
        reached = verdict(-value, -self.bound) if self.at_most else verdict(value, self.bound)
        return [self.method, what, f"{value:.4f}", f"{'≤' if self.at_most else '≥'} {self.bound:g}", reached]


BARS = (
    Bar("solved-4", "ndcg@10", 0.90, share_of="retrain"),
    Bar("solved-8", "ndcg@10", 0.80, share_of="retrain"),
    Bar("anchored-30", "ndcg@10", 0.92, share_of="retrain"),
    Bar("anchored-30", "cost_one", 0.15, at_most=True),
    Bar("anchored-30", "cost_five_percent", 0.50, at_most=True),
    Bar("ease-all", "ndcg@10", 0.32),
    Bar("nearest-200", "ndcg@10", 0.325),
    Bar("als-all", "ndcg@10", 0.29),
    Bar("als-30", "ndcg@10", 0.97, share_of="als-all"),
)


def main() -> None:
    options = _options()
    warn_if_busy()
    bench = Bench(options)
    chosen = [method for method in METHODS if not options.methods or method.is_named(options.methods)]
    for seed in options.seeds:  # one seed of everything first: what is there after a while is already a picture
        for method in sorted(chosen, key=_groups_needed):
            bench.cell(method, seed)
    lines = [line for method in METHODS if (line := bench.line(method))] + _retrained_rivals(options)
    best = max(map(_quality_if_retrained, lines))
    header, rows = _table(lines, best)
    by_name = {line["name"]: line for line in lines} if options.of == "ml-1m" else {}
    verdicts = [row for bar in BARS if (row := bar.row(by_name))]
    print_table(header, rows)
    print()
    print_table(("method", "figure", "mean", "bar", ""), verdicts)
    (RESULTS / f"{options.name}.md").write_text(markdown_table(header, rows))
    result = {"data": bench.data, "seeds": options.seeds, "threads": options.threads, "notes": NOTES}
    result |= {"best_retrained": best, "lines": lines, "bars": verdicts}
    print(f"\nwritten to {save(options.name, result)} and {draw(result, picture(options.name))}")
    sys.exit(any(row[-1] == "MISSED" for row in verdicts))


class Bench:
    """Learns and judges methods, or finds what was found earlier."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        source = DataSource(options.data / options.of / "ratings.csv", ColumnNames())
        self.data = source.name
        self._workbench = Workbench(source, options.threads)
        self._learned: Latest[tuple[Chain, float]] = Latest()

    @cached_property
    def _again(self) -> set[str]:
        return {method.name for method in METHODS if method.is_named(self._options.again)}

    def cell(self, method: Method, seed: int) -> dict[str, Any]:
        """Return what is known of one method and seed, made anew if it is not there or asked for."""
        kept = self._kept(method, seed)
        if kept and method.name not in self._again:
            return kept
        began = time.perf_counter()
        settings = self._settings(method, seed)
        result = {"data": self._workbench.data_digest, "settings": settings, **self._measured(settings)}
        save(f"{self._options.name}/{method.name}-{seed}", result)
        shown = f"NDCG@10 {result['ndcg@10']:.4f}, one user {result['cost_one']:.4f} of retraining"
        print(f"{method.name}-{seed}: {shown} ({time.perf_counter() - began:.0f} s)", file=sys.stderr, flush=True)
        return result

    def line(self, method: Method) -> dict[str, Any] | None:
        """Join the seeds of a method that are there."""
        kept = {seed: self._kept(method, seed) for seed in self._options.seeds}
        cells = {seed: cell for seed, cell in kept.items() if cell}
        quiet = [_as_if_quiet(cell, self._options.threads) for cell in cells.values()]
        by_seed = {figure: [cell[figure] for cell in quiet] for figure in (*FIGURES, *EFFORTS)}
        facts = {"name": method.name, "family": method.family, "label": method.label, "settings": method.settings}
        means = {figure: statistics.mean(values) for figure, values in by_seed.items()} if cells else {}
        return {**facts, "seeds": list(cells), "mean": means, "by_seed": by_seed} if cells else None

    def _kept(self, method: Method, seed: int) -> dict[str, Any] | None:
        """Return a cell's result if these data and settings made it; a setting that came later is as it was before."""
        path = RESULTS / self._options.name / f"{method.name}-{seed}.json"
        kept = json.loads(path.read_text()) if path.exists() else None
        if not kept or kept["data"] != self._workbench.data_digest:
            return None
        settings = self._settings(method, seed)
        return kept if all(kept["settings"].get(name, value) == value for name, value in settings.items()) else None

    def _settings(self, method: Method, seed: int) -> dict[str, Any]:
        given = dict(setting.split("=") for setting in self._options.set)
        of_set = SETS[self._options.of]
        return Config.of({**method.settings, **of_set, "holdout": HOLDOUT, "seed": seed, **given}).flat()

    def _measured(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        chain, cpu_seconds = self._learned.get({**settings, "aggregate": None}, lambda: self._learn(settings))
        state = replace(chain.state, dataset=replace(chain.state.dataset, config=Config.of(settings)))
        utility = measure(state, chain.checkpoints, state.dataset.held_out, self._options.threads)
        return {
            **{name: utility.values[name] for name in ("ndcg@10", "hr@10")},
            "users": utility.users,
            **_costs(state),
            "learning_seconds": sum(link.seconds for link in state.chain),
            "learning_cpu_seconds": cpu_seconds,
        }

    def _learn(self, settings: Mapping[str, Any]) -> tuple[Chain, float]:
        dataset = self._workbench.grouped(settings)
        _compile(dataset.config.model, dataset.config.rows, self._workbench.effort)
        began = time.process_time()
        return learn_chain(dataset, self._workbench.effort), time.process_time() - began


def _as_if_quiet(cell: Mapping[str, Any], threads: int) -> dict[str, Any]:
    """Return a cell with seconds as if its threads had had a core each: those of the processor, not of the clock."""
    share = cell["learning_cpu_seconds"] / threads / cell["learning_seconds"]
    times = ("seconds_one", "seconds_five_percent", "learning_seconds")
    return {**cell, **{name: cell[name] * share for name in times}}


def _costs(state: State) -> dict[str, float]:
    one, many = likely_plans(state), drawn_plans(state, AT_ONCE, DRAWS)
    return {
        "cost_one": sum(likely.share * likely.plan.cost_ratio for likely in one),
        "cost_five_percent": statistics.mean(plan.cost_ratio for plan in many),
        "seconds_one": sum(likely.share * likely.plan.seconds_estimated for likely in one),
        "seconds_five_percent": statistics.mean(plan.seconds_estimated for plan in many),
    }


@cache
def _compile(model: str, rows: str, effort: Effort) -> None:
    """Learn something small, so that no figure includes the wait for compiled code."""
    small = synthesise(SyntheticSettings(users=50, items=40, groups=2, per_user=5)).interactions
    settings = (
        {"model": model} if model in ("als", "ease") else {"model": model, "rows": rows, "groups": 2, "epochs": 2}
    )
    learn_chain(arrange_into_groups(small, RatingScale(1, 1), settings, threads=1), effort)


def _groups_needed(method: Method) -> tuple[str, int]:
    """Return what brings methods together that need the same groups."""
    return method.settings.get("grouping", ""), method.settings.get("groups", 1)


def _retrained_rivals(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Return what `scripts/bench rivals` found on the same split, if it did, of those that can only be retrained."""
    path = RESULTS / "rivals.json"
    found = json.loads(path.read_text())["lines"] if path.exists() else ()
    return [
        _rivals_line(line, options)
        for name in RIVALS
        for line in found
        if (line["set"], line["rival"]) == (options.of, name)
    ]


def _rivals_line(line: Mapping[str, Any], options: argparse.Namespace) -> dict[str, Any]:
    seconds = line["cpu_seconds"] / options.threads
    costs = dict.fromkeys(("cost_one", "cost_five_percent"), 1.0)
    times = dict.fromkeys(("seconds_one", "seconds_five_percent", "learning_seconds"), seconds)
    facts = {"name": line["rival"], "family": RIVALS[line["rival"]], "label": "", "settings": line["settings"]}
    means = {"ndcg@10": statistics.mean(line["by_seed"][str(seed)] for seed in options.seeds), **costs, **times}
    return {**facts, "seeds": options.seeds, "mean": means}


def _quality_if_retrained(line: Mapping[str, Any]) -> float:
    """Return how good something is that can only be retrained, or 0 if it can do more."""
    return float(line["mean"]["ndcg@10"]) if line["family"] in ("Retrain NMF", *RIVALS.values()) else 0.0


def _table(lines: Sequence[Mapping[str, Any]], best: float) -> tuple[tuple[str, ...], list[list[str]]]:
    header = ("method", "NDCG@10", "of retraining", "cost, 1 user", "cost, 5 %", "seconds, 1 user", "learning, s")
    return header, [_row(line, best) for line in lines]


def _row(line: Mapping[str, Any], best: float) -> list[str]:
    mean = line["mean"]
    return [
        f"{line['family']} {line['label']}".strip(),
        f"{mean['ndcg@10']:.4f}",
        f"{mean['ndcg@10'] / best:.0%}" if best else "",
        f"{mean['cost_one']:.1%}",
        f"{mean['cost_five_percent']:.0%}",
        f"{mean['seconds_one']:.2f}",
        f"{mean['learning_seconds']:.1f}",
    ]


def _options() -> argparse.Namespace:
    parser = documented_parser(__doc__)
    parser.add_argument("--data", type=Path, default=Path("data"), help="the folder with ml-1m/ and book-crossing/")
    parser.add_argument("--of", default="ml-1m", choices=list(SETS), help="which of them")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--methods", nargs="+", default=[], help="names of methods; all if not given")
    parser.add_argument("--again", nargs="+", default=[], help="names of methods to measure again")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--set", nargs="+", default=[], help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.name = results_name(options.of)
    return options


if __name__ == "__main__":
    main()
