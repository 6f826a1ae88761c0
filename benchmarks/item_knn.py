"""Item-kNN beside irspack's with the same settings: quality, seconds of fitting, and of forgetting one person.

    scripts/bench item_knn --data DIR [--sets ml-1m ...]        DIR/ml-1m/ratings.csv, and so on

NDCG@10 is over the whole catalogue with a tenth held out. irspack keeps the nearest of each item that someone has, we
those of each item that is scored: its lists are judged as it reads them, and read our way, for which the bar is. The
seconds of forgetting are those of amending, the median over 20 people; whether the bytes are those of fitting is
compared for each.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from erasable.data import k_core, read_interactions, recognise_scale, split_holdout
from erasable.models import Change, Effort, ItemKNN, Model, Popular, Stage
from reporting import documented_parser, print_table, save, warn_if_busy
from rivals_fitted import Scorer, Split, ndcg_at_10, ours, popular, timed

IRSPACK = "0.5.2"
IRSPACK_VENV = Path(__file__).parent / ".venv-irspack"
WITHIN, HOLDOUT, PEOPLE = 0.02, 0.1, 20


def main() -> None:
    options = _options()
    warn_if_busy()
    lines = [_measure(name, options) for name in options.sets]
    rows = [[line["set"], name, f"{line[name]:.4f}"] for line in lines for name in _QUALITIES]
    print_table(("set", "NDCG@10", "value"), rows)
    rows = [[line["set"], name, f"{line[name]:.3f}"] for line in lines for name in _SECONDS]
    print_table(("set", "CPU seconds", "value"), rows)
    print(f"\nwritten to {save('item_knn', {'irspack': IRSPACK, 'settings': _settings(), 'lines': lines})}")
    missed = [line["set"] for line in lines if not line["within"] or not line["identical"]]
    print(f"MISSED on {', '.join(missed)}" if missed else f"within {WITHIN:.0%} of irspack's lists, bytes identical")
    sys.exit(bool(missed))


_QUALITIES = ("ours", "irspack", "irspack read our way", "our popular", "popular")
_SECONDS = ("fit", "fit by irspack", "forget one", "forget one of popular")


def _settings() -> dict[str, Any]:
    return ItemKNN().settings.model_dump()


def _measure(name: str, options: argparse.Namespace) -> dict[str, Any]:
    rows = read_interactions(options.data / name / "ratings.csv").interactions
    rows = k_core(rows, 5) if name == "book-crossing" else rows
    split = Split(*split_holdout(rows, HOLDOUT, options.seed), recognise_scale(rows.rating), options.threads)
    ours(ItemKNN, split)  # compiles
    scorer, fit = timed(partial(ours, ItemKNN), split)
    similarities, theirs = _by_irspack(split)
    found = {
        "ours": ndcg_at_10(scorer, split),
        "irspack": ndcg_at_10(_scorer(split, similarities), split),
        "irspack read our way": ndcg_at_10(_scorer(split, similarities.T.tocsr()), split),
        "our popular": ndcg_at_10(ours(Popular, split), split),
        "popular": ndcg_at_10(popular(split), split),
    }
    by_knn, is_knn = _forget_some(ItemKNN(), split)
    by_popular, is_popular = _forget_some(Popular(), split)
    seconds = {"fit": fit, "fit by irspack": theirs, "forget one": by_knn, "forget one of popular": by_popular}
    knn = abs(found["ours"] / found["irspack read our way"] - 1) <= WITHIN
    within = knn and abs(found["our popular"] / found["popular"] - 1) <= WITHIN
    return {"set": name, **found, **seconds, "within": within, "identical": is_knn and is_popular}


def _scorer(split: Split, similarities: sparse.csr_matrix) -> Scorer:
    return lambda users: np.asarray((split.matrix[users] @ similarities).todense(), np.float32)


def _by_irspack(split: Split) -> tuple[sparse.csr_matrix, float]:
    """Return the similarities that irspack found, and the seconds of the processor that it took."""
    rows = split.learned
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": ""}
    with tempfile.TemporaryDirectory() as folder:
        data, found = Path(folder) / "data.npz", Path(folder) / "similarities.npz"
        shape = (len(rows.users), len(rows.items))
        np.savez(data, items=rows.item_index, starts=rows.user_starts, shape=shape)
        command = [str(_python()), str(Path(__file__).with_name("irspack_training.py"))]
        command += ["--data", str(data), "--similarities-into", str(found), "--threads", str(split.threads)]
        command += [part for name, value in _settings().items() for part in (f"--{name}", str(value))]
        answer = json.loads(subprocess.run(command, env=environment, check=True, capture_output=True).stdout)
        return sparse.load_npz(found), answer["cpu_seconds"]


def _forget_some(model: Model, split: Split) -> tuple[float, bool]:
    """Return the median seconds of amending by one person, and whether the bytes are those of fitting without them."""
    rows, effort, seconds, is_same = split.learned, Effort(split.threads), [], True
    trained = _trained(model, split, rows)
    for user in np.random.default_rng(0).choice(rows.users.texts(), PEOPLE, replace=False).tolist():
        after = rows.without(users=[user])
        change, began = Change.between(rows, after), time.process_time()
        found = model.amended(trained, change, effort)  # type: ignore[attr-defined]
        seconds.append(time.process_time() - began)
        fitted = _trained(model, split, after)
        is_same = is_same and all(found[name].tobytes() == fitted[name].tobytes() for name in fitted)
    return statistics.median(seconds), is_same


def _trained(model: Model, split: Split, rows: Any) -> Any:
    stage = Stage(rows, split.scale, 1, seed=0, position=0)
    return model.train(model.start(rows.items, 0), stage, Effort(split.threads)).shared


def _python() -> Path:
    """Return the Python of a venv that holds irspack, made on first use."""
    python = IRSPACK_VENV / "bin" / "python"
    if not (IRSPACK_VENV / "complete").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(IRSPACK_VENV)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "-qq", f"irspack=={IRSPACK}"], check=True)
        (IRSPACK_VENV / "complete").touch()
    return python


def _options() -> argparse.Namespace:
    parser = documented_parser(__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sets", nargs="+", default=["ml-1m", "ml-100k", "ciao", "book-crossing"])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


if __name__ == "__main__":
    main()
