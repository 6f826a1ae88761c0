"""What one cell of the paper's experiments costs: learn, forget 5 per cent of the users, measure before and after.

NMF, 8 random groups, 20 epochs shared among them; the data are read and grouped, and the kernels compiled, beforehand.
"""

import argparse
import statistics
import time
from pathlib import Path

from erasable.data import ColumnNames
from erasable.evaluation import PROTOCOLS
from erasable.paper import Cell, DataSource, Workbench, measure_utility
from reporting import documented_parser, print_table, save, warn_if_busy

BAR_SECONDS = 25
SETTINGS = {"model": "nmf", "grouping": "random", "groups": 8, "epochs": 20, "holdout": 0.1}


def main() -> None:
    options = _options()
    warn_if_busy()
    source = DataSource(options.data / "ml-1m" / "ratings.csv", ColumnNames())
    seconds = [_seconds(source, options.threads) for _ in range(options.repeats)]
    middle = statistics.median(seconds)
    print_table(("seconds", "median", "bar"), [[f"{one:.1f}", f"{middle:.1f}", str(BAR_SECONDS)] for one in seconds])
    save("cell", {"settings": SETTINGS, "threads": options.threads, "seconds": seconds, "bar": BAR_SECONDS})


def _seconds(source: DataSource, threads: int) -> float:
    workbench = Workbench(source, threads)
    workbench.learned({**SETTINGS, "epochs": 1, "seed": 1})  # compiles
    workbench.grouped({**SETTINGS, "seed": 0})
    began = time.perf_counter()
    for request in ("learn", "rand@5"):
        details = {"request": request, "protocols": PROTOCOLS}
        measure_utility(workbench, Cell("utility", "", {**SETTINGS, "seed": 0}, details))
    return time.perf_counter() - began


def _options() -> argparse.Namespace:
    parser = documented_parser(__doc__)
    parser.add_argument("--data", type=Path, required=True, help="the folder with ml-1m/")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    return parser.parse_args()


if __name__ == "__main__":
    main()
