"""Learning goes on by HTTP."""

import json

import pyarrow as pa
import pytest

from erasable import Recommender
from erasable.chain import Config
from erasable.operations import learn
from erasable.service.settings import ServiceSettings


@pytest.fixture
def settings():
    return ServiceSettings(batch_window=0, learn_seconds=0)


def rows(*given):
    return {"interactions": [dict(zip(("user_id", "item_id", "rating"), one, strict=False)) for one in given]}


def test_what_comes_in_is_learned_and_recommended_from(client, shop, worker):
    application = client("application")
    answer = application.post("/v1/interactions", json=rows(("zoe", "a", 5), ("zoe", "e", 1)))
    assert (answer.status_code, answer.json()) == (202, {"accepted": 2, "left_out": 0})
    assert application.get("/v1/recommendations/zoe").status_code == 404
    worker.step()
    shop.reception.follow()
    assert application.get("/v1/recommendations/zoe").json()["version"] == 2


@pytest.mark.parametrize(("role", "told"), [("operator", (1, 1)), ("application", (2, 0))])
def test_who_is_leaving_is_left_out_and_applications_are_not_told(client, shop, role, told):
    caller = client(role)
    caller.post("/v1/erasure-requests", json={"user_id": "ann"})
    answer = caller.post("/v1/interactions", json=rows(("ann", "f", 5), ("bob", "f", 5)))
    assert answer.json() == dict(zip(("accepted", "left_out"), told, strict=True))
    assert shop.intake.count() == 1


@pytest.mark.parametrize(
    "wrong",
    [
        rows(("zoe", "a", 6)),
        rows(("zoe", "a", 0)),
        rows(("zoe", "a")),
        rows(),
        {"interactions": [{"user_id": "zoe", "item_id": "a", "rating": "NaN"}]},
        {"interactions": [{"user_id": "zoe"}]},
    ],
)
def test_what_could_not_be_learned_is_refused_whole(client, shop, wrong):
    answer = client("application").post("/v1/interactions", json=wrong)
    assert answer.status_code == 422
    assert shop.intake.count() == 0


@pytest.mark.parametrize("user", ["line\nbreak", "nul\x00", "half\ud800"])
def test_an_id_that_can_not_be_learned_is_refused_before_it_waits(client, shop, user):
    body = json.dumps(rows((user, "a", 5)))
    answer = client("application").post("/v1/interactions", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 422
    assert shop.intake.count() == 0


def test_times_may_be_given_for_some_rows_only(client, shop, worker):
    given = rows(("zoe", "a", 5), ("zoe", "b", 4))
    given["interactions"][0]["time"] = 1_700_000_000
    assert client("application").post("/v1/interactions", json=given).status_code == 202
    assert worker.step()
    assert shop.history.last_event("learned more").facts["interactions"] == 2


class TestScalesWithZero:
    @pytest.fixture(params=[(0, 1), (0, 5), (1, 1)], ids=["0 to 1", "0 to 5", "no ratings"])
    def scale(self, request):
        return request.param

    @pytest.fixture
    def folder(self, swift_path, scale):
        """A workspace with ratings from 0, or with none, in place of the usual one."""
        rated = {"user": ["ann", "ann", "bob", "bob"], "item": [*"abbc"], "rating": [*scale, *scale]}
        learn(pa.table(rated), swift_path / "shop", Config(model="ease"))
        return swift_path / "shop"

    def test_a_rating_of_0_is_learned_where_there_is_one(self, client, shop, worker, folder, scale):
        answer = client("application").post("/v1/interactions", json=rows(("ann", "c", 0)))
        if scale == (1, 1):
            assert (answer.status_code, shop.intake.count()) == (422, 0)
            return
        assert answer.status_code == 202, answer.text
        worker.step()
        assert {one.item_id: one.rating for one in Recommender.load(folder).show("ann").interactions}["c"] == 0
