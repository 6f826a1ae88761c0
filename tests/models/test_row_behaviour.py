"""What every model does when it solves personal rows: each from shared parameters and the own data alone."""

import numpy as np
import pytest

from erasable.data import Ids, Interactions, RatingScale
from erasable.models import Effort
from kit.model_suite import MODELS, bytes_by_user, contents, train
from kit.tables import random_table, stage, table

SCALE = RatingScale(1, 5)
ROWS = random_table(5, users=30, items=25, ratings=True)


@pytest.fixture(scope="module", params=MODELS)
def kind(request):
    return MODELS[request.param]


@pytest.fixture(scope="module")
def model(kind):
    return kind.model


@pytest.fixture(scope="module")
def shared(model):
    """Shared parameters that other users shaped."""
    return train(model, random_table(6, users=40, items=25, ratings=True), epochs=3).shared


@pytest.fixture(scope="module")
def solved(model, shared):
    """Solve rows, and return their bytes by user."""

    def solve(rows, threads=1, passes=2, seed=3, position=0):
        at = stage(rows, scale=SCALE, epochs=passes, seed=seed, position=position)
        return bytes_by_user(model.solve(shared, at, Effort(threads)), rows.users)

    return solve


def changed(rows, **ratings):
    """Return the rows in which some users have these items and no others."""
    coming = table(ratings, catalogue=rows.items).with_items(rows.items)
    return Interactions.merge([rows.without(users=ratings), coming])


GONE = {
    "the first": [ROWS.users[0]],
    "one in the middle": [ROWS.users[14]],
    "the last": [ROWS.users[29]],
    "every second": ROWS.users.texts()[::2],
    "all but the first": ROWS.users.texts()[1:],
    "all but the last": ROWS.users.texts()[:-1],
    "all but one in the middle": [user for user in ROWS.users if user != ROWS.users[14]],
}


def test_everyone_has_a_finite_row_of_32_bits(kind, model, shared):
    found = model.solve(shared, stage(ROWS, scale=SCALE, epochs=2), Effort())
    assert found.keys() == kind.rows
    for array in found.values():
        assert len(array) == len(ROWS.users)
        assert array.dtype == np.float32
        assert array.flags.c_contiguous
        assert not array.flags.writeable
        assert np.isfinite(array).all()


@pytest.mark.parametrize("gone", GONE.values(), ids=GONE)
def test_nobody_s_leaving_moves_a_byte_of_the_others(solved, gone):
    everyone = solved(ROWS)
    left = ROWS.without(users=gone)
    assert solved(left) == {user: everyone[user] for user in left.users}


def test_nobody_s_coming_moves_a_byte_of_the_others(solved):
    before = solved(ROWS)
    more = changed(ROWS, **{"a first": {"i003": 2.0}, "u0010x": {"i000": 5.0, "i024": 1.0}, "z last": {"i001": 4.0}})
    after = solved(more)
    assert {user: after[user] for user in before} == before


def test_nobody_else_s_data_moves_a_byte(solved):
    before = solved(ROWS)
    everything = dict.fromkeys(ROWS.items.texts(), 5.0)
    after = solved(changed(ROWS, u0001=everything, u0014={"i002": 1.0}))
    others = before.keys() - {"u0001", "u0014"}
    assert {user: after[user] for user in others} == {user: before[user] for user in others}


def test_the_own_data_moves_the_own_row(kind, solved):
    before, after = solved(ROWS), solved(changed(ROWS, u0014={"i002": 1.0}))
    assert all(before["u0014"][name] != after["u0014"][name] for name in kind.rows)


def test_the_position_of_the_stage_does_not_matter(solved):
    assert solved(ROWS, position=0) == solved(ROWS, position=7)


@pytest.mark.parametrize("threads", [2, 5])
def test_threads_do_not_change_a_byte(solved, threads):
    assert solved(ROWS, threads) == solved(ROWS, 1)


def test_solving_again_and_something_else_in_between_change_nothing(kind, solved, model, shared):
    first = solved(ROWS)
    model.solve(shared, stage(random_table(9, users=8, items=25), epochs=4, seed=8), Effort(2))
    assert solved(ROWS) == first
    again = kind.model.solve(shared, stage(ROWS, scale=SCALE, epochs=2, seed=3), Effort())
    assert bytes_by_user(again, ROWS.users) == first


def test_items_that_nobody_has_named_otherwise_do_not_matter(solved):
    """Rows are found by number: what an item is called is not looked at."""
    renamed = Interactions(
        ROWS.users, Ids.of([f"x{item}" for item in ROWS.items]), ROWS.user_index, ROWS.item_index, ROWS.rating
    )
    assert solved(renamed) == solved(ROWS)


def test_nothing_is_changed_in_place(model, shared):
    before = contents(shared)
    columns = [column.tobytes() for column in (ROWS.user_index, ROWS.item_index, ROWS.rating)]
    found = model.solve(shared, stage(ROWS, scale=SCALE, epochs=2), Effort(2))
    assert contents(shared) == before
    assert [column.tobytes() for column in (ROWS.user_index, ROWS.item_index, ROWS.rating)] == columns
    assert not any(np.shares_memory(array, other) for array in found.values() for other in shared.values())


def test_parameters_that_can_be_written_give_the_same_rows(model, shared, solved):
    writable = {name: array.copy() for name, array in shared.items()}
    found = model.solve(writable, stage(ROWS, scale=SCALE, epochs=2, seed=3), Effort())
    assert bytes_by_user(found, ROWS.users) == solved(ROWS)


def test_nobody_has_no_rows(kind, model, shared):
    nobody = ROWS.without(users=ROWS.users.texts())
    found = model.solve(shared, stage(nobody, scale=SCALE), Effort(2))
    assert {name: len(array) for name, array in found.items()} == dict.fromkeys(kind.rows, 0)


@pytest.mark.parametrize("scale", [RatingScale(0, 5), RatingScale(0, 100)], ids=str)
def test_ratings_at_the_low_end_give_finite_rows(model, shared, scale):
    rows = Interactions(ROWS.users, ROWS.items, ROWS.user_index, ROWS.item_index, np.zeros(len(ROWS), np.float32))
    found = model.solve(shared, stage(rows, scale=scale, epochs=20), Effort())
    assert all(np.isfinite(array).all() for array in found.values())


# Of whom nothing is known.


def test_a_newcomer_s_row_depends_on_the_seed_and_the_own_id_alone(kind, model, shared):
    everyone, some = ROWS.users, Ids.of(["u0007", "nobody knows", "u0003"])
    among_all, among_some = (
        bytes_by_user(model.newcomers(shared, users, 3), users.texts()) for users in (everyone, some)
    )
    assert among_all["u0007"] == among_some["u0007"]
    assert among_all["u0003"] == among_some["u0003"]
    other = {name: array * 2 for name, array in shared.items()}
    assert bytes_by_user(model.newcomers(other, some, 3), some.texts()) == among_some
    assert all(row.keys() == kind.rows for row in among_all.values())


def test_newcomers_have_rows_like_those_that_are_solved(model, shared):
    found = model.newcomers(shared, ROWS.users, 3)
    like = model.solve(shared, stage(ROWS, scale=SCALE), Effort())
    assert {name: (array.shape, array.dtype) for name, array in found.items()} == {
        name: (array.shape, array.dtype) for name, array in like.items()
    }
    assert all(np.isfinite(array).all() for array in found.values())


def test_a_newcomer_can_be_scored(model, shared):
    rows = model.newcomers(shared, Ids.of(["new"]), 3)
    nothing = np.empty(0, np.int32)
    found = model.scorer(shared)({name: array[0] for name, array in rows.items()}, nothing)
    assert np.isfinite(found).all()
