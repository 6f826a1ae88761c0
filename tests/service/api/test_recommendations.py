"""Recommendations by HTTP."""

from urllib.parse import quote

import pyarrow as pa
import pytest

from erasable.operations import learn, recommend
from erasable.requests.database import Interaction
from erasable.service.settings import ServiceSettings
from erasable.training import Config


@pytest.fixture
def settings():
    return ServiceSettings(batch_window=0, learn_seconds=0)


@pytest.fixture
def application(client):
    return client("application")


def test_they_are_those_of_the_command(application, shop):
    found = application.get("/v1/recommendations/ann", params={"k": 2}).json()
    expected = recommend(shop.home, ["ann"], k=2)[0]
    assert found["items"] == [
        {"item_id": r.item_id, "score": r.score, "rank": r.rank, "popular": False} for r in expected
    ]
    assert (found["user_id"], found["version"]) == ("ann", 1)


def test_ten_unless_said_otherwise(application, shop):
    assert len(application.get("/v1/recommendations/ann").json()["items"]) == 3


@pytest.mark.parametrize("k", ["0", "-1", "1001", "x", "", "1.5", "٣٣٣٣٣", "1e3"])
def test_a_number_that_makes_no_sense_is_refused(application, k):
    assert application.get("/v1/recommendations/ann", params={"k": k}).status_code == 422


@pytest.mark.parametrize("user", ["nobody", "../etc/passwd", "%00", "a/b", "é", "x" * 5000, "\n"])
def test_who_is_unknown_is_not_found(application, user):
    answer = application.get(f"/v1/recommendations/{quote(user, safe='')}")
    assert answer.status_code == 404
    assert answer.json()["status"] == 404


def test_an_id_with_a_slash_can_be_asked_for(application, shop, worker):
    shop.intake.add([Interaction("a/b", "a", 5.0, None)])
    worker.step()
    shop.reception.follow()
    assert application.get("/v1/recommendations/a%2Fb").json()["user_id"] == "a/b"


def test_many_users_at_once_from_one_version(application):
    found = application.post("/v1/recommendations", json={"user_ids": ["ann", "nobody", "bob"], "k": 1}).json()
    assert [one["user_id"] for one in found["recommendations"]] == ["ann", "bob"]
    assert found["unknown"] == [1]
    assert {one["version"] for one in found["recommendations"]} == {found["version"]} == {1}


def test_nobody_known_is_an_answer_too(application):
    found = application.post("/v1/recommendations", json={"user_ids": ["x", "y"]}).json()
    assert (found["recommendations"], found["unknown"]) == ([], [0, 1])


@pytest.mark.parametrize("body", [{}, {"user_ids": []}, {"user_ids": ["a"] * 1001}, {"user_ids": ["a"], "k": 0}])
def test_a_body_that_does_not_fit_is_refused(application, body):
    assert application.post("/v1/recommendations", json=body).status_code == 422


def test_an_answer_has_a_size_that_fits(application):
    answer = application.post("/v1/recommendations", json={"user_ids": ["ann"] * 100, "k": 201})
    assert (answer.status_code, "fewer" in answer.json()["detail"]) == (422, True)


class TestWhereTheModelSaysNothing:
    @pytest.fixture
    def folder(self, swift_path):
        """A shop in which someone shares no item with anyone."""
        rows = [("ann", "a"), ("ann", "b"), ("bob", "b"), ("bob", "c"), ("cat", "c"), ("cat", "b"), ("zoe", "own")]
        users, items = zip(*rows, strict=True)
        learn(pa.table({"user_id": users, "item_id": items}), swift_path / "shop", Config(model="ease"))
        return swift_path / "shop"

    def test_popular_items_fill_up_and_are_marked(self, application):
        one = application.get("/v1/recommendations/zoe", params={"k": 2}).json()
        assert one["items"] == [
            {"item_id": "b", "score": 3.0, "rank": 1, "popular": True},
            {"item_id": "c", "score": 2.0, "rank": 2, "popular": True},
        ]
        many = application.post("/v1/recommendations", json={"user_ids": ["zoe"], "k": 2}).json()
        assert many["recommendations"] == [one]

    def test_who_asks_to_be_erased_does_not_count_from_then_on(self, application):
        application.post("/v1/erasure-requests", json={"user_id": "cat"})
        found = application.get("/v1/recommendations/zoe").json()["items"]
        assert [(item["item_id"], item["score"]) for item in found] == [("b", 2.0), ("a", 1.0), ("c", 1.0)]
