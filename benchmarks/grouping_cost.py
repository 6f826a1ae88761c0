"""What grouping costs: from a file of ratings to ordered groups, in wall seconds, CPU seconds and peak memory.

    scripts/bench grouping_cost --data DIR [--largest USERS]

DIR holds ml-1m/ratings.csv and book-crossing/ratings.csv; the rest is synthetic: 10 interactions for each user, ten
times as many users as items, up to a million users (--largest stops below, which leaves out the longest runs). Each
case is a fresh process that compiles or loads its kernels on tiny data before the clock starts. Reading the file is
inside the time. The growth over the synthetic sizes is fitted on logarithms and drawn, in CPU seconds: other programs
disturb them less than wall seconds, which are fitted too.

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
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
from pyarrow import parquet

import erasable
from erasable.data import SyntheticSettings, read_interactions, recognise_scale, synthesise
from erasable.grouping import GroupingEffort, GroupingSettings, assign_groups
from reporting import RESULTS, documented_parser, print_table, save, verdict, warn_if_busy

FOLDER = "grouping_cost"
PICTURE = Path(__file__).parents[1] / "docs" / "pictures" / "grouping-growth.png"
GROUPINGS = ("cbkm-near", "cbkm")
GROUPS, SEED = 8, 0
SIZES = (31_250, 62_500, 125_000, 1_000_000)
BARS = {"ml-1m": (20.0, 2.0), "book-crossing": (240.0, 6.0), f"synthetic-{SIZES[-1]}": (1500.0, 12.0)}
"""Seconds and gigabytes."""
MOST_GROWTH = 1.2
NOTES = {
    "load_before": "load of the machine just before the case: other programs, or the case before it",
    "code": "digest of the code that made a line; where it differs from present_code the line is of other code",
    "growth_exponents": "the bar is on CPU seconds",
}
CODE = ("seeding", "data", "grouping")
COLOURS = {"cbkm-near": "#0072B2", "cbkm": "#D55E00"}
MARKERS = {"cbkm-near": "o", "cbkm": "s"}


@dataclass(frozen=True)
class Case:
    """One file to group in one way."""

    name: str
    grouping: str
    threads: int

    @property
    def cell(self) -> str:
        """Return the name of the case's file under results/."""
        return f"{FOLDER}/{self.name}-{self.grouping}"


def main() -> None:
    options = _options()
    if options.inside:
        return _work_inside(*options.inside)
    warn_if_busy()
    sizes = [size for size in SIZES if size <= options.largest]
    found = [_real(name, grouping, options) for name in ("ml-1m", "book-crossing") for grouping in GROUPINGS]
    growth = [cell for size in sizes for cell in _synthetic(size, options)]
    lines = [*found, *growth]
    exponents = {grouping: _exponents(grouping, growth) for grouping in GROUPINGS} if len(sizes) > 1 else {}
    rows = [_row(line) for line in lines]
    print_table(("file", "grouping", "interactions", "seconds", "CPU s", "peak GB", "load before", "bar", ""), rows)
    shown = [
        [name, f"{of['seconds']:.3f}", f"{of['cpu_seconds']:.3f}", *_growth_bar(of)] for name, of in exponents.items()
    ]
    if shown:
        print_table(("growth", "of seconds", "of CPU s", "bar", ""), shown)
        _draw(growth, exponents)
    result = {"groups": GROUPS, "threads": options.threads, "lines": lines, "growth_exponents": exponents}
    result |= {"present_code": _code_digest(), "notes": NOTES}
    print(f"written to {save(FOLDER, result)}")
    sys.exit(any("MISSED" in row[-1] for row in (*rows, *shown)))


def _real(name: str, grouping: str, options: argparse.Namespace) -> dict[str, Any]:
    case = Case(name, grouping, options.threads)
    return _kept(case, {}, options.any_code) or _measured(case, {}, options.data / name / "ratings.csv")


def _synthetic(users: int, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Measure one size; the file is made only if a cell is missing."""
    facts = _synthetic_settings(users).model_dump()
    cases = [Case(f"synthetic-{users}", grouping, options.threads) for grouping in GROUPINGS]
    cells = [_kept(case, facts, options.any_code) for case in cases]
    if all(cells):
        return [cell for cell in cells if cell]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ratings.parquet"
        _run_inside("make", str(users), str(path))
        return [cell or _measured(case, facts, path) for case, cell in zip(cases, cells, strict=True)]


def _synthetic_settings(users: int) -> SyntheticSettings:
    return SyntheticSettings(
        users=users, items=users // 10, groups=64, per_user=10, in_group=0.8, popularity_exponent=0.5, seed=SEED
    )


def _made_by(case: Case, facts: dict[str, Any]) -> dict[str, Any]:
    return {**asdict(case), "groups": GROUPS, "seed": SEED, "synthetic": facts, "code": _code_digest()}


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
    answer = json.loads(_run_inside("group", str(path), case.grouping, str(case.threads)))
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
        _write(_synthetic_settings(int(users)), Path(path))
    else:
        path, grouping, threads = arguments
        _warm_up(grouping, int(threads))
        # The digest is that of the process that did the work: code may change while a long run goes on.
        print(json.dumps({**_group(Path(path), grouping, int(threads)), "code": _code_digest()}))


def _write(settings: SyntheticSettings, path: Path) -> None:
    made = synthesise(settings).interactions
    users = made.users.array.take(pa.array(made.user_index))
    items = made.items.array.take(pa.array(made.item_index))
    parquet.write_table(pa.table({"user_id": users, "item_id": items, "rating": made.rating}), path)


def _warm_up(grouping: str, threads: int) -> None:
    """Load every kernel: those of small data, then those that large data take instead."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tiny.parquet"
        _write(SyntheticSettings(users=200, items=100, groups=4, per_user=5), path)
        _group(path, grouping, threads)
        large = {
            "paper._vectors.MOST_PAIRS": 0,
            "grouping.cohesion.MOST_EXACT": 1,
            "grouping.cohesion.SAMPLED_PAIRS": 10,
        }
        large |= {"grouping.balanced_clustering.SAMPLE": 100}
        with contextmanager(_patched)(large):
            _group(path, grouping, threads)


def _patched(values: dict[str, int]) -> Iterator[None]:
    patches = [mock.patch(f"erasable.{name}", value) for name, value in values.items()]
    for patch in patches:
        patch.start()
    yield
    for patch in patches:
        patch.stop()


def _group(path: Path, grouping: str, threads: int) -> dict[str, Any]:
    """Go from a file to ordered groups, and say what it took."""
    parts: dict[str, float] = {}

    @contextmanager
    def track(label: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
        began = time.perf_counter()
        yield lambda done: None
        parts[label] = round(time.perf_counter() - began, 3)

    wall, cpu = time.perf_counter(), time.process_time()
    with track("reading"):
        interactions = read_interactions(path).interactions
        scale = recognise_scale(interactions.rating)
    settings = GroupingSettings(grouping=grouping, groups=GROUPS)
    found = assign_groups(interactions, scale, settings, SEED, GroupingEffort(threads, track))
    return {
        "seconds": round(time.perf_counter() - wall, 3),
        "cpu_seconds": round(time.process_time() - cpu, 3),
        "peak_gigabytes": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9, 3),
        "parts": parts,
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
    axes.set_title("Time of grouping: synthetic data, 10 interactions for each user, 8 groups")
    axes.grid(which="major", alpha=0.4)
    axes.legend(loc="upper left", frameon=True)
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(PICTURE, dpi=130)


@cache
def _code_digest() -> str:
    """Return a digest of the code that decides these figures."""
    package = Path(erasable.__file__).parent
    sources = sorted(path for layer in CODE for path in (package / layer).rglob("*.py"))
    return blake2b(b"".join(path.read_bytes() for path in sources), digest_size=16).hexdigest()


def _row(line: dict[str, Any]) -> list[str]:
    figures = [f"{line['seconds']:.1f}", f"{line['cpu_seconds']:.1f}", f"{line['peak_gigabytes']:.2f}"]
    start = [line["name"], line["grouping"], f"{line['interactions']:,}", *figures, f"{line['load_before']:.1f}"]
    if line["name"] not in BARS:
        return [*start, "", ""]
    seconds, memory = BARS[line["name"]]
    reached = {verdict(seconds, line["seconds"]), verdict(memory, line["peak_gigabytes"])}
    return [*start, f"{seconds:g} s, {memory:g} GB", min(reached)]


def _growth_bar(exponents: dict[str, Any]) -> list[str]:
    return [f"{MOST_GROWTH:g}", verdict(MOST_GROWTH, exponents["cpu_seconds"])]


def _options() -> argparse.Namespace:
    parser = documented_parser(__doc__)
    parser.add_argument("--data", type=Path, help="the folder with ml-1m/ and book-crossing/")
    parser.add_argument("--largest", type=int, default=SIZES[-1], help="the most users of synthetic data")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--any-code", action="store_true", help="take cells that other code made, even by a comment")
    parser.add_argument("--inside", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not options.inside and not options.data:
        parser.error("--data is needed")
    return options


if __name__ == "__main__":
    main()
