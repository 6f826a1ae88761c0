"""Popular: counts by hand, and that subtracting gives the bytes of counting again."""

import numpy as np
import pytest

from erasable.data import over_own_items
from erasable.models import Effort, Popular
from erasable.models.base import Change
from kit.ease_cases import contents, train


def test_a_score_is_the_share_of_people_who_have_an_item(tables):
    model, table = Popular(), tables.table({"u": "abc", "v": "ab", "w": "a", "x": "b"}, catalogue="abcd")
    shared = train(model, table)
    assert {name: array.tolist() for name, array in shared.items()} == {"counts": [3, 3, 1, 0], "total": [4]}
    assert model.score(shared, {}, np.array([0], np.int32)).tolist() == [0.75, 0.75, 0.25, 0]


@pytest.mark.parametrize("seed", range(4))
def test_to_subtract_and_add_is_to_count_again(tables, seed):
    model, rows = Popular(), tables.random_table(seed, users=12, items=9)
    (before,) = over_own_items([rows])
    for user in before.users.texts()[:-1]:
        (after,) = over_own_items([before.without(users=[user])])
        found = model.amended(train(model, before), Change.between(before, after), Effort())
        assert contents(found) == contents(train(model, after))
        before = after
    assert len(before.users) == 1


def test_what_amending_visits_are_the_rows_that_go_or_come(tables):
    model, rows = Popular(), tables.random_table(1, users=12, items=9)
    change, done = Change.between(rows, rows.without(users=["u0003"])), []
    model.amended(train(model, rows), change, Effort(1, done.append))
    assert sum(done) == model.samples_amended(change.after, change) == len(change.taken)
