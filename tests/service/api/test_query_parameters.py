"""Query parameters that a route does not take are refused: whoever sends one expects that it counts."""

import pytest

NOTHING = "0" * 32


@pytest.mark.parametrize(
    "parameter", ["available=a", "exclude=a", "where=price<20", "fallback=popular", "kk=2", "items=a", "seen=true"]
)
def test_recommendations_say_where_filters_go(client, parameter):
    answer = client("application").get(f"/v1/recommendations/ann?k=2&{parameter}")
    assert answer.status_code == 422
    assert answer.json()["faults"] == [
        {
            "place": f"query.{parameter.partition('=')[0]}",
            "message": "this address takes k and why: leave it out; filters go with POST /v1/recommendations",
        }
    ]


@pytest.mark.parametrize(
    ("method", "path", "known"),
    [
        ("GET", "/v1/similar-items/a", "k, available, exclude and where"),
        ("GET", "/v1/status", "no query parameters"),
        ("GET", "/v1/items", "no query parameters"),
        ("GET", "/v1/erasure-requests", "state, limit and before"),
        ("GET", f"/v1/erasure-requests/{NOTHING}", "no query parameters"),
        ("GET", f"/v1/erasure-requests/{NOTHING}/certificate", "no query parameters"),
        ("POST", "/v1/recommendations", "no query parameters"),
        ("POST", "/v1/erasure-requests", "no query parameters"),
        ("POST", "/v1/sync", "no query parameters"),
    ],
)
def test_every_route_of_the_api_names_what_is_unknown(client, method, path, known):
    answer = client("operator").request(method, path, params={"kk": "2", "colour": "x"}, json={})
    assert answer.status_code == 422
    assert answer.json()["faults"][:2] == [
        {"place": f"query.{name}", "message": f"this address takes {known}: leave it out"} for name in ("kk", "colour")
    ]


def test_nothing_is_done(client, shop):
    answer = client("officer").post("/v1/erasure-requests?dry_run=true", json={"user_id": "ann"})
    assert (answer.status_code, shop.history.open_requests()) == (422, [])


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/docs", "/openapi.json"])
def test_health_checks_and_pages_take_any(client, path):
    answer = client("operator").get(path, params={"probe": "1"})
    assert answer.status_code != 422
