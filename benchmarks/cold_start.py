"""A cold process that recommends to one user, beside the start of Python; and `recommend --all`, into files or not.

    scripts/bench cold_start --data DIR        DIR/ml-1m/ratings.csv

The start of Python is `import numpy, pyarrow, numba`. Seconds are CPU seconds of the process and its threads, user and
system, the median of repeats; all commands take turns, so that both sides of a ratio meet the same machine. Everything
is cached: pages of files, Python's bytecode, numba's code. `recommend --all` also has its seconds by the clock, which
say something only on a machine with nothing else to do.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

from reporting import documented_parser, print_table, save, warn_if_busy

MODELS = ("ease", "als", "item-knn", "nmf", "popular")
START = "start of Python"
USER = "10"
COLD_BAR, ALL_BAR = 1.5, 3.0
_Name = TypeVar("_Name")


class Taken(NamedTuple):
    """What a process takes."""

    cpu: float
    wall: float


def main() -> None:
    options = _options()
    warn_if_busy()
    with tempfile.TemporaryDirectory() as folder:
        shops = {model: Path(folder) / model for model in MODELS}
        for model, shop in shops.items():
            _run([*_erasable(), "learn", str(options.data / "ml-1m/ratings.csv"), "--into", str(shop)], model)
        cold = _cold(shops, options.repeats)
        everyone = _for_everyone(shops, Path(folder), options.repeats_of_all)
    start = cold[START].cpu
    lines = [{"what": name, "cpu": one.cpu, "ratio": one.cpu / start} for name, one in cold.items()]
    print_table(("cold process", "CPU seconds", "ratio"), [[*map(_shown, line.values())] for line in lines])
    rows = [[*name, _shown(one.cpu), _shown(one.wall)] for name, one in everyone.items()]
    print_table(("model", "recommend --all into", "CPU seconds", "seconds"), rows)
    together = [{"model": name[0], "into": name[1], **one._asdict()} for name, one in everyone.items()]
    print(f"\nwritten to {save('cold_start', {'cold': lines, 'all': together})}")
    missed = [str(line["what"]) for line in lines if line["what"] in MODELS and line["cpu"] > COLD_BAR * start]
    missed += [f"{model} {into}" for (model, into), one in everyone.items() if one.wall > ALL_BAR]
    print(f"MISSED: {', '.join(missed)}" if missed else "all within the bars")
    sys.exit(bool(missed))


def _cold(shops: dict[str, Path], repeats: int) -> dict[str, Taken]:
    some = str(shops["ease"])
    commands = {START: [sys.executable, "-c", "import numpy, pyarrow, numba"]}
    commands |= {model: [*_erasable(), "recommend", str(shop), "--user", USER] for model, shop in shops.items()}
    commands |= {"--help": [*_erasable(), "--help"], "status": [*_erasable(), "status", some]}
    commands |= {"show": [*_erasable(), "show", some, "--user", USER]}
    return _medians(commands, repeats)


def _for_everyone(shops: dict[str, Path], folder: Path, repeats: int) -> dict[tuple[str, str], Taken]:
    commands = {}
    for model, shop in shops.items():
        for into in ("terminal", ".csv", ".parquet", ".arrow"):
            out = [] if into == "terminal" else ["--out", str(folder / f"all{into}")]
            commands[model, into] = [*_erasable(), "recommend", str(shop), "--all", *out]
    return _medians(commands, repeats)


def _medians(commands: dict[_Name, list[str]], repeats: int) -> dict[_Name, Taken]:
    """Run all commands in turn, first to fill the caches and then so often, and return the medians of each."""
    taken: dict[_Name, list[Taken]] = {name: [] for name in commands}
    for turn in range(repeats + 1):
        for name, command in commands.items():
            one = _run(command)
            taken[name] += [one] if turn else []
    return {name: Taken(*map(statistics.median, zip(*found, strict=True))) for name, found in taken.items()}


def _run(command: Sequence[str], model: str | None = None) -> Taken:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    words = [*command, *(["--model", model, "--quiet"] if model else [])]
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Taken(cpu, time.perf_counter() - began)


def _erasable() -> list[str]:
    return [str(Path(sys.executable).with_name("erasable"))]


def _shown(value: object) -> str:
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def _options() -> argparse.Namespace:
    parser = documented_parser(__doc__)
    parser.add_argument("--data", type=Path, required=True, help="the folder with ml-1m/ratings.csv")
    parser.add_argument("--repeats", type=int, default=21, help="of the cold processes")
    parser.add_argument("--repeats-of-all", type=int, default=3, help="of recommending to everyone")
    return parser.parse_args()


if __name__ == "__main__":
    main()
