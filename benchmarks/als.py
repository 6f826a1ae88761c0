"""ALS: how well it recommends, how little is lost with 30 % anchors, and how fast it trains, against implicit.

    scripts/bench als --data DIR        DIR/ml-1m/ratings.csv and DIR/book-crossing/ratings.csv

Quality is NDCG@10 over the whole catalogue with a tenth held out; with anchors the item factors come from 30 % of the
users, chosen by a hash, and every row is solved afterwards. On book-crossing a tenth of the test users is ranked, also
by a hash. Both libraries are given the same confidences, regularisation, factors, iterations and threads; runs
alternate and medians are compared. Work is what the model says its training costs, beside the processor seconds of the
least disturbed run.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from erasable.data import Interactions, RatingScale, read_interactions, recognise_scale, split_holdout
from erasable.evaluation.metrics import ndcg
from erasable.models import Arrays, Effort, Stage
from erasable.models._als import ALS
from erasable.models.machine import one_blas_thread, top_items
from erasable.seeding import id_keys
from implicit_rival import IMPLICIT, Trained, train_implicit
from reporting import documented_parser, print_table, save, warn_if_busy

QUALITY, ANCHORED, SLOWNESS, WORK_ERROR = 0.29, 0.97, 1.5, 0.15
REGULARISATION, WEIGHT, FACTORS = 20.0, 4.0, 64
ANCHORS, SHARES = 0.3, (0.1, 0.3)
SETS = {"ml-1m": 1.0, "book-crossing": 0.1}


@dataclass(frozen=True)
class Contest:
    """What both sides are given: one data set, split."""

    name: str
    training: Interactions
    test: Interactions
    scale: RatingScale
    options: argparse.Namespace

    def stage(self, rows: Interactions) -> Stage:
        return Stage(rows, self.scale, self.options.iterations, self.options.seed, position=0)


def main() -> None:
    options = _options()
    warn_if_busy()
    lines = [_measure(_contest(name, options)) for name in options.sets]
    figures = [figure for line in lines for figure in _figures(line)]
    print_table(("figure", "value", "bar", ""), [_cells(**figure) for figure in figures])
    facts = {"factors": FACTORS, "iterations": options.iterations, "regularisation": REGULARISATION, "weight": WEIGHT}
    facts |= {"threads": options.threads, "seed": options.seed, "implicit": IMPLICIT}
    print(f"written to {save(options.report_name, {**facts, 'figures': figures, 'lines': lines})}")
    sys.exit(any(figure["reached"] is False for figure in figures))


def _measure(contest: Contest) -> dict[str, Any]:
    """Return all that is measured on one data set."""
    model, effort = _model(), Effort(contest.options.threads)
    training = contest.training
    start = model.start(training.items, contest.options.seed)
    model.train(start, contest.stage(_of_share(contest, 0.01)), effort)
    quality = {}
    for name, rows in (("everyone", training), ("anchors", _of_share(contest, ANCHORS))):
        shared = model.train(start, contest.stage(rows), effort).shared
        users = model.represent(model.prepare(shared), contest.stage(training), effort)
        quality[name] = _ndcg({**shared, **users}, contest)
        _say(f"{contest.name}: {name} NDCG@10 {quality[name]:.4f}")
    return {
        "data": contest.name,
        "users": len(training.users),
        "items": len(training.items),
        "interactions": len(training),
        "users_ranked": len(contest.test.users),
        "ndcg@10": {**quality, **_implicit_quality(contest)},
        "runs": _race(contest),
        "work": [_work(contest, share) for share in SHARES],
    }


def _race(contest: Contest) -> dict[str, Any]:
    """Train in turn, ours and implicit, and return the seconds of every run."""
    model, effort = _model(), Effort(contest.options.threads)

    def ours() -> dict[str, float]:
        return _timed(lambda: _learned(model, contest, effort))

    runs: dict[str, list[dict[str, float]]] = {"erasable": [], "implicit": []}
    for number in range(contest.options.runs):
        runs["erasable"].append(ours())
        trained = _implicit(contest, WEIGHT, REGULARISATION)
        runs["implicit"].append({"seconds": trained.seconds, "cpu_seconds": trained.cpu_seconds})
        latest = ", ".join(f"{side} {found[-1]['seconds']:.2f} s" for side, found in runs.items())
        _say(f"{contest.name} run {number + 1}: {latest}")
    return runs


def _work(contest: Contest, share: float) -> dict[str, float]:
    """Compare what the model says part of the users cost with the processor seconds they take, both over everyone's."""
    model, effort = _model(), Effort(contest.options.threads)
    part, epochs = _of_share(contest, share), contest.options.iterations
    start = model.start(part.items, 0)
    used: dict[bool, list[float]] = {True: [], False: []}
    for _ in range(contest.options.runs):
        for whole, rows in ((True, contest.training), (False, part)):
            stage = contest.stage(rows)
            used[whole].append(_timed(lambda stage=stage: model.train(start, stage, effort))["cpu_seconds"])
    return {
        "share": share,
        "samples": model.samples(part, epochs) / model.samples(contest.training, epochs),
        "cpu_seconds": min(used[False]) / min(used[True]),
    }


def _implicit_quality(contest: Contest) -> dict[str, float]:
    """Return what implicit reaches as ours is set, and with every interaction and its own regularisation alike."""
    found = {}
    settings = {"implicit": (WEIGHT, REGULARISATION), "implicit, its own settings": (0.0, 0.01)}
    for name, (weight, regularisation) in settings.items():
        found[name] = _ndcg(_implicit(contest, weight, regularisation).factors, contest)
        _say(f"{contest.name}: {name} NDCG@10 {found[name]:.4f}")
    return found


def _implicit(contest: Contest, weight: float, regularisation: float) -> Trained:
    confidences = np.float32(1) + contest.training.rating * np.float32(weight / contest.scale.high)
    settings = {"factors": FACTORS, "iterations": contest.options.iterations, "threads": contest.options.threads}
    return train_implicit(contest.training, confidences, {**settings, "regularisation": regularisation})


def _ndcg(arrays: Arrays, contest: Contest) -> float:
    """Return the mean NDCG@10 over the test users, the whole catalogue ranked less what they have in training."""
    model = _model()
    prepared = model.prepare(arrays)
    places = contest.training.users.positions_of(contest.test.users.array)

    def of_user(number: int) -> float:
        place = int(places[number])
        owned = contest.training.items_at(place)
        ranked = top_items(model.score(prepared, {"user": arrays["user"][place]}, owned), 10, excluded=owned)
        return ndcg(ranked.tolist(), frozenset(contest.test.items_at(number).tolist()), 10)

    with one_blas_thread(), ThreadPoolExecutor(contest.options.threads) as pool:
        return float(np.mean(list(pool.map(of_user, range(len(places))))))


def _timed(work: Callable[[], object]) -> dict[str, float]:
    began, used = time.perf_counter(), time.process_time()
    work()
    return {"seconds": time.perf_counter() - began, "cpu_seconds": time.process_time() - used}


def _figures(line: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the named figures of a data set; only MovieLens 1M has bars."""
    quality, name = line["ndcg@10"], line["data"]
    seconds, used = (_medians(line["runs"], what) for what in ("seconds", "cpu_seconds"))
    barred = name == "ml-1m"
    found = [
        _figure(f"{name}: NDCG@10, everyone", quality["everyone"], QUALITY if barred else None),
        _figure(f"{name}: NDCG@10, 30 % anchors", quality["anchors"]),
        _figure(
            f"{name}: of everyone's NDCG@10", quality["anchors"] / quality["everyone"], ANCHORED if barred else None
        ),
        *(_figure(f"{name}: NDCG@10, {side}", quality[side]) for side in quality if side.startswith("implicit")),
        *(_figure(f"{name}: seconds, {side}", value) for side, value in seconds.items()),
    ]
    slowness = seconds["erasable"] / seconds["implicit"]
    found.append(_figure(f"{name}: seconds over implicit's", slowness, SLOWNESS if barred else None, at_most=True))
    found.append(_figure(f"{name}: processor seconds over implicit's", used["erasable"] / used["implicit"]))
    for work in line["work"]:
        error = abs(work["samples"] / work["cpu_seconds"] - 1)
        bar = WORK_ERROR if barred else None
        found.append(_figure(f"{name}: error of the work of {work['share']:.0%} of users", error, bar, at_most=True))
    return found


def _medians(runs: dict[str, list[dict[str, float]]], what: str) -> dict[str, float]:
    return {side: statistics.median(run[what] for run in found) for side, found in runs.items()}


def _figure(what: str, value: float, bar: float | None = None, at_most: bool = False) -> dict[str, Any]:
    reached = None if bar is None else bool(value <= bar if at_most else value >= bar)
    return {"what": what, "value": round(value, 4), "bar": bar, "at_most": at_most, "reached": reached}


def _cells(what: str, value: float, bar: float | None, at_most: bool, reached: bool | None) -> tuple[str, ...]:
    if bar is None:
        return what, f"{value:.3f}", "", ""
    return what, f"{value:.3f}", f"{'≤' if at_most else '≥'} {bar:g}", "reached" if reached else "MISSED"


def _model() -> ALS:
    return ALS(factors=FACTORS, regularisation=REGULARISATION)


def _contest(name: str, options: argparse.Namespace) -> Contest:
    rows = read_interactions(options.data / name / "ratings.csv").interactions
    training, test = split_holdout(rows, 0.1, options.seed)
    ranked = id_keys(options.seed, "ranked", test.users) < _limit(SETS[name])
    return Contest(name, training, test.select(ranked[test.user_index]), recognise_scale(rows.rating), options)


def _learned(model: ALS, contest: Contest, effort: Effort) -> None:
    """Do what implicit does: train the item factors, and give everyone a row."""
    stage = contest.stage(contest.training)
    shared = model.train(model.start(contest.training.items, 0), stage, effort).shared
    model.represent(model.prepare(shared), stage, effort)


def _of_share(contest: Contest, share: float) -> Interactions:
    """Return the interactions of a share of the users, chosen by a hash of the seed and the id."""
    rows = contest.training
    chosen = id_keys(contest.options.seed, "anchor", rows.users) < _limit(share)
    return rows.select(chosen[rows.user_index])


def _limit(share: float) -> np.uint64:
    return np.uint64(min(int(share * 2**64), 2**64 - 1))


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _options() -> argparse.Namespace:
    parser = documented_parser(__doc__)
    parser.add_argument("--data", type=Path, required=True, help="where ml-1m/ and book-crossing/ are")
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=list(SETS))
    parser.add_argument("--iterations", type=int, default=15)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--runs", type=int, default=5, help="runs of each side")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--report-name", default="als", help="the name of the result file")
    return parser.parse_args()


if __name__ == "__main__":
    main()
