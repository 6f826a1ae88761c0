"""Explanations: which own items speak for an item, by the scores that are served, and of nobody who is not."""

import math

import pyarrow as pa
import pytest

from erasable import Recommender
from erasable.chain import Config
from erasable.errors import Refused, Suppressed, UnknownItem, UnknownUser, WrongUse
from erasable.operations import MemoryStorage, Work, recommend, recommend_for_history
from erasable.operations.learn import learn_into
from erasable.operations.live import Live
from erasable.operations.offers import MOST_REASONS, Served
from erasable.operations.prepare import NO_INPUTS
from erasable.recommender._serving import Serving
from erasable.requests import Request
from erasable.requests.request import Asked
from kit.asking import submit

NEIGHBOURS = (2, 3, "all")
EVE, GONE = "eve", ("a", "e")


@pytest.fixture(params=NEIGHBOURS)
def settings(request):
    return {"model": "ease", "neighbours": request.param, "regularisation": 2.0}


@pytest.fixture
def storage(table, settings):
    memory = MemoryStorage()
    with memory.writing() as session:
        learn_into(session, table, Config(**settings), NO_INPUTS, Work(1))
    return memory


@pytest.fixture(params=["memory", "workspace"])
def recommender(request, table, settings, tmp_path):
    made = Recommender(**settings, progress=False).fit(table)
    if request.param == "memory":
        return made
    made.save(tmp_path / "shop")
    return Recommender.load(tmp_path / "shop", progress=False)


def total(found):
    return sum(own.weight for own in found.because) + found.others


class TestTheSum:
    def test_the_weights_and_what_is_left_out_make_the_score_that_is_recommended_by(self, recommender, ratings):
        everyone = recommender.recommend(k=10).to_pylist()
        scored = [row for row in everyone if not row["popular"]]
        assert len(scored) > 5
        for row in scored:
            found = recommender.explain(row["user_id"], row["item_id"], k=2)
            assert found.score == row["score"]
            assert math.isclose(total(found), row["score"], rel_tol=1e-6)
            assert {own.item_id for own in found.because} <= ratings[row["user_id"]].keys()
            weights = [own.weight for own in found.because]
            assert weights == sorted(weights, reverse=True)
            assert len(weights) <= 2
            assert all(weight > 0 for weight in weights)

    def test_one_more_item_moves_its_weight_out_of_what_is_left_out(self, recommender):
        one, two = (recommender.explain("eve", "b", k=k) for k in (1, 2))
        assert len(two.because) == 2
        assert two.because[:1] == one.because
        assert math.isclose(one.others - two.others, two.because[1].weight, rel_tol=1e-6)

    def test_each_weight_is_the_score_of_who_has_that_item_alone(self, recommender):
        for own in recommender.explain("eve", "b").because:
            alone = recommender.recommend(history=[own.item_id]).to_pylist()
            assert {row["item_id"]: row["score"] for row in alone}["b"] == pytest.approx(own.weight, rel=1e-5)


def test_a_planted_pair_is_what_speaks():
    """Whoever has the left shoe has the right one; who has bread is another matter."""
    likes = {user: ["left", "right"] * (user % 3 == 0) + ["bread"] * (user % 2) + ["milk"] for user in range(60)}
    rows = [(user, item) for user, items in [*likes.items(), ("new", ["left", "bread"])] for item in items]
    table = pa.table({"user": [str(user) for user, _ in rows], "item": [item for _, item in rows]})
    for neighbours in (3, "all"):
        found = Recommender("ease", neighbours=neighbours, regularisation=1).fit(table).explain("new", "right")
        assert found.because[0].item_id == "left"
        assert found.because[0].weight > 0.8
        assert found.because[0].weight > 5 * sum(own.weight for own in found.because[1:])


def test_an_item_that_the_person_has_is_explained_by_the_others(recommender):
    found = recommender.explain("eve", "b", k=10)
    assert found.owned
    assert "b" not in [own.item_id for own in found.because]
    assert math.isclose(total(found), found.score, rel_tol=1e-6)
    assert not recommender.explain("ann", "d").owned


def test_an_item_that_is_held_out_is_owned_and_does_not_speak(table):
    recommender = Recommender("ease", regularisation=2, holdout=0.4, seed=3, progress=False).fit(table)
    held = [one.item_id for one in recommender.show("eve").interactions if one.held_out]
    assert held
    for item in "abcdef":
        found = recommender.explain("eve", item, k=10)
        assert found.owned
        assert not {own.item_id for own in found.because} & {*held}


def test_ids_are_shown_as_they_came_in():
    table = pa.table({"user": [1, 1, 2, 2, 3], "item": [10, 11, 10, 11, 10]})
    found = Recommender("ease", regularisation=1).fit(table).explain(3, 11)
    assert (found.user_id, found.item_id, [own.item_id for own in found.because]) == (3, 11, [10])


class TestRefused:
    def test_who_and_what_is_unknown(self, recommender):
        with pytest.raises(UnknownUser, match=r"nothing is held about the user 'zoe': check the id$"):
            recommender.explain("zoe", "a")
        with pytest.raises(UnknownItem, match="no item 'z'"):
            recommender.explain("ann", "z")
        with pytest.raises(WrongUse, match="give k of 1 or more"):
            recommender.explain("ann", "a", k=0)

    def test_a_model_that_does_not_explain(self, table):
        recommender = Recommender("als", factors=2, progress=False).fit(table)
        with pytest.raises(Refused, match="als can't explain a score by the person's items: learn with the model ease"):
            recommender.explain("ann", "d")


class TestWhoHasAsked:
    def test_they_are_refused_as_recommending_refuses_them(self, storage):
        serving = Serving(storage)
        serving.explain("bob", "c", 5)
        submit(storage, Request("bob"))
        with pytest.raises(Suppressed, match=r"'bob' has asked to be erased and is suppressed: leave them out$"):
            serving.explain("bob", "c", 5)
        for why in (False, True):
            with pytest.raises(Suppressed):
                recommend(storage, ["bob"], why=why)

    def test_what_only_they_have_is_explained_to_nobody(self, storage):
        serving = Serving(storage)
        assert serving.explain("ann", "f", 5).item_id == "f"
        submit(storage, Request(EVE))
        with pytest.raises(UnknownItem):
            serving.explain("ann", "f", 5)

    def test_the_weights_come_without_what_they_taught(self, storage, table, settings):
        """As by a recommender that never knew them."""
        serving = Serving(storage)
        before = serving.explain("ann", "d", 5)
        submit(storage, Request("bob"))
        without = table.filter(pa.compute.not_equal(table["user_id"], "bob"))
        expected = Recommender(**settings, progress=False).fit(without).explain("ann", "d")
        found = serving.explain("ann", "d", 5)
        assert [own.item_id for own in found.because] == [own.item_id for own in expected.because]
        assert [own.weight for own in found.because] == pytest.approx(
            [own.weight for own in expected.because], abs=1e-5
        )
        assert found.score != pytest.approx(before.score, abs=1e-3)

    def test_who_asks_for_some_items_is_explained_from_the_rest(self, storage):
        assert set(GONE) & {own.item_id for own in Serving(storage).explain(EVE, "b", 10).because}
        submit(storage, Request(EVE, GONE))
        serving = Serving(storage)
        for item in "abcdef":
            found = serving.explain(EVE, item, 10)
            assert found.owned == (item not in GONE)
            assert not {own.item_id for own in found.because} & {*GONE}
            assert math.isclose(total(found), found.score, rel_tol=1e-6)
        for one in recommend(storage, [EVE], 10, why=True)[0]:
            assert not {own.item_id for own in one.because} & {*GONE}
        assert {one.item_id for one in recommend(storage, [EVE], 10, why=True)[0] if one.because} <= {*GONE}


class TestWithRecommendations:
    def test_they_are_the_same_and_say_why(self, storage):
        plain, found = recommend(storage, None, 10), recommend(storage, None, 10, why=True)
        assert [[(r.item_id, r.score) for r in one] for one in found] == [
            [(r.item_id, r.score) for r in one] for one in plain
        ]
        assert not any(r.because for one in plain for r in one)
        serving = Serving(storage)
        told = [r for one in found for r in one if not r.popular]
        assert any(r.because for r in told)
        for r in told:
            assert r.because == serving.explain(r.user_id, r.item_id, MOST_REASONS).because

    def test_the_service_says_the_same_from_memory(self, storage):
        live, (expected,) = Live(storage), recommend(storage, ["ann"], 10, why=True)
        assert live.recommend("ann", 10).why is None
        assert live.recommend("ann", 10, why=True).why == [r.because for r in expected]
        live.suppress_asked(Asked.of([Request("ann")]))
        for why in (False, True):
            with pytest.raises(UnknownUser, match="nothing is held"):
                live.recommend("ann", 10, why=why)

    def test_a_history_speaks_for_itself(self, storage):
        found = recommend_for_history(storage, ["a", "c"], why=True)
        assert any(one.because for one in found)
        for one in found:
            assert {own.item_id for own in one.because} <= {"a", "c"}
            if not one.popular and len(one.because) == 2:
                assert math.isclose(sum(own.weight for own in one.because), one.score, rel_tol=1e-6)

    def test_popular_items_have_no_reasons(self):
        rows = [("ann", "a"), ("ann", "b"), ("bob", "b"), ("bob", "c"), ("zoe", "own")]
        users, items = zip(*rows, strict=True)
        storage = MemoryStorage()
        with storage.writing() as session:
            learn_into(
                session, pa.table({"user_id": users, "item_id": items}), Config(model="ease"), NO_INPUTS, Work(1)
            )
        (found,) = recommend(storage, ["zoe"], why=True)
        assert [(one.popular, one.because) for one in found] == [(True, ())] * 3
        (stranger,) = recommend(storage, ["nobody"], unknown="popular", why=True)
        assert all(one.popular and not one.because for one in stranger)

    def test_a_model_that_does_not_explain_is_refused_whoever_is_asked_for(self, table):
        storage = MemoryStorage()
        with storage.writing() as session:
            learn_into(session, table, Config(model="als", factors=2), NO_INPUTS, Work(1))
        for user in ("ann", "nobody"):
            with pytest.raises(Refused, match="learn with the model ease"):
                recommend(storage, [user], why=True)
            with pytest.raises(Refused, match="learn with the model ease"):
                Live(storage).recommend(user, 3, why=True)
        with pytest.raises(Refused, match="learn with the model ease"):
            recommend_for_history(storage, ["a"], why=True)


def test_no_reason_is_looked_for_where_nobody_asks_why(storage, monkeypatch):
    monkeypatch.setattr(Served, "_reasons", lambda *_: pytest.fail("asked for reasons"))
    recommend(storage, None)
    Live(storage).recommend("ann", 3)
