"""What grouping costs: from a file of ratings to ordered groups, in wall seconds, CPU seconds and peak memory.

    scripts/bench grouping_cost [--data DIR] [--sizes USERS ...] [--groupings NAME ...] [--vectors gensim]

DIR holds ml-1m/ratings.csv and book-crossing/ratings.csv; the rest is made up, as by `erasable data make`: about 10
interactions for each user, twenty times as many users as items, up to a million users (--sizes chooses). Each case is
a fresh process that compiles or loads its kernels on tiny data before the clock starts. Reading the file is inside the
time. The growth over the made-up sizes is fitted on logarithms and drawn, in CPU seconds: other programs disturb them
less than wall seconds, which are fitted too. The bars are on CPU seconds as well.

Each finished cell is one file under results/grouping_cost/, so a run that was stopped goes on from there; a file made
by other code or settings is made again, unless --any-code is given.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import erasable
from erasable.data import read_interactions, recognise_scale
from erasable.data.made_up import MadeUpSettings
from erasable.data.made_up_files import write_made_up
from erasable.grouping import GroupingEffort, GroupingSettings, assign_groups
from erasable.progress import Advance, Silent, ignore
from reporting import RESULTS, documented_parser, print_table, save, verdict, warn_if_busy

FOLDER = "grouping_cost"
PICTURE = Path(__file__).parents[1] / "docs" / "pictures" / "grouping-growth.png"
GROUPINGS = ("cbkm-near", "cbkm")
GROUPS, SEED = 8, 0
SIZES = (62_500, 125_000, 250_000, 500_000, 1_000_000)
BARS = {"ml-1m": (20.0, 2.0), "book-crossing": (240.0, 6.0), f"made-up-{SIZES[-1]}": (1200.0, 12.0)}
"""CPU seconds and gigabytes."""
MOST_GROWTH = 1.2
NOTES = {
    "load_before": "load of the machine just before the case: other programs, or the case before it",
    "code": "digest of the code that made a line; where it differs from present_code the line is of other code",
    "growth_exponents": "the bar is on CPU seconds",
    "parts": "CPU seconds",
}
CODE = ("seeding", "data", "grouping", "paper/_hypergraph.py", "paper/_walks.py", "paper/_skip_gram.py")
COLOURS = {"cbkm-near": "#0072B2", "cbkm": "#D55E00"}
MARKERS = {"cbkm-near": "o", "cbkm": "s"}


@dataclass(frozen=True)
class Case:
    """One file to group in one way."""

    name: str
    grouping: str
    vectors: str
    threads: int

    @property
    def cell(self) -> str:
        """Return the name of the case's file under results/."""
        return f"{FOLDER}/{self.name}-{self.grouping}" + ("-gensim" if self.vectors == "gensim" else "")


def main() -> None:
    options = _options()
    if options.inside:
        return _work_inside(*options.inside)
    warn_if_busy()
    real = ("ml-1m", "book-crossing") if options.data else ()
    found = [_real(name, grouping, options) for name in real for grouping in options.groupings]
    growth = [cell for size in options.sizes for cell in _made_up(size, options)]
    lines = [*found, *growth]
    several = options.groupings if len(options.sizes) > 1 else ()
    exponents = {grouping: _exponents(grouping, growth) for grouping in several}
    rows = [_row(line) for line in lines]
    print_table(("file", "grouping", "interactions", "seconds", "CPU s", "peak GB", "load before", "bar", ""), rows)
    shown = [
        [name, f"{of['seconds']:.3f}", f"{of['cpu_seconds']:.3f}", *_growth_bar(of)] for name, of in exponents.items()
    ]
    if shown:
        print_table(("growth", "of seconds", "of CPU s", "bar", ""), shown)
    if not _is_whole(options):
        return None
    _draw(growth, exponents)
    result = {"groups": GROUPS, "threads": options.threads, "lines": lines, "growth_exponents": exponents}
    result |= {"present_code": _code_digest(), "notes": NOTES}
    print(f"written to {save(FOLDER, result)}")
    sys.exit(any("MISSED" in row[-1] for row in (*rows, *shown)))


def _real(name: str, grouping: str, options: argparse.Namespace) -> dict[str, Any]:
    case = Case(name, grouping, options.vectors, options.threads)
    return _kept(case, {}, options.any_code) or _measured(case, {}, options.data / name / "ratings.csv")


def _is_whole(options: argparse.Namespace) -> bool:
    """Whether all made-up sizes were measured, with our vectors; parts only keep their cells."""
    return (*options.sizes, options.vectors) == (*SIZES, "erasable")


def _made_up(users: int, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Measure one size; the file is made only if a cell is missing."""
    facts = _made_up_settings(users).model_dump()
    cases = [Case(f"made-up-{users}", name, options.vectors, options.threads) for name in options.groupings]
    cells = [_kept(case, facts, options.any_code) for case in cases]
    if all(cells):
        return [cell for cell in cells if cell]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ratings.parquet"
        _run_inside("make", str(users), str(path))
        return [cell or _measured(case, facts, path) for case, cell in zip(cases, cells, strict=True)]


def _made_up_settings(users: int) -> MadeUpSettings:
    return MadeUpSettings(users=users, items=users // 20, interactions=10 * users, seed=SEED)


def _made_by(case: Case, facts: dict[str, Any]) -> dict[str, Any]:
    return {**asdict(case), "groups": GROUPS, "seed": SEED, "made_up": facts, "code": _code_digest()}


def _kept(case: Case, facts: dict[str, Any], any_code: bool) -> dict[str, Any] | None:
    """Return a cell's result from its file, if this code and these settings made it."""
    path = RESULTS / f"{case.cell}.json"
    expected = _made_by(case, facts)
    if any_code:
        del expected["code"]
    kept = json.loads(path.read_text()) if path.exists() else {}
    return kept if expected.items() <= kept.items() else None


def _measured(case: Case, facts: dict[str, Any], path: Path) -> dict[str, Any]:
    load = os.getloadavg()[0]
    answer = json.loads(_run_inside("group", str(path), case.grouping, case.vectors, str(case.threads)))
    result = {**_made_by(case, facts), "load_before": round(load, 2), **answer}
    save(case.cell, result)
    print(f"{case.cell}: {answer}, load before {load:.1f}", file=sys.stderr, flush=True)
    return result


def _run_inside(*arguments: str) -> str:
    """Run a part of this script in a fresh process; this one stays small, as a child inherits its peak memory."""
    command = [sys.executable, str(Path(__file__).resolve()), "--inside", *arguments]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout


def _work_inside(what: str, *arguments: str) -> None:
    if what == "make":
        users, path = arguments
        write_made_up(_made_up_settings(int(users)), Path(path))
    else:
        path, grouping, vectors, threads = arguments
        settings, code = GroupingSettings(grouping=grouping, groups=GROUPS, vectors=vectors), _code_digest()
        _warm_up(settings, int(threads))
        # The digest is that of the process that did the work: code may change while a long run goes on.
        print(json.dumps({**_group(Path(path), settings, int(threads)), "code": code}))


def _warm_up(settings: GroupingSettings, threads: int) -> None:
    """Load every kernel: those of small data, then those that large data take instead."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tiny.parquet"
        write_made_up(MadeUpSettings(users=200, items=100, interactions=1000), path)
        _group(path, settings, threads)
        large = {"paper._walks.MOST_PAIRS": 0, "grouping.groups.MOST_EXACT": 1, "grouping.groups.SAMPLED_PAIRS": 10}
        large |= {"grouping.balanced_clustering.SAMPLE": 100}
        with contextmanager(_patched)(large):
            _group(path, settings, threads)


def _patched(values: dict[str, int]) -> Iterator[None]:
    patches = [mock.patch(f"erasable.{name}", value) for name, value in values.items()]
    for patch in patches:
        patch.start()
    yield
    for patch in patches:
        patch.stop()


class _Clock(Silent):
    """Keeps the CPU seconds of each part."""

    def __init__(self) -> None:
        self.parts: dict[str, float] = {}

    @contextmanager
    def track(self, label: str, total: int | None = None) -> Iterator[Advance]:
        """Time one part."""
        began = time.process_time()
        yield ignore
        self.parts[label] = round(time.process_time() - began, 3)


def _group(path: Path, settings: GroupingSettings, threads: int) -> dict[str, Any]:
    """Go from a file to ordered groups, and say what it took."""
    clock = _Clock()
    wall, cpu = time.perf_counter(), time.process_time()
    with clock.track("reading"):
        interactions = read_interactions(path).interactions
        scale = recognise_scale(interactions.rating)
    found = assign_groups(interactions, scale, settings, SEED, GroupingEffort(threads, clock))
    return {
        "seconds": round(time.perf_counter() - wall, 3),
        "cpu_seconds": round(time.process_time() - cpu, 3),
        "peak_gigabytes": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9, 3),
        "parts": clock.parts,
        "users": len(interactions.users),
        "items": len(interactions.items),
        "interactions": len(interactions),
        "largest_group": int(np.bincount(found.positions).max()),
    }


def _exponents(grouping: str, growth: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Fit seconds = constant × interactions ^ exponent by least squares on logarithms."""
    several = [line for line in growth if line["grouping"] == grouping]
    sizes = np.log([line["interactions"] for line in several])
    fits = {name: np.polyfit(sizes, np.log([line[name] for line in several]), 1) for name in ("seconds", "cpu_seconds")}
    exponents = {name: float(fit[0]) for name, fit in fits.items()}
    return {**exponents, "constant": float(np.exp(fits["cpu_seconds"][1])), "sizes": len(several)}


def _draw(growth: Sequence[dict[str, Any]], exponents: dict[str, dict[str, Any]]) -> None:
    """Draw seconds against interactions, both on logarithmic axes, with the fitted lines."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot
    from matplotlib.ticker import FuncFormatter

    figure, axes = pyplot.subplots(figsize=(7.5, 5), layout="constrained")
    for grouping, fit in exponents.items():
        several = [line for line in growth if line["grouping"] == grouping]
        sizes = np.array([line["interactions"] for line in several])
        style = {"color": COLOURS[grouping], "marker": MARKERS[grouping]}
        label = f"{grouping}: grows with interactions to the power of {fit['cpu_seconds']:.2f}"
        axes.plot(
            sizes, [line["cpu_seconds"] for line in several], linestyle="none", markersize=8, label=label, **style
        )
        axes.plot(sizes, fit["constant"] * sizes ** fit["cpu_seconds"], color=COLOURS[grouping], linewidth=1.5)
    axes.set(
        xscale="log", yscale="log", xlabel="interactions in the file", ylabel="CPU seconds from file to ordered groups"
    )
    plain = FuncFormatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}")
    axes.xaxis.set_major_formatter(plain)
    axes.yaxis.set_major_formatter(plain)
    axes.yaxis.set_minor_formatter(plain)
    axes.set_title("Time of grouping: made-up data, about 10 interactions for each user, 8 groups")
    axes.grid(which="major", alpha=0.4)
    axes.legend(loc="upper left", frameon=True)
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(PICTURE, dpi=130)


@cache
def _code_digest() -> str:
    """Return a digest of the code that decides these figures."""
    package = Path(erasable.__file__).parent
    paths = (package / part for part in CODE)
    sources = sorted(source for path in paths for source in ([path] if path.is_file() else path.rglob("*.py")))
    return blake2b(b"".join(source.read_bytes() for source in sources), digest_size=16).hexdigest()


def _row(line: dict[str, Any]) -> list[str]:
    figures = [f"{line['seconds']:.1f}", f"{line['cpu_seconds']:.1f}", f"{line['peak_gigabytes']:.2f}"]
    start = [line["name"], line["grouping"], f"{line['interactions']:,}", *figures, f"{line['load_before']:.1f}"]
    if line["name"] not in BARS:
        return [*start, "", ""]
    seconds, memory = BARS[line["name"]]
    reached = {verdict(seconds, line["cpu_seconds"]), verdict(memory, line["peak_gigabytes"])}
    return [*start, f"{seconds:g} CPU s, {memory:g} GB", min(reached)]


def _growth_bar(exponents: dict[str, Any]) -> list[str]:
    return [f"{MOST_GROWTH:g}", verdict(MOST_GROWTH, exponents["cpu_seconds"])]


def _options() -> argparse.Namespace:
    parser = documented_parser(__doc__)
    parser.add_argument("--data", type=Path, help="the folder with ml-1m/ and book-crossing/")
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES, help="the numbers of users of made-up data")
    parser.add_argument("--groupings", nargs="+", default=GROUPINGS, choices=GROUPINGS)
    parser.add_argument("--vectors", default="erasable", choices=("erasable", "gensim"), help="who learns vectors")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--any-code", action="store_true", help="take cells that other code made, even by a comment")
    parser.add_argument("--inside", nargs="+", help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
