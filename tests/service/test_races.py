"""Many ask for one person, two workers want one request, and much changes while a worker makes up its mind."""

import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import httpx2
import pytest

from erasable.operations._vocabulary import own_vocabulary
from erasable.requests import Request
from erasable.requests.database import Database, WaitingInteraction
from erasable.requests.queue import Queue
from erasable.scan import Target, scan_folder
from erasable.service._service import Service
from erasable.service._worker import Worker, WorkerOptions, run_worker
from erasable.service.settings import DEFAULT_SETTINGS, ServiceSettings
from kit import erasure_service, service_process, small_shop
from kit.choosing import cases
from kit.killing import ended, forked, frozen, frozen_at

LEASE_SECONDS = 0.5
IMPATIENT = erasure_service.AT_ONCE.model_copy(update={"lease_seconds": LEASE_SECONDS})
MOMENTS = {
    "taking the lease": 2,
    "beginning": 4,
    "planning": 5,
    "training": 8,
    "making the erasure current": 34,
    "destroying": 38,
    "forgetting who asked": 42,
    "certifying": 48,
    "making the certificate current": 63,
    "ending": 69,
}
"""At which of its changes a worker does what, with one request."""


@pytest.fixture(scope="module")
def shop(tmp_path_factory) -> Path:
    """A workspace that has learned; to be copied."""
    return erasure_service.learn(tmp_path_factory.mktemp("races") / "shop")


@pytest.fixture(scope="module")
def person(shop) -> str:
    return small_shop.member_of(shop, 1)


@pytest.fixture(scope="module")
def waiting(shop, person, copied, tmp_path_factory) -> Path:
    """The same shop, in which someone waits to be erased."""
    path = copied(shop, tmp_path_factory.mktemp("races") / "waiting")
    erasure_service.file_requests(path, Request(person))
    return path


@pytest.fixture(scope="module")
def undisturbed(waiting, copied, tmp_path_factory) -> Path:
    """What one worker leaves that is alone."""
    path = copied(waiting, tmp_path_factory.mktemp("races") / "undisturbed")
    erasure_service.work_off(path)
    return path


@pytest.fixture
def path(waiting, copied, swift_path) -> Path:
    return copied(waiting, swift_path / "shop")


@pytest.mark.full
def test_fifty_who_ask_for_one_person_at_once_get_one_request_and_one_certificate(shop, person, copied, swift_path):
    path = copied(shop, swift_path / "shop")
    headers = {"Authorization": f"Bearer {erasure_service.new_token(path, 'application')}"}
    with service_process.running(path, DEFAULT_SETTINGS) as service, httpx2.Client(timeout=30) as client:

        def ask(number: int) -> httpx2.Response:
            return client.post(f"{service.url}/v1/erasure-requests", json={"user_id": person}, headers=headers)

        with ThreadPoolExecutor(50) as pool:
            answers = list(pool.map(ask, range(50)))
    assert {answer.status_code for answer in answers} == {201}
    codes = {answer.json()["receipt_code"] for answer in answers}
    assert len(codes) == 50  # each as if it were the first
    (request_id,) = erasure_service.states(path)
    erasure_service.work_off(path, clock=erasure_service.later)
    erasure_service.require_erased_once(path, [request_id], [person])
    with erasure_service.database_of(path) as opened:
        assert {Queue(opened).history.submission(code).request.request_id for code in codes} == {request_id}


@pytest.mark.parametrize("change", cases(MOMENTS, ["beginning", "making the erasure current", "ending"]))
def test_a_worker_that_wakes_after_its_lease_was_taken_changes_nothing_more(path, undisturbed, person, change):
    with frozen_at(change, lambda: erasure_service.work_off(path, IMPATIENT)) as frozen_worker, second_worker(path):
        wait_for_another_lease(path)
        os.kill(frozen_worker, signal.SIGCONT)
        wait_until_all_ended(path)
        ended(frozen_worker)
    require_as_undisturbed(path, undisturbed, person)


@pytest.mark.parametrize("change", cases(MOMENTS, ["taking the lease", "certifying"]))
def test_a_worker_that_never_wakes_is_ended(path, undisturbed, person, change):
    with frozen_at(change, lambda: erasure_service.work_off(path, IMPATIENT)) as frozen_worker, second_worker(path):
        wait_until_all_ended(path)
        assert ended(frozen_worker) == -signal.SIGKILL
    require_as_undisturbed(path, undisturbed, person)


def test_waiting_for_a_frozen_worker_is_no_failure_of_the_request(path, undisturbed, person):
    settings = IMPATIENT.model_copy(update={"attempts": 2})
    with (
        frozen_at(MOMENTS["training"], lambda: erasure_service.work_off(path, settings)),
        second_worker(path, settings),
    ):
        wait_until_all_ended(path)
    require_as_undisturbed(path, undisturbed, person)


@pytest.mark.parametrize("state", ["on hold", "withdrawn"])
def test_whoever_is_held_back_while_the_batch_is_chosen_is_not_erased(waiting, path, state, monkeypatch):
    worker = Worker(WorkerOptions(path, IMPATIENT, threads=1))
    queue = Queue(worker.database)
    (request_id,) = erasure_service.states(path)

    choose = worker.queue.due

    def choose_slowly(now):
        chosen = choose(now)
        queue.advance(request_id, state, "an officer", worker.options.clock(), {"reason": "a lawsuit"})
        return chosen

    monkeypatch.setattr(worker.queue, "due", choose_slowly)
    with closing(worker.database):
        while worker.step():
            pass
        assert queue.history.get(request_id).state == state
    assert small_shop.lasting_files(path) == small_shop.lasting_files(waiting)


def test_whoever_was_learned_a_moment_ago_is_not_told_that_nothing_is_held(shop, copied, swift_path):
    path = copied(shop, swift_path / "shop")
    served = Service.open(path, erasure_service.AT_ONCE)
    with closing(served.database):
        served.intake.add([WaitingInteraction("newcomer", "i0001", 5.0, None)])
        erasure_service.work_off(path, erasure_service.AT_ONCE.model_copy(update={"learn_seconds": 0}))
        assert not served.live.knows("newcomer")
        assert not served.reception.submit(Request("newcomer"), "someone").rejected


def test_a_worker_that_has_searched_its_own_queue_still_counts_as_using_it(path, person):
    """Who closes a database as the last one removes its log, and with it what others are still to write there."""

    def search_and_freeze() -> None:
        with erasure_service.database_of(path):
            scan_folder(path, [Target(person)], own_vocabulary())
            os.kill(os.getpid(), signal.SIGSTOP)

    with frozen(search_and_freeze):
        with erasure_service.database_of(path):
            pass
        assert (path / "ledger.sqlite-wal").exists()


@contextmanager
def second_worker(path: Path, settings: ServiceSettings = IMPATIENT) -> Iterator[None]:
    """Run a worker in a process of its own for a block."""
    child = forked(lambda: run_worker(WorkerOptions(path, settings, threads=1, pause=0.02)))
    try:
        yield
    finally:
        os.kill(child, signal.SIGTERM)
        assert ended(child) == 0


def wait_for_another_lease(path: Path) -> None:
    """Wait until the lease is taken anew, or could have been for long: who is frozen may keep others from writing."""
    with erasure_service.database_of(path) as opened:
        first, end = lease_number(opened), time.monotonic() + 1.5 * LEASE_SECONDS
        while lease_number(opened) == first and time.monotonic() < end:
            time.sleep(0.01)


def lease_number(opened: Database) -> int:
    return opened.read(lambda connection: connection.execute("SELECT lease_number FROM lease"))[0]["lease_number"]


def wait_until_all_ended(path: Path) -> None:
    end = time.monotonic() + 60
    with erasure_service.database_of(path) as opened:
        while Queue(opened).history.open_requests():
            assert time.monotonic() < end, "stuck"
            time.sleep(0.02)


def require_as_undisturbed(path: Path, undisturbed: Path, person: str) -> None:
    erasure_service.require_erased_once(path, list(erasure_service.states(undisturbed)), [person])
    assert small_shop.lasting_files(path) == small_shop.lasting_files(undisturbed)
