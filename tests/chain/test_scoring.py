import numpy as np
import pytest

from erasable.chain import Config, Scoring
from erasable.models import NMF
from erasable.models.registry import make_model
from erasable.requests import Request
from kit.model_suite import scorer
from kit.places import place


def at(learned, position, row):
    return place(learned.state.dataset, position, row)


def test_scores_come_from_the_own_row_and_the_last_shared_parameters(learned):
    scoring = Scoring(learned.state, learned.checkpoints)
    assert scoring.scores(at(learned, 0, 1)).tolist() == [0, 9, -1, 3, 3]
    assert scoring.scores(at(learned, 1, 0)).tolist() == [1, 0, 9, 2, 0]
    assert scoring.scores(at(learned, 1, 0)).dtype == np.float32


def test_probabilities_are_what_the_model_makes_of_the_scores(learned):
    found = Scoring(learned.state, learned.checkpoints).probabilities_of(np.array([0, 9, -1, 3, 3], np.float32))
    assert found == pytest.approx(1 / (1 + np.exp(-np.array([0, 9, -1, 3, 3]))))


def test_owned_items_are_those_in_training(learned):
    scoring = Scoring(learned.state, learned.checkpoints)
    people = [at(learned, *one) for one in ((0, 0), (0, 1), (1, 0))]
    assert [scoring.owned(person).tolist() for person in people] == [[0], [1], [2]]


def test_a_checkpoint_is_read_once(learned):
    class Counting:
        reads = 0

        def get(self, fingerprint):
            self.reads += 1
            return learned.checkpoints.get(fingerprint)

    counting = Counting()
    scoring = Scoring(learned.state, counting)
    for _ in range(3):
        scoring.scores(at(learned, 0, 0))
        scoring.scores(at(learned, 1, 0))
    assert counting.reads == 3  # the shared parameters, and the rows of two stages


class TestSeveralModels:
    @pytest.fixture
    def apart(self, tables, chains):
        rows = tables.table({"a": "pqr", "b": "ps", "c": "pq", "d": "tr", "e": "pq", "f": "rst"})
        config = {"model": "nmf", "strategy": "sisa", "groups": 3, "epochs": 3}
        return lambda **more: chains.learn(
            rows, Config(**config, **more), dict(zip("abcdef", (0, 0, 1, 1, 2, 2), strict=True))
        )

    @pytest.mark.parametrize(
        ("aggregate", "of_first", "of_last"),
        [("mean", [3.5, 13.5, 23.5], [20, 20, 70 / 3]), ("own", [0, 0, 0], [20, 30, 40])],
    )
    def test_each_model_that_knows_an_item_tells_what_speaks_for_it(
        self, apart, monkeypatch, aggregate, of_first, of_last
    ):
        """Stages know pqrs, pqrt and pqrst; a model that says 10 for each number of an own item, and the item's."""
        say = lambda _, prepared, owned, item: (owned * 10 + item).astype(np.float32)  # noqa: E731
        # A class of its own: that a class has an ability is remembered for as long as the process lives.
        explaining = type("Explaining", (NMF,), {"reasons": say})
        learned = apart(aggregate=aggregate)
        scoring = Scoring(learned.state, learned.store)
        monkeypatch.setattr(scoring._model, "__class__", explaining)
        assert scoring.reasons(scoring.owned(at(learned, 0, 0)), 4, 0) == pytest.approx(of_first)  # pqr for t
        assert scoring.reasons(scoring.owned(at(learned, 2, 1)), 0, 2) == pytest.approx(of_last)  # rst for p
        assert scoring.reasons(scoring.owned(at(learned, 2, 1)), 0) == pytest.approx(
            [20, 20, 70 / 3]
        )  # whoever has the same

    def alone(self, apart, position, row, judge):
        """Score a row with the model of one stage, which knows its own items only."""
        names, dataset = apart.names, apart.state.dataset
        shared = apart.store.get(names[judge]).parameters.shared
        rows = apart.store.get(names[position]).parameters.rows
        owned = {dataset.items[number] for number in dataset.groups[position].items_at(row).tolist()}
        items = dataset.known(judge).ids.texts()
        numbers = [number for number, item in enumerate(items) if item in owned]
        personal = {name: array[row] for name, array in rows.items()}
        scores = scorer(make_model(dataset.config), shared)(personal, np.array(numbers, np.int32))
        by_item = dict(zip(items, scores.tolist(), strict=True))
        return np.array([by_item.get(item, np.nan) for item in dataset.items], np.float32)

    def test_the_own_groups_model_scores(self, apart):
        learned = apart(aggregate="own")
        scoring = Scoring(learned.state, learned.store)
        for position in range(3):
            alone = self.alone(learned, position, 1, position)
            assert np.isnan(alone).any() == (position < 2)  # the last group has every item
            assert np.array_equal(scoring.scores(at(learned, position, 1)), np.where(np.isnan(alone), -np.inf, alone))

    def test_the_mean_of_all_models_scores(self, apart):
        learned = apart(aggregate="mean")
        expected = np.nanmean([self.alone(learned, 1, 0, judge) for judge in range(3)], axis=0)
        assert Scoring(learned.state, learned.store).scores(at(learned, 1, 0)) == pytest.approx(expected, rel=1e-5)

    def test_probabilities_come_from_the_mean_of_all_scores(self, apart):
        learned = apart(aggregate="mean")
        scoring = Scoring(learned.state, learned.store)
        scores = scoring.scores(at(learned, 1, 0))
        assert scoring.probabilities_of(scores) == pytest.approx(1 / (1 + np.exp(-scores.astype(np.float64))))

    def test_a_model_that_has_learned_from_nobody_has_no_say(self, apart, chains):
        learned = chains.forget(apart(aggregate="mean"), [Request("c"), Request("d")])
        expected = np.nanmean([self.alone(learned, 0, 0, judge) for judge in (0, 2)], axis=0)
        assert Scoring(learned.state, learned.store).scores(at(learned, 0, 0)) == pytest.approx(expected, rel=1e-5)
