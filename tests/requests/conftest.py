"""A queue in every database there is, a clock that can be set, and another process that is alive."""

import subprocess
import sys
from pathlib import Path

import pytest

from erasable.requests.lease import Process
from erasable.requests.queue import Queue
from erasable.requests.sqlite import SqliteDatabase
from erasable.workspace.files import KEYS
from kit import small_shop
from kit.copies import copy_of
from kit.postgres_queues import queue_in
from kit.set_clock import SetClock


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def folder(swift_path) -> Path:
    """Where the queue of a workspace lies."""
    made = swift_path / "shop"
    made.mkdir()
    return made


@pytest.fixture
def in_file(folder) -> SqliteDatabase:
    """A queue in SQLite, in the workspace's folder."""
    opened = SqliteDatabase.open(folder)
    yield opened
    opened.close()


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def database(request, folder):
    """A queue in each database."""
    if request.param == "postgres":
        with queue_in(request.getfixturevalue("postgres").address, folder / KEYS) as open_one:
            yield open_one()
        return
    opened = SqliteDatabase.in_memory() if request.param == "memory" else SqliteDatabase.open(folder)
    yield opened
    opened.close()


@pytest.fixture
def queue(database) -> Queue:
    return Queue(database)


@pytest.fixture
def other_process() -> Process:
    """Another process that is alive."""
    started = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    facts = Path(f"/proc/{started.pid}/stat").read_text()
    yield Process(started.pid, facts.rpartition(")")[2].split()[19])
    started.kill()
    started.wait()


@pytest.fixture(scope="session")
def learned_once(tmp_path_factory) -> Path:
    return small_shop.learn_shop(tmp_path_factory.mktemp("requests") / "shop", small_shop.table(20, 10))


@pytest.fixture
def learned(learned_once, swift_path) -> Path:
    """A workspace that has learned."""
    return copy_of(learned_once, swift_path / "learned")
