"""A small shop that is served, a clock that can be set, and callers of every role."""

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from starlette.testclient import TestClient

from erasable.chain import Config
from erasable.operations import learn
from erasable.requests.lease import Process
from erasable.service._running import make_application
from erasable.service._service import Service
from erasable.service._worker import Worker, WorkerOptions
from erasable.service.settings import ServiceSettings
from kit.copies import copy_of
from kit.set_clock import SetClock

RATINGS = {
    "ann": {"a": 5, "b": 4, "c": 1},
    "bob": {"a": 4, "b": 5, "d": 2},
    "cat": {"b": 3, "c": 4, "e": 5},
    "dan": {"c": 2, "d": 5, "e": 4},
    "eve": {"a": 1, "b": 2, "c": 3, "d": 4, "e": 5, "f": 1},
    "fay-the-unmistakable": {"a": 3, "d": 3, "e": 1},
}


@pytest.fixture(scope="session")
def ratings() -> dict[str, dict[str, int]]:
    """What the shop was learned from."""
    return RATINGS


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture(scope="session")
def served(tmp_path_factory) -> Path:
    """A workspace that has learned; to be read only."""
    rows = [(user, item, rating) for user, has in RATINGS.items() for item, rating in has.items()]
    users, items, ratings = zip(*rows, strict=True)
    folder = tmp_path_factory.mktemp("service") / "shop"
    config = Config(model="nmf", groups=3, epochs=3, batch=16, seed=1)
    learn(pa.table({"user_id": users, "item_id": items, "rating": ratings}), folder, config)
    return folder


@pytest.fixture
def folder(served, swift_path) -> Path:
    """A copy of the workspace that may be changed."""
    return copy_of(served, swift_path / "shop")


@pytest.fixture
def settings() -> ServiceSettings:
    return ServiceSettings()


@pytest.fixture
def shop(folder, settings, clock) -> Service:
    opened = Service.open(folder, settings, clock)
    yield opened
    opened.database.close()


@pytest.fixture
def worker(folder, settings, clock) -> Worker:
    """A worker on the same queue, in this process."""
    made = Worker(WorkerOptions(folder, settings, threads=1, clock=clock))
    yield made
    made.database.close()


@pytest.fixture
def other_process() -> Process:
    """Another process that is alive."""
    started = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    facts = Path(f"/proc/{started.pid}/stat").read_text()
    yield Process(started.pid, facts.rpartition(")")[2].split()[19])
    started.kill()
    started.wait()


@pytest.fixture
def app(shop):
    return make_application(shop)


@pytest.fixture
def client(app, shop):
    """Make a client that has a token of a role, or none."""

    def make(role: str | None = None) -> TestClient:
        headers = {} if role is None else {"Authorization": f"Bearer {shop.tokens.create(role, '', shop.clock())[1]}"}
        return TestClient(app, headers=headers, raise_server_exceptions=False)

    return make
