"""One model measured in a process of its own: what it costs to learn and to forget, its memory and its quality.

The parent sends rows and settings through a pipe, and gets progress and figures back as lines of JSON. Nothing is
written to disk, and a process whose parent is gone ends.
"""

import json
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from erasable.chain.chain import carry_out_schedule, scheduled
from erasable.chain.checkpoints import MemoryStore
from erasable.chain.dataset import Dataset, State
from erasable.chain.plan import Erasure, carry_out, plan_change
from erasable.chain.settings import Config
from erasable.data.interactions import Interactions, RatingScale
from erasable.data.slots import slot_keys
from erasable.errors import ErasableError
from erasable.evaluation.protocols import measure, measured_people
from erasable.models.base import Effort, Model
from erasable.operations.prepare import RowsRead
from erasable.operations.remote import failure
from erasable.operations.work import Work
from erasable.requests.request import Request
from erasable.seeding import id_keys
from erasable.workspace.tables import decode_interactions

Report = Callable[[Mapping[str, Any]], None]
"""Sends a message to the parent."""
QUALITY = ("ndcg@10", "hr@10", "recall@10")
_FEW = 64
_GONE = 1


@dataclass(frozen=True)
class Order:
    """What to measure: the settings of a model, on how many people, with how many threads."""

    settings: Mapping[str, Any]
    model_class: tuple[str, str] | None
    """The module and the name of a class that is neither built in nor registered."""
    path: Sequence[str]
    """Where modules are found; needed for such a class only."""
    scale: tuple[float, float]
    people_measured: int
    people_forgotten: int
    threads: int

    def config(self) -> Config:
        """Return the configuration."""
        if self.model_class is None:
            return Config(**self.settings)
        sys.path[:] = self.path
        module, name = self.model_class
        kind: type[Model] = getattr(import_module(module), name)
        return Config(**{**self.settings, "model": kind})


def main() -> None:
    """Measure what standard input says, and write what is found to standard output."""
    source, found = sys.stdin.buffer, os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what a model prints is no message
    order, rows = _received(source)
    threading.Thread(target=_end_with, args=(source,), daemon=True).start()

    def report(message: Mapping[str, Any]) -> None:
        found.write(json.dumps(message).encode() + b"\n")
        found.flush()

    try:
        report({"found": measured(order, rows, report)})
    except Exception as error:
        report({"failed": failure(error)})


def _received(source: BinaryIO) -> tuple[Order, Interactions]:
    facts = json.loads(source.readline())
    rows = decode_interactions(source.read(facts.pop("bytes")))
    return Order(**facts), rows


def _end_with(source: BinaryIO) -> None:
    """End this process when its parent closes the pipe, or is gone."""
    source.read()
    os._exit(_GONE)


def measured(order: Order, interactions: Interactions, report: Report) -> dict[str, Any]:
    """Learn, forget some people one by one, and measure quality; seconds are those of the clock."""
    config, work = order.config(), Work(order.threads)
    rows = RowsRead(interactions, RatingScale(*order.scale), {})
    with suppress(ErasableError):  # kernels are loaded, or compiled, before anything is timed
        some = interactions.at(np.arange(min(_FEW, len(interactions.users))))
        _forgotten_by_some(*learned_in_memory(rows._replace(interactions=some), config, work)[:2], 1, work, _silent)
    state, store, learning = learned_in_memory(rows, config, work, report)
    memory = _peak_bytes()
    costs, seconds = _forgotten_by_some(state, store, order.people_forgotten, work, report)
    memory = max(memory, _peak_bytes())
    report({"step": "measuring", "total": None})
    test = _test_rows(state.dataset, order.people_measured)
    utility = measure(state, store, test, order.threads)
    counts = state.dataset.counts
    return {
        **{name: utility.values[name] for name in QUALITY},
        "learn_seconds": learning,
        "forget_cost": float(np.median(costs)),
        "forget_seconds": float(np.median(seconds)),
        "memory_bytes": memory,
        "facts": {
            "users": state.dataset.users,
            "items": len(state.dataset.items),
            "interactions": state.dataset.interactions,
            "held_out": counts.held_out,
            "people_measured": utility.users,
            "people_forgotten": len(costs),
        },
    }


def _silent(message: Mapping[str, Any]) -> None:
    """Send nothing."""


def learned_in_memory(
    rows: RowsRead, config: Config, work: Work, report: Report = lambda message: None
) -> tuple[State, MemoryStore, float]:
    """Learn in memory: divide people into groups, and train."""
    began = time.perf_counter()
    store, dataset = MemoryStore(), rows.arranged(config, work)
    schedule = scheduled(dataset)
    report({"step": "learning", "total": schedule.visits})
    state = carry_out_schedule(schedule, dataset, store, _effort(work, report))
    return state, store, time.perf_counter() - began


def _effort(work: Work, report: Report) -> Effort:
    return Effort(work.threads, lambda samples: report({"done": samples}))


def _forgotten_by_some(
    state: State, store: MemoryStore, count: int, work: Work, report: Report
) -> tuple[list[float], list[float]]:
    """Forget some people, chosen by a hash of seed and id, each from the same model; return cost and seconds of each.

    Everyone has the same chance, whether they shape shared parameters or not.
    """
    users = [user for bucket in state.dataset.buckets for user in bucket.users]
    order = np.argsort(id_keys(state.dataset.config.seed, "forgotten to compare", users), kind="stable")
    costs, seconds = list[float](), list[float]()
    for place in order[:count].tolist():
        began = time.perf_counter()
        after = Erasure.of([Request(users[place])]).apply(state.dataset, work.grouping)
        planned = plan_change(state, after)
        report({"step": f"forgetting person {len(costs) + 1} of {min(count, len(users))}", "total": planned.samples})
        carry_out(planned, state, after, store.copy(), _effort(work, report))
        seconds.append(time.perf_counter() - began)
        costs.append(planned.cost_ratio)
    return costs, seconds


def _test_rows(dataset: Dataset, most: int) -> Interactions:
    """Return the held-out rows of so many people at most: those with the smallest hash of seed and id."""
    found = measured_people(dataset)
    order = np.argsort(slot_keys(found.users, dataset.config.seed), kind="stable")
    return found.at(np.sort(order[:most]))


def _peak_bytes() -> int:
    """Return the most that this process and those it has started held; `ru_maxrss` would count what its parent held."""
    own = Path("/proc/self")
    started = [f"/proc/{child}" for path in own.glob("task/*/children") for child in path.read_text().split()]
    return sum(_held_by(place) for place in (own, *map(Path, started)))


def _held_by(place: Path) -> int:
    try:
        found = re.search(r"VmHWM:\s+(\d+) kB", (place / "status").read_text())
    except OSError:
        return 0  # it has ended
    return 1024 * int(found[1]) if found else 0
