"""What one token asks for beyond its share of a day is taken in, suppressed, and waits for an officer."""

import pytest
from starlette.testclient import TestClient

from erasable.errors import UnknownUser
from erasable.requests import Request
from erasable.service._http import VISIT_COOKIE
from erasable.service._running import make_application
from erasable.service._service import Service, overview
from erasable.service.settings import ServiceSettings
from kit import small_shop


@pytest.fixture
def settings():
    return ServiceSettings(batch_window=0)


@pytest.fixture
def folder(swift_path):
    """A workspace of forty people: one per cent of them is less than the least limit."""
    return small_shop.learn_shop(swift_path / "shop", small_shop.table(40, 20))


@pytest.fixture
def people(shop):
    return sorted(user for group in shop.live.dataset.groups for user in group.users)


def test_the_eleventh_of_a_day_waits_for_an_officer_and_is_suppressed(shop, worker, people, clock, capfd):
    asked = [shop.reception.submit(Request(user), "application 1").request_id for user in people[:12]]
    states = [shop.history.get(one).state for one in asked]
    assert states == ["suppressed"] * 10 + ["on hold"] * 2
    for user in people[:12]:
        with pytest.raises(UnknownUser):
            shop.live.recommend(user, 1)
    assert capfd.readouterr().err.count('"event": "limit of a token passed"') == 2
    while worker.step():
        pass
    assert [shop.history.get(one).state for one in asked] == ["erased"] * 10 + ["on hold"] * 2
    for one in asked[10:]:
        shop.decisions.release(one, "officer 2", clock())
    while worker.step():
        pass
    assert {shop.history.get(one).state for one in asked} == {"erased"}


def test_each_token_has_its_own_share_and_a_new_one_the_next_day(shop, people, clock):
    for user in people[:10]:
        shop.reception.submit(Request(user), "application 1")
    assert not shop.history.get(shop.reception.submit(Request(people[10]), "application 2").request_id).over_limit
    assert shop.history.get(shop.reception.submit(Request(people[11]), "application 1").request_id).over_limit
    clock.pass_days(1.01)
    assert not shop.history.get(shop.reception.submit(Request(people[12]), "application 1").request_id).over_limit


def test_who_asks_again_and_whom_nobody_knows_takes_nothing_of_the_share(shop, people):
    for _ in range(15):
        shop.reception.submit(Request(people[0]), "application 1")
        shop.reception.submit(Request("nobody"), "application 1")
    assert not shop.history.get(shop.reception.submit(Request(people[1]), "application 1").request_id).over_limit


def test_the_share_is_a_setting(folder, people, clock):
    shop = Service.open(folder, ServiceSettings(daily_share=0.5), clock)
    states = [shop.history.get(shop.reception.submit(Request(user), "x 1").request_id).state for user in people[:21]]
    assert states == ["suppressed"] * 20 + ["on hold"]
    shop.database.close()


def test_it_is_counted_and_shown(shop, client, people):
    for user in people[:12]:
        shop.reception.submit(Request(user), "application 1")
    assert overview(shop).totals.urgent["over limit"] == 2
    assert client("officer").get("/v1/status").json()["over_limit"] == 2
    assert "erasable_requests_over_limit 2.0" in client("operator").get("/metrics").text


def test_the_overview_raises_an_alarm(shop, people):
    for user in people[:12]:
        shop.reception.submit(Request(user), "application 1")
    _, secret = shop.tokens.create("officer", "", shop.clock())
    visit = shop.tokens.begin_visit(shop.tokens.caller(secret))
    page = TestClient(make_application(shop), cookies={VISIT_COOKIE: visit}).get("/").text
    assert "2 requests beyond what one token may ask for in a day" in page
    assert page.count("beyond the limit of its token") == 2
