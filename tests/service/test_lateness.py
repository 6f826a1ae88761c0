"""A request as its events tell it: whether it is late."""

import pytest

from erasable.requests import Request
from erasable.service._service import overview
from erasable.service.settings import ServiceSettings
from erasable.service.web._request_list import WantedRequests, requests_csv

PATH = "/v1/erasure-requests"


@pytest.fixture
def settings():
    return ServiceSettings(batch_window=0)


@pytest.fixture
def requests(shop, worker, clock):
    """One that was erased in time, one that was erased too late, and one that is open."""
    early, late, still = (
        shop.reception.submit(Request(user), "officer 1").request_id for user in ("ann", "bob", "cat")
    )
    for held in (late, still):
        shop.reception.hold(held, "officer 1", "a court asks")
    while worker.step():
        pass
    clock.pass_days(40)
    shop.decisions.release(late, "officer 1", clock())
    while worker.step():
        pass
    return early, late, still


def test_what_is_erased_after_the_legal_time_is_late_for_good_and_what_is_open_then_too(shop, requests, clock):
    early, late, still = map(shop.history.get, requests)
    assert [one.state for one in (early, late, still)] == ["erased", "erased", "on hold"]
    clock.pass_days(400)
    assert [one.late(shop.settings, clock()) for one in (early, late, still)] == [False, True, True]


def test_two_months_more_are_in_time(shop, requests, clock):
    request_id = shop.reception.submit(Request("dan"), "officer 1").request_id
    shop.reception.hold(request_id, "officer 1", "a court asks")
    shop.reception.extend(request_id, "officer 1", "many systems")
    clock.pass_days(40)
    assert not shop.history.get(request_id).late(shop.settings, clock())
    clock.pass_days(60)
    assert shop.history.get(request_id).late(shop.settings, clock())


def test_it_is_shown_everywhere(shop, client, requests, clock):
    early, late, still = requests
    officer = client("officer")
    told = {one["id"]: one["late"] for one in officer.get(PATH).json()["requests"]}
    assert told == {early: False, late: True, still: True}
    assert (officer.get("/v1/status").json()["late"], overview(shop).totals.urgent["late"]) == (1, 1)
    assert 'erasable_requests_late{kind="late"} 1.0' in officer.get("/metrics").text
    assert WantedRequests(only="late").ids(shop) == [still, late]
    assert requests_csv([shop.history.get(late)], shop.settings, clock()).splitlines()[1].split(",")[-4] == "late"
