"""The page of the API: every route, who may use it, its fields, and an example that a shell can read."""

import re
import shlex
from html import unescape

import pytest

from erasable.service.application import make_application
from erasable.service.web.api_reference import documented_routes


@pytest.fixture
def routes(shop):
    return [route for part in documented_routes(make_application(shop)).values() for route in part]


def test_every_route_of_the_api_is_there(routes, stranger):
    described = stranger.client.get("/openapi.json").json()["paths"]
    expected = {(method.upper(), path) for path, methods in described.items() for method in methods}
    assert {(route.method, route.path) for route in routes} == expected
    text = stranger.get("/docs")
    assert all(f"<h3><code>{route.method} {route.path}</code></h3>" in text for route in routes)


def test_every_route_says_what_it_does_and_who_may_use_it(routes):
    assert all(route.about for route in routes)
    roles = {route.path: list(route.roles) for route in routes}
    assert roles["/healthz"] == []
    assert roles["/metrics"] == ["operator"]
    assert roles["/v1/plan"] == ["officer", "operator"]


def test_fields_of_bodies_are_described(routes):
    submit = next(route for route in routes if (route.method, route.path) == ("POST", "/v1/erasure-requests"))
    fields = {field.name: field for field in submit.body}
    assert fields["user_id"].required
    assert fields["item_ids"].about.startswith("Only the interactions with these items")
    assert "201" in [answer.status for answer in submit.answers]


def test_examples_are_commands(routes):
    for route in routes:
        words = shlex.split(route.curl)
        assert words[0] == "curl"
        assert words[-1] == f"$SERVICE{route.path}"


def test_links_lead_to_routes(stranger):
    text = unescape(stranger.get("/docs"))
    anchors = re.findall(r'href="#([^"]+)"', text)
    assert len(anchors) > 10
    assert all(f'id="{anchor}"' in text for anchor in anchors)
