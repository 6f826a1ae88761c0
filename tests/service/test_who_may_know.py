"""A token for applications does not learn who has asked to be erased: same answers, same sizes."""

import pytest

from erasable.requests.database import WaitingInteraction
from erasable.service.settings import ServiceSettings

PATH = "/v1/erasure-requests"
OFFICERS_WORDS = "a court in Lyon asks"


@pytest.fixture
def settings():
    return ServiceSettings(batch_window=7)


@pytest.fixture
def people(client, shop, worker, clock):
    """Ids of one length: someone served, someone suppressed and on hold, someone erased, someone never known."""
    officer = client("officer")
    officer.post(PATH, json={"user_id": "cat"})
    clock.pass_days(7)
    while worker.step():
        pass
    shop.reception.follow()
    held = officer.post(PATH, json={"user_id": "ann"}).json()
    officer.post(f"{PATH}/{held['id']}/hold", json={"reason": OFFICERS_WORDS})
    return {"served": "bob", "suppressed": "ann", "erased": "cat", "never known": "zzz"}


def shape(answer):
    """What of an answer could tell one person from another: all but what is drawn at random."""
    body = answer.json()
    drawn = {name: len(body.pop(name)) for name in ("id", "receipt_code") if name in body}
    headers = {name: value for name, value in answer.headers.items() if name != "location"}
    return answer.status_code, len(answer.content), drawn, body, headers


def test_submitting_is_answered_alike_whoever_it_is_for(client, people):
    application = client("application")
    for body in ({}, {"item_ids": ["a"]}, {"reference": "case 17"}):
        answers = [application.post(PATH, json={"user_id": user, **body}) for user in people.values()]
        assert [shape(answer) for answer in answers] == [shape(answers[0])] * 4
        assert OFFICERS_WORDS not in "".join(answer.text for answer in answers)


def test_submitting_again_is_answered_alike_too(client, people):
    application = client("application")
    answers = [application.post(PATH, json={"user_id": user}) for user in people.values() for _ in range(2)]
    assert [shape(answer) for answer in answers] == [shape(answers[0])] * 8
    for name in ("id", "receipt_code"):
        assert len({answer.json()[name] for answer in answers}) == 8


def test_an_officer_finds_what_joined_under_the_id_that_the_application_was_given(client, people):
    answer = client("application").post(PATH, json={"user_id": people["suppressed"]})
    found = client("officer").get(answer.headers["location"]).json()
    assert (found["state"], found["reason"]) == ("on hold", OFFICERS_WORDS)
    assert [event["event"] for event in found["events"]][-1] == "joined"


def test_an_officer_is_told_that_a_request_joined(client, people):
    found = client("officer").post(PATH, json={"user_id": people["suppressed"]}).json()
    assert (found["joined"], found["state"]) == (True, "on hold")


def test_recommending_is_answered_alike_and_operators_are_told(client, people):
    application, operator = client("application"), client("operator")
    unknown = [people[kind] for kind in ("suppressed", "erased", "never known")]
    answers = [application.get(f"/v1/recommendations/{user}") for user in unknown]
    assert [shape(answer) for answer in answers] == [shape(answers[0])] * 3
    told = [operator.get(f"/v1/recommendations/{user}").json() for user in unknown]
    assert [one["title"] for one in told] == ["Suppressed", "Not Found", "Not Found"]
    assert "asked to be erased" in told[0]["detail"]
    assert told[1] == told[2] == answers[0].json()


def test_recommending_to_many_is_answered_alike_and_operators_are_told(client, people):
    body = {"user_ids": list(people.values())}
    found = client("application").post("/v1/recommendations", json=body).json()
    assert found["unknown"] == [1, 2, 3]
    assert "suppressed" not in found
    assert client("operator").post("/v1/recommendations", json=body).json()["suppressed"] == [1]


def test_interactions_are_answered_alike(client, people):
    application = client("application")
    answers = [
        application.post("/v1/interactions", json={"interactions": [{"user_id": user, "item_id": "a", "rating": 5}]})
        for user in people.values()
    ]
    assert [shape(answer) for answer in answers] == [shape(answers[0])] * 4


def test_figures_are_not_for_applications(client):
    assert client("application").get("/metrics").status_code == 403
    assert client("officer").get("/metrics").status_code == 200


def test_status_and_figures_count_who_is_suppressed(client, people):
    found = client("officer").get("/v1/status").json()
    assert (found["suppressed_people"], found["open"]) == (1, 1)
    assert "erasable_people_suppressed 1.0" in client("operator").get("/metrics").text


def receipt_page(client, code):
    """The receipt page, without the code."""
    page = client().post("/receipt", data={"code": code}, headers={"sec-fetch-site": "same-origin"})
    assert page.status_code == 200
    return page.text.replace(code, "")


@pytest.mark.parametrize("kind", ["served", "suppressed", "erased", "never known"])
def test_the_receipt_page_tells_no_more_until_the_batch_window_is_over(client, people, clock, kind):
    clock.pass_days(1)
    code = client("application").post(PATH, json={"user_id": people[kind]}).json()["receipt_code"]
    other = client("application").post(PATH, json={"user_id": "never"}).json()["receipt_code"]
    for _ in range(2):
        page = receipt_page(client, code)
        assert page == receipt_page(client, other)
        assert "If anything is held about you" in page
        clock.pass_days(6)
    clock.pass_days(1)
    held = kind in ("served", "suppressed")
    assert ("If anything is held about you" if held else "nothing to erase") in receipt_page(client, code)


def test_the_receipt_page_of_an_application_is_the_same_for_first_and_joined_requests_that_are_open(
    client, people, clock
):
    officer, application = client("officer"), client("application")
    (held,) = officer.get(PATH, params={"state": "on hold"}).json()["requests"]
    officer.post(f"{PATH}/{held['id']}/extend", json={"reason": OFFICERS_WORDS})
    clock.pass_days(1)
    joined, first = (
        application.post(PATH, json={"user_id": people[kind]}).json()["receipt_code"]
        for kind in ("suppressed", "served")
    )
    for told in ("by 24 March 2026", "by 14 April 2026", "as soon as possible"):
        page = receipt_page(client, joined)
        assert page == receipt_page(client, first)
        assert f"it will be erased {told}" in page
        for word in ("on hold", "since", "longer", OFFICERS_WORDS):
            assert word not in page.partition("<dl")[0] + page.partition("No recommendations<")[2]
        clock.pass_days(10 if told == "by 24 March 2026" else 19)


def test_a_certified_request_that_was_joined_shows_no_time_before_the_submission(client, people, worker, clock):
    officer = client("officer")
    (held,) = officer.get(PATH, params={"state": "on hold"}).json()["requests"]
    clock.pass_days(2)
    code = client("application").post(PATH, json={"user_id": "ann"}).json()["receipt_code"]
    officer.post(f"{PATH}/{held['id']}/release")
    clock.pass_days(5)
    while worker.step():
        pass
    assert "If anything is held about you" in receipt_page(client, code)
    clock.pass_days(2)
    page = receipt_page(client, code)
    assert "is erased" in page
    assert "2026-03-18" in page
    assert "2026-03-16" not in page


def test_the_code_of_a_request_that_joined_opens_the_certificate(client, people, shop, worker, clock):
    code = client("application").post(PATH, json={"user_id": "ann"}).json()["receipt_code"]
    officer = client("officer")
    (held,) = officer.get(PATH, params={"state": "on hold"}).json()["requests"]
    officer.post(f"{PATH}/{held['id']}/release")
    clock.pass_days(8)
    while worker.step():
        pass
    page = client().post(
        "/receipt/check", data={"code": code, "user_id": "ann"}, headers={"sec-fetch-site": "same-origin"}
    )
    assert "this certificate is about you" in page.text


def test_who_waits_to_be_learned_is_no_different(client, shop):
    shop.intake.add([WaitingInteraction("zoe", "a", 5.0, None)])
    application = client("application")
    answers = [application.post(PATH, json={"user_id": user}) for user in ("zoe", "zzz")]
    assert shape(answers[0]) == shape(answers[1])
