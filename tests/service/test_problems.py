"""Errors in one shape, on every route."""

import pytest

from erasable.errors import ErasableError, UnknownUser, WorkspaceDamaged, WorkspaceError
from erasable.service._http import routes_of

SHAPE = {"status", "title", "detail", "faults"}


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nowhere", 404),
        ("DELETE", "/v1/status", 405),
        ("GET", "/v1/status", 401),
        ("POST", "/v1/erasure-requests", 401),
    ],
)
def test_what_is_refused_before_any_route_has_the_shape_too(client, method, path, status):
    answer = client().request(method, path)
    assert (answer.status_code, set(answer.json())) == (status, SHAPE)
    assert answer.headers["content-type"] == "application/problem+json"


def test_a_body_that_is_no_json_has_the_shape(client):
    answer = client("officer").post("/v1/plan", content=b"{", headers={"content-type": "application/json"})
    assert (answer.status_code, set(answer.json())) == (422, SHAPE)


def test_what_nobody_thought_of_is_answered_without_details(client, shop, monkeypatch, capsys):
    def fail(now):
        raise RuntimeError("fay-the-unmistakable")

    monkeypatch.setattr(shop.history, "totals", fail)
    answer = client("officer").get("/v1/status")
    assert (answer.status_code, set(answer.json())) == (500, SHAPE)
    assert "fay" not in answer.text
    assert "fay" not in capsys.readouterr().err


@pytest.mark.parametrize("error", [kind for kind in ErasableError.__subclasses__() if kind is not WorkspaceError])
def test_our_errors_have_a_status_and_say_what_to_do(client, shop, monkeypatch, error):
    def fail(now):
        raise error("do this")

    monkeypatch.setattr(shop.history, "totals", fail)
    answer = client("officer").get("/v1/status")
    assert answer.json()["detail"] == "do this"
    assert answer.status_code >= 400


@pytest.mark.parametrize("error", [WorkspaceError, WorkspaceDamaged, UnknownUser])
def test_neither_people_nor_places_of_the_machine_are_named(client, shop, monkeypatch, error):
    def fail(now):
        raise error("/srv/shop/data of fay-the-unmistakable")

    monkeypatch.setattr(shop.history, "totals", fail)
    text = client("officer").get("/v1/status").text
    assert "fay" not in text
    assert "/srv" not in text


def test_routes_say_which_problems_they_answer_with(app):
    for path in app.openapi()["paths"].values():
        for operation in path.values():
            assert {"401", "404", "422"} <= set(operation["responses"])
    assert len(list(routes_of(app))) > 15
