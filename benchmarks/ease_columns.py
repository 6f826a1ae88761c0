"""EASE from neighbourhoods: what it costs to fit, to take one random person out, and how many columns that touches.

    scripts/bench ease_columns --data DIR        DIR/ml-1m/ratings.csv, DIR/book-crossing/ratings.csv

Seconds are of the processor, in this process, after code is compiled. A made-up shop of 100,000 items and a million
rows is fitted as well. The verdict is about fitting and memory. Amending is only a part of an erasure: searching,
reading, hashing and certifying come on top, so nothing here says whether a whole erasure keeps its bar.
"""

import argparse
import resource
import statistics
import sys
import time
from pathlib import Path

import numpy as np

from erasable.data import Ids, Interactions, RatingScale, k_core, read_interactions
from erasable.models import Arrays, Effort, Stage
from erasable.models._ease import EASE
from erasable.models.base import Change
from erasable.testing._suite import made_up
from reporting import documented_parser, print_table, save, verdict, warn_if_busy

PEOPLE, SCORED = 7, 500
BARS = {"ml-1m": (200, 4.0), "book-crossing": (200, None), "100,000 items": (100, 60.0)}
"""Neighbours; seconds to fit."""
MEMORY_BAR = 2.0


def main() -> None:
    options = _options()
    warn_if_busy()
    small = made_up(5, users=30, items=25)
    model = EASE(neighbours=5)
    _amended(model, _fitted(model, small), small, 3)  # so that no compiling is timed
    _fitted(model, sparse_shop(items=200, rows=400))
    tables = {
        "ml-1m": read_interactions(options.data / "ml-1m" / "ratings.csv").interactions,
        "book-crossing": k_core(read_interactions(options.data / "book-crossing" / "ratings.csv").interactions, 5),
        "100,000 items": sparse_shop(items=100_000, rows=1_000_000),
    }
    lines = [_measured(name, rows) for name, rows in tables.items()]
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    shown = [[str(value) for value in line.values()] for line in lines]
    print_table(tuple(lines[0]), shown)
    met = all(line["verdict on fitting"] != "MISSED" for line in lines) and memory <= MEMORY_BAR
    print(f"at most {memory:.2f} GiB, bar {MEMORY_BAR:g}: {verdict(MEMORY_BAR, memory)}")
    print(f"written to {save('ease_columns', {'sets': lines, 'gibibytes': memory})}")
    sys.exit(not met)


def _measured(name: str, rows: Interactions) -> dict[str, object]:
    neighbours, bar = BARS[name]
    model = EASE(neighbours=neighbours)
    began = time.process_time()
    trained = _fitted(model, rows)
    fit = time.process_time() - began
    people = np.random.default_rng(0).permutation(len(rows.users))[:PEOPLE].tolist()
    amended = [_amended(model, trained, rows, person) for person in people]
    seconds, touched = (statistics.median(one) for one in zip(*amended, strict=True))
    return {
        "data": name,
        "neighbours": neighbours,
        "fit, CPU s": round(fit, 2),
        "amending one person, CPU s": round(seconds, 2),
        "columns touched": f"{touched:.1%}",
        "a score, ms": round(_scoring(model, trained, rows), 3),
        "the slowest of them, CPU s": round(max(one for one, _ in amended), 2),
        "verdict on fitting": "no bar" if bar is None else "MISSED" if fit > bar else "met",
    }


def _fitted(model: EASE, rows: Interactions) -> Arrays:
    return model.train(model.start(rows.items, 0), Stage(rows, RatingScale(1, 5), 1, 0, 0), Effort()).shared


def _amended(model: EASE, trained: Arrays, rows: Interactions, person: int) -> tuple[float, float]:
    """Return the seconds that taking someone out takes, and the share of columns that are others then."""
    who = [rows.users[person]]
    change = Change(rows.of_users(who), rows.of_users([]), rows.without(who))
    began = time.process_time()
    found = model.amended(trained, change, Effort())
    seconds = time.process_time() - began
    return seconds, float((found["weights"] != trained["weights"]).any(axis=1).mean())


def _scoring(model: EASE, trained: Arrays, rows: Interactions) -> float:
    prepared = model.prepare(trained)
    began = time.process_time()
    for user in range(min(SCORED, len(rows.users))):
        model.score(prepared, {}, rows.items_at(user))
    return (time.process_time() - began) / SCORED * 1e3


def sparse_shop(items: int, rows: int) -> Interactions:
    """Make up a sparse shop: some items are popular, and each person keeps to a few departments."""
    random, people = np.random.default_rng(1), rows // 20
    users = np.repeat(np.arange(people), 22)
    department = random.integers(0, 60, (people, 3))[users, random.integers(0, 3, len(users))]
    inside = np.minimum(items / 60 * random.random(len(users)) ** 2.5, items / 60 - 1).astype(np.int64)
    anywhere = random.random(len(users)) < 0.15
    chosen = np.where(anywhere, random.integers(0, items, len(users)), department * (items // 60) + inside)
    pairs = np.unique(users * items + chosen % items)
    users, chosen = pairs // items, pairs % items
    width = len(str(items))
    names = (Ids.of(f"{number:0{width}d}" for number in range(count)) for count in (people, items))
    columns = (users.astype(np.int32), chosen.astype(np.int32), np.ones(len(users), np.float32))
    return Interactions(*names, *columns)


def _options() -> argparse.Namespace:
    parser = documented_parser(__doc__)
    parser.add_argument("--data", type=Path, required=True)
    return parser.parse_args()


if __name__ == "__main__":
    main()
