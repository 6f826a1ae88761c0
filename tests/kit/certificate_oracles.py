"""An attack on certificates: does anything in them, or in two in a row, tell of the person better than chance?

Everything that a certificate says is taken apart into leaves. For each leaf, and for its change since the certificate
before, the mutual information with what is secret about the person (how much they had, their group, whether they are an
anchor) is compared with what it is when the secrets are shuffled among the people; the most striking of all leaves is
held against the most striking of all leaves of each shuffle, so that looking at many leaves makes none striking.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from erasable.chain import Config, Dataset
from erasable.data.ids import Ids
from erasable.grouping.registry import anchors_among
from erasable.operations import DiskStorage, Work, forget, learn
from erasable.requests import Request

Leaves = dict[str, str]
SHUFFLES = 500
STRIKING = 0.01
CLASSES = 4
_INDEPENDENT = {"model": "nmf", "groups": 6, "grouping": "independent", "epochs": 6, "batch": 256}
WAYS: Mapping[str, dict[str, Any]] = {
    "als": {"model": "als", "factors": 8},
    "als with anchors": {"model": "als", "factors": 8, "anchors": 0.3},
    "als with anchors, some interactions": {"model": "als", "factors": 8, "anchors": 0.3},
    "ease": {"model": "ease"},
    "nmf chain, independent groups": _INDEPENDENT,
    "sisa, independent groups": {**_INDEPENDENT, "strategy": "sisa"},
}


@dataclass(frozen=True)
class Attacked:
    """One erasure: what its certificate says, and what is secret about the person."""

    said: Leaves
    secrets: dict[str, float]
    planted: Leaves
    """What certificates of 0.1 said, and these must not."""


@dataclass(frozen=True)
class Finding:
    """A leaf with a secret that it tells of, how many bits, and how likely chance alone is as striking."""

    leaf: str
    secret: str
    bits: float
    chance: float


def made_up_shop(people: int, seed: int) -> pa.Table:
    """Return a table in which some people have a hundred times as much as others, and some have items of their own."""
    draws = np.random.default_rng(seed)
    counts = np.clip(np.exp(draws.normal(2.2, 1.0, people)).astype(int), 1, 80)
    rows: list[tuple[str, str, int]] = []
    for number, count in enumerate(counts.tolist()):
        items = draws.choice(120, size=count, replace=False)
        own = [f"own-{number}-{place}" for place in range(int(draws.integers(0, 4)))]
        names = [*(f"item-{item:03d}" for item in items), *own]
        rows += [(f"person-{number:04d}", name, int(draws.integers(1, 6))) for name in names]
    users, items, ratings = zip(*rows, strict=True)
    return pa.table({"user_id": users, "item_id": items, "rating": ratings})


def erase_one_by_one(way: str, folder: Path, people: int, candidates: int, seed: int = 1) -> list[Attacked]:
    """Forget people at random, one after the other, and return what each certificate says."""
    learn(made_up_shop(candidates, seed), folder, Config(holdout=0.2, seed=0, **WAYS[way]), work=Work(1))
    storage, draws = DiskStorage(folder), np.random.default_rng(seed)
    chosen = draws.choice(candidates, size=people, replace=False)
    return [_erased(storage, f"person-{number:04d}", "some interactions" in way, draws) for number in chosen.tolist()]


def findings(erasures: Sequence[Attacked], seen: Callable[[Attacked], Leaves] = lambda one: one.said) -> list[Finding]:
    """Return every leaf that tells of a secret better than chance does."""
    said = [seen(one) for one in erasures]
    columns = dict(_telling(_columns(said)))
    secrets = {name: _classes([one.secrets[name] for one in erasures]) for name in erasures[0].secrets}
    pairs = [(leaf, secret) for leaf in columns for secret in secrets]
    if not pairs:
        return []
    draws = np.random.default_rng(7)
    orders = np.array([np.arange(len(erasures)), *(draws.permutation(len(erasures)) for _ in range(SHUFFLES))])
    bits = np.array([_bits(columns[leaf], secrets[name], orders) for leaf, name in pairs]).T
    spread = bits[1:].std(axis=0) + 1e-9
    height = (bits - bits[1:].mean(axis=0)) / spread
    highest = np.sort(height[1:].max(axis=1))
    chance = 1 - np.searchsorted(highest, height[0], side="left") / SHUFFLES
    found = [
        Finding(leaf, name, round(float(bits[0, place]), 3), round(float(chance[place]), 4))
        for place, (leaf, name) in enumerate(pairs)
    ]
    return sorted((one for one in found if one.chance < STRIKING), key=lambda one: (-one.bits, one.leaf))


def with_planted(one: Attacked) -> Leaves:
    """Return what a certificate says with what 0.1 said besides."""
    return one.said | one.planted


def _erased(storage: DiskStorage, person: str, some: bool, draws: np.random.Generator) -> Attacked:
    with storage.reading() as session:
        dataset = session.state().dataset
        held = sorted(dataset.items_of(person))
        asked = held[: int(draws.integers(1, len(held) + 1))] if some else None
        secrets = _secrets(dataset, person) | {"interactions erased": float(len(asked or held))}
    done = forget(storage, [Request(person, tuple(asked) if asked else None)], work=Work(1))
    said = json.loads(Path(done.certificates[0]).read_bytes())
    planted = {"cost_ratio": f"{done.cost_ratio:.2g}", "stages_rerun": str(done.stages_rerun)}
    return Attacked(dict(_leaves(said)), secrets, planted)


def _secrets(dataset: Dataset, person: str) -> dict[str, float]:
    position = dataset.find(person).group
    (anchor,) = anchors_among(Ids.of([person]), dataset.config.anchors, dataset.config.seed)
    items = dataset.items_of(person)
    own = sum(item.startswith("own-") for item in items)
    return {"interactions": len(items), "group": position, "anchor": float(anchor), "items of their own": own}


def _leaves(value: Any, place: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, dict | list):
        inside = value.items() if isinstance(value, dict) else enumerate(value)
        for name, part in inside:
            yield from _leaves(part, f"{place}.{name}" if place else str(name))
        if isinstance(value, list):
            yield f"{place}.length", str(len(value))
    else:
        yield place, json.dumps(value)


def _columns(said: Sequence[Leaves]) -> Iterator[tuple[str, list[str]]]:
    """Yield each leaf, its change since the certificate before, and its change to the certificate after."""
    for name in sorted({name for one in said for name in one}):
        values = [one.get(name, "missing") for one in said]
        yield name, values
        yield f"{name}, since the one before", ["", *map(_change, values, values[1:])]
        yield f"{name}, to the one after", [*map(_change, values, values[1:]), ""]
    for kind in ("before", "after"):
        # The same model on one person more and less: what the next says of before, against what this says of after.
        for name in sorted({name for one in said for name in one if name.startswith(f"utility.{kind}.")}):
            other = name.replace(f".{kind}.", ".after." if kind == "before" else ".before.")
            pairs = pairwise(said)
            yield f"{name} against {other}", ["", *(_change(a.get(other, "0"), b.get(name, "0")) for a, b in pairs)]


def _change(before: str, after: str) -> str:
    try:
        return f"{float(after) - float(before):.6g}"
    except ValueError:
        return f"{before} {after}" if before != after else "same"


def _telling(columns: Iterator[tuple[str, list[str]]]) -> Iterator[tuple[str, np.ndarray]]:
    """Yield what is neither the same everywhere nor another everywhere; of many numbers, the quarter they are in."""
    for name, values in columns:
        kinds = {*values}
        if 1 < len(kinds) <= len(values) // CLASSES:
            yield name, np.unique(values, return_inverse=True)[1]
        elif len(kinds) > 1:
            try:
                yield name, _classes([float(value or "nan") for value in values])
            except ValueError:  # digests: nothing can be told from what is never the same
                continue


def _classes(values: Sequence[float]) -> np.ndarray:
    """Return in which quarter of all each value is."""
    numbers = np.nan_to_num(np.array(values, dtype=float), nan=0.0)
    edges = np.unique(np.quantile(numbers, [part / CLASSES for part in range(1, CLASSES)]))
    return np.searchsorted(edges, numbers, side="right")


def _bits(one: np.ndarray, other: np.ndarray, orders: np.ndarray) -> np.ndarray:
    """Return the mutual information of two lists of classes in bits, the second in each of some orders."""
    here, there = np.eye(one.max() + 1)[one], np.eye(other.max() + 1)[other]
    joint = np.einsum("na,onb->oab", here, there[orders]) / len(one)
    apart = np.outer(here.mean(axis=0), there.mean(axis=0))
    terms = np.where(joint > 0, joint, 1) / np.where(apart > 0, apart, 1)
    return (joint * np.log2(np.where(joint > 0, terms, 1))).sum(axis=(1, 2))
