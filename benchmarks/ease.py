"""EASE with all neighbours on MovieLens 1M: how good it is, how soon it serves without someone, and how far it drifts.

    scripts/bench ease --data DIR        DIR/ml-1m/ratings.csv

Quality is NDCG@10 over the whole catalogue with a tenth held out, the mean of three seeds. Serving at once is timed in
process, for one user also as the 1,000th in a row. Drift is the largest difference of any score from that of a model
trained without those who left, over the largest score, for a sample of users.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from erasable.data import Interactions, RatingScale, read_interactions, split_holdout
from erasable.evaluation.metrics import ndcg
from erasable.models import Arrays, Effort, Stage
from erasable.models._ease import EASE
from erasable.models.base import Change
from erasable.models.machine import top_items
from reporting import documented_parser, print_table, save, verdict, warn_if_busy

SEEDS, ONE, MANY, IN_A_ROW, SAMPLE = 3, 20, 302, 1000, 200
NDCG_BAR = 0.32
BARS = {
    "one user leaves, served at once, seconds": 0.05,
    "the same as the 1,000th in a row, seconds": 0.05,
    "302 users leave, served at once, seconds": 3.0,
    "302 users leave after 1,000 others, seconds": 3.0,
    "drift after 1,000 in a row, share of the largest score": 1e-4,
}


def main() -> None:
    options = _options()
    warn_if_busy()
    rows = read_interactions(options.data / "ml-1m" / "ratings.csv").interactions
    model = EASE(neighbours="all", regularisation=options.regularisation)
    quality = [_quality(model, rows, seed, options.threads) for seed in range(SEEDS)]
    found = _forgetting(model, rows, options.threads)
    lines = [
        _line("NDCG@10, mean of three seeds", statistics.mean(quality), NDCG_BAR, statistics.mean(quality), NDCG_BAR)
    ]
    lines += [_line(name, found[name], bar, bar, found[name]) for name, bar in BARS.items()]
    lines += [{"what": name, "value": value} for name, value in found.items() if name not in BARS]
    print_table(("ease on MovieLens 1M", "value", "bar", ""), [_cells(line) for line in lines])
    settings = {
        "regularisation": options.regularisation,
        "threads": options.threads,
        "ndcg@10": quality,
    }
    print(f"written to {save('ease', {**settings, 'lines': lines})}")
    sys.exit(any(line.get("verdict") == "MISSED" for line in lines))


def _scorer(model: EASE, shared: Arrays) -> Callable[[Arrays, NDArray[np.int32]], NDArray[np.float32]]:
    return partial(model.score, model.prepare(shared))


def _quality(model: EASE, rows: Interactions, seed: int, threads: int) -> float:
    training, test = split_holdout(rows, 0.1, seed)
    score = _scorer(model, _trained(model, training, threads))
    values = []
    for row, user in enumerate(training.users.positions_of(test.users.array)):
        owned = training.items_at(user)
        ranked = top_items(score({}, owned), 10, excluded=owned).tolist()
        values.append(ndcg(ranked, frozenset(test.items_at(row).tolist()), 10))
    return statistics.mean(values)


def _forgetting(model: EASE, rows: Interactions, threads: int) -> dict[str, float]:
    order = np.random.default_rng(0).permutation(len(rows.users))
    names = [rows.users[int(user)] for user in order]
    trained = _trained(model, rows, threads)
    leaving = [_leaving(rows, [name]) for name in names[:IN_A_ROW]]
    many = _leaving(rows, names[IN_A_ROW : IN_A_ROW + MANY])
    gone = _leaving(rows, names[:IN_A_ROW])
    first = [_seconds(lambda change=change: model.provisional(trained, change)) for change in leaving[:ONE]]
    served, seconds = trained, []
    for change in leaving:
        began = time.perf_counter()
        served = model.provisional(served, change)
        seconds.append(time.perf_counter() - began)
    left = rows.without(names[:IN_A_ROW])
    figures = (
        statistics.median(first),
        statistics.median(seconds[-ONE:]),
        _seconds(lambda: model.provisional(trained, many)),
        _seconds(lambda: model.provisional(served, many)),
        _drift(model, served, _trained(model, left, threads), left),
    )
    return {
        **dict(zip(BARS, figures, strict=True)),
        "training, seconds": _seconds(lambda: _trained(model, rows, threads)),
        "settling one user, seconds": _seconds(lambda: model.amended(trained, leaving[0], Effort(threads))),
        "settling 1,000 users, seconds": _seconds(lambda: model.amended(trained, gone, Effort(threads))),
        "scoring one user, seconds": _scoring(model, trained, rows),
        "the same with 1,000 gone since, seconds": _scoring(model, served, rows),
    }


def _trained(model: EASE, rows: Interactions, threads: int) -> Arrays:
    return model.train(model.start(rows.items, 0), Stage(rows, RatingScale(1, 5), 1, 0, 0), Effort(threads)).shared


def _leaving(rows: Interactions, users: list[str]) -> Change:
    return Change(rows.of_users(users), rows.select(np.zeros(len(rows), bool)))


def _drift(model: EASE, served: Arrays, fresh: Arrays, rows: Interactions) -> float:
    sample = np.linspace(0, len(rows.users) - 1, SAMPLE).astype(int)
    found, expected = (
        np.array([score({}, rows.items_at(user)) for user in sample])
        for score in (_scorer(model, served), _scorer(model, fresh))
    )
    return float(np.abs(found - expected).max() / np.abs(expected).max())


def _scoring(model: EASE, shared: Arrays, rows: Interactions) -> float:
    score = _scorer(model, shared)
    sample = np.linspace(0, len(rows.users) - 1, SAMPLE).astype(int)
    return _seconds(lambda: [score({}, rows.items_at(user)) for user in sample]) / SAMPLE


def _seconds(work: Callable[[], object]) -> float:
    """Return the median of three runs."""
    seconds = []
    for _ in range(3):
        began = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds)


def _line(what: str, value: float, bar: float, better: float, worse: float) -> dict[str, object]:
    return {"what": what, "value": value, "bar": bar, "verdict": verdict(better, worse)}


def _cells(line: dict[str, object]) -> tuple[str, ...]:
    bar = f"{line['bar']:g}" if "bar" in line else ""
    return str(line["what"]), f"{line['value']:.3g}", bar, str(line.get("verdict", ""))


def _options() -> argparse.Namespace:
    parser = documented_parser(__doc__)
    parser.add_argument("--data", type=Path, required=True, help="the folder with ml-1m/")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument(
        "--regularisation", type=float, help="what keeps the weights small; the model's own if not given"
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
