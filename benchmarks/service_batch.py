"""A batch of thousands: from the claim to the certificates, by the service's worker and by the command, side by side.

Both forget the same people from copies of one workspace, on one thread. The bar is on processor seconds, since the
machine may be shared. While the worker works its progress is read as the pages read it.
"""

import argparse
import itertools
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from erasable.chain import Config
from erasable.operations import learn
from erasable.requests import Request
from erasable.requests.lease import read_progress
from erasable.requests.opening import open_database
from erasable.requests.queue import Queue
from erasable.service._worker import WorkerOptions, run_worker
from kit import erasure_service, small_shop
from reporting import print_table, save, warn_if_busy

BAR = 2.0
_LOOK_SECONDS = 0.5


def run(options: argparse.Namespace) -> None:
    """Forget the same people both ways, and end with an error if the service takes more than twice as long."""
    warn_if_busy()
    with tempfile.TemporaryDirectory() as folder:
        shop = Path(folder) / "shop"
        source = options.data / "ml-1m" / "ratings.csv" if options.data else small_shop.table(2 * options.batch, 2_000)
        learn(source, shop, Config(model="als"))
        people = erasure_service.people_in(shop)
        random.Random(options.seed).shuffle(people)
        people = people[: options.batch]
        runs = [_both(shop, people) for _ in range(options.runs)]
    command, service = ([one[way] for one in runs] for way in ("command", "service"))
    found = {"people": len(people), "command": _median(command), "service": _median(service)}
    found["ratio"] = found["service"]["processor"] / found["command"]["processor"]
    header = ("way", "processor, s", "clock, s", "progress seen", "longest standing, s")
    print_table(header, [_row(way, found[way]) for way in ("command", "service")])
    print(
        f"{found['ratio']:.2f} times the command's processor seconds, at most {BAR:.0f} (load {os.getloadavg()[0]:.1f})"
    )
    print(f"written to {save('service-batch', found)}")
    if found["ratio"] > BAR:
        sys.exit("broken: the service takes more than twice as long as the command")


def _both(shop: Path, people: Sequence[str]) -> dict[str, dict[str, Any]]:
    return {"command": _timed(shop, people, _by_command), "service": _timed(shop, people, _by_service)}


def _timed(
    shop: Path, people: Sequence[str], way: Callable[[Path, Sequence[str]], Callable[[], list[float]]]
) -> dict[str, Any]:
    """Make a copy ready, forget the people there in another process, and require a certificate for each."""
    copy = shop.with_name("copy")
    shutil.copytree(shop, copy)
    work = way(copy, people)
    clock, processor = time.perf_counter(), _processor_of_children()
    told = work()
    found = {"processor": _processor_of_children() - processor, "clock": time.perf_counter() - clock}
    assert len(list(copy.glob("certificates/*.json"))) == len(people)
    shutil.rmtree(copy)
    still = [after - before for before, after in itertools.pairwise(told)]
    return found | {"told": len(told), "still": max(still, default=0.0)}


def _by_command(shop: Path, people: Sequence[str]) -> Callable[[], list[float]]:
    listed = shop.with_name("people.txt")
    listed.write_text("\n".join(people))
    command = [sys.executable, "-m", "erasable", "forget", str(shop), "--users-file", str(listed), "--yes"]

    def forget() -> list[float]:
        subprocess.run([*command, "--threads", "1", "--quiet"], check=True, capture_output=True)
        return []

    return forget


def _by_service(shop: Path, people: Sequence[str]) -> Callable[[], list[float]]:
    """Submit requests that are due at once; a worker ends by itself when it has carried them out."""
    settings, now = erasure_service.AT_ONCE, datetime.now(UTC)
    with closing(open_database(shop)) as database:
        queue = Queue(database, settings)
        database.change(lambda _: [queue.submit(Request(one), True, "application bench", now) for one in people])

    def work_off() -> list[float]:
        worker = get_context("spawn").Process(target=run_worker, args=(WorkerOptions(shop, settings, threads=1),))
        worker.start()
        told, last = [time.perf_counter()], None
        with closing(open_database(shop)) as database:
            while worker.is_alive():
                worker.join(_LOOK_SECONDS)
                progress = read_progress(database)
                if progress != last:
                    told.append(time.perf_counter())
                    last = progress
        assert worker.exitcode == 0
        return [*told, time.perf_counter()]

    return work_off


def _processor_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _median(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return sorted(runs, key=lambda one: one["processor"])[len(runs) // 2]


def _row(way: str, line: dict[str, Any]) -> list[str]:
    told = [str(line["told"]), f"{line['still']:.1f}"] if line["told"] else ["", ""]
    return [way, f"{line['processor']:.1f}", f"{line['clock']:.1f}", *told]
