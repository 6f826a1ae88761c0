"""The API's description as a page shows it: who may use a route, its fields, and an example that a shell can read."""

import shlex

import pytest

from erasable.service._running import make_application
from erasable.service.web._reference import documented_routes


@pytest.fixture
def routes(shop):
    return [route for part in documented_routes(make_application(shop)).values() for route in part]


def test_every_route_says_what_it_does_and_who_may_use_it(routes):
    assert all(route.about for route in routes)
    roles = {route.path: list(route.roles) for route in routes}
    assert roles["/healthz"] == []
    assert roles["/v1/recommendations"] == ["application", "operator"]
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
