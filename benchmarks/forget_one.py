"""What it takes to forget one random person, certified: MovieLens 1M and book-crossing (5-core), EASE, 200 neighbours.

    scripts/bench forget_one --data DIR        DIR/ml-1m/ratings.csv, DIR/book-crossing/ratings.csv

Each person is forgotten from a copy of one workspace, in this process, on one thread: from the request to the
certificate, in seconds of the processor. Starting a process and compiling are left out: somebody is forgotten first.
"""

import argparse
import random
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from erasable.chain import Config
from erasable.operations import DiskStorage, Work, forget, learn
from erasable.requests import Request
from erasable.workspace import Workspace
from reporting import documented_parser, print_table, save, verdict, warn_if_busy

PEOPLE = 5
SETS: dict[str, tuple[dict[str, Any], float]] = {
    "ml-1m": ({}, 3.0),
    "book-crossing": ({"min_interactions": 5}, 2.0),
}
"""Settings beside the model's, and the bar in seconds."""
_WORK = Work(1)


def main() -> None:
    options = _options()
    warn_if_busy()
    with tempfile.TemporaryDirectory() as folder:
        lines = [_measured(name, options, Path(folder) / name) for name in options.sets or SETS]
    header = ("data", "median, CPU s", "each", "bar", "", "blocks written", "MB")
    print_table(header, [_cells(line) for line in lines])
    print(f"written to {save('forget_one', {'seed': options.seed, 'sets': lines})}")
    sys.exit(any(line["median"] > line["bar"] for line in lines))


def _measured(name: str, options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    settings, bar = SETS[name]
    shop = folder / "shop"
    folder.mkdir()
    config = Config(model="ease", neighbours=200, **settings)
    learn(options.data / name / "ratings.csv", shop, config, work=_WORK)
    with Workspace.reading(shop) as workspace:
        users = sorted(user for group in workspace.state().dataset.groups for user in group.users)
    people = random.Random(options.seed).sample(users, PEOPLE + 1)
    _, *each = [_forgotten(shop, folder / f"copy-{number}", person) for number, person in enumerate(people)]
    seconds, written = ([one[place] for one in each] for place in (0, 1))
    return {
        "data": name,
        "median": statistics.median(seconds),
        "seconds": seconds,
        "bar": bar,
        "blocks_written": written,
        "blocks": len(_blocks(shop)),
        "megabytes_written": [round(one[2] / 1e6, 1) for one in each],
    }


def _forgotten(shop: Path, copy: Path, person: str) -> tuple[float, int, int]:
    """Forget someone in a copy, and return the seconds, how many blocks of columns were written, and their bytes."""
    shutil.copytree(shop, copy)
    began = time.process_time()
    done = forget(DiskStorage(copy), [Request(person)], work=_WORK, yes=True)
    seconds = time.process_time() - began
    if len(done.certificates) != 1:
        sys.exit("broken: the erasure is not certified")
    written = {path for path in _blocks(copy) if not (shop / path.relative_to(copy)).exists()}
    size = sum(path.stat().st_size for path in written)
    shutil.rmtree(copy)
    return seconds, len(written), size


def _blocks(shop: Path) -> list[Path]:
    return list(shop.glob("checkpoints/block-*"))


def _cells(line: dict[str, Any]) -> list[str]:
    each = ", ".join(f"{one:.2f}" for one in sorted(line["seconds"]))
    blocks = f"{statistics.median(line['blocks_written']):g} of {line['blocks']}"
    size, bar = f"{statistics.median(line['megabytes_written']):g}", f"<= {line['bar']:g}"
    return [line["data"], f"{line['median']:.2f}", each, bar, verdict(line["bar"], line["median"]), blocks, size]


def _options() -> argparse.Namespace:
    parser = documented_parser(__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sets", nargs="+", choices=list(SETS), help="which sets to take; all if not given")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


if __name__ == "__main__":
    main()
