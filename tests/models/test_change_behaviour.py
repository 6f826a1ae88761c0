"""What our models do when people come and go, beyond the suites that every model inherits (test_suites.py)."""

import numpy as np
import pytest

from erasable.data import Ids, Interactions, over_own_items
from erasable.models import Amends, Effort, Subtracts
from erasable.models.base import Change
from kit.ease_cases import added, nobody, pruned, reverse, taken
from kit.model_suite import MODELS, contents, row_at, scorer
from kit.tables import random_table, stage

ROWS = random_table(5, users=40, items=25, ratings=True)
FURTHER = Ids.of([*ROWS.items, "a further one", "zz"])
AFTER, PRUNING = pruned(ROWS, seed=2)
FEW = ROWS.users.texts()[3:8]
CHANGES = {
    "nothing": (ROWS, Change(nobody(ROWS), nobody(ROWS), ROWS)),
    "one goes": (ROWS.without(users=FEW[:1]), taken(ROWS, FEW[:1])),
    "the one with every item goes": (ROWS.without(users=["u0000"]), taken(ROWS, ["u0000"])),
    "some go, some in part": (AFTER, PRUNING),
    "everyone goes": (nobody(ROWS), taken(ROWS, ROWS.users.texts())),
}
COMINGS = {
    "one comes": (ROWS.without(users=FEW[:1]), added(ROWS, FEW[:1])),
    "some come, some in part": (AFTER, reverse(PRUNING, ROWS)),
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


# A short way to a change.


@pytest.mark.parametrize(("after", "change"), CHANGES.values(), ids=CHANGES)
def test_to_amend_is_to_train_on_the_changed_data_or_can_not_be(kind, model, after, change):
    assert isinstance(model, Amends) == kind.short_way
    if kind.short_way:
        assert contents(model.amended(learned(model, ROWS), change, Effort(2))) == contents(learned(model, after))


def own_items(rows):
    """Return rows over the items that somebody has."""
    (own,) = over_own_items([rows])
    return own


@pytest.mark.parametrize("alone", [[], ["a-first"], ["m-between", "zz-last"], ["a-first", "m-between", "zz-last"]])
@pytest.mark.parametrize("leaves", [True, False])
def test_to_amend_bears_items_that_go_and_come_with_their_only_owner(kind, model, alone, leaves):
    """One person goes and another comes, each with items that nobody else has."""
    rows = own_items(random_table(7, users=30, items=20))
    given = rows.of_users(["u0004"])
    items = Ids.of([*rows.items, *alone]).sorted()
    numbers = np.union1d(items.positions(alone), items.positions_of(rows.items.array)[given.item_index])
    count = len(numbers)
    with_own = Interactions(
        Ids.of(["u0004"]), items, np.zeros(count, np.int32), numbers.astype(np.int32), np.ones(count, np.float32)
    )
    others = rows.without(users=["u0004"]).with_items(items)
    one, another = own_items(Interactions.merge([others, with_own])), own_items(others)
    before, after = (one, another) if leaves else (another, one)
    change = Change.between(before, after)
    trained = model.train(model.start(before.items, 0), stage(before), Effort()).shared
    assert before.items != after.items or not alone
    assert isinstance(model, Amends) == kind.short_way
    if kind.short_way:
        expected = model.train(model.start(after.items, 0), stage(after), Effort()).shared
        assert contents(model.amended(trained, change, Effort(2))) == contents(expected)


@pytest.mark.parametrize(("before", "change"), COMINGS.values(), ids=COMINGS)
def test_to_amend_by_who_comes_is_to_train_with_them_or_can_not_be(kind, model, before, change):
    assert isinstance(model, Amends) == kind.short_way
    if kind.short_way:
        assert contents(model.amended(learned(model, before), change, Effort())) == contents(learned(model, ROWS))


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_to_amend_what_was_amended_leads_back(kind, model, threads):
    trained = learned(model, ROWS)
    before = contents(trained)
    if kind.short_way:
        there = model.amended(trained, PRUNING, Effort(threads))
        assert contents(model.amended(there, reverse(PRUNING, ROWS), Effort(threads))) == before
        assert not any(array.flags.writeable for array in there.values())
    assert contents(trained) == before


# What is served until then.


@pytest.mark.parametrize(("after", "change"), CHANGES.values(), ids=CHANGES)
def test_what_is_served_in_between_is_finite_and_changes_nothing(kind, model, after, change):
    trained = learned(model, ROWS)
    before = contents(trained)
    provisional = model.provisional(trained, change) if isinstance(model, Subtracts) else trained
    score, newcomer = (
        scorer(model, provisional),
        row_at(model.newcomers(provisional, Ids.of(["new"]), ROWS.items, 0), 0),
    )
    found = [score(newcomer, after.items_at(user)) for user in range(len(after.users))]
    assert all(np.isfinite(each).all() and len(each) == len(ROWS.items) for each in found)
    assert contents(trained) == before
    assert not any(array.flags.writeable for array in provisional.values())


def test_provisional_upon_provisional_stays_finite(model):
    served = learned(model, ROWS)
    for user in ROWS.users.texts()[:20]:
        served = model.provisional(served, taken(ROWS, [user])) if isinstance(model, Subtracts) else served
    newcomer = row_at(model.newcomers(served, Ids.of(["new"]), ROWS.items, 0), 0)
    assert np.isfinite(scorer(model, served)(newcomer, ROWS.items_at(30))).all()


# What it costs.


def is_a_count(number):
    return isinstance(number, int) and number >= 0


@pytest.mark.parametrize(("after", "change"), CHANGES.values(), ids=CHANGES)
def test_the_short_way_is_counted_where_there_is_one(kind, model, after, change):
    if kind.short_way:
        assert is_a_count(model.samples_amended(after, change))


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
    if kind.short_way:
        trained = learned(model, ROWS)
        counted = model.samples_amended(AFTER, PRUNING)
        assert told(lambda effort: model.amended(trained, PRUNING, effort)) == counted
