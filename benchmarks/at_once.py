"""How soon someone is no longer served once forgetting was asked for, in the process that serves, on MovieLens 1M.

    scripts/bench at_once --data DIR        DIR/ml-1m/ratings.csv

One thread calls `Recommender.forget`; another asks for the person's recommendations until they are refused. Then the
erasure goes on: trained or settled, durable, scanned and certified, which is the second figure. Workspaces lie on disk.
"""

import argparse
import statistics
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from erasable import Recommender
from erasable.errors import UnknownUser
from erasable.seeding import id_keys
from erasable.workspace import Workspace
from reporting import documented_parser, print_table, save, verdict, warn_if_busy

WAYS: dict[str, dict[str, Any]] = {
    "nmf, 30 % anchors": {"model": "nmf", "groups": 1, "anchors": 0.3},
    "ease, the default": {},
    "als": {"model": "als"},
    "dense ease": {"model": "ease", "neighbours": "all"},
}
ONE, MANY = 1, 302
BARS = {ONE: 0.05, MANY: 3.0}


def main() -> None:
    options = _options()
    warn_if_busy()
    lines = [line for way in WAYS for line in _measured(way, options)]
    header = ("way", "people", "shape shared", "unserved after, ms", "bar", "", "certified after, s")
    print_table(header, [_cells(line) for line in lines])
    print(f"written to {save('at_once', {'lines': lines})}")
    sys.exit(any(line["unserved_seconds"] >= BARS[line["people"]] for line in lines))


def _measured(way: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        Recommender(**WAYS[way]).fit(options.data / "ml-1m" / "ratings.csv").save(Path(folder) / "shop")
        recommender = Recommender.load(Path(folder) / "shop")
        shaping, others = _people(Path(folder) / "shop")
        kinds = {(ONE, True): [[user] for user in shaping[: options.runs]]}
        kinds |= {(ONE, False): [[user] for user in others[: options.runs]]} if others else {}
        kinds |= {(MANY, True): [shaping[options.runs : options.runs + MANY]]}
        return [_line(way, recommender, kind, requests) for kind, requests in kinds.items()]


def _line(way: str, recommender: Recommender, kind: tuple[int, bool], requests: list[list[str]]) -> dict[str, Any]:
    found = [_seconds(recommender, users) for users in requests]
    unserved, certified = (statistics.median(values) for values in zip(*found, strict=True))
    facts = {"way": way, "people": kind[0], "shape_shared": kind[1], "runs": len(found)}
    return {**facts, "unserved_seconds": unserved, "certified_seconds": certified}


def _seconds(recommender: Recommender, users: list[str]) -> tuple[float, float]:
    """Return how long people were still served, and how long it took until they were certified to be gone."""
    recommender.recommend(users[:1])
    with ThreadPoolExecutor(1) as pool:
        began = time.perf_counter()
        forgetting = pool.submit(recommender.forget, users, yes=True)
        unserved = _until_refused(recommender, users) - began
        forgetting.result()
        return unserved, time.perf_counter() - began


def _until_refused(recommender: Recommender, users: list[str]) -> float:
    while True:
        try:
            recommender.recommend(users[-1:])
        except UnknownUser:
            return time.perf_counter()


def _people(folder: Path) -> tuple[list[str], list[str]]:
    """Return users in random order: those who shape shared parameters, and those who do not."""
    with Workspace.reading(folder) as workspace:
        dataset = workspace.state().dataset
        users = [user for group in dataset.groups for user in group.users]
        shaping = set(dataset.lessons_of(users).users)
    keys = dict(zip(users, id_keys(0, "at once", users).tolist(), strict=True))
    ordered = sorted(users, key=lambda user: keys[user])
    return [user for user in ordered if user in shaping], [user for user in ordered if user not in shaping]


def _cells(line: dict[str, Any]) -> list[str]:
    bar, unserved = BARS[line["people"]], line["unserved_seconds"]
    shapes = "yes" if line["shape_shared"] else "no"
    figures = [f"{1000 * unserved:.1f}", f"< {1000 * bar:.0f}", verdict(bar, unserved)]
    return [line["way"], str(line["people"]), shapes, *figures, f"{line['certified_seconds']:.1f}"]


def _options() -> argparse.Namespace:
    parser = documented_parser(__doc__)
    parser.add_argument("--data", type=Path, required=True, help="where ml-1m/ratings.csv is")
    parser.add_argument("--runs", type=int, default=3, help="how many people of each kind are forgotten, one by one")
    return parser.parse_args()


if __name__ == "__main__":
    main()
