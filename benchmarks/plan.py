"""Whether the plan tells the truth: estimated against measured seconds of `erasable forget` on MovieLens 1M.

    scripts/bench plan --data DIR        DIR/ml-1m/ratings.csv

Each line plans and then forgets, in a workspace on disk: one person, a list, and as many as --random would draw.
"""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from erasable.chain import Config
from erasable.operations import DiskStorage, Work, forget, learn, plan
from erasable.requests import Request
from erasable.seeding import id_keys
from erasable.workspace import Workspace
from reporting import documented_parser, print_table, save, warn_if_busy

BAR = 0.30
COUNTS = (1, 1, 10, 302)
WAYS: dict[str, dict[str, Any]] = {
    "ease, the default": {},
    "als": {"model": "als"},
    "als, holdout 0.1": {"model": "als", "holdout": 0.1},
    "dense ease": {"model": "ease", "neighbours": "all"},
    "nmf, 30 % anchors": {"model": "nmf", "groups": 1, "anchors": 0.3},
    "nmf, chain of 8": {"model": "nmf", "groups": 8},
    "nmf, chain of 8, holdout 0.1": {"model": "nmf", "groups": 8, "holdout": 0.1},
}


def main() -> None:
    options = _options()
    warn_if_busy()
    lines = [line for way in options.ways or WAYS for line in _measured(way, options)]
    print_table(("way", "people", "estimated, s", "measured, s", "off by", "bar", ""), [_cells(line) for line in lines])
    print(f"written to {save('plan', {'threads': options.threads, 'lines': lines})}")
    sys.exit(any(abs(line["off"]) > BAR for line in lines))


def _measured(way: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    work = Work(options.threads)
    with tempfile.TemporaryDirectory() as folder:
        storage = DiskStorage(Path(folder) / "shop")
        learn(options.data / "ml-1m" / "ratings.csv", storage.path, Config(**WAYS[way]), work=work)
        forget(storage, [Request(_some(storage, 1, "first")[0])], work=work)  # whatever is compiled on first use
        return [_line(way, storage, _some(storage, count, str(number)), work) for number, count in enumerate(COUNTS)]


def _line(way: str, storage: DiskStorage, users: Sequence[str], work: Work) -> dict[str, Any]:
    requests = [Request(user) for user in users]
    planned = plan(storage, requests, work)
    done = forget(storage, requests, work=work, yes=True)
    off = planned.seconds_estimated / done.seconds - 1
    facts = {"way": way, "people": len(users), "stages_rerun": done.stages_rerun}
    return {**facts, "estimated": planned.seconds_estimated, "measured": done.seconds, "off": off}


def _some(storage: DiskStorage, count: int, draw: str) -> list[str]:
    with Workspace.reading(storage.path) as workspace:
        users = [user for group in workspace.state().dataset.groups for user in group.users]
    order = np.argsort(id_keys(0, f"plan {draw}", users), kind="stable")
    return [users[place] for place in order[:count]]


def _cells(line: dict[str, Any]) -> list[str]:
    figures = [f"{line['estimated']:.2f}", f"{line['measured']:.2f}", f"{line['off']:+.0%}", f"±{BAR:.0%}"]
    return [line["way"], str(line["people"]), *figures, "reached" if abs(line["off"]) <= BAR else "MISSED"]


def _options() -> argparse.Namespace:
    parser = documented_parser(__doc__)
    parser.add_argument("--data", type=Path, required=True, help="where ml-1m/ratings.csv is")
    parser.add_argument("--ways", nargs="+", choices=list(WAYS), help="which ways to try; all if not given")
    parser.add_argument("--threads", type=int, default=2)
    return parser.parse_args()


if __name__ == "__main__":
    main()
