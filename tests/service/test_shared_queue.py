"""The service with its queue in Postgres: killed at every change, restarted databases, two servers on one workspace."""

import threading
import time
from contextlib import suppress
from itertools import count
from pathlib import Path
from random import Random

import httpx2
import pytest

pytest.importorskip("psycopg")

from erasable.operations import DiskStorage
from erasable.operations.recording import name_queue
from erasable.requests import Request, database
from erasable.requests.tokens import Answers, Caller
from erasable.service._service import Service
from erasable.service.api._routes import _answered_once
from erasable.service.api._schemas import NewErasureRequest
from erasable.workspace import files
from erasable.workspace.files import KEYS
from kit import erasure_service, small_shop
from kit.choosing import some
from kit.killing import killed_at
from kit.service_process import ServiceProcess


@pytest.fixture(scope="module")
def shop(tmp_path_factory) -> Path:
    """A workspace that has learned; to be copied."""
    return erasure_service.learn(tmp_path_factory.mktemp("shared") / "shop")


@pytest.fixture
def shared(shop, copied, swift_path, postgres):
    """Copy the shop; each copy has a queue of its own."""

    def make(name: str) -> Path:
        folder = copied(shop, swift_path / name)
        name_queue(DiskStorage(folder), postgres.address)
        return folder

    return make


@pytest.fixture(scope="module")
def people(shop) -> list[str]:
    return [small_shop.member_of(shop, position) for position in range(3)]


def require_no_keys(folder: Path) -> None:
    assert [*folder.glob("keys/*")] == []


def test_two_servers_that_get_the_same_key_at_once_answer_alike(shared, people, monkeypatch):
    folder, both, met, answers = shared("shop"), threading.Barrier(2), set(), []
    shops = [Service.open(folder) for _ in range(2)]
    earlier = Answers.earlier

    def at_once(self, key, body):
        found = earlier(self, key, body)
        if threading.current_thread() not in met:
            met.add(threading.current_thread())
            both.wait(20)
        return found

    def ask(shop):
        answers.append(
            _answered_once(shop, Caller("1", "application"), "key", NewErasureRequest(user_id=people[0]), b"body")
        )

    monkeypatch.setattr(Answers, "earlier", at_once)
    asking = [threading.Thread(target=ask, args=(shop,)) for shop in shops]
    for one in asking:
        one.start()
    for one in asking:
        one.join()
    assert len(answers) == 2
    assert answers[0] == answers[1]
    assert shops[0].history.counts() == {"suppressed": 1}
    for shop in shops:
        shop.database.close()


def test_requests_are_carried_out_as_with_a_file(shop, shared, people, copied, swift_path):
    folder, plain = shared("shop"), copied(shop, swift_path / "plain")
    for path in (folder, plain):
        ids = erasure_service.file_requests(path, *map(Request, people[:2]))
        erasure_service.work_off(path)
        erasure_service.require_erased_once(path, ids, people[:2])
    assert small_shop.lasting_files(folder) == small_shop.lasting_files(plain)
    require_no_keys(folder)


def work_off_with_few_changes(path: Path) -> None:
    """Work off, where only changes of the queue and of its keys count: for the others see test_kills."""
    count_it = files.before_change
    files.before_change = lambda kind, file: count_it(kind, file) if file.parent.name == KEYS else None
    erasure_service.work_off(path)


@pytest.mark.full
def test_a_worker_killed_at_any_change_is_followed_by_one_that_finishes_its_requests(shared, people):
    died, change = True, 0
    while died:
        change += 1
        path = shared(f"shop-{change}")
        ids = erasure_service.file_requests(path, Request(people[0]))
        died = killed_at(change, lambda path=path: work_off_with_few_changes(path))
        erasure_service.work_off(path)
        erasure_service.require_erased_once(path, ids, people[:1])
        require_no_keys(path)
    assert change > 15


@pytest.mark.full
def test_a_submission_killed_at_any_change_is_taken_in_once_or_not_at_all(shared, people):
    path, died, change = shared("shop"), True, 0
    while died:
        change += 1
        died = killed_at(change, lambda: erasure_service.file_requests(path, Request(people[0])))
    assert change > 4
    erasure_service.file_requests(path, Request(people[0]))
    assert len(erasure_service.states(path)) == 1
    erasure_service.work_off(path)
    erasure_service.require_erased_once(path, list(erasure_service.states(path)), people[:1])
    require_no_keys(path)


@pytest.mark.full
@pytest.mark.parametrize("end", some(["kill", "stop"], 1))
def test_an_erasure_outlives_restarts_of_the_database(shared, people, postgres, monkeypatch, end):
    path, changes = shared("shop"), count()
    ids = erasure_service.file_requests(path, *map(Request, people))

    def restart_sometimes() -> None:
        if next(changes) % 4 == 1:
            getattr(postgres, end)()
            postgres.start()

    monkeypatch.setattr(database, "before_commit", restart_sometimes)
    erasure_service.work_off(path)
    assert next(changes) > 12
    monkeypatch.undo()
    erasure_service.require_erased_once(path, ids, people)
    require_no_keys(path)


class Servers:
    """Two servers on one workspace, each with a worker."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._headers = {"Authorization": f"Bearer {erasure_service.new_token(folder, 'operator')}"}
        self._started: list[ServiceProcess] = []
        self.all = [self._start(), self._start()]

    def _start(self) -> ServiceProcess:
        self._started.append(ServiceProcess(self.folder, erasure_service.AT_ONCE))
        self._started[-1].wait_until_it_answers()
        return self._started[-1]

    def ask(self, which: int, method: str, path: str, body: object = None) -> httpx2.Response:
        return httpx2.request(method, self.all[which].url + path, json=body, headers=self._headers, timeout=60)

    def serves(self, which: int, user: str) -> int:
        """Return the status of recommending to someone."""
        return self.ask(which, "GET", f"/v1/recommendations/{user}").status_code

    def erase(self, which: int, user: str) -> str:
        """Submit a request, again if the answer was lost, and return its id."""
        for _ in range(50):
            with suppress(httpx2.TransportError):
                answer = self.ask(which, "POST", "/v1/erasure-requests", {"user_id": user})
                if answer.status_code == 201:
                    return answer.json()["id"]
            time.sleep(0.1)
            self.replace_dead()
        raise AssertionError("nobody takes it in")

    def replace_dead(self) -> None:
        """Start another server in the place of each that is gone."""
        for which, one in enumerate(self.all):
            if one.is_gone:
                self.all[which] = self._start()

    def wait_until(self, condition, seconds: float = 60) -> float:
        """Wait for something, and return how long it took."""
        began = time.monotonic()
        while not condition():
            assert time.monotonic() - began < seconds
            time.sleep(0.02)
        return time.monotonic() - began

    def end(self) -> None:
        """Kill all that were started, and their workers."""
        for one in self._started:
            one.kill_both()


@pytest.fixture
def servers(shared):
    made = Servers(shared("shop"))
    yield made
    made.end()


def ended(folder: Path, request_ids) -> bool:
    states = erasure_service.states(folder)
    return all(states.get(one, [""])[-1] == "erased" for one in request_ids)


@pytest.mark.full
def test_who_asks_one_server_is_suppressed_by_the_other(servers, people, postgres):
    assert servers.serves(1, people[0]) == 200
    first = servers.erase(0, people[0])
    servers.wait_until(lambda: servers.serves(1, people[0]) == 404)  # how soon: scripts/bench service kills
    assert servers.serves(1, people[1]) == 200
    servers.wait_until(lambda: ended(servers.folder, [first]))
    erasure_service.require_erased_once(servers.folder, [first], people[:1])
    # Without the database no server serves anyone, and both go on with it.
    postgres.stop()
    try:
        servers.wait_until(lambda: {servers.serves(which, people[1]) for which in (0, 1)} == {503})
        refused = servers.ask(0, "POST", "/v1/erasure-requests", {"user_id": people[1]})
        assert refused.status_code == 503
    finally:
        postgres.start()
    servers.wait_until(lambda: {servers.serves(which, people[1]) for which in (0, 1)} == {200})


@pytest.mark.full
def test_a_server_that_is_started_before_its_database_waits_for_it(shared, postgres):
    folder = shared("shop")
    postgres.stop()
    try:
        service = ServiceProcess(folder, erasure_service.AT_ONCE)
        service.wait_until(lambda: "waiting for the database" in service.log)
    finally:
        postgres.start()
    service.wait_until_it_answers()
    service.kill_both()


@pytest.mark.full
def test_whatever_is_killed_when_each_request_is_erased_once(servers, shop, postgres):
    draw, folder = Random(1), servers.folder
    wanted = draw.sample(erasure_service.people_in(shop), 12)
    ids = []
    for user in wanted:
        ids.append(servers.erase(draw.randrange(2), user))
        time.sleep(draw.random() / 2)
        which = servers.all[draw.randrange(2)]
        draw.choice([which.kill_workers, which.kill_both, which.kill_server, postgres.kill, postgres.stop])()
        postgres.start_if_stopped()
        servers.replace_dead()
    servers.wait_until(lambda: ended(folder, ids), 120)
    erasure_service.require_erased_once(folder, ids, wanted)
    require_no_keys(folder)
