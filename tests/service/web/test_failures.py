"""Errors on pages are pages, with the status and the words of the API's problems."""

import pytest

from erasable.service.web._pages import HEADERS


def test_unknown_request_is_not_found(office):
    answer = office.client.get(f"/requests/{'0' * 32}")
    assert answer.status_code == 404
    assert "there is no such request: check its id" in answer.text


def test_request_that_is_not_written_like_one_is_not_accepted(office):
    answer = office.client.get("/requests/x<y")
    assert answer.status_code == 422
    assert "path.request_id" in answer.text


def test_unknown_address_is_a_page_for_browsers_and_a_problem_for_programs(office):
    page = office.client.get("/nowhere", headers={"accept": "text/html"})
    assert (page.status_code, "<h1>Not Found</h1>" in page.text) == (404, True)
    told = office.client.get("/nowhere", headers={"accept": "*/*"})
    assert told.headers["content-type"] == "application/problem+json"


def test_problems_of_the_api_stay_as_they_are(office):
    answer = office.client.get("/v1/status", headers={"accept": "text/html"})
    assert answer.status_code == 401
    assert answer.json()["title"] == "Unauthorized"


def test_action_that_the_state_does_not_allow_says_why(office, users):
    request_id, _ = office.submit(users[0])
    text = office.send(f"/requests/{request_id}/actions/retry", 409).text
    assert "the request is suppressed, not failed" in text


@pytest.mark.parametrize("reason", ["", "  ", "x" * 501])
def test_action_without_a_fitting_reason_is_refused(office, users, reason):
    request_id, _ = office.submit(users[0])
    office.send(f"/requests/{request_id}/actions/hold", 422, reason=reason)


def test_what_nobody_foresaw_is_a_page_too(shop, office, monkeypatch):
    client = type(office)(shop, raise_server_exceptions=False).sign_in()
    monkeypatch.setattr("erasable.service.web._overview._group_facts", lambda dataset: 1 / 0)
    answer = client.client.get("/groups")
    assert answer.status_code == 500
    assert "internal error" in answer.text
    assert "ZeroDivision" not in answer.text
    assert {name: answer.headers[name] for name in HEADERS} == HEADERS
