"""What every model does when things change: further items, people who come and go, and what that costs."""

import numpy as np
import pytest

from erasable.data import Ids
from erasable.models import Effort
from erasable.models.model import Change
from kit.ease_cases import added, nobody, pruned, reverse, taken
from kit.model_suite import MODELS, contents, row_at, train
from kit.tables import random_table, stage

ROWS = random_table(5, users=40, items=25, ratings=True)
FURTHER = Ids.of([*ROWS.items, "a further one", "zz"])
AFTER, PRUNING = pruned(ROWS, seed=2)
FEW = ROWS.users.texts()[3:8]
CHANGES = {
    "nothing": (ROWS, Change(nobody(ROWS), nobody(ROWS))),
    "one goes": (ROWS.without(users=FEW[:1]), taken(ROWS, FEW[:1])),
    "the one with every item goes": (ROWS.without(users=["u0000"]), taken(ROWS, ["u0000"])),
    "some go, some in part": (AFTER, PRUNING),
    "everyone goes": (nobody(ROWS), taken(ROWS, ROWS.users.texts())),
}
COMINGS = {
    "one comes": (ROWS.without(users=FEW[:1]), added(ROWS, FEW[:1])),
    "some come, some in part": (AFTER, reverse(PRUNING)),
    "everyone comes": (nobody(ROWS), added(ROWS, ROWS.users.texts())),
}


@pytest.fixture(params=MODELS)
def kind(request):
    return MODELS[request.param]


@pytest.fixture
def model(kind):
    return kind.model


def learned(model, rows):
    """Train as a chain's first stage does."""
    return model.train(model.start(ROWS.items, 0), stage(rows, scale=stage(ROWS).scale), Effort()).shared


# Further items.


def test_to_extend_the_start_is_to_start_with_more(model):
    extended = model.extended(model.start(ROWS.items, 3), FURTHER, 3)
    assert contents(extended) == contents(model.start(FURTHER, 3))


def part_of(array, items, count):
    """Return what is about the first items: rows and columns of as many as there are items."""
    return array[tuple(slice(count) if size == items else slice(None) for size in array.shape)]


def test_further_items_leave_what_is_known_of_the_others(kind, model):
    trained = train(model, ROWS, epochs=2).shared
    extended = model.extended(trained, FURTHER, 3)
    assert extended.keys() == trained.keys()
    for name, array in extended.items():
        known = part_of(array, len(FURTHER), len(ROWS.items))
        if name in kind.rounded_anew:
            assert np.allclose(known, trained[name], rtol=1e-6, atol=0)
        else:
            assert np.array_equal(known, trained[name])


def test_further_items_begin_as_they_do_at_the_start(model):
    extended, start = model.extended(train(model, ROWS).shared, FURTHER, 3), model.start(FURTHER, 3)
    by_item = [name for name, array in start.items() if len(array) == len(FURTHER)]
    assert by_item
    for name in by_item:
        assert np.array_equal(extended[name][len(ROWS.items) :], start[name][len(ROWS.items) :])


def test_extending_changes_nothing_in_place_and_comes_back_read_only(model):
    trained = train(model, ROWS).shared
    before = contents(trained)
    extended = model.extended(trained, FURTHER, 3)
    assert contents(trained) == before
    assert not any(array.flags.writeable for array in extended.values())
    assert all(array.flags.c_contiguous for array in extended.values())


def test_an_extended_model_can_train_on(model):
    extended = model.extended(train(model, ROWS).shared, FURTHER, 0)
    more = random_table(8, users=10, items=25).with_items(FURTHER)
    assert train(model, more, start=extended, position=1).all_finite()


# A short way to a change.


@pytest.mark.parametrize(("after", "change"), CHANGES.values(), ids=CHANGES)
def test_to_amend_is_to_train_on_the_changed_data_or_can_not_be(kind, model, after, change):
    trained = learned(model, ROWS)
    found = model.amended(trained, change, Effort(2))
    assert (found is not None) == kind.short_way
    assert found is None or contents(found) == contents(learned(model, after))


@pytest.mark.parametrize(("before", "change"), COMINGS.values(), ids=COMINGS)
def test_to_amend_by_who_comes_is_to_train_with_them_or_can_not_be(kind, model, before, change):
    found = model.amended(learned(model, before), change, Effort())
    assert (found is not None) == kind.short_way
    assert found is None or contents(found) == contents(learned(model, ROWS))


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_to_amend_what_was_amended_leads_back(kind, model, threads):
    trained = learned(model, ROWS)
    before = contents(trained)
    there = model.amended(trained, PRUNING, Effort(threads))
    if kind.short_way:
        assert contents(model.amended(there, reverse(PRUNING), Effort(threads))) == before
        assert not any(array.flags.writeable for array in there.values())
    assert contents(trained) == before


# What is served until then.


@pytest.mark.parametrize(("after", "change"), CHANGES.values(), ids=CHANGES)
def test_what_is_served_in_between_is_finite_and_changes_nothing(kind, model, after, change):
    trained = learned(model, ROWS)
    before = contents(trained)
    provisional = model.provisional(trained, change)
    score, newcomer = model.scorer(provisional), row_at(model.newcomers(provisional, Ids.of(["new"]), 0), 0)
    found = [score(newcomer, after.items_at(user)) for user in range(len(after.users))]
    assert all(np.isfinite(each).all() and len(each) == len(ROWS.items) for each in found)
    assert contents(trained) == before
    assert not any(array.flags.writeable for array in provisional.values())


def test_provisional_upon_provisional_stays_finite(model):
    served = learned(model, ROWS)
    for user in ROWS.users.texts()[:20]:
        served = model.provisional(served, taken(ROWS, [user]))
    newcomer = row_at(model.newcomers(served, Ids.of(["new"]), 0), 0)
    assert np.isfinite(model.scorer(served)(newcomer, ROWS.items_at(30))).all()


# What it costs.


def is_a_count(number):
    return isinstance(number, int) and number >= 0


def test_work_is_counted_in_whole_numbers_and_nobody_is_no_work(kind, model):
    assert model.samples(nobody(ROWS), 3) == model.samples_of_rows(nobody(ROWS), 3) == 0
    assert is_a_count(model.samples(ROWS, 3))
    assert model.samples(ROWS, 3) > 0
    assert is_a_count(model.samples_of_rows(ROWS, 3))
    assert (model.samples_of_rows(ROWS, 3) > 0) == bool(kind.rows)


def test_more_people_and_more_epochs_are_never_less_work(model):
    people = [ROWS.of_users(ROWS.users.texts()[:count]) for count in (0, 1, 2, 10, 39, 40)]
    for count in (model.samples, model.samples_of_rows):
        amounts = [count(rows, 2) for rows in people]
        assert amounts == sorted(amounts)
        assert count(ROWS, 1) <= count(ROWS, 2) <= count(ROWS, 20)


@pytest.mark.parametrize(("after", "change"), CHANGES.values(), ids=CHANGES)
def test_the_short_way_is_counted_where_there_is_one(kind, model, after, change):
    found = model.samples_amended(after, change)
    assert (found is not None) == kind.short_way
    assert found is None or is_a_count(found)


def told(work):
    """Return the sum of what some work says it has done."""
    done = []
    work(Effort(2, done.append))
    return sum(done)


def test_what_is_told_while_working_adds_up_to_what_was_counted(kind, model):
    some = ROWS.without(users=["u0000"])  # who has everything has no negatives, which is told a little generously
    at = stage(some, scale=stage(ROWS).scale, epochs=3)
    start = model.start(ROWS.items, 0)
    assert told(lambda effort: model.train(start, at, effort)) == model.samples(some, 3)
    assert told(lambda effort: model.solve(start, at, effort)) == model.samples_of_rows(some, 3)
    if kind.short_way:
        trained = learned(model, ROWS)
        counted = model.samples_amended(AFTER, PRUNING)
        assert told(lambda effort: model.amended(trained, PRUNING, effort)) == counted
