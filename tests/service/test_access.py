"""Every route has a rule, and nobody gets past it."""

from collections import defaultdict

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from erasable.requests.tokens import ROLES
from erasable.service._http import VISIT_COOKIE, refuse_routes_without_rule, routes_of, rule_of

FILLED = {"request_id": "0" * 32, "user_id": "ann", "user_id:path": "ann", "name": "x"}


def places(app):
    """Every method and path of the API that has a rule for somebody."""
    for route in routes_of(app):
        rule = rule_of(route)
        if rule.roles and not rule.pages:
            path = route.path
            for name, value in FILLED.items():
                path = path.replace("{" + name + "}", value)
            yield from ((method, path, rule.roles) for method in route.methods)


def test_every_route_has_a_rule(app):
    assert len([route for route in routes_of(app) if rule_of(route) is None]) == 0
    assert len(list(places(app))) >= 12


def test_an_application_with_a_route_without_a_rule_is_not_made():
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)

    @app.get("/forgotten")
    def forgotten() -> None: ...

    with pytest.raises(ValueError, match="/forgotten"):
        refuse_routes_without_rule(app)


def test_without_a_token_every_route_is_refused(app, client):
    for method, path, _ in places(app):
        answer = client().request(method, path, json={})
        assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer"), path


@pytest.mark.parametrize("header", ["Bearer wrong", "Bearer ", "Basic {token}", "{token}", "Bearer {token}x"])
def test_with_a_wrong_token_every_route_is_refused(app, client, shop, clock, header):
    token = shop.tokens.create("operator", "", clock())[1]
    for method, path, _ in places(app):
        answer = client().request(method, path, json={}, headers={"Authorization": header.format(token=token)})
        assert answer.status_code == 401, path


@pytest.mark.parametrize("role", ROLES)
def test_a_lower_role_is_refused(app, client, role):
    caller = client(role)
    refused = 0
    for method, path, roles in places(app):
        answer = caller.request(method, path, json={})
        assert (answer.status_code == 403) == (role not in roles), (path, answer.status_code)
        refused += role not in roles
    assert refused == 0 if role == "operator" else refused > 0


def test_with_a_revoked_token_every_route_is_refused(app, client, shop, clock):
    number, token = shop.tokens.create("operator", "", clock())
    headers = {"Authorization": f"Bearer {token}"}
    assert client().get("/v1/status", headers=headers).status_code == 200
    shop.tokens.revoke(number, clock())
    for method, path, _ in places(app):
        assert client().request(method, path, json={}, headers=headers).status_code == 401, path


def test_roles_may_do_what_they_are_for(app):
    allowed = {(method, path): roles for method, path, roles in places(app)}
    assert allowed["POST", "/v1/erasure-requests"] == {"application", "officer", "operator"}
    assert allowed["GET", "/v1/recommendations/ann"] == {"application", "operator"}
    assert allowed["GET", f"/v1/erasure-requests/{'0' * 32}/certificate"] == {"officer", "operator"}
    assert allowed["GET", "/v1/status"] == {"officer", "operator"}
    assert allowed["GET", "/v1/items"] == {"application", "officer", "operator"}
    assert allowed["POST", "/v1/items"] == {"operator"}


class TestPages:
    """Pages take the visit of a browser, and nothing else."""

    def answers(self, app, secret):
        """Ask for every page with a visit, and yield how each answers."""
        cookies = {VISIT_COOKIE: secret} if secret else {}
        browser = TestClient(app, cookies=cookies, follow_redirects=False, raise_server_exceptions=False)
        pages = [route for route in routes_of(app) if rule_of(route).pages and rule_of(route).roles]
        assert len(pages) > 12
        for route in pages:
            path = route.path_format.format_map(defaultdict(lambda: "hold", request_id="0" * 32))
            for method in route.methods:
                yield path, browser.request(method, path)

    def visit(self, shop, clock, role="officer"):
        number, secret = shop.tokens.create(role, "", clock())
        return number, shop.tokens.begin_visit(shop.tokens.caller(secret))

    @pytest.mark.parametrize("kind", ["none", "wrong", "ended", "revoked"])
    def test_without_a_visit_that_counts_every_page_leads_to_signing_in_and_every_form_is_refused(
        self, app, shop, clock, kind
    ):
        number, secret = self.visit(shop, clock)
        if kind == "ended":
            shop.tokens.end_visit(secret)
        if kind == "revoked":
            shop.tokens.revoke(number, clock())
        shown = {"none": None, "wrong": "x" * 43}.get(kind, secret)
        for path, answer in self.answers(app, shown):
            leads_to_signing_in = answer.headers.get("location", "").startswith("/login")
            assert leads_to_signing_in or answer.status_code == 403, path

    def test_a_lower_role_is_refused_by_every_page(self, app, shop, clock):
        for path, answer in self.answers(app, self.visit(shop, clock, "application")[1]):
            assert answer.status_code == 403, path
