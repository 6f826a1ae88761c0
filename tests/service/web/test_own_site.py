"""Forms of other sites are refused on every address that takes one."""

import pytest

FORMS = (
    "/requests",
    "/plan",
    "/log/verify",
    "/logout",
    f"/requests/{'0' * 32}/reveal",
    f"/requests/{'0' * 32}/actions/hold",
)
OPEN_FORMS = ("/login", "/receipt", "/receipt/certificate", "/receipt/check", "/receipt/file")
OTHERS = (
    {"origin": "https://evil.example"},
    {"origin": "http://["},
    {"sec-fetch-site": "cross-site"},
    {"sec-fetch-site": "same-site"},
)
FIELDS = {"user_id": "u0001", "reason": "none", "token": "t", "code": "c", "kind": "json"}


@pytest.mark.parametrize("address", FORMS)
@pytest.mark.parametrize("token", ["", "0" * 64, "ü"])
def test_form_without_the_token_of_the_visit_is_refused(shop, office, address, token):
    answer = office.client.post(address, data={**FIELDS, "form_token": token})
    assert answer.status_code == 403
    assert "<h1>Forbidden</h1>" in answer.text
    assert [event.name for event in shop.history.events(10)] == ["token created"]


@pytest.mark.parametrize("address", FORMS)
@pytest.mark.parametrize("headers", OTHERS, ids=str)
def test_form_of_another_site_is_refused_even_with_the_token(office, address, headers):
    answer = office.client.post(address, data={**FIELDS, "form_token": office.form_token()}, headers=headers)
    assert answer.status_code == 403


@pytest.mark.parametrize("address", OPEN_FORMS)
@pytest.mark.parametrize("headers", OTHERS, ids=str)
def test_open_form_of_another_site_is_refused(stranger, address, headers):
    assert stranger.client.post(address, data=FIELDS, headers=headers).status_code == 403


@pytest.mark.parametrize(
    "headers", [{"origin": "http://127.0.0.1"}, {"origin": "null", "sec-fetch-site": "same-origin"}]
)
def test_own_form_is_taken(stranger, headers):
    assert stranger.client.post("/receipt", data={"code": "X"}, headers=headers).status_code == 200


def test_token_of_another_visit_is_refused(shop, office):
    other = type(office)(shop).sign_in()
    assert office.client.post("/plan", data={"form_token": other.form_token()}).status_code == 403
