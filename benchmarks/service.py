"""What the erasure service promises, tried on the real server and worker, one part at a time or all.

    scripts/bench service kills         200 kills of server, worker or both at random moments
    scripts/bench service kills --servers 2 --queue postgres   the same with two of each on one workspace
    scripts/bench service races         50 clients for one person, and 50 freezes of a worker past its lease
    scripts/bench service fuzz          10,000 made-up requests to every route
    scripts/bench service memory        how many copies of erased people's ids are left in memory; --restart-seconds 5
    scripts/bench service timing        whether times of answers tell who has asked to be erased
    scripts/bench service queue         how quick answers are with 10,000 open requests, in one process
    scripts/bench service clients       four clients submit 10,000 requests to the real service (--queue postgres too)
    scripts/bench service batch         a batch of thousands by the worker, against the command (--data DIR too)
    scripts/bench service load --data DIR   recommendations under load on MovieLens 1M (DIR/ml-1m/ratings.csv)
    scripts/bench service load --data DIR --model ease      the same with EASE from neighbourhoods
    scripts/bench service load --items 100000               the same on a made-up shop, ten rows for each item
    scripts/bench service abilities --data DIR              what filters, histories, scores and reasons cost beside it
    scripts/bench service all --data DIR

Each part writes results/service-PART.json, and ends with an error if what is promised does not hold.
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))  # the kit that the tests share

import service_abilities
import service_batch
import service_clients
import service_fuzz
import service_kills
import service_load
import service_memory
import service_queue
import service_races
import service_timing
from reporting import documented_parser

PARTS = {
    "abilities": service_abilities.run,
    "kills": service_kills.run,
    "races": service_races.run,
    "fuzz": service_fuzz.run,
    "memory": service_memory.run,
    "timing": service_timing.run,
    "queue": service_queue.run,
    "clients": service_clients.run,
    "batch": service_batch.run,
    "load": service_load.run,
}
QUEUES = ("sqlite", "postgres", "both")


def main() -> None:
    options = _options()
    for part in PARTS if options.part == "all" else [options.part]:
        print(f"{part}:", flush=True)
        PARTS[part](options)


def _options() -> argparse.Namespace:
    parser = documented_parser(__doc__)
    parser.add_argument("part", choices=[*PARTS, "all"])
    parser.add_argument("--data", type=Path, help="where ml-1m/ratings.csv is, for load and batch")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--minutes", type=float, default=120, help="for how long at most, for kills")
    parser.add_argument("--servers", type=int, default=1, help="how many serve one workspace, for kills")
    parser.add_argument(
        "--queue", choices=QUEUES, help="where it lies: for kills, else in sqlite; for clients, else both"
    )
    parser.add_argument("--freezes", type=int, default=50)
    parser.add_argument("--cases", type=int, default=10_000, help="how many made-up requests at least")
    parser.add_argument("--people", type=int, default=1_000, help="how many of each kind are asked for, for timing")
    parser.add_argument("--repeats", type=int, default=5, help="how often each is asked for, for timing")
    parser.add_argument("--runs", type=int, default=3, help="how often each load is put on")
    parser.add_argument("--seconds", type=int, default=10, help="how long each load lasts")
    parser.add_argument("--items", type=int, help="how many a made-up shop has, for load, which needs no --data then")
    parser.add_argument("--model", help="another one than the default, for load and abilities")
    parser.add_argument("--requests", type=int, default=10_000, help="how many are open, for queue and clients")
    parser.add_argument("--batch", type=int, default=3_422, help="how many people, for batch")
    parser.add_argument("--restart-seconds", type=float, default=0, help="a setting of the server, for memory")
    parser.add_argument("--asked", type=int, default=1_000, help="how often in each way, for abilities")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if options.part == "abilities" and options.data is None:
        parser.error("abilities needs --data DIR, where ml-1m/ratings.csv is")
    if options.part in ("load", "all") and options.data is None and options.items is None:
        parser.error("load needs --data DIR, where ml-1m/ratings.csv is")
    return options


if __name__ == "__main__":
    main()
