"""Whether an erasure gets dearer with those before it: one after 10,000, against one after ten.

Made-up data of 20,000 people. In one workspace 10,000 of them are erased in ten batches; another learns from those who
are left and from ten more, and forgets those ten: so both hold the same amount. Then one person after the other is
erased from each, and the processor time of each is taken; the median counts. Once by the command, and once by the
service: from the moment that somebody asks until the certificate is there and the worker has nothing left to do.
What is finished is kept in the folder that --work names, so that a run that was broken off goes on.
"""

import argparse
import os
import random
import resource
import secrets
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))  # the kit that the tests share

from erasable.operations import DiskStorage, status
from erasable.operations.do_not_learn import default_places
from erasable.requests import Request
from erasable.service._service import Service
from erasable.service._worker import Worker, WorkerOptions
from erasable.service.settings import ServiceSettings
from kit import erasure_service
from reporting import documented_parser, print_table, save, warn_if_busy

BAR = 1.2
FEW = 10
ITEMS = 2_000
PER_PERSON = 20
_SETTINGS = ServiceSettings(batch_window=0, daily_share=1)


def main() -> None:
    options = _options()
    warn_if_busy()
    with _work_folder(options.work) as work:
        roads = {road: _costs(Trial(work, road, options)) for road in options.roads}
    rows = [[road, *(f"{one[name]:.3f}" for name in ("few", "many", "ratio"))] for road, one in roads.items()]
    print_table(("road", f"after {FEW}, s", f"after {options.earlier:,}, s", "ratio"), rows)
    facts = {"people": options.people, "earlier": options.earlier, "batches": options.batches, "bar": BAR}
    print(f"written to {save('growth', {**facts, 'roads': roads})}")
    if any(one["ratio"] > BAR for one in roads.values()):
        sys.exit(f"broken: an erasure costs more than {BAR} times what it did after {FEW}")


class Trial:
    """One road to an erasure, and the people who take it."""

    def __init__(self, work: Path, road: str, options: argparse.Namespace) -> None:
        self.work, self.road, self.runs = work, road, options.runs
        everyone = [f"person-{number:05d}@example.org" for number in range(1, options.people + 1)]
        shuffled = random.Random(options.seed).sample(everyone, len(everyone))
        self.everyone, self.earlier, self.left = everyone, shuffled[: options.earlier], shuffled[options.earlier :]
        self.batch = -(-options.earlier // options.batches)
        self.seed = options.seed

    def learned(self, name: str, people: Sequence[str]) -> Path:
        """Return the workspace of this name, which has learned from these people."""
        shop = self.work / f"{self.road}-{name}"
        if not (shop / "manifest.json").exists():
            source = self.work / f"{shop.name}.csv"
            _write_data(source, people, self.seed)
            _run("learn", source, "--into", shop, "--model", "als", "--quiet")
        return shop

    def erase(self, shop: Path, people: Sequence[str]) -> float:
        """Erase people, and return the seconds of processor time that it took."""
        return _by_command(shop, people) if self.road == "command" else _by_service(shop, people)


def _costs(trial: Trial) -> dict[str, Any]:
    """Return what one erasure costs after few and after many."""
    many = trial.learned("many", trial.everyone)
    few = trial.learned("few", sorted([*trial.left, *trial.earlier[:FEW]]))
    _erase_all(trial, few, trial.earlier[:FEW], FEW)
    _erase_all(trial, many, trial.earlier, trial.batch)
    measured: dict[str, list[float]] = {"few": [], "many": []}
    for run in range(trial.runs + 1):  # in turn: what else the machine does meets both
        for name, shop in (("few", few), ("many", many)):
            seconds = trial.erase(shop, [_somebody(shop)])
            if run:  # the first is to get warm
                measured[name].append(seconds)
    medians = {name: statistics.median(seconds) for name, seconds in measured.items()}
    return {**medians, "ratio": medians["many"] / medians["few"], "measured": measured, "sizes": _sizes(many)}


def _erase_all(trial: Trial, shop: Path, people: Sequence[str], batch: int) -> None:
    """Erase people in batches; those of a run that was broken off are erased already."""
    done = status(DiskStorage(shop))["erasures"]
    for start in range(done, len(people), batch):
        seconds = trial.erase(shop, people[start : start + batch])
        print(f"{shop.name}: {min(len(people), start + batch):,} erased ({seconds:.1f} s)", flush=True)


def _somebody(shop: Path) -> str:
    """Return somebody in the last group: the least is trained again, so that all else counts most."""
    return erasure_service.last_person_in(shop)


def _by_command(shop: Path, people: Sequence[str]) -> float:
    with tempfile.TemporaryDirectory() as folder:
        listed = Path(folder) / "people.txt"
        listed.write_text("\n".join(people) + "\n")
        before = _of_children()
        _run("forget", shop, "--users-file", listed, "--yes", "--receipts", Path(folder) / "receipts", "--quiet")
        return _of_children() - before


def _by_service(shop: Path, people: Sequence[str]) -> float:
    """Ask a service for people to be erased, and work until nothing is left to do; in this process, already warm."""
    actor = secrets.token_hex(8)  # another each time: nobody may ask for so many in a day
    opened = Service.open(shop, _SETTINGS)
    worker = Worker(WorkerOptions(shop, _SETTINGS, default_places(shop), threads=1, pause=0))
    with closing(opened.database), closing(worker.database):
        _work_off(worker)
        before = time.process_time()
        asked = [opened.reception.submit(Request(person), actor).request_id for person in people]
        _work_off(worker)
        seconds = time.process_time() - before
        opened.reception.follow()
        states = {one.state for one in opened.history.some(asked)}
        worker.lease.release()
    if states != {"erased"}:
        sys.exit(f"broken: requests ended as {sorted(states)}")
    return seconds


def _work_off(worker: Worker) -> None:
    while worker.step():
        pass


def _write_data(path: Path, people: Sequence[str], seed: int) -> None:
    """Write a table of made-up ratings; what somebody has rated depends on who it is alone."""
    with path.open("w") as file:
        file.write("user_id,item_id,rating\n")
        for person in people:
            own = random.Random(f"{seed} {person}")
            for item in own.sample(range(ITEMS), own.randint(PER_PERSON - 10, PER_PERSON + 10)):
                file.write(f"{person},item-{item:04d},{own.randint(1, 5)}\n")


def _sizes(shop: Path) -> dict[str, int]:
    """Return how many bytes lie in the queue and in what is sealed, and how many certificates there are."""
    ledger = shop / "ledger.sqlite"
    return {
        "ledger": ledger.stat().st_size if ledger.exists() else 0,
        "sealed": sum(file.stat().st_size for file in shop.glob("sealed/*")),
        "certificates": sum(1 for _ in shop.glob("certificates/*.json")),
    }


def _run(*arguments: object) -> None:
    command = [str(Path(sys.executable).parent / "erasable"), *map(str, arguments), "--threads", "1"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env={**os.environ, "NO_COLOR": "1"})


def _of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@contextmanager
def _work_folder(wanted: Path | None) -> Iterator[Path]:
    if wanted is not None:
        wanted.mkdir(parents=True, exist_ok=True)
        yield wanted
        return
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def _options() -> argparse.Namespace:
    parser = documented_parser(__doc__)
    parser.add_argument("--work", type=Path, help="a folder that keeps what is finished")
    parser.add_argument("--people", type=int, default=20_000)
    parser.add_argument("--earlier", type=int, default=10_000, help="how many are erased before")
    parser.add_argument("--batches", type=int, default=10)
    parser.add_argument("--runs", type=int, default=3, help="how many are erased one by one afterwards")
    parser.add_argument("--roads", nargs="+", choices=["command", "service"], default=["command", "service"])
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


if __name__ == "__main__":
    main()
