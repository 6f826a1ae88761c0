"""How fast whole training is, against a plain PyTorch module with the same model, batch, negatives and Adam.

    scripts/bench speed [--data DIR]        DIR/ml-1m/ratings.csv; synthetic data of the same size without it

Runs alternate (ours, PyTorch, ours, …) and the medians are compared. Ours is the whole training: shuffling,
sampling, gradients, Adam. PyTorch is given its samples ready-made, and OpenMP's faster way of waiting.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from erasable.data import Interactions, RatingScale, SyntheticSettings, read_interactions, synthesise
from erasable.models import Effort, Model, Stage, find_model
from reporting import documented_parser, print_table, save, verdict, warn_if_busy

BARS = {1024: 5.0, 4096: 3.0}
TORCH = "2.13.0"
TORCH_VENV = Path(__file__).parent / ".venv-torch"
NEGATIVES = 4
SCALE = RatingScale(1, 5)
READY_SAMPLES = 4_000_000
FAVOUR = "PyTorch's samples are ready-made, ours are sampled inside the time: this favours PyTorch"


@dataclass(frozen=True)
class Contest:
    """One line of the table, and what both sides are given."""

    model: str
    batch: int
    interactions: Interactions
    samples: Path
    torch_python: Path
    options: argparse.Namespace


def main() -> None:
    options = _options()
    warn_if_busy()
    interactions, source = _interactions(options.data)
    python = options.torch_python or _torch_venv()
    with tempfile.TemporaryDirectory() as folder:
        _write_ready_samples(interactions, Path(folder))
        lines = [
            _run(Contest(model, batch, interactions, Path(folder), python, options))
            for model in options.models
            for batch in options.batches
        ]
    print(f"\n{source}, {options.threads} threads each; {FAVOUR}")
    print_table(("model", "batch", "erasable/s", "PyTorch/s", "ratio", "bar", ""), [_cells(line) for line in lines])
    path = save(options.name, {"data": source, "note": FAVOUR, "threads": options.threads, "lines": lines})
    print(f"written to {path}")
    sys.exit(any(line["ratio"] < line.get("bar", 0) for line in lines))


def _run(contest: Contest) -> dict[str, Any]:
    """Measure both sides in turn and return one line of the table."""
    ours = _our_run(contest)
    policy = max(("PASSIVE", "ACTIVE"), key=lambda name: _torch_rate(contest, name, seconds=1.0))
    rates: dict[str, list[float]] = {"erasable": [], "torch": []}
    for number in range(contest.options.runs):
        rates["erasable"].append(ours())
        rates["torch"].append(_torch_rate(contest, policy, contest.options.seconds))
        latest = ", ".join(f"{name} {values[-1] / 1e6:.2f} M/s" for name, values in rates.items())
        print(f"{contest.model} {contest.batch} run {number + 1}: {latest}", file=sys.stderr, flush=True)
    medians = {name: statistics.median(values) for name, values in rates.items()}
    line = {"model": contest.model, "batch": contest.batch, "ratio": medians["erasable"] / medians["torch"]}
    line |= {"bar": BARS[contest.batch]} if contest.batch in BARS else {}
    return {**line, "samples_per_second": medians, "runs": rates, "torch": TORCH, "omp_wait_policy": policy}


def _our_run(contest: Contest) -> Callable[[], float]:
    """Return what trains long enough to be timed and says its samples a second; already compiled."""
    model = find_model(contest.model)(batch=contest.batch, negatives=NEGATIVES, learning_rate=0.001)
    effort = Effort(threads=contest.options.threads)
    one_epoch = _timed(model, contest.interactions, 1, effort)
    one_epoch = min(one_epoch, _timed(model, contest.interactions, 1, effort))
    epochs = math.ceil(contest.options.seconds / one_epoch)
    samples = model.samples(contest.interactions, epochs)
    return lambda: samples / _timed(model, contest.interactions, epochs, effort)


def _timed(model: Model, interactions: Interactions, epochs: int, effort: Effort) -> float:
    start = model.start(interactions.items, seed=0)
    stage = Stage(interactions, SCALE, epochs, seed=0, position=0)
    began = time.perf_counter()
    model.train(start, stage, effort)
    return time.perf_counter() - began


def _torch_rate(contest: Contest, policy: str, seconds: float) -> float:
    command = [str(contest.torch_python), str(Path(__file__).with_name("torch_training.py"))]
    command += ["--model", contest.model, "--batch", str(contest.batch), "--samples", str(contest.samples)]
    command += ["--threads", str(contest.options.threads), "--seconds", str(seconds)]
    command += ["--fused"] if contest.options.fused else []
    environment = {**os.environ, "OMP_WAIT_POLICY": policy, "OMP_NUM_THREADS": str(contest.options.threads)}
    answer = json.loads(subprocess.run(command, env=environment, check=True, capture_output=True).stdout)
    if answer["torch"].partition("+")[0] != TORCH:
        sys.exit(f"PyTorch is {answer['torch']}, not {TORCH}: leave out --torch-python")
    return float(answer["samples_per_second"])


def _write_ready_samples(interactions: Interactions, folder: Path) -> None:
    """Write shuffled positives, each followed by its negatives: what a sampler would hand to PyTorch."""
    random = np.random.default_rng(0)
    rows = random.permutation(len(interactions))[: READY_SAMPLES // (1 + NEGATIVES)]
    items = random.integers(0, len(interactions.items), size=(len(rows), 1 + NEGATIVES))
    items[:, 0] = interactions.item_index[rows]
    targets = np.zeros(items.shape, dtype=np.float32)
    targets[:, 0] = interactions.rating[rows] / SCALE.high
    users = np.repeat(interactions.user_index[rows].astype(np.int64), 1 + NEGATIVES)
    # PyTorch's tables are as large as the largest number in its samples: make both ends appear.
    users[0], items[0, 1] = len(interactions.users) - 1, len(interactions.items) - 1
    for name, array in (("users", users), ("items", items.ravel()), ("targets", targets.ravel())):
        np.save(folder / f"{name}.npy", array)


def _interactions(data: Path | None) -> tuple[Interactions, str]:
    path = data / "ml-1m" / "ratings.csv" if data else None
    if path and path.exists():
        return read_interactions(path).interactions, "MovieLens 1M"
    settings = SyntheticSettings(users=6040, items=3706, groups=8, per_user=165, ratings=True)
    return synthesise(settings).interactions, "synthetic data of MovieLens 1M's size"


def _torch_venv() -> Path:
    """Return the Python of a venv that holds PyTorch, made on first use."""
    python = TORCH_VENV / "bin" / "python"
    if not (TORCH_VENV / "complete").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(TORCH_VENV)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "-qq", f"torch=={TORCH}", "numpy"], check=True)
        (TORCH_VENV / "complete").touch()
    return python


def _cells(line: dict[str, Any]) -> list[str]:
    rates = [f"{line['samples_per_second'][side] / 1e6:.2f} M" for side in ("erasable", "torch")]
    bar = [f"{line['bar']:g}×", verdict(line["ratio"], line["bar"])] if "bar" in line else ["", ""]
    return [line["model"], str(line["batch"]), *rates, f"{line['ratio']:.1f}×", *bar]


def _options() -> argparse.Namespace:
    parser = documented_parser(__doc__)
    parser.add_argument("--data", type=Path, help="the folder that holds ml-1m/ratings.csv")
    parser.add_argument("--models", nargs="+", default=["nmf", "dmf"], choices=["nmf", "dmf"])
    parser.add_argument("--batches", nargs="+", type=int, default=sorted(BARS))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--runs", type=int, default=5, help="runs of each side")
    parser.add_argument("--seconds", type=float, default=2.0, help="the least length of a run")
    parser.add_argument("--torch-python", type=Path, help=f"a Python with PyTorch {TORCH}; none: makes a venv")
    parser.add_argument("--fused", action="store_true", help="let PyTorch use its fused Adam")
    parser.add_argument("--name", default="speed", help="the name of the result file")
    return parser.parse_args()


if __name__ == "__main__":
    main()
