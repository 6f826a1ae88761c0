"""Recommend, in memory and on disk."""

import numpy as np
import pytest

from erasable.errors import UnknownUser
from erasable.operations import DiskHome, Work, forget, learn, recommend
from erasable.training import Config, Scoring
from erasable.unlearning import Request


def test_the_list_is_the_models_scores_in_order_less_what_the_user_has(home):
    with home.reading() as session:
        state = session.state()
        position, row = state.knowledge.find("ann")
        scoring = Scoring(state, session.checkpoints)
        scores, owned = scoring.scores(position, row), state.knowledge.items_of("ann")
        items = state.knowledge.catalogue.items
    expected = [items[number] for number in np.argsort(-scores, kind="stable").tolist() if items[number] not in owned]
    (found,) = recommend(home, ["ann"])
    assert [one.item_id for one in found] == expected
    assert [one.rank for one in found] == list(range(1, len(expected) + 1))
    assert [one.score for one in found] == sorted(
        (float(scores[items.texts().index(i)]) for i in expected), reverse=True
    )


def test_every_list_knows_its_user_even_if_it_is_empty(as_table, tmp_path):
    learn(as_table({"ann": {"a": 1, "b": 1}, "bob": {"a": 1}}), tmp_path / "shop", Config(groups=2, epochs=1))
    found = recommend(DiskHome(tmp_path / "shop"), None)
    assert {one.user_id: [r.item_id for r in one] for one in found} == {"ann": [], "bob": ["b"]}


def test_the_order_of_users_is_kept_and_who_else_is_asked_for_changes_nothing(home):
    together = recommend(home, ["fay", "ann", "cat"], work=Work(2))
    assert [one.user_id for one in together] == ["fay", "ann", "cat"]
    assert together == [recommend(home, [user], work=Work(1))[0] for user in ("fay", "ann", "cat")]


def test_all_users_are_recommended_to(home, ratings):
    assert sorted(one.user_id for one in recommend(home, None)) == sorted(ratings)
    assert recommend(home, []) == []


def test_an_unknown_user_is_refused_or_gets_what_is_popular(home):
    with pytest.raises(UnknownUser, match="nothing is held about the user 'zoe'"):
        recommend(home, ["ann", "zoe"])
    known, unknown = recommend(home, ["ann", "zoe"], k=2, popular_fallback=True)
    assert known == recommend(home, ["ann"], k=2)[0]
    with home.reading() as session:
        groups = session.state().knowledge.groups
        counts = sum(np.bincount(group.item_index, minlength=6) for group in groups)
        items = session.state().knowledge.catalogue.items
    best = np.argsort(-counts, kind="stable")[:2].tolist()
    assert [(one.item_id, one.score) for one in unknown] == [(items[number], counts[number]) for number in best]


def test_someone_who_is_forgotten_is_unknown(home):
    forget(home, [Request("ann")])
    with pytest.raises(UnknownUser):
        recommend(home, ["ann"])
    assert "ann" not in [one.user_id for one in recommend(home, None)]
