"""How good recommendations are: MovieLens 1M with default settings, and the NCF paper's leave-one-out split.

    scripts/bench utility --data DIR [--seeds 0 1 2]        DIR holds ml-1m/ and ncf-ml-1m/, see get_data.py

Each finished (set, model, seed) is one file under results/utility/, so a run that was stopped goes on from
there; a file made by other code or settings is made again.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv

import erasable
from erasable.chain import Config, Dataset, MemoryStore, State, train_chain
from erasable.data import Catalogue, Interactions, RatingScale, read_interactions, split_holdout
from erasable.evaluation import Utility, measure, sampled_candidates
from erasable.models import Effort
from reporting import RESULTS, documented_parser, print_table, save, verdict

BARS = {
    ("ml-1m", "nmf"): {"ndcg@10": 0.244, "hr@10": 0.725},
    ("ml-1m", "dmf"): {"ndcg@10": 0.17},
    ("ncf-ml-1m", "nmf"): {"hr@10": 0.69, "ndcg@10": 0.41},
}
LAYERS = ("seeding", "data", "models", "training", "evaluation")


@dataclass(frozen=True)
class Cell:
    """One thing to learn and evaluate."""

    data: str
    model: str
    seed: int

    @property
    def name(self) -> str:
        """Return the name of the cell's file under results/."""
        return f"utility/{self.data}-{self.model}-{self.seed}"

    @property
    def config(self) -> Config:
        """Return the settings: the defaults, with everyone in one group; the NCF split brings its own holdout."""
        holdout = 0.1 if self.data == "ml-1m" else 0.0
        return Config(model=self.model, strategy="retrain", seed=self.seed, holdout=holdout)


def main() -> None:
    options = _options()
    kinds = [kind for kind in BARS if kind[0] in options.sets and kind[1] in options.models]
    cells = [Cell(*kind, seed) for seed in options.seeds for kind in kinds]
    found = {cell: _result(cell, options) for cell in cells}
    lines = [_line(kind, [found[Cell(*kind, seed)] for seed in options.seeds]) for kind in kinds]
    rows = [row for line in lines for row in _rows(line)]
    print_table(("set", "model", "seeds", "metric", "mean", "bar", ""), rows)
    print(f"written to {save('utility', {'seeds': options.seeds, 'lines': lines})}")
    sys.exit(any(row[-1] == "MISSED" for row in rows))


def _result(cell: Cell, options: argparse.Namespace) -> dict[str, Any]:
    """Return a cell's result, from its file if this code and these settings made it."""
    path = RESULTS / f"{cell.name}.json"
    made_by = {"config": cell.config.flat(), "code": _code_digest()}
    if path.exists():
        kept = json.loads(path.read_text())
        if made_by.items() <= kept.items():
            return kept
    began = time.perf_counter()
    evaluate = {"ml-1m": _movielens, "ncf-ml-1m": _leave_one_out}[cell.data]
    state, utility = evaluate(cell, options)
    result = {**made_by, "protocol": utility.protocol, "users": utility.users, "values": dict(utility.values)}
    result |= {"training_seconds": state.chain[0].seconds, "seconds": time.perf_counter() - began}
    save(cell.name, result)
    shown = ", ".join(f"{name} {value:.4f}" for name, value in utility.values.items())
    print(f"{cell.name}: {shown} ({result['seconds']:.0f} s)", file=sys.stderr, flush=True)
    return result


def _movielens(cell: Cell, options: argparse.Namespace) -> tuple[State, Utility]:
    """Hold out a tenth, learn the rest, rank the whole catalogue."""
    data = read_interactions(options.data / "ml-1m" / "ratings.csv").interactions
    training, held_out = split_holdout(data, cell.config.holdout, cell.config.seed)
    catalogue = Catalogue.from_items(data.items)
    dataset = Dataset(cell.config, catalogue, RatingScale(1, 5), (training,), held_out)
    state, store = _learn(dataset, options.threads)
    return state, measure(state, store, held_out, options.threads)


def _leave_one_out(cell: Cell, options: argparse.Namespace) -> tuple[State, Utility]:
    """Learn the NCF paper's training set, rank each user's last item among its 99 candidates.

    As in that paper, an interaction counts as 1 whatever its rating.
    """
    folder = options.data / "ncf-ml-1m"
    parts = [_implicit(read_interactions(folder / f"{part}.csv").interactions) for part in ("train", "test")]
    candidates = _candidates(folder / "negatives.csv")
    items = {*parts[0].items, *parts[1].items, *(item for several in candidates.values() for item in several)}
    catalogue = Catalogue.from_items(items)
    training, test = (part.with_items(catalogue.items) for part in parts)
    dataset = Dataset(cell.config, catalogue, RatingScale(1, 1), (training,), test)
    state, store = _learn(dataset, options.threads)
    return state, sampled_candidates(state, store, test, candidates, options.threads)


def _implicit(interactions: Interactions) -> Interactions:
    return replace(interactions, rating=np.ones_like(interactions.rating))


def _learn(dataset: Dataset, threads: int) -> tuple[State, MemoryStore]:
    store = MemoryStore()
    return train_chain(dataset, store, Effort(threads=threads)), store


def _candidates(path: Path) -> Mapping[str, Sequence[str]]:
    names = path.open().readline().strip().split(",")
    as_text = csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()))
    columns = csv.read_csv(path, convert_options=as_text).to_pydict()
    users = columns.pop(names[0])
    return {user: items for user, *items in zip(users, *columns.values(), strict=True)}


@cache
def _code_digest() -> str:
    """Return a digest of the code that decides these figures."""
    package = Path(erasable.__file__).parent
    sources = sorted(path for layer in LAYERS for path in (package / layer).rglob("*.py"))
    return blake2b(b"".join(path.read_bytes() for path in sources), digest_size=16).hexdigest()


def _line(kind: tuple[str, str], results: list[dict[str, Any]]) -> dict[str, Any]:
    """Join the seeds of one (set, model)."""
    by_name = {name: [result["values"][name] for result in results] for name in results[0]["values"]}
    return {
        "set": kind[0],
        "model": kind[1],
        "protocol": results[0]["protocol"],
        "users": [result["users"] for result in results],
        "mean": {name: statistics.mean(values) for name, values in by_name.items()},
        "by_seed": by_name,
        "bars": BARS[kind],
        "training_seconds": [result["training_seconds"] for result in results],
    }


def _rows(line: dict[str, Any]) -> list[list[str]]:
    start = [line["set"], line["model"], str(len(line["users"]))]
    shown = [name for name in line["mean"] if name.endswith("@10")]
    values = [(name, line["mean"][name], line["bars"].get(name)) for name in shown]
    return [[*start, name, f"{value:.4f}", *_against_bar(value, bar)] for name, value, bar in values]


def _against_bar(value: float, bar: float | None) -> list[str]:
    return ["", ""] if bar is None else [f"{bar:g}", verdict(value, bar)]


def _options() -> argparse.Namespace:
    parser = documented_parser(__doc__)
    parser.add_argument("--data", type=Path, required=True, help="the folder with ml-1m/ and ncf-ml-1m/")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--sets", nargs="+", default=["ml-1m", "ncf-ml-1m"], choices=["ml-1m", "ncf-ml-1m"])
    parser.add_argument("--models", nargs="+", default=["nmf", "dmf"], choices=["nmf", "dmf"])
    parser.add_argument("--threads", type=int, default=2)
    return parser.parse_args()


if __name__ == "__main__":
    main()
