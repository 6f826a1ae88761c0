import numpy as np
import pyarrow as pa
import pytest

from erasable.data import Interactions
from erasable.evaluation import adjusted_rand_index, within_group_cosine


def labels(*numbers):
    return np.array(numbers, dtype=np.int64)


class TestAdjustedRandIndex:
    def test_equal_groupings_agree_fully_whatever_their_numbers(self):
        assert adjusted_rand_index(labels(0, 0, 1, 2, 2), labels(2, 2, 0, 1, 1)) == pytest.approx(1)

    def test_a_worked_case(self):
        # Of 15 pairs 4 are together in the one, 7 in the other, 2 in both.
        assert adjusted_rand_index(labels(0, 0, 0, 1, 1, 2), labels(0, 0, 1, 1, 1, 1)) == pytest.approx(
            (2 - 4 * 7 / 15) / ((4 + 7) / 2 - 4 * 7 / 15)
        )

    def test_is_near_zero_by_chance(self):
        one, other = np.random.default_rng(0).integers(0, 8, (2, 20_000))
        assert abs(adjusted_rand_index(one, other)) < 0.002

    def test_is_symmetric(self):
        one, other = np.random.default_rng(1).integers(0, 3, (2, 50))
        assert adjusted_rand_index(one, other) == pytest.approx(adjusted_rand_index(other, one))

    def test_one_group_equals_itself(self):
        assert adjusted_rand_index(labels(0, 0), labels(0, 0)) == 1


class TestWithinGroupCosine:
    rows = (("a", "x"), ("a", "y"), ("b", "x"), ("c", "y"), ("c", "z"), ("d", "z"))

    @pytest.fixture
    def interactions(self):
        users, items = zip(*self.rows, strict=True)
        return Interactions.from_columns(pa.array(users), pa.array(items))[0]

    def test_a_worked_case(self, interactions):
        # a and b share one of 2 and 1 items, c and d as well: both pairs have the cosine 1 / √2.
        assert within_group_cosine(interactions, labels(0, 0, 1, 1)) == pytest.approx(0.5**0.5)

    def test_pairs_of_different_groups_do_not_count(self, interactions):
        assert within_group_cosine(interactions, labels(0, 1, 1, 0)) == pytest.approx(0)

    def test_users_alone_in_their_groups_have_nobody_to_be_like(self, interactions):
        assert within_group_cosine(interactions, labels(0, 1, 2, 3)) == pytest.approx(0)
