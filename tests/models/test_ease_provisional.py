import numpy as np
import pytest

from erasable.data import Ids
from erasable.models import Effort
from erasable.models._ease import EASE
from kit.ease_cases import LAMBDA, added, closed_form, contents, pruned, scores, taken, train

CLOSE = 1e-5


@pytest.fixture(scope="module")
def model():
    return EASE(neighbours="all", regularisation=LAMBDA)


@pytest.fixture(scope="module")
def rows(tables):
    return tables.random_table(3, users=80, items=50, ratings=True)


def assert_close(model, served, rows):
    assert np.abs(scores(model, served, rows) - closed_form(rows)).max() < CLOSE


def test_provisional_serves_without_those_who_left(model, rows):
    gone = rows.users.texts()[5:15]
    served = model.provisional(train(model, rows), taken(rows, gone))
    assert_close(model, served, rows.without(gone))


def test_provisional_serves_with_those_who_came(model, rows):
    new = rows.users.texts()[5:15]
    served = model.provisional(train(model, rows.without(new)), added(rows, new))
    assert_close(model, served, rows)


@pytest.mark.parametrize("seed", range(3))
def test_provisional_serves_a_mixture_and_parts_of_users(model, rows, seed):
    after, change = pruned(rows, seed)
    trained = train(model, rows)
    served = model.provisional(trained, change)
    assert "vectors" in served
    assert_close(model, served, after)
    assert np.abs(scores(model, trained, after) - closed_form(after)).max() > 100 * CLOSE


def test_provisional_leaves_the_large_arrays_as_they_are(model, rows):
    shared = train(model, rows)
    served = model.provisional(shared, taken(rows, rows.users.texts()[:3]))
    assert served["gram"] is shared["gram"]
    assert served["inverse"] is shared["inverse"]


def test_provisional_changes_in_turn_are_as_good_as_one_at_once(model, rows):
    gone = rows.users.texts()[2:42]
    trained = train(model, rows)
    served = trained
    for user in gone:
        served = model.provisional(served, taken(rows, [user]))
    at_once = model.provisional(trained, taken(rows, gone))
    assert len(served["pivots"]) == len(gone)
    assert np.abs(served["vectors"] - at_once["vectors"]).max() < 1e-12
    assert_close(model, served, rows.without(gone))


def test_many_forgettings_in_a_row_do_not_drift(tables):
    """The correction settles by itself whenever it has as many rows as there are items."""
    model = EASE(neighbours="all", regularisation=LAMBDA)
    rows = tables.random_table(8, users=300, items=60)
    gone = rows.users.texts()[:200]
    served, settled = train(model, rows), 0
    for user in gone:
        served = model.provisional(served, taken(rows, [user]))
        settled += "vectors" not in served
    fresh = scores(model, train(model, rows.without(gone)), rows)
    assert settled == 200 // 61
    assert np.abs(scores(model, served, rows) - fresh).max() < 1e-5 * np.abs(fresh).max()


def test_a_correction_that_can_not_be_trusted_is_settled(tables):
    """The only owner of an item leaves while almost nothing keeps the weights small: the pivot is nearly 0."""
    model = EASE(neighbours="all", regularisation=1e-4)
    rows = tables.table({"u": "a", "v": "bc", "w": "bd"})
    served = model.provisional(train(model, rows), taken(rows, ["u"]))
    assert contents(served) == contents(train(model, rows.without(["u"])))


def test_what_was_corrected_provisionally_enters_when_it_is_settled(model, tables, rows):
    names = rows.users.texts()
    served = model.provisional(train(model, rows), taken(rows, names[:4]))
    left = rows.without(names[:4])
    assert contents(model.amended(served, taken(rows, names[4:6]), Effort())) == contents(
        train(model, left.without(names[4:6]))
    )
    again = model.train(served, tables.stage(rows.of_users(names[:4])), Effort()).shared
    assert contents(again) == contents(train(model, rows))
    grown = model.extended(served, Ids.of([*rows.items.texts(), "z"]), 0)
    assert np.array_equal(grown["gram"][:-1, :-1], train(model, left)["gram"])
