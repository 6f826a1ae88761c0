"""A small shop that is served with a clock of its own, and browsers that are signed in."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from erasable.service._running import make_application
from erasable.service._service import Service
from erasable.service._worker import Worker, WorkerOptions
from erasable.service.settings import ServiceSettings
from kit.copies import copy_of
from kit.small_shop import learn_shop, table

START = datetime(2026, 11, 2, 9, 30, tzinfo=UTC)
HOST = "http://127.0.0.1"


class Clock:
    """A clock that goes when it is told to."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now

    def advance(self, **time: float) -> None:
        self.now += timedelta(**time)


class Office:
    """Someone of the office at a browser."""

    def __init__(self, shop: Service, role: str = "officer", **options: object) -> None:
        _, self.token = shop.tokens.create(role, "test", START)
        self.client = TestClient(make_application(shop), base_url=HOST, follow_redirects=False, **options)

    def sign_in(self) -> "Office":
        answer = self.client.post("/login", data={"token": self.token})
        assert answer.status_code == 303
        return self

    def get(self, address: str, status: int = 200) -> str:
        answer = self.client.get(address)
        assert answer.status_code == status, answer.text
        return answer.text

    def send(self, address: str, status: int = 303, **fields: str):
        answer = self.client.post(address, data={"form_token": self.form_token(), **fields})
        assert answer.status_code == status, answer.text
        return answer

    def form_token(self) -> str:
        return re.search('name="form_token" value="([0-9a-f]+)"', self.get("/plan")).group(1)

    def submit(self, user: str, items: str = "", reference: str = "") -> tuple[str, str]:
        """Submit a request, and return its id and its receipt code."""
        text = self.send("/requests", 201, user_id=user, item_ids=items, reference=reference).text
        return re.search("/requests/([0-9a-f]{32})", text).group(1), re.search("(?:[A-Z2-7]{4}-){7}[A-Z2-7]{4}", text)[
            0
        ]


@pytest.fixture(scope="session")
def learned(tmp_path_factory) -> Path:
    """A workspace that has learned; to be copied only."""
    return learn_shop(tmp_path_factory.mktemp("web") / "shop", table())


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def settings() -> ServiceSettings:
    return ServiceSettings(learn_seconds=0, retry_seconds=0, attempts=1)


@pytest.fixture
def shop(learned, swift_path, clock, settings):
    folder = copy_of(learned, swift_path / "shop")
    shop = Service.open(folder, settings, clock)
    yield shop
    shop.database.close()


@pytest.fixture
def worker(shop, clock):
    """A worker of the same clock, which steps when it is told to."""
    worker = Worker(WorkerOptions(shop.folder, shop.settings, threads=1, clock=clock))
    yield worker
    worker.database.close()


@pytest.fixture
def office(shop) -> Office:
    return Office(shop).sign_in()


@pytest.fixture
def stranger(shop) -> Office:
    """Someone who is not signed in."""
    return Office(shop)


@pytest.fixture
def users(shop) -> list[str]:
    """Users of the shop, those of the first group first."""
    return [user for group in shop.live.dataset.groups for user in group.users]


@pytest.fixture
def request_id(office, users) -> str:
    return office.submit(users[0])[0]


@pytest.fixture
def page(request_id) -> str:
    """The address of the page of a request."""
    return f"/requests/{request_id}"


@pytest.fixture
def erased(page, clock, worker, shop) -> str:
    """The address of the page of a request that was carried out."""
    clock.advance(days=6)
    assert worker.step()
    shop.reception.follow()
    return page


@pytest.fixture
def fail(shop):
    """Have a request fail for good."""

    def fail(request_id: str) -> None:
        shop.queue.advance(request_id, "erasing", "worker", shop.clock())
        facts = {"reason": "the disk is full: free some space", "retry_at": None}
        shop.queue.advance(request_id, "failed", "worker", shop.clock(), facts)

    return fail
