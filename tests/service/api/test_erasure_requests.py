"""Erasure requests by HTTP."""

import threading

import pytest

from erasable.proof import read_certificate
from erasable.service.settings import ServiceSettings

FAY = "fay-the-unmistakable"
PATH = "/v1/erasure-requests"


@pytest.fixture
def settings():
    return ServiceSettings(batch_window=0)


@pytest.fixture
def officer(client):
    return client("officer")


def submitted(caller, **body):
    answer = caller.post(PATH, json=body)
    assert answer.status_code == 201, answer.text
    return answer.json()


def test_a_request_is_taken_in_and_the_person_is_not_served(client):
    application = client("application")
    assert application.get(f"/v1/recommendations/{FAY}").status_code == 200
    submitted(application, user_id=FAY)
    assert application.get(f"/v1/recommendations/{FAY}").status_code == 404


def test_the_answer_says_where_the_request_is(client, officer):
    answer = client("application").post(PATH, json={"user_id": "ann"})
    assert officer.get(answer.headers["location"]).json()["id"] == answer.json()["id"]


def test_both_clocks_are_shown(officer):
    clocks = submitted(officer, user_id="ann")["clocks"]
    assert clocks["suppressed"] == "2026-03-09T12:00:00Z"
    assert clocks["erased"] is None
    assert clocks["legal"] == "2026-04-09T23:59:59Z"


def test_a_second_request_joins_the_first(officer):
    first, second = (submitted(officer, user_id="ann") for _ in range(2))
    assert (second["id"], second["joined"], second["receipt_code"]) == (first["id"], True, first["receipt_code"])


def test_a_person_that_is_not_there_is_rejected_with_the_reason(officer):
    found = submitted(officer, user_id="nobody")
    assert (found["state"], found["reason"]) == ("rejected", "nothing is held of what was asked for")


def test_an_id_may_be_a_number_in_json(officer):
    assert submitted(officer, user_id=42)["state"] == "rejected"


def test_no_answer_and_no_list_names_the_person(officer, shop):
    found = submitted(officer, user_id=FAY, item_ids=["a"])
    for answer in (officer.get(PATH), officer.get(f"{PATH}/{found['id']}")):
        assert answer.status_code == 200
        assert FAY not in answer.text


def test_the_certificate_is_given_as_it_was_issued(officer, worker, folder):
    found = submitted(officer, user_id=FAY)
    assert officer.get(f"{PATH}/{found['id']}/certificate").status_code == 404
    worker.step()
    done = officer.get(f"{PATH}/{found['id']}").json()
    assert done["state"] == "erased"
    assert [event["event"] for event in done["events"]][-3:] == ["erasing", "verifying", "erased"]
    answer = officer.get(done["certificate"])
    assert answer.content == (folder / "certificates" / f"{found['id']}.json").read_bytes()
    assert read_certificate(answer.content).request_id == found["id"]


def test_states_keep_the_names_of_version_1(officer, shop):
    found = submitted(officer, user_id=FAY)
    for state in ("erasing", "certifying"):
        shop.queue.advance(found["id"], state, "worker", shop.clock())
    assert officer.get(f"{PATH}/{found['id']}").json()["state"] == "verifying"
    assert [one["id"] for one in officer.get(PATH, params={"state": "verifying"}).json()["requests"]] == [found["id"]]
    assert officer.get(PATH, params={"state": "accepted"}).json()["requests"] == []
    assert officer.get("/v1/status").json()["requests"] == {"verifying": 1}
    assert 'erasable_requests{state="verifying"} 1.0' in officer.get("/metrics").text


def test_withdraw_hold_release_extend_and_retry(officer):
    found = submitted(officer, user_id="ann")
    act = lambda what, **body: officer.post(f"{PATH}/{found['id']}/{what}", json=body or None)  # noqa: E731
    assert act("hold", reason="a court asks").json()["state"] == "on hold"
    assert act("release").json()["state"] == "suppressed"
    assert act("release").status_code == 409
    assert act("extend", reason="many systems").json()["extended"] == "many systems"
    assert act("extend", reason="again").status_code == 409
    assert act("retry").status_code == 409
    assert act("withdraw", reason="a mistake").json()["state"] == "withdrawn"
    assert act("withdraw", reason="a mistake").status_code == 409


@pytest.mark.parametrize("what", ["withdraw", "hold", "extend"])
def test_a_reason_is_some_text(officer, what):
    found = submitted(officer, user_id="ann")
    for body in ({"reason": ""}, {"reason": "  "}, {"reason": "x" * 501}, {"reason": 7}):
        assert officer.post(f"{PATH}/{found['id']}/{what}", json=body).status_code == 422


def test_only_an_extension_needs_a_reason(officer):
    found = submitted(officer, user_id="ann")
    for body in (None, {}):
        assert officer.post(f"{PATH}/{found['id']}/extend", json=body).status_code == 422
    assert officer.post(f"{PATH}/{found['id']}/hold").json()["state"] == "on hold"
    assert officer.post(f"{PATH}/{found['id']}/withdraw", json={}).json()["state"] == "withdrawn"


def test_a_reason_must_not_name_the_person(officer):
    found = submitted(officer, user_id=FAY)
    answer = officer.post(f"{PATH}/{found['id']}/hold", json={"reason": f"{FAY} has a claim"})
    assert answer.status_code == 422
    assert FAY not in answer.text


def test_requests_are_listed_in_pages_and_by_state(officer):
    ids = [submitted(officer, user_id=user)["id"] for user in ("ann", "bob", "cat")]
    officer.post(f"{PATH}/{ids[0]}/withdraw", json={"reason": "x"})
    first = officer.get(PATH, params={"limit": 2}).json()
    assert [one["id"] for one in first["requests"]] == [ids[2], ids[1]]
    second = officer.get(PATH, params={"limit": 2, "before": first["next"]}).json()
    assert ([one["id"] for one in second["requests"]], second["next"]) == ([ids[0]], None)
    withdrawn = officer.get(PATH, params={"state": ["withdrawn", "erased"]}).json()["requests"]
    assert [one["id"] for one in withdrawn] == [ids[0]]


@pytest.mark.parametrize("wrong", ["x", "0" * 31, "0" * 33, "G" * 32, "..%2f..%2fmanifest", "0" * 32])
def test_a_request_that_is_not_there(officer, wrong):
    for answer in (officer.get(f"{PATH}/{wrong}"), officer.get(f"{PATH}/{wrong}/certificate")):
        assert answer.status_code in (404, 422)
        assert answer.headers["content-type"] == "application/problem+json"


class TestIdempotencyKey:
    KEY = {"Idempotency-Key": "6f1c4e1e-8f0a-4c63-9d3a-2f7f6f1f0a11"}  # noqa: RUF012

    def test_the_same_key_and_body_repeat_the_answer_even_when_it_is_done(self, officer, worker):
        first = officer.post(PATH, json={"user_id": FAY}, headers=self.KEY)
        worker.step()
        second = officer.post(PATH, json={"user_id": FAY}, headers=self.KEY)
        assert (second.status_code, second.content) == (201, first.content)
        assert second.headers["location"] == first.headers["location"]
        assert len(officer.get(PATH).json()["requests"]) == 1

    def test_another_body_is_refused(self, officer):
        officer.post(PATH, json={"user_id": "ann"}, headers=self.KEY)
        assert officer.post(PATH, json={"user_id": "bob"}, headers=self.KEY).status_code == 422

    def test_another_caller_has_keys_of_its_own(self, client):
        first, second = client("officer"), client("application")
        one = first.post(PATH, json={"user_id": "ann"}, headers=self.KEY).json()
        two = second.post(PATH, json={"user_id": "bob"}, headers=self.KEY).json()
        assert one["id"] != two["id"]

    def test_while_the_first_is_in_flight_the_second_is_refused(self, officer, shop, monkeypatch):
        entered, leave = threading.Event(), threading.Event()
        submit = shop.reception.submit_and

        def slowly(*arguments):
            entered.set()
            leave.wait(10)
            return submit(*arguments)

        monkeypatch.setattr(shop.reception, "submit_and", slowly)
        answers = []
        first = threading.Thread(
            target=lambda: answers.append(officer.post(PATH, json={"user_id": "ann"}, headers=self.KEY))
        )
        first.start()
        entered.wait(10)
        assert officer.post(PATH, json={"user_id": "ann"}, headers=self.KEY).status_code == 409
        leave.set()
        first.join()
        assert answers[0].status_code == 201


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"user_id": ""},
        {"user_id": None},
        {"user_id": True},
        {"user_id": 1.5},
        {"user_id": ["ann"]},
        {"user_id": "a" * 1001},
        {"user_id": "ann", "item_ids": []},
        {"user_id": "ann", "item_ids": [""]},
        {"user_id": "ann", "surprise": 1},
    ],
)
def test_a_body_that_does_not_fit_is_refused_and_not_repeated(officer, body):
    answer = officer.post(PATH, json=body)
    assert answer.status_code == 422
    assert set(answer.json()) == {"status", "title", "detail", "faults"}
    assert '"input"' not in answer.text
