from math import log2

import numpy as np
import pytest

from erasable.evaluation.metrics import LIKED, liked_ndcg, liked_share, recall

RATINGS = {1: 1.0, 2: 0.4, 3: 0.8, 4: 0.6}


def test_the_hit_rate_is_the_share_of_k_places_that_hold_a_liked_item():
    assert liked_share([2, 1, 3, 4], RATINGS, 2) == 1 / 2
    assert liked_share([2, 1, 3, 4], RATINGS, 4) == 2 / 4
    assert liked_share([2, 1, 3, 4], RATINGS, 10) == 2 / 10  # four items can't fill ten places
    assert liked_share([], {}, 10) == 0


def test_four_of_five_is_liked():
    assert 4 / 5 >= LIKED > 3.5 / 5


def test_ndcg_worked_by_hand():
    full = 1 + 1 + 1 / log2(3) + 1 / log2(4)
    # 1 stands second, whose weight is that of the first; 3 stands third; 2 and 4 are not liked.
    assert liked_ndcg([2, 1, 3, 4], RATINGS, 4) == pytest.approx((1 + 0.8 / log2(3)) / full)
    assert liked_ndcg([1, 3, 2, 4], RATINGS, 4) == pytest.approx((1 + 0.8) / full)


def test_ndcg_is_1_only_if_k_items_of_the_highest_rating_fill_the_list():
    assert liked_ndcg([1, 2], {1: 1.0, 2: 1.0}, 2) == 1
    assert liked_ndcg([1], {1: 1.0}, 2) == 1 / 2


def test_with_more_than_k_items_a_place_counts_if_the_item_rated_at_that_place_was_found():
    # By rating 1, 3, 4, 2; the first two by score are 4 and 3. Place 1 has 1 there, which was not found; place 2 has 3.
    ratings = {1: 1.0, 2: 0.4, 3: 0.9, 4: 0.8}
    assert liked_ndcg([4, 3, 1, 2], ratings, 2) == pytest.approx(0.9 / 2)
    assert liked_share([4, 3, 1, 2], ratings, 2) == 1


def test_of_equal_ratings_the_lower_number_counts_as_rated_better():
    # Best by rating are 1 and 2; of these only 1 is among the first two, so place 1 counts and place 2 does not.
    assert liked_ndcg([3, 1, 2], {1: 1.0, 2: 1.0, 3: 1.0}, 2) == pytest.approx(1 / 2)


def test_an_item_that_could_not_be_ranked_leaves_its_place_empty():
    assert liked_ndcg([2], {1: 1.0, 2: 1.0}, 10) == 0  # 1, the best by rating, was not found
    assert liked_share([2], {1: 1.0, 2: 1.0}, 10) == 1 / 10


@pytest.mark.parametrize("seed", range(5))
def test_up_to_k_items_agree_with_a_computation_over_arrays(seed):
    random = np.random.default_rng(seed)
    ratings = {item: float(random.integers(1, 6)) / 5 for item in range(random.integers(1, 11))}
    ranked = random.permutation(len(ratings)).tolist()
    gains = np.array([ratings[item] for item in ranked])
    weights = 1 / np.log2(np.maximum(np.arange(1, 11), 2))
    liked = gains >= 0.8
    assert liked_share(ranked, ratings, 10) == pytest.approx(liked.sum() / 10)
    assert liked_ndcg(ranked, ratings, 10) == pytest.approx((gains * liked) @ weights[: len(gains)] / weights.sum())
    assert recall(ranked, {item for item in ratings if ratings[item] >= 0.8}, 10) == float(liked.any())
