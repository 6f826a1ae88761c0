"""Signing in and out: whose token is taken, where one lands, and what the cookie is like."""

import pytest

from erasable.service._http import VISIT_COOKIE


@pytest.mark.parametrize("role", ["officer", "operator"])
def test_token_of_the_office_begins_a_visit(shop, stranger, role):
    _, token = shop.tokens.create(role, "", shop.clock())
    answer = stranger.client.post("/login", data={"token": f" {token}\n", "next": "/plan"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/plan")
    assert f'<span class="quiet">{role}</span>' in stranger.get("/")


def test_cookie_is_for_this_site_and_no_script(stranger):
    stranger.sign_in()
    cookie = stranger.client.post("/login", data={"token": stranger.token}).headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert "secure" not in cookie


def test_cookie_over_tls_is_for_tls_only(stranger):
    answer = stranger.client.post("https://127.0.0.1/login", data={"token": stranger.token})
    assert "; Secure" in answer.headers["set-cookie"]


def test_token_of_an_application_is_refused_with_the_reason(shop, stranger):
    _, token = shop.tokens.create("application", "", shop.clock())
    answer = stranger.client.post("/login", data={"token": token})
    assert answer.status_code == 403
    assert "This token is for an application" in answer.text
    assert VISIT_COOKIE not in stranger.client.cookies


def test_unknown_token_is_refused_and_not_repeated(stranger):
    answer = stranger.client.post("/login", data={"token": "wrong-token"})
    assert answer.status_code == 401
    assert "wrong-token" not in answer.text


@pytest.mark.parametrize(
    "address", ["//evil.example", "https://evil.example", "/\\evil.example", "\\/evil", "javascript:1", "/a\nb", ""]
)
def test_one_lands_on_our_own_pages_only(stranger, address):
    answer = stranger.client.post("/login", data={"token": stranger.token, "next": address})
    assert answer.headers["location"] == "/"


def test_signing_out_ends_the_visit(office):
    kept = office.client.cookies[VISIT_COOKIE]
    assert office.send("/logout").headers["location"] == "/login"
    office.client.cookies.set(VISIT_COOKIE, kept)
    assert office.client.get("/").status_code == 303


def test_revoked_token_ends_its_visits(shop, office):
    shop.tokens.revoke(next(token.number for token in shop.tokens.all()), shop.clock())
    assert office.client.get("/").status_code == 303


def test_token_in_a_header_opens_no_page(stranger):
    answer = stranger.client.get("/", headers={"authorization": f"Bearer {stranger.token}"})
    assert answer.status_code == 303
