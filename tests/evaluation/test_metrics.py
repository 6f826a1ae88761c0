import math

import ir_measures
import numpy as np
import pytest
from ir_measures import AP, RR, P, R, Success, nDCG

from erasable.evaluation import average_precision, hit_rate, ndcg, precision, recall, reciprocal_rank

RANKED = ["a", "b", "c", "d"]


def test_a_hit_is_any_relevant_item_among_the_first_k():
    assert hit_rate(RANKED, {"c"}, 3) == 1
    assert hit_rate(RANKED, {"c"}, 2) == 0
    assert hit_rate(RANKED, {"a", "b"}, 2) == 1


def test_recall_is_the_share_of_relevant_items_found():
    assert recall(RANKED, {"a", "c", "x", "y"}, 4) == 0.5
    assert recall(RANKED, {"a", "c", "x", "y"}, 2) == 0.25


def test_ndcg_of_one_item_is_the_discount_of_its_rank():
    assert ndcg(RANKED, {"a"}, 4) == 1
    assert ndcg(RANKED, {"b"}, 4) == pytest.approx(1 / math.log2(3))
    assert ndcg(RANKED, {"d"}, 4) == pytest.approx(1 / math.log2(5))
    assert ndcg(RANKED, {"d"}, 3) == 0


def test_ndcg_worked_by_hand():
    gained = 1 + 1 / 2  # ranks 1 and 3
    ideal = 1 + 1 / math.log2(3) + 1 / 2  # three relevant items
    assert ndcg(RANKED, {"a", "c", "x"}, 4) == pytest.approx(gained / ideal)


def test_ndcg_asks_for_no_more_items_than_fit_into_k():
    assert ndcg(RANKED, {"a", "b", "x", "y"}, 2) == 1


def test_a_list_shorter_than_k_is_measured_as_it_is():
    assert recall(["a"], {"a", "b"}, 10) == 0.5
    assert ndcg([], {"a"}, 10) == 0


def test_precision_counts_places_that_are_left_empty_as_misses():
    assert precision(RANKED, {"a", "c", "x"}, 4) == 0.5
    assert precision(["a"], {"a"}, 10) == 0.1


def test_average_precision_worked_by_hand():
    # Ranks 1 and 3, of three relevant items.
    assert average_precision(RANKED, {"a", "c", "x"}, 4) == pytest.approx((1 + 2 / 3) / 3)
    assert average_precision(RANKED, {"a", "c", "x"}, 2) == pytest.approx(1 / 3)
    assert average_precision(RANKED, {"a", "b", "x", "y"}, 2) == pytest.approx(0.5)  # over all of them, not over k


def test_the_reciprocal_rank_is_that_of_the_first_relevant_item():
    assert reciprocal_rank(RANKED, {"c", "d"}, 4) == pytest.approx(1 / 3)
    assert reciprocal_rank(RANKED, {"c", "d"}, 2) == 0


@pytest.mark.parametrize("metric", [hit_rate, ndcg, recall, precision, average_precision, reciprocal_rank])
def test_nothing_relevant_counts_as_0(metric):
    assert metric(RANKED, set(), 4) == 0


@pytest.mark.parametrize("seed", range(20))
def test_agrees_with_ir_measures(seed):
    random = np.random.default_rng(seed)
    ranked = random.permutation(60)[: random.integers(1, 60)].tolist()
    relevant = set(random.choice(80, size=random.integers(1, 30), replace=False).tolist())
    judged = [ir_measures.Qrel("q", str(item), 1) for item in relevant]
    run = [ir_measures.ScoredDoc("q", str(item), -float(place)) for place, item in enumerate(ranked)]
    oracles = {hit_rate: Success, ndcg: nDCG, recall: R, precision: P, average_precision: AP, reciprocal_rank: RR}
    for k in (1, 10, 20):
        theirs = ir_measures.calc_aggregate([oracle @ k for oracle in oracles.values()], judged, run)
        for metric, oracle in oracles.items():
            assert metric(ranked, relevant, k) == pytest.approx(theirs[oracle @ k])
