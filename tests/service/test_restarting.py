"""A server that starts anew after erasures: nobody is refused meanwhile, no child is left, one server at a time."""

import os
import socket
import threading
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import httpx2
import pytest
import uvicorn
from starlette.responses import PlainTextResponse

from erasable.requests import Request
from erasable.service._running import Restart, StoppingServer, impatient
from erasable.service._service import Service
from kit import erasure_service, service_process, small_shop

SOON = erasure_service.AT_ONCE.model_copy(update={"restart_seconds": 0.01})


@pytest.fixture(scope="module")
def shop(tmp_path_factory) -> Path:
    """A workspace that has learned; to be copied."""
    return erasure_service.learn(tmp_path_factory.mktemp("restarting") / "shop")


@pytest.fixture
def path(shop, copied, swift_path) -> Path:
    return copied(shop, swift_path / "shop")


class Caller(threading.Thread):
    """Asks for someone again and again, each time with a connection of its own, until it is stopped."""

    def __init__(self, url: str, token: str) -> None:
        super().__init__()
        self.stopped = threading.Event()
        self.answers: list[int | str] = []
        self._ask = lambda: httpx2.get(url, headers={"Authorization": f"Bearer {token}"}, timeout=60)

    def run(self) -> None:
        while not self.stopped.wait(0.02):
            try:
                self.answers.append(self._ask().status_code)
            except httpx2.TransportError as error:
                self.answers.append(repr(error))


@pytest.mark.full
def test_a_server_starts_anew_after_an_erasure_and_refuses_nobody(path):
    person, other = small_shop.member_of(path, 1), small_shop.member_of(path, 0)
    token = erasure_service.new_token(path, "operator")
    with service_process.running(path, SOON) as service:
        caller = Caller(f"{service.url}/v1/recommendations/{other}", token)
        started = service.log.count('"service started"')
        answer = httpx2.post(
            f"{service.url}/v1/erasure-requests",
            json={"user_id": person},
            headers={"Authorization": f"Bearer {token}"},
            timeout=60,
        )
        caller.start()
        service.wait_until(lambda: service.log.count('"service started"') > started)
        service.wait_until(lambda: caller.answers and service.workers())
        caller.stopped.set()
        caller.join()
        assert set(caller.answers) == {200}
        assert all(not is_zombie(pid) for pid in children_of(service.pid))
    assert '"service restarts"' in service.log
    erasure_service.require_erased_once(path, [answer.json()["id"]], [person])


@pytest.mark.parametrize("earlier", [0, 1], ids=["a new connection", "one that is kept alive"])
def test_a_request_that_arrives_while_the_server_stops_is_answered(earlier):
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(PlainTextResponse("here"), http=impatient(5), log_config=None))
    thread = threading.Thread(target=server.run, args=([listening],))
    thread.start()
    with socket.create_connection(listening.getsockname()) as caller:
        for _ in range(earlier):
            assert b"connection: close" not in asked(caller)
        wait_until(lambda: server.server_state.connections)
        server.should_exit = True
        wait_until(lambda: listening.fileno() < 0)  # uvicorn has closed it
        answer = asked(caller)
        assert b"200 OK" in answer
        assert b"connection: close" in answer
    thread.join()


@pytest.mark.parametrize("restarts", [False, True])
def test_a_server_that_stops_is_called_in_vain_and_one_that_restarts_keeps_callers_waiting(restarts):
    listening, again = socket.create_server(("127.0.0.1", 0)), threading.Event()
    place = listening.getsockname()
    server = StoppingServer(uvicorn.Config(PlainTextResponse("here"), log_config=None), again)
    thread = threading.Thread(target=server.run_on, args=(listening,))
    thread.start()
    with socket.create_connection(place) as caller:
        assert b"200 OK" in asked(caller)
        if restarts:
            again.set()
        server.should_exit = True
        thread.join()
    if restarts:
        with listening, socket.create_connection(place):
            pass
    else:
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(place)


def asked(caller: socket.socket) -> bytes:
    caller.sendall(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n")
    answer = piece = caller.recv(65_536)
    while piece and not answer.endswith(b"here"):
        piece = caller.recv(65_536)
        answer += piece
    return answer


def wait_until(comes: Callable[[], object]) -> None:
    while not comes():
        pass


def test_a_server_that_is_not_told_to_never_starts_anew(path):
    shop = Service.open(path, erasure_service.AT_ONCE)
    with closing(shop.database):
        restart = Restart(shop)
        erase_someone(path, shop)
        assert not restart.is_due()


def test_servers_start_anew_in_turn_and_only_after_an_erasure(path, monkeypatch):
    now = [erasure_service.universal_time()]
    first, second = (Service.open(path, SOON, lambda: now[0]) for _ in range(2))
    with closing(first.database), closing(second.database):
        restarts = [Restart(first), Restart(second)]
        assert not restarts[0].is_due()
        erase_someone(path, first, second)
        wait_until_due(restarts)
        assert [one.take_turn() for one in restarts] == [True, False]
        now[0] += timedelta(seconds=60)
        assert restarts[1].take_turn()


def test_a_server_that_has_started_since_the_erasure_has_no_reason_to(path):
    shop = Service.open(path, SOON)
    with closing(shop.database):
        erase_someone(path, shop)
        assert not Restart(shop).is_due()


def erase_someone(path: Path, *followers: Service) -> None:
    erasure_service.file_requests(path, Request(small_shop.member_of(path, 1)))
    erasure_service.work_off(path)
    for shop in followers:
        shop.reception.follow()


def wait_until_due(restarts: list[Restart]) -> None:
    for one in restarts:
        while not one.is_due():
            pass


def children_of(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for task in tasks for child in task.read_text().split()]


def is_zombie(pid: int) -> bool:
    return os.path.exists(f"/proc/{pid}") and Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
