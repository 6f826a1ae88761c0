"""How long recommending takes from the command line on MovieLens 1M: to everyone, and to one user in a cold process.

    scripts/bench serve --data DIR        DIR/ml-1m/ratings.csv

Each is the wall time of a whole process, the median of repeated runs.
"""

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from reporting import documented_parser, print_table, save, verdict

BARS = {"everyone, k = 10": 5.0, "one user, cold process": 2.0}


def main() -> None:
    parser = documented_parser(__doc__)
    parser.add_argument("--data", type=Path, required=True, help="where ml-1m/ratings.csv is")
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        workspace = str(Path(folder) / "ml-1m")
        _erasable(
            "learn", str(options.data / "ml-1m" / "ratings.csv"), "--into", workspace, "--model", "nmf", "--epochs", "8"
        )
        everyone = ("recommend", workspace, "--all", "--out", str(Path(folder) / "all.csv"))
        one = ("recommend", workspace, "--user", "42")
        commands = dict(zip(BARS, (everyone, one), strict=True))
        seconds = {
            name: statistics.median(_seconds(*command) for _ in range(options.runs))
            for name, command in commands.items()
        }
    lines = [{"what": name, "seconds": round(seconds[name], 2), "bar_seconds": BARS[name]} for name in BARS]
    print_table(("recommend to", "seconds", "bar", ""), [_cells(**line) for line in lines])
    print(f"written to {save('serve', {'runs': options.runs, 'lines': lines})}")
    sys.exit(any(line["seconds"] >= line["bar_seconds"] for line in lines))


def _cells(what: str, seconds: float, bar_seconds: float) -> tuple[str, ...]:
    return what, f"{seconds:.2f}", f"< {bar_seconds:.0f}", verdict(bar_seconds, seconds)


def _seconds(*arguments: str) -> float:
    began = time.perf_counter()
    _erasable(*arguments)
    return time.perf_counter() - began


def _erasable(*arguments: str) -> None:
    subprocess.run([str(Path(sys.executable).parent / "erasable"), *arguments], check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
