"""What each way of asking costs beside the plain recommendation, at the median and at the 99th percentile.

One client asks the real service over one connection, each way in turn, so that a busy machine slows all of them alike.
It is MovieLens 1M, with made-up attributes of its items.
"""

import argparse
import json
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import numpy as np
import pyarrow as pa
from pyarrow import csv

from erasable.chain import Config
from erasable.operations import learn
from erasable.operations.declared_items import declare_items
from erasable.operations.storage import DiskStorage
from erasable.service.settings import ServiceSettings
from kit import erasure_service, service_process
from reporting import print_table, save, warn_if_busy

Ask = Callable[[httpx2.Client, random.Random], httpx2.Response]
_MANY = 50
_PLAIN = "one user"


def run(options: argparse.Namespace) -> None:
    """Ask in every way, in turn."""
    warn_if_busy()
    model = options.model or "ease"
    with tempfile.TemporaryDirectory() as folder:
        shop = Path(folder) / "shop"
        learn(options.data / "ml-1m" / "ratings.csv", shop, Config(model=model))
        items = _items(options.data / "ml-1m" / "ratings.csv")
        _declare(shop, items)
        ways = _ways(erasure_service.people_in(shop), items, explains=model in ("ease", "item-knn"))
        headers = {"Authorization": f"Bearer {erasure_service.new_token(shop, 'application')}"}
        with (
            service_process.running(shop, ServiceSettings()) as service,
            httpx2.Client(base_url=service.url, headers=headers, timeout=60) as client,
        ):
            found = _asked(client, ways, options.asked, options.seed)
    plain = found[_PLAIN]
    header = ("ability", "p50, ms", "p99, ms", "p99 beside the plain one")
    rows = [
        [name, f"{1000 * one['p50']:.2f}", f"{1000 * one['p99']:.2f}", f"{one['p99'] / plain['p99']:.2f}"]
        for name, one in found.items()
    ]
    print_table(header, rows)
    print(f"written to {save(f'service-abilities-{model}', {'model': model, 'asked': options.asked, **found})}")


def _items(path: Path) -> list[str]:
    table = csv.read_csv(path, convert_options=csv.ConvertOptions(column_types={"item_id": pa.string()}))
    return sorted(table["item_id"].unique().to_pylist())


def _declare(shop: Path, items: list[str]) -> None:
    """Declare a category and a price of each item, made up from its place."""
    table = pa.table(
        {
            "item_id": items,
            "category": [("books", "films", "music")[place % 3] for place in range(len(items))],
            "price": [place % 40 for place in range(len(items))],
        }
    )
    declare_items(DiskStorage(shop), table=table)


def _ways(users: list[str], items: list[str], explains: bool) -> dict[str, Ask]:
    """Return every way of asking, the plain one first."""

    def to_one(**body: Any) -> Ask:
        return lambda client, draw: client.post(
            "/v1/recommendations", json={"user_ids": [draw.choice(users)], **_drawn(body, draw)}
        )

    ways: dict[str, Ask] = {
        _PLAIN: lambda client, draw: client.get(f"/v1/recommendations/{draw.choice(users)}"),
        "one user, by POST": to_one(),
        f"{_MANY} users": lambda client, draw: client.post(
            "/v1/recommendations", json={"user_ids": draw.sample(users, _MANY)}
        ),
        "only 20 items": to_one(items=lambda draw: draw.sample(items, 20)),
        "2,000 available items": to_one(available=lambda draw: draw.sample(items, 2000)),
        "20 items excluded": to_one(exclude=lambda draw: draw.sample(items, 20)),
        "seen ones too": to_one(seen=True),
        "filtered": to_one(where="category == 'books' and price < 20"),
        "a history of 20": lambda client, draw: client.post(
            "/v1/recommendations", json={"history": draw.sample(items, 20)}
        ),
        "scores of 20 items": lambda client, draw: client.post(
            "/v1/scores", json={"user_id": draw.choice(users), "item_ids": draw.sample(items, 20)}
        ),
        "similar items": lambda client, draw: client.get(f"/v1/similar-items/{draw.choice(items)}"),
    }
    if explains:
        ways["with reasons"] = lambda client, draw: client.get(f"/v1/recommendations/{draw.choice(users)}?why=true")
    return ways


def _drawn(body: dict[str, Any], draw: random.Random) -> dict[str, Any]:
    return {name: value(draw) if callable(value) else value for name, value in body.items()}


def _asked(client: httpx2.Client, ways: dict[str, Ask], times: int, seed: int) -> dict[str, dict[str, float]]:
    """Ask in each way so many times, in turn, after a tenth of them to warm up."""
    draw, seconds = random.Random(seed), {name: list[float]() for name in ways}
    for number in range(times + times // 10):
        for name, ask in ways.items():
            began = time.perf_counter()
            answer = ask(client, draw)
            spent = time.perf_counter() - began
            if answer.status_code != 200:
                sys.exit(f"broken: {name} was answered with {answer.status_code} {json.dumps(answer.json())[:300]}")
            if number >= times // 10:
                seconds[name].append(spent)
    return {
        name: {"p50": float(np.percentile(spent, 50)), "p99": float(np.percentile(spent, 99))}
        for name, spent in seconds.items()
    }
