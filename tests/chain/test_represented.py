"""Rows that are solved when they are needed: the same bytes, however many are solved at once and wherever."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from erasable.chain import Config, Scoring, scoring
from erasable.data import Ids, Interactions, RatingScale
from erasable.models import Effort, Stage
from erasable.models.base import prepared_by
from erasable.models.registry import make_model
from kit.places import place, places
from kit.tables import random_table

SCALE = RatingScale(1, 5)
CONFIGS = {
    "als": Config(model="als", factors=8, regularisation=1.0, anchors=0.5),
    "nmf": Config(model="nmf", groups=2, epochs=2, batch=64, anchors=0.5),
    "dmf": Config(model="dmf", groups=2, epochs=2, batch=64, rows="solved"),
}
HISTORY = {"i001": 5.0, "i004": 2.0, "i007": 4.0}


@pytest.fixture(scope="module", params=CONFIGS)
def learned(request, chains):
    return chains.learn(random_table(3, users=30, items=20, ratings=True), CONFIGS[request.param], scale=SCALE)


def history_of(learned, user, ratings=HISTORY):
    items = learned.state.dataset.items
    numbers = items.positions(list(ratings)).astype(np.int32)
    given = np.array(list(ratings.values()), np.float32)
    return Interactions(Ids.of([user]), items, np.zeros(len(numbers), np.int32), numbers, given)


def everyone(learned):
    return places(learned.state.dataset)


def written(row):
    return {name: array.tobytes() for name, array in row.items()}


def test_alone_in_a_batch_and_on_any_thread_a_row_is_the_same(learned):
    people = everyone(learned)
    alone = [written(Scoring(learned.state, learned.store).rows([person])[0]) for person in people]
    together = Scoring(learned.state, learned.store)
    assert list(map(written, together.rows(people))) == alone
    assert list(map(written, together.rows(people[::-1]))) == alone[::-1]
    shared = Scoring(learned.state, learned.store, rows_kept=7)
    with ThreadPoolExecutor(4) as pool:
        parts = list(pool.map(shared.rows, [people[first::5] for first in range(5)]))
    assert [list(map(written, part)) for part in parts] == [alone[first::5] for first in range(5)]


def test_it_is_what_the_model_makes_of_the_own_interactions(learned):
    dataset = learned.state.dataset
    model, config, last = make_model(dataset.config), dataset.config, learned.names[-1]
    prepared = prepared_by(model, learned.store.get(last).parameters.shared)
    for position, group in enumerate(dataset.groups):
        stage = Stage(group, SCALE, config.row_epochs, config.seed, position)
        expected = model.represent(prepared, stage, Effort(2))["user"]
        found = Scoring(learned.state, learned.store).rows([dataset.find(user) for user in group.users])
        assert np.array([row["user"] for row in found]).tobytes() == expected.tobytes()


def test_a_history_under_the_same_id_has_the_row_of_the_person(learned):
    found = Scoring(learned.state, learned.store)
    for position, group in enumerate(learned.state.dataset.groups):
        own = group.at(np.array([1]))
        history = Interactions(Ids.of([group.users[1]]), own.items, own.user_index, own.item_index, own.rating)
        row = {name: array[0] for name, array in found.represent(history, len(learned.names) - 1).items()}
        person = place(learned.state.dataset, position, 1)
        assert written(row) == written(found.rows([person])[0])
        assert found.of_history(history).tobytes() == found.scores(person).tobytes()


def test_a_history_needs_no_id(learned):
    found = Scoring(learned.state, learned.store).of_history(history_of(learned, ""))
    assert np.isfinite(found).all()
    assert len(np.unique(found)) > 3


def test_scores_of_several_are_those_of_each(learned, monkeypatch):
    monkeypatch.setattr(scoring, "_TOGETHER", 4)
    found, people = Scoring(learned.state, learned.store), everyone(learned)
    together = [scores.tobytes() for scores in found.each(people)]
    assert together == [found.scores(person).tobytes() for person in people]


def test_of_whom_the_model_knows_no_item_the_row_is_a_stranger_s(learned):
    dataset = learned.state.dataset
    items = Ids.of([*dataset.items, "zz"])
    wider = dataset.over(items)
    found = Scoring(replace(learned.state, dataset=wider), learned.store)
    numbers, rating = np.array([len(items) - 1], np.int32), np.array([5], np.float32)
    history = Interactions(Ids.of(["someone"]), items, np.zeros(1, np.int32), numbers, rating)
    model = make_model(dataset.config)
    prepared = prepared_by(model, learned.store.get(learned.names[-1]).parameters.shared)
    stranger = model.newcomers(prepared, Ids.of(["someone"]), dataset.items, dataset.config.seed)
    assert written(found.represent(history, len(learned.names) - 1)) == written(stranger)
    assert found.of_history(history)[-1] == -np.inf


def test_a_kept_row_keeps_no_other_row_alive(learned):
    found = Scoring(learned.state, learned.store, rows_kept=1)
    found.rows(everyone(learned))
    (kept,) = found.cache._rows.values()
    assert all(array.base is None for array in kept.values())


class TestSisa:
    @pytest.mark.parametrize("aggregate", ["mean", "own"])
    def test_a_history_is_represented_in_every_model_and_scores_are_averaged(self, chains, aggregate):
        config = Config(model="nmf", strategy="sisa", groups=3, epochs=3, batch=64, aggregate=aggregate)
        apart = chains.learn(random_table(3, users=30, items=20, ratings=True), config, scale=SCALE)
        history, model, each = history_of(apart, ""), make_model(config), []
        for position, name in enumerate(apart.names):
            known = apart.state.dataset.known(position)
            own = known.over(history)
            prepared = prepared_by(model, apart.store.get(name).parameters.shared)
            solved = model.represent(prepared, Stage(own, SCALE, config.row_epochs, config.seed, 0), Effort())
            row = {key: array[0] for key, array in solved.items()}
            each.append(known.among_all(model.score(prepared, row, own.item_index)))
        expected = np.ma.masked_invalid(each).mean(axis=0).filled(-np.inf)
        assert Scoring(apart.state, apart.store).of_history(history) == pytest.approx(expected, rel=1e-6)

    def test_where_stages_train_rows_a_history_is_solved_under_the_last_one(self, chains):
        config = Config(model="nmf", groups=3, epochs=3, batch=64)
        learned = chains.learn(random_table(3, users=30, items=20, ratings=True), config, scale=SCALE)
        history, model = history_of(learned, ""), make_model(config)
        prepared = prepared_by(model, learned.store.get(learned.names[-1]).parameters.shared)
        rows = model.represent(prepared, Stage(history, SCALE, config.row_epochs, config.seed, 0), Effort())
        expected = model.score(prepared, {"user": rows["user"][0]}, history.item_index)
        assert Scoring(learned.state, learned.store).of_history(history).tobytes() == expected.tobytes()
