"""How learning, forgetting, searching, recommending and serving grow: 0.1, 1 and 10 million people, made-up data.

    scripts/bench scale --folder DIR                    all sizes and parts
    scripts/bench scale --size 1M --only forget-one-als --again
    scripts/bench scale --report                        the table and the picture, of what was measured

The data and the workspaces are made in a folder that is kept, so a run that was stopped goes on; each part's figures
are written to results/scale/ at once. A part is a process of the command. Its figures are the processor's seconds, user
and system, of it and of what it started, and its peak memory. Where the start of a process is left out, it is what the
same command takes for --help, which imports the same: the median of three, measured beside the part. The scan of an
erasure is timed inside it (scale_timed.py).
"""

import argparse
import csv
import json
import os
import random
import shutil
import signal
import statistics
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import scale_figure
from erasable.data import Ids
from erasable.data.made_up import MadeUpSettings, made_up_pieces
from erasable.grouping.registry import anchors_among
from erasable.seeding.compiled import source_stamp
from reporting import RESULTS, documented_parser, print_table, save
from scale_processes import Failed, run, run_with_timed_scan, start_of
from scale_service import served

KEPT = RESULTS / "scale"
ANCHORS, SEED = 0.05, 0
LEARNING = {"als": ("--model", "als", "--anchors", ANCHORS), "ease": ("--model", "ease", "--neighbours", 100)}
TYPICAL_ITEMS = 10
"""How many items those have who are forgotten alone: about the mean, so that sizes can be compared."""
MANY = 1_000


@dataclass(frozen=True)
class Size:
    """How much data there is."""

    users: int
    items: int
    interactions: int

    def settings(self) -> MadeUpSettings:
        """Return the settings of the made-up data."""
        return MadeUpSettings(users=self.users, items=self.items, interactions=self.interactions, seed=SEED)

    def person(self, number: int) -> str:
        """Return the id of a person, counted from 0."""
        return f"u{number + 1:0{max(4, len(str(self.users)))}d}"


SIZES = {
    "trial": Size(5_000, 1_000, 50_000),  # to see whether everything works; not among the sizes if none is named
    "0.1M": Size(100_000, 20_000, 1_000_000),
    "1M": Size(1_000_000, 50_000, 10_000_000),
    "10M": Size(10_000_000, 100_000, 100_000_000),
}


@dataclass(frozen=True)
class Bar:
    """What a part must reach: seconds of the processor that count, GB of memory, answers a second."""

    cpu: float | None = None
    memory: float | None = None
    answers: float | None = None


BARS = {
    "learn-als": {"1M": Bar(45, 1.5), "10M": Bar(600, 6)},
    "learn-ease": {"1M": Bar(300, 4)},
    "scan-als": {"1M": Bar(4), "10M": Bar(40)},
    "scan-ease": {"1M": Bar(4), "10M": Bar(40)},
    "recommend-als": {"1M": Bar(1), "10M": Bar(1, 1)},
    "recommend-ease": {"1M": Bar(1), "10M": Bar(1, 1)},
    "forget-one-als": {"1M": Bar(2), "10M": Bar(3)},
    "forget-one-ease": {"1M": Bar(4)},
    "forget-1000-als": {"1M": Bar(30), "10M": Bar(180)},
    "serve-ease": {"1M": Bar(4, 1, 800), "10M": Bar(6, 3, 600)},
}
NO_BAR = Bar()


class Trial:
    """One size: its data and its workspaces, in a folder that is kept."""

    def __init__(self, name: str, options: argparse.Namespace) -> None:
        self.name, self.size, self.options = name, SIZES[name], options
        self.folder = options.folder / name
        self.data = self.folder / "made.parquet"
        self.folder.mkdir(parents=True, exist_ok=True)

    def shop(self, model: str) -> Path:
        """Return the workspace of a model."""
        return self.folder / model / "shop"

    def make(self) -> dict[str, Any]:
        """Make up the data."""
        self.data.unlink(missing_ok=True)
        size = self.size
        amounts = ("--users", size.users, "--items", size.items, "--interactions", size.interactions, "--seed", SEED)
        used = run("data", "make", self.data, *amounts, "--json")
        return {**used.facts(), "made": json.loads(used.said)}

    def learn(self, model: str) -> dict[str, Any]:
        """Learn; ALS with a do-not-learn list that has one interaction on it."""
        shop = self.shop(model)
        shutil.rmtree(shop.parent, ignore_errors=True)
        shop.parent.mkdir()
        listed = self._with_one_listed(shop.parent) if model == "als" else ()
        used = run("learn", self.data, "--into", shop, *LEARNING[model], *listed, *self._threads, "--json")
        learned = json.loads(used.said)
        if listed and learned["left_out"]["interactions"] != 1:
            raise Failed(f"the do-not-learn list left out {learned['left_out']}, and not one interaction")
        return {**used.facts(), "users": learned["users"], "items": learned["items"], "disk_gb": _gigabytes(shop)}

    def scan(self, model: str) -> dict[str, Any]:
        """Search a workspace for somebody whom it holds: that something is found is no failure."""
        used = run("scan", self.shop(model), "--user", self.size.person(0), codes=(0, 1))
        return {**used.facts(), "start": round(start_of("scan"), 2)}

    def recommend(self, model: str) -> dict[str, Any]:
        """Recommend to one person after the other, each in a process of its own; the median counts."""
        chance = random.Random(SEED)
        people = [self.size.person(chance.randrange(self.size.users)) for _ in range(self.options.runs)]
        each = [run("recommend", self.shop(model), "--user", one, *self._threads, "--json") for one in people]
        cpu, start = statistics.median(one.cpu for one in each), start_of("recommend")
        facts = {"cpu": round(cpu, 2), "start": round(start, 2), "cpu_beyond_start": round(cpu - start, 2)}
        return {**facts, "memory_gb": round(max(one.memory for one in each), 3), "runs": [one.facts() for one in each]}

    def forget_one(self, model: str, anchors: bool = False) -> dict[str, Any]:
        """Forget one person after the other in a copy, certified, none of them an anchor or all; the median counts."""
        people, each = self._others(self.options.runs, TYPICAL_ITEMS, anchors), []
        with self._copy(model) as (shop, listed):
            for one in people:
                each.append(run_with_timed_scan("forget", shop, "--user", one, *listed, *self._threads, "--json"))
                _require_certificates(each[-1].said, 1)
        start, scan = start_of("forget"), statistics.median(one.scan for one in each)
        beyond = [one.cpu - start - one.scan for one in each]
        cpu = statistics.median(one.cpu for one in each)
        return {
            "cpu": round(cpu, 2),
            "start": round(start, 2),
            "scan": round(scan, 2),
            "cpu_beyond_start": round(cpu - start, 3),
            "cpu_beyond_start_and_scan": round(statistics.median(beyond), 3),
            "memory_gb": round(max(one.memory for one in each), 3),
            "items_of_each": TYPICAL_ITEMS,
            "runs": [{**one.facts(), "scan": round(one.scan, 2)} for one in each],
        }

    def forget_many(self, model: str) -> dict[str, Any]:
        """Forget many people at once in a copy, none of them an anchor."""
        with self._copy(model) as (shop, listed):
            file = shop.parent / "people.csv"
            with file.open("w", newline="") as stream:
                csv.writer(stream).writerows([["user_id"], *([one] for one in self._others(MANY))])
            receipts = shop.parent / "receipts"
            words = ("--users-file", file, "--yes", "--receipts", receipts, *listed, *self._threads, "--json")
            used = run_with_timed_scan("forget", shop, *words)
        _require_certificates(used.said, MANY)
        facts = {"scan": round(used.scan, 2), "cpu_without_scan": round(used.cpu - used.scan, 2), "people": MANY}
        return {**used.facts(), **facts}

    def serve(self, model: str) -> dict[str, Any]:
        """Serve, and put a load on."""
        options, size = self.options, self.size
        somebody = lambda chance: size.person(chance.randrange(size.users))  # noqa: E731 - a line
        return served(self.shop(model), somebody, options.threads, options.warming, options.seconds)

    @property
    def _threads(self) -> tuple[object, ...]:
        return "--threads", self.options.threads

    def _with_one_listed(self, folder: Path) -> tuple[object, ...]:
        """Make a do-not-learn list with one interaction of somebody in the data: forget it in a small workspace."""
        (piece,) = made_up_pieces(self.size.settings(), first=0, end=50)
        digits = max(4, len(str(self.size.items)))
        rows = [
            (self.size.person(user), f"i{item + 1:0{digits}d}")
            for user, item in zip(piece.user_index.tolist(), piece.item_index.tolist(), strict=True)
        ]
        small = folder / "small.csv"
        with small.open("w", newline="") as stream:
            csv.writer(stream).writerows([("user_id", "item_id"), *rows])
        user, item = next(row for row in rows if rows.count(row) == 1 and [one for one, _ in rows].count(row[0]) > 1)
        listed = _list_in(folder)
        for place in ("list", "key"):
            (folder / place).mkdir()
        run("learn", small, "--into", folder / "small", "--model", "als", *listed, "--quiet")
        run("forget", folder / "small", "--user", user, "--item", item, *listed, "--json")
        return listed

    def _others(self, count: int, items: int | None = None, anchors: bool = False) -> list[str]:
        """Return people at random, no anchors or only anchors, with so many items if that is named; never the first."""
        chance, found = random.Random(SEED + 1), dict[str, None]()
        while len(found) < count:
            number = chance.randrange(1, self.size.users)
            person = self.size.person(number)
            if anchors_among(Ids.of([person]), ANCHORS, SEED)[0] != anchors:
                continue
            if items is None or len(next(made_up_pieces(self.size.settings(), number, number + 1)).item_index) == items:
                found[person] = None
        return list(found)

    def _copy(self, model: str) -> "_Copy":
        return _Copy(self.folder / model, self.folder / f"copy-{model}", with_list=model == "als")


class _Copy:
    """A copy of a workspace and its do-not-learn list, for a block."""

    def __init__(self, original: Path, copy: Path, with_list: bool) -> None:
        self._original, self._copy, self._with_list = original, copy, with_list

    def __enter__(self) -> tuple[Path, tuple[object, ...]]:
        shutil.rmtree(self._copy, ignore_errors=True)
        shutil.copytree(self._original, self._copy)
        return self._copy / "shop", _list_in(self._copy) if self._with_list else ()

    def __exit__(self, *raised: object) -> None:
        shutil.rmtree(self._copy, ignore_errors=True)


PARTS: dict[str, Callable[[Trial], dict[str, Any]]] = {
    "make": Trial.make,
    "learn-als": partial(Trial.learn, model="als"),
    "learn-ease": partial(Trial.learn, model="ease"),
    **{f"scan-{model}": partial(Trial.scan, model=model) for model in LEARNING},
    **{f"recommend-{model}": partial(Trial.recommend, model=model) for model in LEARNING},
    **{f"forget-one-{model}": partial(Trial.forget_one, model=model) for model in LEARNING},
    "forget-anchor-als": partial(Trial.forget_one, model="als", anchors=True),
    "forget-1000-als": partial(Trial.forget_many, model="als"),
    **{f"serve-{model}": partial(Trial.serve, model=model) for model in LEARNING},
}
COUNTS = {
    "forget-one": "cpu_beyond_start_and_scan",
    "forget-anchor": "cpu_beyond_start_and_scan",
    "forget-1000": "cpu_without_scan",
    "recommend": "cpu_beyond_start",
    "serve": "cpu_until_first_answer",
}
"""Which seconds of a part count against its bar, if not all of them."""


def main() -> None:
    options = _options()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # so that what it started is ended too
    if not options.report:
        _compile(options)
    failed: set[tuple[str, str]] = set()
    for name in [] if options.report else options.size:
        trial = Trial(name, options)
        for part in options.only or PARTS:
            for one in _needed(trial, part):
                if (name, one) in failed or not _measure(trial, one, options):
                    failed |= {(name, one), (name, part)}
                    break
    for name, part in sorted(failed):
        print(f"{name}: {part} was not measured", file=sys.stderr)
    missed = _report(list(SIZES) if options.report else options.size)
    sys.exit(bool(failed) or missed)


def _compile(options: argparse.Namespace) -> None:
    """Have everything compiled before it is measured: learn, recommend and forget once with little data."""
    stamp = options.folder / "compiled.txt"
    if stamp.exists() and stamp.read_text() == source_stamp():
        return
    print("compiling ...", flush=True)
    trial = Trial("trial", argparse.Namespace(**{**vars(options), "folder": options.folder / "compiling", "runs": 1}))
    trial.make()
    for model in LEARNING:
        for part in (trial.learn, trial.recommend, trial.forget_one):
            part(model)
    shutil.rmtree(options.folder / "compiling")
    stamp.write_text(source_stamp())


def _needed(trial: Trial, part: str) -> Iterator[str]:
    """Yield what a part builds on and is not there, then the part itself."""
    model = part.rpartition("-")[2]
    if part != "make" and not trial.data.exists():
        yield "make"
    if model in LEARNING and not part.startswith("learn") and not (trial.shop(model) / "manifest.json").exists():
        yield f"learn-{model}"
    yield part


def _measure(trial: Trial, part: str, options: argparse.Namespace) -> bool:
    """Measure a part unless that was done, and keep its figures at once; say whether they are there."""
    file = KEPT / f"{trial.name}-{part}.json"
    learned = part.startswith("learn") and not (trial.shop(part.rpartition("-")[2]) / "manifest.json").exists()
    lost = learned or (part == "make" and not trial.data.exists())
    again = options.again and part in (options.only or PARTS)
    if file.exists() and not lost and not again:
        return True
    print(f"{trial.name}: {part} ...", flush=True)
    try:
        found = PARTS[part](trial)
    except Failed as error:
        print(f"{trial.name}: {part}: {error}", file=sys.stderr, flush=True)
        return False
    size = trial.size
    facts = {"size": trial.name, "part": part, "model": part.rpartition("-")[2], "threads": options.threads}
    facts |= {"users": size.users, "items": size.items, "interactions": size.interactions}
    save(f"scale/{trial.name}-{part}", {**facts, **found})
    return True


def _report(sizes: list[str]) -> bool:
    """Print what was measured beside the bars, and draw the growth; say whether a bar was missed."""
    files = {(size, part): KEPT / f"{size}-{part}.json" for size in sizes for part in PARTS}
    kept = {names: json.loads(file.read_text()) for names, file in files.items() if file.exists()}
    rows = [_cells(size, part, one) for (size, part), one in kept.items()]
    header = ("people, part", "CPU s", "that count", "bar", "GB", "bar", "answers/s", "bar", "")
    if rows:
        print_table(header, rows)
    points = scale_figure.growth()
    for model, measured in points.items():
        slope = scale_figure.exponent(measured)
        if slope is not None:
            print(f"forget one, {model}: the seconds that count grow with people to the power of {slope:.2f}")
    if any(len(measured) > 1 for measured in points.values()):
        print(f"drawn in {scale_figure.draw(points, scale_figure.PICTURE)}")
    return any(row[-1] == "MISSED" for row in rows)


def _cells(size: str, part: str, found: dict[str, Any]) -> list[str]:
    bar = BARS.get(part, {}).get(size, NO_BAR)
    counting = next((name for kind, name in COUNTS.items() if part.startswith(kind)), "cpu")
    counts, memory, answers = found[counting], found["memory_gb"], found.get("answers_per_second")
    reached = [value <= most for value, most in ((counts, bar.cpu), (memory, bar.memory)) if most is not None]
    reached += [answers >= bar.answers] if bar.answers is not None and answers is not None else []
    verdict = "" if not reached else "reached" if all(reached) else "MISSED"
    return [
        f"{size} {part}",
        f"{found.get('cpu', counts):.1f}",
        f"{counts:.2f}",
        "" if bar.cpu is None else f"<= {bar.cpu:g}",
        f"{memory:.2f}",
        "" if bar.memory is None else f"<= {bar.memory:g}",
        "" if answers is None else f"{answers:.0f}",
        "" if bar.answers is None else f">= {bar.answers:g}",
        verdict,
    ]


def _require_certificates(said: str, people: int) -> None:
    certified = len(json.loads(said)["certificates"])
    if certified != people:
        raise Failed(f"{certified:,} of {people:,} erasures are certified")


def _list_in(folder: Path) -> tuple[object, ...]:
    return "--do-not-learn", folder / "list" / "list.json", "--do-not-learn-key", folder / "key" / "key"


def _gigabytes(folder: Path) -> float:
    return round(sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 1e9, 3)


def _options() -> argparse.Namespace:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    parser = documented_parser(__doc__)
    parser.add_argument("--folder", type=Path, default=cache / "erasable-scale", help="keeps data and workspaces")
    parser.add_argument("--size", nargs="+", choices=list(SIZES), default=[name for name in SIZES if name != "trial"])
    parser.add_argument("--only", nargs="+", choices=list(PARTS), metavar="PART", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--again", action="store_true", help="measure what was measured once more")
    parser.add_argument("--report", action="store_true", help="measure nothing")
    parser.add_argument("--runs", type=int, default=3, help="how many are forgotten alone, and recommended to")
    parser.add_argument("--threads", type=int, default=1, help="of each process: more spend processor time on waiting")
    parser.add_argument("--warming", type=int, default=30_000, help="how many people are asked for before the load")
    parser.add_argument("--seconds", type=float, default=20, help="how long the load lasts")
    return parser.parse_args()


if __name__ == "__main__":
    main()
