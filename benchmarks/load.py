"""How long ten million interactions take to load from a CSV file.

scripts/bench load [--rows 10000000]
"""

import resource
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv

from erasable.data import read_interactions
from reporting import documented_parser, print_table, save, warn_if_busy

BAR_SECONDS = 15.0
USERS, ITEMS = 200_000, 50_000


def main() -> None:
    parser = documented_parser(__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    rows = parser.parse_args().rows
    warn_if_busy()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ratings.csv"
        csv.write_csv(_table(rows), path)
        size = path.stat().st_size
        began = time.perf_counter()
        read = read_interactions(path)
        seconds = time.perf_counter() - began
    result = {
        "rows": rows,
        "interactions": len(read.interactions),
        "users": len(read.interactions.users),
        "items": len(read.interactions.items),
        "file_megabytes": round(size / 1e6),
        "seconds": round(seconds, 2),
        "bar_seconds": BAR_SECONDS,
        "peak_memory_megabytes": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "notes": list(read.notes),
    }
    _report(result)
    sys.exit(seconds > BAR_SECONDS)


def _table(rows: int) -> pa.Table:
    """Make up rows in no order, popular items first among equals, with the odd repeated pair."""
    random = np.random.default_rng(0)
    return pa.table(
        {
            "user_id": random.integers(0, USERS, rows),
            "item_id": (ITEMS * random.random(rows) ** 2).astype(np.int64),
            "rating": random.integers(1, 6, rows),
            "timestamp": random.integers(956_703_932, 1_046_454_590, rows),
        }
    )


def _report(result: dict[str, object]) -> None:
    shown = ("rows", "interactions", "file_megabytes", "seconds", "bar_seconds", "peak_memory_megabytes")
    print_table(shown, [[str(result[name]) for name in shown]])
    print(f"written to {save('load', result)}")


if __name__ == "__main__":
    main()
