"""How quick the service stays with many open requests: submissions one after the other, then pages, status and figures.

Everything runs in this process, each request through the whole application. A thread follows what is current all the
while, as in the service. The processor time of each answer is taken with its time by the clock.
"""

import argparse
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from starlette.testclient import TestClient

from erasable.chain import Config
from erasable.service._running import make_application
from erasable.service._service import Service
from erasable.service.settings import ServiceSettings
from kit import small_shop
from reporting import print_table, save, warn_if_busy

SUBMISSION_BAR, PAGE_BAR = 0.050, 0.100
FIGURES = ("p50", "p99", "processor", "processor_p99")
PAGES = ("/metrics", "/v1/status", "/", "/requests", "/v1/erasure-requests", "/readyz")
_SETTINGS = ServiceSettings(daily_share=1)
_CONFIG = Config(model="als")


def run(options: argparse.Namespace) -> None:
    """Measure it, and end with an error if an answer is too slow."""
    warn_if_busy()
    with tempfile.TemporaryDirectory() as folder:
        source = small_shop.table(2 * options.requests, 2_000)
        shop = Service.open(small_shop.learn_shop(Path(folder) / "shop", source, _CONFIG), _SETTINGS)
        measured = _measured(shop, options.requests)
        shop.database.close()
    rows = [[name, *(f"{1000 * one[key]:.1f}" for key in FIGURES)] for name, one in measured.items()]
    print_table(("answer", *(f"{name.replace('_', ' ')}, ms" for name in FIGURES)), rows)
    print(f"written to {save('service-queue', {'requests': options.requests, 'seconds': measured})}")
    slow = [name for name, one in measured.items() if one["p99"] > (PAGE_BAR if name in PAGES else SUBMISSION_BAR)]
    if slow:
        sys.exit(f"broken: too slow with {options.requests:,} open requests: {', '.join(slow)}")


def _measured(shop: Service, requests: int) -> dict[str, dict[str, float]]:
    stop = threading.Event()
    follower = threading.Thread(target=_follow, args=(shop, stop))
    headers = {"Authorization": f"Bearer {shop.tokens.create('operator', '', shop.clock())[1]}"}
    client = TestClient(make_application(shop), headers=headers)
    client.post("/login", data={"token": headers["Authorization"].split()[1], "next": "/"})
    users = iter([user for group in shop.live.dataset.groups for user in group.users.texts()])
    follower.start()
    try:
        submit = _times(lambda: client.post("/v1/erasure-requests", json={"user_id": next(users)}), requests, 201)
        last = max(1, requests // 10)
        found = {"submission": _figures(submit), "submission, last tenth": _figures(submit[-last:])}
        return found | {page: _figures(_times(lambda page=page: client.get(page), 100)) for page in PAGES}
    finally:
        stop.set()
        follower.join()


def _times(ask: Callable, times: int, status: int | None = None) -> list[tuple[float, float]]:
    found = []
    for _ in range(times):
        clock, processor = time.perf_counter(), time.process_time()
        answer = ask()
        found.append((time.perf_counter() - clock, time.process_time() - processor))
        assert answer.status_code in ((status,) if status else (200, 503)), answer.text
    return found


def _figures(found: list[tuple[float, float]]) -> dict[str, float]:
    clock, processor = (sorted(times) for times in zip(*found, strict=True))
    last = min(len(found) - 1, int(0.99 * len(found)))
    return {
        "p50": clock[len(clock) // 2],
        "p99": clock[last],
        "processor": statistics.mean(processor),
        "processor_p99": processor[last],
    }


def _follow(shop: Service, stop: threading.Event) -> None:
    while not stop.is_set():
        shop.database.wait(0.1)
        shop.reception.follow()
        stop.wait(0.05)
