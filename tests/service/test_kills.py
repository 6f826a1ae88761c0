"""The service, killed just before every single change that it makes: no request is lost, stuck or carried out twice."""

from pathlib import Path

import pytest
from starlette.testclient import TestClient

from erasable.requests import Request, queue
from erasable.service._running import make_application
from erasable.service._service import Service
from erasable.workspace import Workspace
from kit import erasure_service, small_shop
from kit.killing import at_changes, killed_at

KEY = "a key that the caller chose"


@pytest.fixture(scope="module")
def shop(tmp_path_factory) -> Path:
    """A workspace that has learned; to be copied."""
    return erasure_service.learn(tmp_path_factory.mktemp("kills") / "shop")


@pytest.fixture(scope="module")
def people(shop) -> list[str]:
    return [small_shop.member_of(shop, position) for position in range(3)]


@pytest.fixture(scope="module")
def wishes(shop, people) -> list[Request]:
    """Two people want everything erased, and one a single interaction."""
    with Workspace.reading(shop) as workspace:
        (item, *_) = workspace.state().dataset.items_of(people[2])
    return [Request(people[0]), Request(people[1]), Request(people[2], (item,))]


@at_changes
def test_a_worker_killed_at_any_change_is_followed_by_one_that_finishes_its_requests(
    shop, people, wishes, copied, swift_path, moments
):
    waiting = copied(shop, swift_path / "waiting")
    request_ids = erasure_service.file_requests(waiting, *wishes)
    undisturbed = copied(waiting, swift_path / "undisturbed")
    erasure_service.work_off(undisturbed)
    for change in moments(lambda: erasure_service.work_off(copied(waiting, swift_path / "looked at"))):
        path = copied(waiting, swift_path / f"shop-{change}")
        died = killed_at(change, lambda path=path: erasure_service.work_off(path))
        erasure_service.work_off(path)
        erasure_service.require_erased_once(path, request_ids, people[:2])
        assert small_shop.lasting_files(path) == small_shop.lasting_files(undisturbed)
        if not died:
            break
    assert change > 75


@pytest.mark.full
def test_a_worker_killed_at_any_change_loses_and_doubles_no_request_that_is_sealed(
    shop, people, wishes, copied, swift_path, monkeypatch
):
    monkeypatch.setattr(queue, "OPEN_REQUESTS", 0)
    waiting = copied(shop, swift_path / "waiting")
    request_ids = erasure_service.file_requests(waiting, *wishes)
    died, change, sealed_at = True, 0, set()
    while died:
        change += 1
        path = copied(waiting, swift_path / f"shop-{change}")
        died = killed_at(change, lambda path=path: erasure_service.work_off(path))
        sealed_at |= {change} if [*path.glob("sealed/requests-*")] else set()
        erasure_service.work_off(path)
        erasure_service.require_erased_once(path, request_ids, people[:2])
        assert len([*path.glob("sealed/requests-*")]) == 1
        with erasure_service.database_of(path) as database:
            assert database.sealed_twice() == []
            assert queue.Queue(database).history.counts() == {"erased": 3}
    assert len(sealed_at) > 5


def test_a_server_killed_while_it_takes_a_request_in_answers_the_repeated_one_as_the_first(
    shop, people, copied, swift_path
):
    died, change = True, 0
    while died:
        change += 1
        path = copied(shop, swift_path / f"shop-{change}")
        token = erasure_service.new_token(path, "application")
        died = killed_at(change, lambda path=path, token=token: submitted(path, token, people[0]))
        erasure_service.work_off(path)
        answer = submitted(path, token, people[0])
        assert submitted(path, token, people[0]) == answer
        erasure_service.work_off(path)
        erasure_service.require_erased_once(path, [answer["id"]], people[:1])
    assert change > 1


def submitted(path: Path, token: str, user: str) -> dict:
    """Ask for a person to be erased, of a service that is started for it."""
    shop = Service.open(path, erasure_service.AT_ONCE)
    headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": KEY}
    answer = TestClient(make_application(shop)).post("/v1/erasure-requests", json={"user_id": user}, headers=headers)
    assert answer.status_code == 201
    shop.database.close()
    return answer.json()
