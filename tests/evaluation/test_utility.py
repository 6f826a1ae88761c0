"""Metrics by name, with intervals over people."""

import re

import numpy as np
import pytest

from erasable.errors import WrongUse
from erasable.evaluation import measure
from erasable.evaluation.utility import (
    USUAL_METRICS,
    Metric,
    Ranking,
    all_metrics,
    bootstrap,
    measured,
    metric_named,
    metrics_named,
)


def test_any_cutoff_may_be_named():
    assert [metric_named(text) for text in ("ndcg@10", " MAP@3 ")] == [Metric("ndcg", 10), Metric("map", 3)]


@pytest.mark.parametrize("text", ["ndgc@10", "ndcg", "ndcg@", "ndcg@0", "ndcg@-1", "ndcg@1.5", "", "@10", "ndcg@٣"])
def test_a_metric_that_is_not_there_is_refused_with_one_that_is(text):
    with pytest.raises(WrongUse, match=r"(such as|did you mean) (ndcg|hr)@10"):
        metric_named(text)


def test_metrics_of_lists_need_lists_of_the_whole_catalogue():
    assert metrics_named(["coverage@5", "coverage@5"], "whole-catalogue") == (Metric("coverage", 5),)
    with pytest.raises(WrongUse, match=r"coverage@5 is of lists from the whole catalogue: leave it out, or protocol"):
        metrics_named(["coverage@5"], "one-of-100")
    for wrong in ("ndcg@10", []):
        with pytest.raises(WrongUse):
            metrics_named(wrong, "whole-catalogue")


def test_lists_whose_pairs_would_fill_the_memory_are_refused():
    assert metrics_named(["diversity@100", "novelty@5000"], "whole-catalogue")
    with pytest.raises(WrongUse, match="diversity@101 compares all pairs of a list: give a cutoff of 100 at most"):
        metrics_named(["diversity@101"], "whole-catalogue")


def test_the_usual_metrics_come_first():
    for protocol, count in (("whole-catalogue", 18), ("one-of-100", 12), ("held-out-only", 12)):
        metrics = all_metrics(protocol)
        assert metrics[:6] == USUAL_METRICS
        assert len(metrics) == len({*metrics}) == count


def test_chosen_metrics_worked_by_hand(learned):
    # ann's list is b c d e, with b and e to be found; cat's is d a b e, with e to be found.
    names = ["precision@2", "map@4", "mrr@4", "mrr@3", "recall@1", "coverage@1", "coverage@2"]
    found = measure(learned.state, learned.checkpoints, learned.state.dataset.held_out, 1, metrics=names)
    assert found.values == pytest.approx(
        {
            "precision@2": (1 / 2 + 0) / 2,
            "map@4": ((1 + 2 / 4) / 2 + 1 / 4) / 2,
            "mrr@4": (1 + 1 / 4) / 2,
            "mrr@3": (1 + 0) / 2,
            "recall@1": (1 / 2 + 0) / 2,
            "coverage@1": 2 / 5,
            "coverage@2": 4 / 5,
        }
    )


def test_the_usual_ones_are_measured_without_a_word(learned):
    test = learned.state.dataset.held_out
    usual = measure(learned.state, learned.checkpoints, test, 1)
    assert list(usual.values) == [str(metric) for metric in USUAL_METRICS]
    named = measure(learned.state, learned.checkpoints, test, 1, metrics=[*usual.values])
    assert (named.values, named.intervals) == (usual.values, {})


def test_where_ratings_count_only_liked_items_are_to_be_found(shop):
    # ann's test items are b (5), c (2) and d (4), ranked c b d: b and d are liked.
    test = shop.state.dataset.held_out.of_users(["ann"])
    names = ["precision@2", "map@3", "mrr@3", "recall@2"]
    found = measure(shop.state, shop.checkpoints, test, 1, "held-out-only", names)
    assert found.values == pytest.approx(
        {"precision@2": 1 / 2, "map@3": (1 / 2 + 2 / 3) / 2, "mrr@3": 1 / 2, "recall@2": 1 / 2}
    )


def test_coverage_has_no_interval_and_the_others_hold_their_mean(trained):
    state, _ = trained
    rankings = [Ranking([one % 40, 7], [one % 3], (), 4) for one in range(50)]
    found = measured(state.dataset, rankings, metrics_named(["hr@2", "novelty@2", "coverage@2"], "whole-catalogue"))
    assert list(found.means()) == ["hr@2", "novelty@2", "coverage@2"]
    assert list(found.intervals(0)) == ["hr@2", "novelty@2"]
    for name, (low, high) in found.intervals(0).items():
        assert low <= found.means()[name] <= high


class TestBootstrap:
    def test_depends_on_the_key_alone(self):
        values = np.random.default_rng(0).random((40, 2))
        assert np.array_equal(bootstrap(values, 5), bootstrap(values, 5))
        assert not np.array_equal(bootstrap(values, 5), bootstrap(values, 6))

    def test_each_column_has_its_own_interval(self):
        values = np.random.default_rng(0).random((40, 2))
        assert bootstrap(values, 5)[:, :1] == pytest.approx(bootstrap(values[:, :1], 5))

    def test_one_person_has_no_spread(self):
        assert bootstrap(np.array([[0.25]]), 0).ravel().tolist() == [0.25, 0.25]

    def test_is_as_wide_as_the_normal_interval_of_many(self):
        values = np.random.default_rng(1).random((5000, 1))
        low, high = bootstrap(values, 3)[:, 0]
        assert high - low == pytest.approx(2 * 1.96 * values.std() / np.sqrt(5000), rel=0.1)

    def test_covers_a_known_mean_as_often_as_it_says(self):
        """Of 200 samples of 80 people who hit with a chance of 0.3, about 95 per cent have it in their interval."""
        chance = np.random.default_rng(2)
        samples = (chance.random((200, 80)) < 0.3).astype(np.float64)
        ends = [bootstrap(sample[:, np.newaxis], number)[:, 0] for number, sample in enumerate(samples)]
        covered = np.mean([low <= 0.3 <= high for low, high in ends])
        assert 0.9 <= covered <= 0.985


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("ncdg@5", "did you mean ndcg@5? Else write hr, ndcg"),
        ("ndcg", "did you mean ndcg@10? Else write hr, ndcg"),
        ("Recal@x", "did you mean recall@10? Else write hr, ndcg"),
        (
            "foo@10",
            "write hr, ndcg, recall, precision, map, mrr, novelty, diversity and coverage with a cutoff, such as",
        ),
    ],
)
def test_the_nearest_metric_is_named(text, said):
    with pytest.raises(WrongUse, match=re.escape(f"there is no metric {text!r}: {said}")):
        metric_named(text)
