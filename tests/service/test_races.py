"""Many ask for one person, two workers want one request, and much changes while a worker makes up its mind."""

import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import httpx
import pytest

from erasable.errors import WorkspaceBusy
from erasable.service import erasing
from erasable.service.intake import Coming
from erasable.service.requests import Requests
from erasable.service.settings import DEFAULT_SETTINGS, ServiceSettings
from erasable.service.shop import Shop
from erasable.service.worker import Post, Worker
from erasable.store import ledger
from erasable.unlearning import Request
from kit import erasure_service, service_process, small_shop
from kit.killing import frozen_at

LEASE_SECONDS = 0.5
IMPATIENT = erasure_service.AT_ONCE.model_copy(update={"lease_seconds": LEASE_SECONDS})
MOMENTS = [2, 5, 6, 20, 40, 60, 70, 71, 72, 75, 90, 100]


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


def test_fifty_who_ask_for_one_person_at_once_get_one_request_and_one_certificate(shop, person, copied, swift_path):
    path = copied(shop, swift_path / "shop")
    headers = {"Authorization": f"Bearer {erasure_service.new_token(path, 'application')}"}
    with service_process.running(path, DEFAULT_SETTINGS) as service, httpx.Client(timeout=30) as client:

        def ask(number: int) -> httpx.Response:
            return client.post(f"{service.url}/v1/erasure-requests", json={"user_id": person}, headers=headers)

        with ThreadPoolExecutor(50) as pool:
            answers = list(pool.map(ask, range(50)))
    assert {answer.status_code for answer in answers} == {201}
    assert sorted(answer.json()["joined"] for answer in answers) == [False] + [True] * 49
    assert len({answer.json()["receipt_code"] for answer in answers}) == 1
    erasure_service.work_off(path)
    erasure_service.require_erased_once(path, [answers[0].json()["id"]], [person])


@pytest.mark.parametrize("change", MOMENTS)
def test_a_worker_that_wakes_after_its_lease_was_taken_changes_nothing_more(
    path, undisturbed, person, change, monkeypatch
):
    monkeypatch.setattr(ledger, "_WAIT_SECONDS", 0.2)
    frozen = frozen_at(change, lambda: erasure_service.work_off(path, IMPATIENT))
    with second_worker(path) as second:
        wait_for_the_lease(second)
        os.kill(frozen, signal.SIGCONT)
        work_until_all_ended(second)
    assert os.waitstatus_to_exitcode(os.waitpid(frozen, 0)[1]) == 0
    require_as_undisturbed(path, undisturbed, person)


@pytest.mark.parametrize("change", MOMENTS)
def test_a_worker_that_never_wakes_is_ended_if_it_is_in_the_way(path, undisturbed, person, change, monkeypatch):
    monkeypatch.setattr(ledger, "_WAIT_SECONDS", 0.2)
    frozen = frozen_at(change, lambda: erasure_service.work_off(path, IMPATIENT))
    with second_worker(path) as second:
        work_until_all_ended(second)
    os.kill(frozen, signal.SIGKILL)
    os.waitpid(frozen, 0)
    require_as_undisturbed(path, undisturbed, person)


def test_waiting_for_a_frozen_worker_is_no_failure_of_the_request(path, undisturbed, person):
    settings = ServiceSettings(batch_window=0, attempts=2, lease_seconds=LEASE_SECONDS)
    frozen = frozen_at(40, lambda: erasure_service.work_off(path, settings))
    with second_worker(path, settings) as second:
        work_until_all_ended(second)
    os.waitpid(frozen, 0)
    require_as_undisturbed(path, undisturbed, person)


@pytest.mark.parametrize("state", ["on hold", "withdrawn"])
def test_whoever_is_held_back_while_the_batch_is_chosen_is_not_erased(waiting, path, state, monkeypatch):
    choose = erasing.batch
    with second_worker(path) as worker:
        requests = Requests(worker.ledger)
        (request_id,) = erasure_service.states(path)

        def choose_slowly(*arguments):
            chosen = choose(*arguments)
            requests.change(request_id, state, "an officer", worker.post.clock(), {"reason": "a lawsuit"})
            return chosen

        monkeypatch.setattr(erasing, "batch", choose_slowly)
        while worker.step():
            pass
        assert requests.get(request_id).state == state
    assert small_shop.lasting_files(path) == small_shop.lasting_files(waiting)


def test_whoever_was_learned_a_moment_ago_is_not_told_that_nothing_is_held(shop, copied, swift_path):
    path = copied(shop, swift_path / "shop")
    served = Shop.open(path, erasure_service.AT_ONCE)
    with closing(served.ledger):
        served.intake.add([Coming("newcomer", "i0001", 5.0, None)])
        erasure_service.work_off(path, erasure_service.AT_ONCE.model_copy(update={"learn_seconds": 0}))
        assert not served.live.knows("newcomer")
        assert not served.reception.file(Request("newcomer"), "someone").rejected


@contextmanager
def second_worker(path: Path, settings: ServiceSettings = IMPATIENT) -> Iterator[Worker]:
    worker = Worker(Post(path, settings, threads=1))
    with closing(worker.ledger):
        yield worker


def wait_for_the_lease(worker: Worker) -> None:
    """Wait until a worker has the lease, or finds that it can't be taken because the ledger is in use."""
    with suppress(WorkspaceBusy):
        while not worker.lease.take():
            time.sleep(0.02)


def work_until_all_ended(worker: Worker) -> None:
    end = time.monotonic() + 20
    while Requests(worker.ledger).open_requests():
        assert time.monotonic() < end, "stuck"
        if not worker.step():
            time.sleep(0.02)


def require_as_undisturbed(path: Path, undisturbed: Path, person: str) -> None:
    erasure_service.require_erased_once(path, list(erasure_service.states(undisturbed)), [person])
    assert small_shop.lasting_files(path) == small_shop.lasting_files(undisturbed)
