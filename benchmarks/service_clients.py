"""How quick the real service stays: four clients submit over HTTP, each waits for its answer, then pages are asked for.

Server and worker are processes of their own. Nobody is erased meanwhile: all requests wait for the end of their window.
One more client asks for recommendations at a steady pace, before anyone submits and all the while. The queue lies in
the workspace, or in a Postgres of this benchmark's own that makes each commit durable.
"""

import argparse
import http.client
import itertools
import json
import os
import random
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlencode

from erasable.chain import Config
from erasable.operations import DiskStorage, name_queue
from erasable.service.settings import ServiceSettings
from kit import erasure_service, postgres_server, service_process, small_shop
from kit.service_process import ServiceProcess
from reporting import print_table, save, warn_if_busy

CLIENTS = 4
PER_SECOND = 100
"""How many recommendations are asked for in a second."""
SUBMISSION_BAR, PAGE_BAR, SLOWER = 0.050, 0.100, 2.0
PAGES = ("/metrics", "/v1/status", "/v1/erasure-requests", "/", "/requests")
_TIMES = 100
_SETTINGS = ServiceSettings(daily_share=1)
_SUBMISSIONS, _LAST, _QUIET, _MEANWHILE = (
    "submissions",
    "submissions, last tenth",
    "recommendations, quiet",
    "recommendations, meanwhile",
)
Answer = Callable[[], object]
T = TypeVar("T")


def run(options: argparse.Namespace) -> None:
    """Measure it for each queue, and end with an error if an answer is too slow."""
    warn_if_busy()
    queues = ("sqlite", "postgres") if options.queue in ("both", None) else (options.queue,)
    measured = {queue: _measured(queue, options) for queue in queues}
    facts = {"clients": CLIENTS, "requests": options.requests, "recommendations_per_second": PER_SECOND}
    print(f"written to {save('service-clients', {**facts, 'seconds': measured})}")
    slow = [f"{queue}: {name}" for queue, found in measured.items() for name in _slow(found)]
    if slow:
        sys.exit(f"broken: too slow with {options.requests:,} open requests: {', '.join(slow)}")


def _measured(queue: str, options: argparse.Namespace) -> dict[str, dict[str, float]]:
    with tempfile.TemporaryDirectory() as folder, _place(queue) as address:
        source = small_shop.table(2 * options.requests, 2_000)
        shop = small_shop.learn_shop(Path(folder) / "shop", source, Config(model="als"))
        if address:
            name_queue(DiskStorage(shop), address)
        people = erasure_service.people_in(shop)
        random.Random(options.seed).shuffle(people)
        with service_process.running(shop, _SETTINGS) as service:
            found = _asked(service, people[: options.requests], people[options.requests :], options.seconds)
    bars = _bars(found)
    print(f"queue in {queue}, load {os.getloadavg()[0]:.1f}:")
    rows = [[name, *(f"{1000 * one:.1f}" for one in (*line.values(), bars[name]))] for name, line in found.items()]
    print_table(("answer", "p50, ms", "p99, ms", "most, ms", "server's processor, ms", "bar, ms"), rows)
    return found


@contextmanager
def _place(queue: str) -> Iterator[str | None]:
    if queue == "sqlite":
        yield None
        return
    with postgres_server.private_postgres("fsync = on", "shared_buffers = 128MB") as server:
        yield server.address


def _asked(
    service: ServiceProcess, asking: Sequence[str], others: Sequence[str], seconds: int
) -> dict[str, dict[str, float]]:
    """Have people submitted while others are recommended to, then look at every page."""
    token = {"Authorization": f"Bearer {erasure_service.new_token(service.folder, 'application')}"}
    office = erasure_service.new_token(service.folder, "operator")  # known to every server a moment later
    recommending = _Client(service, token).each(
        "GET", (f"/v1/recommendations/{one}" for one in itertools.cycle(others))
    )
    _paced(recommending, threading.Event(), seconds=2)  # whatever is done once is done now
    quiet, quiet_cost = _costing(service, lambda: _paced(recommending, threading.Event(), seconds))
    over, people = threading.Event(), iter(asking)
    bodies = ({"user_id": one} for one in people)
    lock = threading.Lock()

    def submit() -> list[tuple[float, float]]:
        client, found = _Client(service, token), list[tuple[float, float]]()
        while True:
            with lock:
                body = next(bodies, None)
            if body is None:
                return found
            began = time.perf_counter()
            client.ask("POST", "/v1/erasure-requests", json.dumps(body))
            found.append((began, time.perf_counter() - began))

    with ThreadPoolExecutor(CLIENTS + 1) as pool:
        meanwhile = pool.submit(_paced, recommending, over)
        each, cost = _costing(service, lambda: [one.result() for one in [pool.submit(submit) for _ in range(CLIENTS)]])
        over.set()
        beside = meanwhile.result()
    submitted = [seconds for _, seconds in sorted(itertools.chain(*each))]
    own = max(0.0, cost - len(beside) * quiet_cost / len(quiet)) / len(submitted)
    last = submitted[-max(1, len(submitted) // 10) :]
    return {
        _SUBMISSIONS: _figures(submitted, own),
        _LAST: _figures(last, own),
        _QUIET: _figures(quiet, quiet_cost / len(quiet)),
        _MEANWHILE: _figures(beside, quiet_cost / len(quiet)),
        **_pages(service, office),
    }


def _pages(service: ServiceProcess, secret: str) -> dict[str, dict[str, float]]:
    """Ask for every page and figure, one after the other, as an operator."""
    client = _Client(service, {"Authorization": f"Bearer {secret}"})
    client.visit(secret)
    found = {}
    for page in PAGES:
        client.ask("GET", page)
        times, cost = _costing(
            service, lambda page=page: [_timed(lambda: client.ask("GET", page)) for _ in range(_TIMES)]
        )
        found[page] = _figures(times, cost / _TIMES)
    return found


class _Client:
    """One connection that is kept, and asks for one thing after the other."""

    def __init__(self, service: ServiceProcess, headers: Mapping[str, str]) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=120)
        self._headers = dict(headers)

    def ask(self, method: str, path: str, body: str | None = None, kind: str = "application/json") -> None:
        """Ask, wait for the answer, and require that it is one."""
        headers = {**self._headers, "Content-Type": kind} if body is not None else self._headers
        self._connection.request(method, path, body, headers)
        answer = self._connection.getresponse()
        said = answer.read()
        assert answer.status in (200, 201, 303), said
        cookie = answer.headers.get("set-cookie")
        if cookie:
            self._headers["Cookie"] = cookie.partition(";")[0]

    def visit(self, secret: str) -> None:
        """Log in, as a browser does."""
        body = urlencode({"token": secret, "next": "/"})
        self.ask("POST", "/login", body, "application/x-www-form-urlencoded")

    def each(self, method: str, paths: Iterator[str]) -> Answer:
        """Return what asks for one path after the other."""
        return lambda: self.ask(method, next(paths))


def _timed(ask: Answer) -> float:
    began = time.perf_counter()
    ask()
    return time.perf_counter() - began


def _paced(ask: Answer, over: threading.Event, seconds: float = 3600) -> list[float]:
    """Ask at a steady pace; who has to wait for an answer asks later, and what was waited for counts."""
    began, found = time.perf_counter(), list[float]()
    for number in itertools.count():
        at = began + number / PER_SECOND
        if over.wait(max(0.0, at - time.perf_counter())) or at > began + seconds:
            return found
        ask()
        found.append(time.perf_counter() - at)
    raise AssertionError


def _costing(service: ServiceProcess, work: Callable[[], T]) -> tuple[T, float]:
    """Return what work returns, and the processor seconds of the server meanwhile."""
    before = service.processor_seconds
    return work(), service.processor_seconds - before


def _figures(times: Sequence[float], processor: float) -> dict[str, float]:
    ordered = sorted(times)
    most = len(ordered) - 1
    return {
        "p50": ordered[len(ordered) // 2],
        "p99": ordered[min(most, int(0.99 * len(ordered)))],
        "most": ordered[most],
        "processor": processor,
    }


def _bars(found: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Return how long the 99th percentile of each answer may take."""
    recommended = SLOWER * found[_QUIET]["p99"]
    named = {_SUBMISSIONS: SUBMISSION_BAR, _LAST: SUBMISSION_BAR, _QUIET: recommended, _MEANWHILE: recommended}
    return {name: named.get(name, PAGE_BAR) for name in found}


def _slow(found: Mapping[str, Mapping[str, float]]) -> list[str]:
    bars = _bars(found)
    return [name for name, line in found.items() if line["p99"] > bars[name]]
