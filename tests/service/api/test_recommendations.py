"""Recommendations by HTTP."""

import asyncio
from urllib.parse import quote

import pyarrow as pa
import pytest

from erasable.chain import Config
from erasable.operations import learn, recommend
from erasable.requests.database import WaitingInteraction
from erasable.service.settings import ServiceSettings


@pytest.fixture
def settings():
    return ServiceSettings(batch_window=0, learn_seconds=0)


@pytest.fixture
def application(client):
    return client("application")


def test_they_are_those_of_the_command(application, shop):
    found = application.get("/v1/recommendations/ann", params={"k": 2}).json()
    expected = recommend(shop.storage, ["ann"], k=2)[0]
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
    shop.intake.add([WaitingInteraction("a/b", "a", 5.0, None)])
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


class TestWhy:
    @pytest.fixture
    def folder(self, swift_path):
        rows = [
            (user, item)
            for user, has in {"ann": "abc", "bob": "abd", "cat": "bce", "dan": "cd"}.items()
            for item in has
        ]
        users, items = zip(*rows, strict=True)
        config = Config(model="ease", neighbours=2, regularisation=1)
        learn(pa.table({"user_id": users, "item_id": items}), swift_path / "shop", config)
        return swift_path / "shop"

    def test_it_says_which_own_items_speak(self, application, shop):
        found = application.get("/v1/recommendations/dan", params={"why": "true"}).json()["items"]
        expected = recommend(shop.storage, ["dan"], why=True)[0]
        assert [item["because"] for item in found] == [[own._asdict() for own in r.because] for r in expected]
        assert {own["item_id"] for item in found for own in item["because"]} == {"c", "d"}
        plain = application.get("/v1/recommendations/dan").json()["items"]
        assert plain == [{name: value for name, value in item.items() if name != "because"} for item in found]
        assert application.get("/v1/recommendations/dan", params={"why": "false"}).json()["items"] == plain

    def test_nobody_else_waits_for_reasons_or_for_the_process_of_a_model(self, application, shop, monkeypatch):
        recommend_, in_the_loop = shop.live.recommend, []

        def watched(*given, **named):
            in_the_loop.append(asyncio._get_running_loop() is not None)
            return recommend_(*given, **named)

        monkeypatch.setattr(shop.live, "recommend", watched)
        for why in ("false", "true"):
            assert application.get("/v1/recommendations/dan", params={"why": why}).status_code == 200
        monkeypatch.setattr(shop.live, "may_wait_for", lambda user: user == "dan")
        for user in ("dan", "ann"):
            assert application.get(f"/v1/recommendations/{user}").status_code == 200
        assert in_the_loop == [True, False, False, True]

    def test_who_has_asked_gets_the_answer_of_someone_who_was_never_known(self, application):
        application.post("/v1/erasure-requests", json={"user_id": "dan"})
        for why in ("true", "false"):
            asked, never = (
                application.get(f"/v1/recommendations/{user}", params={"why": why}) for user in ("dan", "zzz")
            )
            assert (asked.status_code, never.status_code) == (404, 404)
            assert asked.text.replace("dan", "zzz") == never.text

    def test_who_asks_for_some_items_is_told_of_the_others_alone(self, application):
        application.post("/v1/erasure-requests", json={"user_id": "dan", "item_ids": ["c"]})
        found = application.get("/v1/recommendations/dan", params={"why": "true"}).json()["items"]
        assert {own["item_id"] for item in found for own in item["because"]} == {"d"}

    @pytest.mark.parametrize("why", ["", "1", "yes", "True"])
    def test_anything_but_true_and_false_is_refused(self, application, why):
        answer = application.get("/v1/recommendations/dan", params={"why": why})
        assert (answer.status_code, answer.json()["detail"]) == (422, "query.why: give true or false")


def test_a_model_that_does_not_explain_is_refused_for_everyone_alike(application):
    for user in ("ann", "nobody"):
        answer = application.get(f"/v1/recommendations/{user}", params={"why": "true"})
        assert (answer.status_code, "learn with the model ease" in answer.json()["detail"]) == (409, True)
