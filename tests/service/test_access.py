"""Every route has a rule, and nobody gets past it."""

import pytest
from fastapi import FastAPI

from erasable.service.access import refuse_routes_without_rule, routes_of, rule_of
from erasable.service.tokens import ROLES

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
