"""A request for some items: the service serves the person without them where rows are solved, and says so."""

from contextlib import closing

import pyarrow as pa
import pytest
from starlette.testclient import TestClient

from erasable.chain import Config
from erasable.operations import DiskStorage, learn, recommend
from erasable.service._service import Service

FAY, GONE = "fay-the-unmistakable", ["a"]
RATINGS = {
    "ann": {"a": 5, "b": 4, "c": 1},
    "bob": {"a": 4, "b": 5, "d": 2},
    "cat": {"b": 3, "c": 4, "e": 5},
    "dan": {"c": 2, "d": 5, "e": 4},
    FAY: {"a": 3, "d": 3, "e": 1},
}
PATH = "/v1/erasure-requests"
WITHOUT, NOT_SERVED = "served without these items", "not served"


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A workspace whose rows are solved."""
    rows = [(user, item, rating) for user, has in RATINGS.items() for item, rating in has.items()]
    users, items, ratings = zip(*rows, strict=True)
    folder = tmp_path_factory.mktemp("meanwhile") / "shop"
    table = pa.table({"user_id": users, "item_id": items, "rating": ratings})
    learn(table, folder, Config(model="als", factors=4, regularisation=0.1))
    return folder


def answered(caller, user=FAY):
    answer = caller.get(f"/v1/recommendations/{user}?k=10")
    return None if answer.status_code == 404 else [(one["item_id"], one["score"]) for one in answer.json()["items"]]


def by_command(folder):
    return [(one.item_id, one.score) for one in recommend(DiskStorage(folder), [FAY], 10)[0]]


def submitted(caller, **body):
    answer = caller.post(PATH, json=body)
    assert answer.status_code == 201, answer.text
    return answer.json()


def test_from_the_answer_on_the_person_is_served_without_the_items(client, folder):
    application = client("application")
    before = answered(application)
    found = submitted(client("officer"), user_id=FAY, item_ids=GONE)
    assert (found["state"], found["meanwhile"]) == ("suppressed", WITHOUT)
    assert answered(application) == by_command(folder) != before
    assert "a" in dict(answered(application))


def test_the_request_says_so_as_long_as_it_is_open(client, worker, clock):
    officer = client("officer")
    place = f"{PATH}/{submitted(officer, user_id=FAY, item_ids=GONE)['id']}"
    assert officer.get(place).json()["meanwhile"] == WITHOUT
    assert officer.post(f"{place}/hold", json={}).json()["meanwhile"] == WITHOUT
    officer.post(f"{place}/release")
    clock.pass_days(8)
    while worker.step():
        pass
    done = officer.get(place).json()
    assert (done["state"], done["meanwhile"]) == ("erased", None)


def test_nobody_is_counted_as_suppressed(client):
    officer = client("officer")
    submitted(officer, user_id=FAY, item_ids=GONE)
    assert officer.get("/v1/status").json()["suppressed_people"] == 0
    assert "erasable_people_suppressed 0.0" in officer.get("/metrics").text
    submitted(officer, user_id="ann")
    assert officer.get("/v1/status").json()["suppressed_people"] == 1


def test_another_server_follows_and_everything_suppresses_on_both(client, folder, settings, clock):
    other = Service.open(folder, settings, clock)
    with closing(other.database):
        officer, application = client("officer"), client("application")
        whole = other.live.recommend(FAY, 10)
        submitted(officer, user_id=FAY, item_ids=GONE)
        other.reception.follow()
        assert [tuple(one)[:2] for one in other.live.recommend(FAY, 10).ranked] == answered(application)
        assert other.live.recommend(FAY, 10) != whole
        joined = submitted(officer, user_id=FAY)
        assert (joined["joined"], joined["meanwhile"]) == (True, NOT_SERVED)
        other.reception.follow()
        assert answered(application) is None
        assert other.live.suppresses(FAY)


def test_who_names_all_that_they_have_is_not_served(client):
    assert submitted(client("officer"), user_id="ann", item_ids=["a", "b", "c"])["meanwhile"] == NOT_SERVED
    assert answered(client("application"), "ann") is None


def test_an_application_is_told_what_holds_for_its_own_request_and_nothing_else(client):
    application, officer = client("application"), client("officer")
    assert submitted(application, user_id=FAY, item_ids=GONE)["meanwhile"] == WITHOUT
    assert submitted(application, user_id="nobody", item_ids=GONE)["meanwhile"] == WITHOUT
    assert submitted(application, user_id="nobody")["meanwhile"] == NOT_SERVED
    assert submitted(officer, user_id="nobody", item_ids=GONE)["meanwhile"] is None


def test_a_plan_says_how_many_are_served(client):
    officer = client("officer")
    submitted(officer, user_id=FAY, item_ids=GONE)
    submitted(officer, user_id="ann")
    found = officer.post("/v1/plan", json={"waiting": True}).json()
    assert (found["people"], found["served_meanwhile"]) == (2, 1)


def test_what_comes_in_of_the_person_meanwhile_is_not_learned(client):
    submitted(client("officer"), user_id=FAY, item_ids=GONE)
    coming = [{"user_id": FAY, "item_id": "a", "rating": 5}, {"user_id": "ann", "item_id": "d", "rating": 5}]
    assert client("operator").post("/v1/interactions", json={"interactions": coming}).json()["left_out"] == 1


def test_pages_say_it(client, app, shop, clock):
    found = submitted(client("officer"), user_id=FAY, item_ids=GONE)
    browser = TestClient(app, base_url="http://127.0.0.1", follow_redirects=False)
    browser.post("/login", data={"token": shop.tokens.create("operator", "", clock())[1]})
    page = browser.get(f"/requests/{found['id']}").text
    assert "The person is served without the items asked for" in page.replace("; the person", "; The person")
    assert "The items asked for; the person is served without them since" in page
    receipt = browser.post("/receipt", data={"code": found["receipt_code"]}).text
    assert "<strong>are made without these items</strong>" in receipt
