"""Recommend, in memory and on disk."""

import numpy as np
import pytest

from erasable.chain import Config, Scoring
from erasable.errors import DataRefused, UnknownUser, WrongUse
from erasable.operations import DiskStorage, Work, forget, learn, recommend, recommend_for_history
from erasable.recommender._serving import Serving
from erasable.requests import Request


def test_the_list_is_the_models_scores_in_order_less_what_the_user_has(storage):
    with storage.reading() as session:
        state = session.state()
        scoring = Scoring(state, session.checkpoints)
        scores, owned = scoring.scores(state.dataset.find("ann")), state.dataset.items_of("ann")
        items = state.dataset.items
    expected = [items[number] for number in np.argsort(-scores, kind="stable").tolist() if items[number] not in owned]
    (found,) = recommend(storage, ["ann"])
    assert [one.item_id for one in found] == expected
    assert [one.rank for one in found] == list(range(1, len(expected) + 1))
    assert [one.score for one in found] == sorted(
        (float(scores[items.texts().index(i)]) for i in expected), reverse=True
    )


def test_every_list_knows_its_user_even_if_it_is_empty(as_table, tmp_path):
    learn(
        as_table({"ann": {"a": 1, "b": 1}, "bob": {"a": 1}}), tmp_path / "shop", Config(model="nmf", groups=2, epochs=1)
    )
    found = recommend(DiskStorage(tmp_path / "shop"), None)
    assert {one.user_id: [r.item_id for r in one] for one in found} == {"ann": [], "bob": ["b"]}


def test_the_order_of_users_is_kept_and_who_else_is_asked_for_changes_nothing(storage):
    together = recommend(storage, ["fay", "ann", "cat"], work=Work(2))
    assert [one.user_id for one in together] == ["fay", "ann", "cat"]
    assert together == [recommend(storage, [user], work=Work(1))[0] for user in ("fay", "ann", "cat")]


def test_all_users_are_recommended_to(storage, ratings):
    assert sorted(one.user_id for one in recommend(storage, None)) == sorted(ratings)
    assert recommend(storage, []) == []


def test_an_unknown_user_is_refused_or_gets_what_is_popular(storage):
    with pytest.raises(UnknownUser, match="nothing is held about the user 'zoe'"):
        recommend(storage, ["ann", "zoe"])
    known, unknown = recommend(storage, ["ann", "zoe"], k=2, unknown="popular")
    assert known == recommend(storage, ["ann"], k=2)[0]
    with storage.reading() as session:
        groups = session.state().dataset.groups
        counts = sum(np.bincount(group.item_index, minlength=6) for group in groups)
        items = session.state().dataset.items
    best = np.argsort(-counts, kind="stable")[:2].tolist()
    assert [(one.item_id, one.score) for one in unknown] == [(items[number], counts[number]) for number in best]


def test_someone_who_is_forgotten_is_unknown(storage):
    forget(storage, [Request("ann")])
    with pytest.raises(UnknownUser):
        recommend(storage, ["ann"])
    assert "ann" not in [one.user_id for one in recommend(storage, None)]


class TestAHistory:
    """Someone without an id, of whom only a history is given."""

    @pytest.fixture(
        params=[
            {"model": "als", "factors": 4, "regularisation": 0.5},
            {"model": "ease", "regularisation": 2.0},
            {"model": "nmf", "groups": 2, "epochs": 3},
            {"model": "nmf", "groups": 2, "epochs": 3, "strategy": "sisa"},
            {"model": "dmf", "groups": 2, "epochs": 3, "anchors": 0.5},
        ],
        ids=["als", "ease", "nmf", "sisa", "dmf with anchors"],
    )
    def shop(self, request, table, tmp_path):
        learn(table, tmp_path / "shop", Config(**request.param))
        return DiskStorage(tmp_path / "shop")

    def test_gets_everything_but_its_own_items(self, shop):
        found = recommend_for_history(shop, ["b", "a"])
        assert (found.user_id, found.left_out) == ("", ())
        assert sorted(one.item_id for one in found) == ["c", "d", "e", "f"]
        assert [one.rank for one in found] == [1, 2, 3, 4]

    def test_the_order_of_its_items_does_not_matter(self, shop):
        assert recommend_for_history(shop, ["a", "d"]) == recommend_for_history(shop, ["d", "a"])

    def test_an_item_without_a_rating_counts_as_the_highest(self, shop):
        assert recommend_for_history(shop, {"a": None, "d": 2}) == recommend_for_history(shop, {"a": 5, "d": 2})

    def test_nothing_is_stored(self, shop):
        before = {path: path.read_bytes() for path in shop.path.rglob("*") if path.is_file()}
        recommend_for_history(shop, ["a", "b"])
        assert {path: path.read_bytes() for path in shop.path.rglob("*") if path.is_file()} == before

    def test_unknown_items_are_left_out_and_said(self, shop, reporter):
        found = recommend_for_history(shop, ["a", "zz", "b"])
        assert found == recommend_for_history(shop, ["a", "b"])
        assert found.left_out == ("zz",)
        assert Serving(shop, Work(1, reporter)).recommend_for_history(["a", "zz", "b"]) == found
        assert any("left out: 1" in note for note in reporter.notes)
        assert not any("zz" in note for note in reporter.notes)  # what someone has stands in no log

    @pytest.mark.parametrize("history", [["zz", "yy"], []], ids=["all unknown", "empty"])
    def test_without_a_known_item_a_stranger_s_are_given(self, shop, history):
        (stranger,) = recommend(shop, ["nobody"], k=3, unknown="popular")
        found = recommend_for_history(shop, history, k=3)
        assert [(one.item_id, one.score, one.popular) for one in found] == [
            (one.item_id, one.score, True) for one in stranger
        ]

    def test_a_rating_outside_the_scale_is_refused(self, shop):
        with pytest.raises(DataRefused, match="outside the scale"):
            recommend_for_history(shop, {"a": 6})

    def test_no_items_make_no_sense(self, shop):
        with pytest.raises(WrongUse):
            recommend_for_history(shop, ["a"], k=0)


@pytest.mark.parametrize("model", ["als", "ease"])
def test_the_history_of_someone_known_gets_what_they_get(table, ratings, tmp_path, model):
    """Neither als nor ease draws anything under an id."""
    learn(table, tmp_path / "shop", Config(model=model, regularisation=0.5))
    storage = DiskStorage(tmp_path / "shop")
    for user, own in ratings.items():
        (known,) = recommend(storage, [user])
        found = recommend_for_history(storage, own)
        assert [vars(one) | {"user_id": user} for one in found] == [vars(one) for one in known]
