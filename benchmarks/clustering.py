"""Balanced k-means against k-means-constrained: the same users, the same ceiling, the same number of beginnings.

    scripts/bench clustering --data DIR [--million-only]        DIR/ml-1m/ratings.csv

The points are the user vectors of MovieLens 1M by `cbkm` and by `cbkm-near`. Both sides work with one thread and the
times are CPU seconds of clustering alone, so that other programs disturb them little. Where runs are repeated they
alternate (ours, theirs, ours, …) and the medians are compared. Then a million points in 32 dimensions, ours alone;
with --million-only the rest is taken from the last result.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from erasable.data import read_interactions, recognise_scale
from erasable.grouping import GroupingEffort, GroupingSettings
from erasable.grouping.balanced_clustering import RESTARTS, balanced_k_means, inertia
from erasable.grouping.groups import user_space
from erasable.grouping.points import Labels, Points, bipartite_graph, vector_points
from reporting import RESULTS, documented_parser, print_table, save, verdict, warn_if_busy

PEER = "k-means-constrained"
PEER_PACKAGES = ("k-means-constrained==0.9.1", "numpy==2.4.6", "scipy==1.17.1", "ortools==9.15.6755")
PEER_VENV = Path(__file__).parent / ".venv-peers"
REPEATED = {("cbkm-near", 8): 3}
"""How many runs of each side; one where nothing is said, since a run of the peer takes up to a minute and more."""
BARS = {"inertia ratio": 1.03, "seconds ratio": 1.0, "million seconds": 120.0}
MILLION = {"points": 1_000_000, "dimensions": 32, "blobs": 100, "groups": 64}
SEED = 0
PEER_SCRIPT = """
import json, sys, time
import numpy as np
from importlib.metadata import version
from k_means_constrained import KMeansConstrained
path, groups, ceiling, restarts, seed = sys.argv[1], *map(int, sys.argv[2:])
points = np.load(path)
model = KMeansConstrained(n_clusters=groups, size_max=ceiling, n_init=restarts, n_jobs=1, random_state=seed)
wall, cpu = time.perf_counter(), time.process_time()
labels = model.fit_predict(points)
seconds = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
versions = {name: version(name) for name in ("k-means-constrained", "numpy", "scipy", "ortools")}
print(json.dumps({"labels": labels.tolist(), "seconds": seconds, "versions": versions}))
"""


def main() -> None:
    options = _options()
    warn_if_busy()
    # Compiled before any clock starts.
    balanced_k_means(vector_points(np.eye(32, dtype=np.float32)), 2, SEED, 1)
    lines, versions = _last_lines() if options.million_only else _contests(options.data)
    million = _million(options.threads)
    _print(lines, million)
    notes = "one thread each, CPU seconds of clustering alone; single runs where 'runs' is 1: the peer is slow there"
    result = {"note": notes, "restarts": RESTARTS, "peer": versions, "lines": lines, "million": million, "bars": BARS}
    print(f"written to {save('clustering', result)}")
    sys.exit(not all(_reached(line) for line in lines) or million["seconds"]["wall"] > BARS["million seconds"])


def _last_lines() -> tuple[list[dict[str, Any]], dict[str, str]]:
    last = json.loads((RESULTS / "clustering.json").read_text())
    return last["lines"], last["peer"]


def _contests(data: Path) -> tuple[list[dict[str, Any]], dict[str, str]]:
    python = _peer_venv()
    lines, versions = [], {}
    for grouping in ("cbkm-near", "cbkm"):
        points = _user_vectors(data / "ml-1m" / "ratings.csv", grouping)
        for groups in (8, 16):
            line, versions = _contest(points, groups, python, REPEATED.get((grouping, groups), 1))
            lines.append({"vectors": grouping, **line})
    return lines, versions


def _contest(points: Points, groups: int, python: Path, runs: int) -> tuple[dict[str, Any], dict[str, str]]:
    """Cluster the same points on both sides in turn."""
    ceiling, load = -(-points.size // groups), os.getloadavg()[0]
    sides: dict[str, list[dict[str, Any]]] = {"erasable": [], "peer": []}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "points.npy"
        np.save(path, points.values.reshape(points.size, points.width))
        command = [str(python), "-c", PEER_SCRIPT, str(path), *map(str, (groups, ceiling, RESTARTS, SEED))]
        for _ in range(runs):
            sides["erasable"].append(_timed(lambda: balanced_k_means(points, groups, SEED, 1)))
            sides["peer"].append(_peer_run(command))
    labels = {name: np.array(several[0]["labels"]) for name, several in sides.items()}
    found = {name: inertia(points, of_side, groups) for name, of_side in labels.items()}
    cpu = {name: [run["seconds"]["cpu"] for run in several] for name, several in sides.items()}
    median = {name: statistics.median(values) for name, values in cpu.items()}
    line = {
        "groups": groups,
        "runs": runs,
        "inertia": found,
        "inertia_ratio": found["erasable"] / found["peer"],
        "cpu_seconds": median,
        "cpu_seconds_of_runs": cpu,
        "wall_seconds_of_runs": {name: [run["seconds"]["wall"] for run in several] for name, several in sides.items()},
        "times_as_fast": median["peer"] / median["erasable"],
        "largest_group": {name: int(np.bincount(of_side).max()) for name, of_side in labels.items()},
        "ceiling": ceiling,
        "load_before": round(load, 2),
    }
    print(f"{groups} groups: {json.dumps(line)}", file=sys.stderr, flush=True)
    return line, sides["peer"][0]["versions"]


def _timed(cluster: Callable[[], Labels]) -> dict[str, Any]:
    wall, cpu = time.perf_counter(), time.process_time()
    labels = cluster()
    return {"labels": labels, "seconds": {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}}


def _peer_run(command: list[str]) -> dict[str, Any]:
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    return json.loads(subprocess.run(command, env=environment, check=True, capture_output=True).stdout)


def _million(threads: int) -> dict[str, Any]:
    """Cluster blobs that are many more than groups."""
    points, load = vector_points(_blobs()), os.getloadavg()[0]
    run = _timed(lambda: balanced_k_means(points, MILLION["groups"], SEED, threads))
    ceiling = -(-points.size // MILLION["groups"])
    largest = int(np.bincount(run["labels"]).max())
    found = {"largest_group": largest, "ceiling": ceiling, "load_before": round(load, 2)}
    return {**MILLION, "threads": threads, "seconds": run["seconds"], **found}


def _blobs() -> NDArray[np.float32]:
    random = np.random.default_rng(SEED)
    centres = random.normal(scale=4.0, size=(MILLION["blobs"], MILLION["dimensions"]))
    blob = random.integers(0, MILLION["blobs"], MILLION["points"])
    return (centres[blob] + random.normal(size=(MILLION["points"], MILLION["dimensions"]))).astype(np.float32)


def _user_vectors(path: Path, grouping: str) -> Points:
    interactions = read_interactions(path).interactions
    graph = bipartite_graph(interactions, recognise_scale(interactions.rating))
    return user_space(graph, interactions.users, GroupingSettings(grouping=grouping), SEED, GroupingEffort(2))


def _peer_venv() -> Path:
    """Return the Python of a venv that holds the peer, made on first use."""
    python = PEER_VENV / "bin" / "python"
    if not (PEER_VENV / "complete").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(PEER_VENV)], check=True)
        (PEER_VENV / ".gitignore").write_text("*\n")
        subprocess.run([str(python), "-m", "pip", "install", "-qq", *PEER_PACKAGES], check=True)
        (PEER_VENV / "complete").touch()
    return python


def _print(lines: list[dict[str, Any]], million: dict[str, Any]) -> None:
    header = ("vectors", "groups", "runs", "inertia", f"{PEER}", "ratio", "", "CPU s", f"{PEER}", "times as fast", "")
    print_table(header, [_cells(line) for line in lines])
    seconds, bar = million["seconds"]["wall"], BARS["million seconds"]
    spent, load = million["seconds"]["cpu"], million["load_before"]
    print(f"\na million points, {million['groups']} groups, {million['threads']} threads: {seconds:.1f} s", end=", ")
    print(f"{spent:.1f} CPU s, load before {load:.1f}, bar {bar:g} s, {verdict(bar, seconds)}", end="; ")
    print(f"largest group {million['largest_group']}, ceiling {million['ceiling']}")


def _cells(line: dict[str, Any]) -> list[str]:
    ratio, faster, sides = line["inertia_ratio"], line["times_as_fast"], ("erasable", "peer")
    found, seconds = ([f"{line[name][side]:.2f}" for side in sides] for name in ("inertia", "cpu_seconds"))
    start = [line["vectors"], str(line["groups"]), str(line["runs"]), *found, f"{ratio:.4f}"]
    return [*start, verdict(BARS["inertia ratio"], ratio), *seconds, f"{faster:.1f}×", verdict(faster, 1.0)]


def _reached(line: dict[str, Any]) -> bool:
    return line["inertia_ratio"] <= BARS["inertia ratio"] and line["times_as_fast"] > BARS["seconds ratio"]


def _options() -> argparse.Namespace:
    parser = documented_parser(__doc__)
    parser.add_argument("--data", type=Path, required=True, help="the folder that holds ml-1m/ratings.csv")
    parser.add_argument("--million-only", action="store_true", help="take the rest from the last result")
    parser.add_argument("--threads", type=int, default=2, help="of the million points")
    return parser.parse_args()


if __name__ == "__main__":
    main()
