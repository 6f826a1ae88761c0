"""Recommendations under load, while nothing else happens and while people are erased.

It is MovieLens 1M with the default, another model if one is named, or a made-up shop of many items with EASE.

`wrk` asks over 8 connections, which is about what keeps one process busy: more only wait for each other. Each figure is
the median of several runs. The machine may be shared, so the processor time of the server for an answer is given too.
"""

import argparse
import json
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pyarrow as pa

from ease_columns import sparse_shop
from erasable.chain import Config
from erasable.operations import learn
from erasable.service.settings import ServiceSettings
from kit import erasure_service, service_process
from kit.service_process import ServiceProcess
from reporting import print_table, save, verdict, warn_if_busy

CONNECTIONS = 8
SECONDS_BETWEEN_ERASURES = 2.0
LEAST_PER_SECOND = 1_500
LEAST_OF_MANY_ITEMS = 800
_NEIGHBOURS = 100
SLOWEST_P99 = {"quiet": 0.025, "unlearning": 0.100}
_ERASED = 500
_SCRIPT = """
local users = {}
for user in io.lines("%(users)s") do users[#users + 1] = user end
math.randomseed(%(seed)d)
wrk.headers["Authorization"] = "Bearer %(token)s"
function request() return wrk.format("GET", "/v1/recommendations/" .. users[math.random(#users)] .. "?k=10") end
function done(summary, latency, requests)
  local errors = summary.errors
  local failed = errors.connect + errors.read + errors.write + errors.status + errors.timeout
  io.write(string.format('\\n{"answers": %%d, "seconds": %%f, "p50": %%f, "p99": %%f, "failed": %%d}\\n',
    summary.requests, summary.duration / 1e6, latency:percentile(50) / 1e6, latency:percentile(99) / 1e6, failed))
end
"""


def run(options: argparse.Namespace) -> None:
    """Put both loads on."""
    if shutil.which("wrk") is None:
        sys.exit("load needs wrk: apt install wrk")
    warn_if_busy()
    with tempfile.TemporaryDirectory() as folder:
        shop = Path(folder) / "shop"
        _learn(options, shop)
        everyone = erasure_service.people_in(shop)
        random.Random(options.seed).shuffle(everyone)
        script = _script(shop, everyone[_ERASED:], options.seed)
        settings = ServiceSettings(batch_window=0)
        with service_process.running(shop, settings) as service:
            _loaded(service, script, 2)
            quiet = [_loaded(service, script, options.seconds) for _ in range(options.runs)]
            with _erasing(service, iter(everyone[:_ERASED])) as asked:
                unlearning = [_loaded(service, script, options.seconds) for _ in range(options.runs)]
                certified = len(list(shop.glob("certificates/*.json")))
    lines = {"quiet": _median(quiet), "unlearning": _median(unlearning)}
    _report(lines, LEAST_OF_MANY_ITEMS if options.items else LEAST_PER_SECOND)
    facts = {"connections": CONNECTIONS, "runs": options.runs, "seconds": options.seconds}
    facts |= {"people_who_asked": len(asked), "certified_meanwhile": certified}
    print(f"{len(asked)} people asked to be erased, {certified} were certified meanwhile")
    name = "-".join(["service-load", *filter(None, (options.model, options.items and f"{options.items}-items"))])
    print(f"written to {save(name, {**facts, **lines})}")
    if certified == 0 or any(line["failed"] for line in lines.values()):
        sys.exit("broken: some answers failed, or nobody was erased")


def _learn(options: argparse.Namespace, shop: Path) -> None:
    """Learn what is served."""
    if options.items is None:
        config = Config(model=options.model) if options.model else Config()
        learn(options.data / "ml-1m" / "ratings.csv", shop, config)
        return
    rows = sparse_shop(options.items, 10 * options.items)
    users, items = pa.array(rows.users.texts()), pa.array(rows.items.texts())
    source = pa.table({"user_id": users.take(rows.user_index), "item_id": items.take(rows.item_index)})
    learn(source, shop, Config(model="ease", neighbours=_NEIGHBOURS))


def _script(shop: Path, users: Sequence[str], seed: int) -> Path:
    """Write what wrk asks for: users who are not erased, at random."""
    listed, script = shop.parent / "users.txt", shop.parent / "ask.lua"
    listed.write_text("\n".join(users))
    token = erasure_service.new_token(shop, "application")
    script.write_text(_SCRIPT % {"users": listed, "seed": seed, "token": token})
    return script


def _loaded(service: ServiceProcess, script: Path, seconds: int) -> dict[str, float]:
    """Put the load on for some seconds, and return what came of it."""
    before = service.processor_seconds
    command = ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds}s", "-s", str(script), service.url]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found: dict[str, float] = json.loads(said.strip().splitlines()[-1])
    spent = service.processor_seconds - before
    return {
        "per_second": found["answers"] / found["seconds"],
        "p50": found["p50"],
        "p99": found["p99"],
        "failed": found["failed"],
        "processor_seconds_per_answer": spent / found["answers"],
    }


@contextmanager
def _erasing(service: ServiceProcess, people: Iterator[str]) -> Iterator[list[str]]:
    """Have someone erased every other second during a block; give the list of those who are."""
    headers = {"Authorization": f"Bearer {erasure_service.new_token(service.folder, 'application')}"}
    asked: list[str] = []
    stop = threading.Event()

    def ask() -> None:
        with httpx2.Client(base_url=service.url, headers=headers, timeout=30) as client:
            while not stop.wait(SECONDS_BETWEEN_ERASURES):
                person = next(people)
                client.post("/v1/erasure-requests", json={"user_id": person}).raise_for_status()
                asked.append(person)

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield asked
    finally:
        stop.set()
        thread.join()


def _median(runs: Sequence[dict[str, float]]) -> dict[str, Any]:
    medians = {name: statistics.median(one[name] for one in runs) for name in runs[0]}
    return {**medians, "failed": sum(one["failed"] for one in runs)}


def _report(lines: dict[str, dict[str, Any]], least: int) -> None:
    header = ("while", "answers/s", "p50, ms", "p99, ms", "bar", "", "failed", "processor, µs/answer")
    rows = []
    for name, line in lines.items():
        bar = SLOWEST_P99[name]
        reached = verdict(bar, line["p99"]) if name != "quiet" else _both(line, bar, least)
        figures = [f"{line['per_second']:.0f}", f"{1000 * line['p50']:.1f}", f"{1000 * line['p99']:.1f}"]
        processor = f"{1e6 * line['processor_seconds_per_answer']:.0f}"
        rows.append([name, *figures, f"<= {1000 * bar:.0f}", reached, f"{line['failed']:.0f}", processor])
    print_table(header, rows)


def _both(line: dict[str, Any], bar: float, least: int) -> str:
    enough = line["per_second"] >= least and line["p99"] <= bar
    return "reached" if enough else f"MISSED (at least {least}/s)"
