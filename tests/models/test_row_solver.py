"""Personal rows solved with the shared parameters fixed, in every model that takes steps."""

import numpy as np
import pytest

from erasable.data import Ids, RatingScale
from erasable.models import Amends, Effort, Subtracts, find_model
from erasable.models import _embedding_model as row_solver
from kit.model_suite import represent, scorer
from kit.row_reference import solve_reference

MODELS = ["nmf", "dmf"]
EVERYTHING = "u0000"  # has every item


@pytest.fixture(params=MODELS)
def name(request):
    return request.param


@pytest.fixture
def model(name):
    return find_model(name)(batch=128)


@pytest.fixture(scope="module")
def rows(tables):
    return tables.random_table(5, users=60, items=40, ratings=True)


@pytest.fixture(scope="module")
def shared_of(tables, rows):
    """Return the shared parameters that each model learned from the first half of the users."""
    anchors = rows.select(rows.user_index < 30)

    def trained(name):
        model = find_model(name)(batch=128)
        return model.train(model.start(rows.items, 0), tables.stage(anchors, epochs=4), Effort()).shared

    return {name: trained(name) for name in MODELS}


@pytest.fixture
def shared(name, shared_of):
    return shared_of[name]


@pytest.fixture
def solved(model, shared, tables):
    """Return a function that solves and gives each user's row as bytes, by id."""

    def solve(interactions, threads=1, **facts):
        facts = {"epochs": 3, "scale": RatingScale(1, 5)} | facts
        found = represent(model, shared, tables.stage(interactions, **facts), Effort(threads))
        assert found.keys() == {"user"}
        return {user: row.tobytes() for user, row in zip(interactions.users, found["user"], strict=True)}

    return solve


@pytest.mark.parametrize("negatives", [0, 1, 4])
def test_rows_are_those_of_the_reference(name, tables, negatives):
    rows = tables.random_table(1, users=8, items=45, ratings=True)
    assert np.diff(rows.user_starts).max() > row_solver.STEPS
    model = find_model(name)(negatives=negatives)
    shared = {
        array: value * np.float32(20 if name == "nmf" else 1) for array, value in model.start(rows.items, 3).items()
    }
    stage = tables.stage(rows, epochs=2, seed=3)
    found = represent(model, shared, stage, Effort(2))["user"]
    expected = solve_reference(model, shared, stage)
    start = model.newcomers(shared, rows.users, rows.items, 3)["user"]
    assert np.abs(expected - start).max(axis=1).min() > 0.01
    assert np.abs(found - expected).max() < 2e-4


@pytest.mark.parametrize("gone", [EVERYTHING, "u0001", "u0031", "u0059"])
def test_without_any_one_user_all_other_rows_keep_their_bytes(solved, rows, gone):
    everyone = solved(rows)
    assert gone in everyone
    assert solved(rows.without([gone])) == {user: row for user, row in everyone.items() if user != gone}


def test_a_user_alone_gets_the_same_row_as_among_others(solved, rows):
    everyone = solved(rows)
    for user in (EVERYTHING, "u0001", "u0017"):
        assert solved(rows.of_users([user])) == {user: everyone[user]}


def test_a_row_changes_with_the_own_data_and_no_other_does(solved, rows):
    item = rows.items[int(rows.items_at(17)[0])]
    before, after = solved(rows), solved(rows.without(pairs=[("u0017", item)]))
    assert {user for user in before if before[user] != after[user]} == {"u0017"}


def test_a_row_changes_with_the_rating(solved, tables):
    one, other = (tables.table({"u": {"a": r, "b": 3.0}}, catalogue=[str(n) for n in range(38)]) for r in (1.0, 5.0))
    assert solved(one) != solved(other)


def test_the_position_of_a_stage_does_not_matter_and_the_seed_does(solved, rows):
    assert solved(rows, position=0) == solved(rows, position=5)
    one, other = solved(rows, seed=0), solved(rows, seed=1)
    assert all(one[user] != other[user] for user in one)


@pytest.mark.parametrize("threads", [2, 3])
def test_threads_do_not_change_a_byte(solved, rows, threads, monkeypatch):
    alone = solved(rows)
    monkeypatch.setattr(row_solver, "_SAMPLES_SOLVED_PER_CALL", 500)
    assert solved(rows, threads) == alone


def test_how_often_compiled_code_returns_changes_nothing(solved, rows, monkeypatch):
    at_once = solved(rows)
    for samples in (1, 700):
        monkeypatch.setattr(row_solver, "_SAMPLES_SOLVED_PER_CALL", samples)
        assert solved(rows) == at_once


def test_progress_adds_up_to_the_samples(model, shared, tables, rows, monkeypatch):
    monkeypatch.setattr(row_solver, "_SAMPLES_SOLVED_PER_CALL", 900)
    told = []
    represent(model, shared, tables.stage(rows, epochs=3), Effort(2, told.append))
    assert sum(told) == model.samples(rows, epochs=3)
    assert len(told) > 2


def test_an_interrupt_ends_it(model, shared, tables, rows, monkeypatch):
    monkeypatch.setattr(row_solver, "_SAMPLES_SOLVED_PER_CALL", 1)
    told = []

    def interrupt(samples):
        told.append(samples)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        represent(model, shared, tables.stage(rows), Effort(2, interrupt))
    assert len(told) == 1


def test_solves_a_checkerboard_for_users_who_never_shaped_the_shared_parameters(name, tables):
    """Users like the items of their own colour; two of each user's twenty are left out of what is known."""
    liked = [[item for item in range(40) if item % 2 == colour] for colour in (0, 1)]

    def board(users):
        has = {user: np.delete(liked[user % 2], [user % 20, (user + 3) % 20]) for user in users}
        return tables.table({f"u{user:03d}": [f"i{item:02d}" for item in has[user]] for user in users})

    model = find_model(name)(batch=128)
    anchors, others = board(range(200)), board(range(200, 230))
    shared = model.train(model.start(anchors.items, 0), tables.stage(anchors, epochs=6), Effort()).shared
    found = represent(model, shared, tables.stage(others, epochs=4), Effort())["user"]
    for row, user in zip(found, range(200, 230), strict=True):
        scores = scorer(model, shared)({"user": row}, np.empty(0, np.int32))
        assert scores[liked[user % 2]].min() > scores[liked[1 - user % 2]].max()


def test_shared_parameters_are_not_changed_and_rows_are_read_only(model, shared, tables, rows):
    before = {array: values.tobytes() for array, values in shared.items()}
    found = represent(model, shared, tables.stage(rows), Effort(2))["user"]
    assert {array: values.tobytes() for array, values in shared.items()} == before
    assert found.dtype == np.float32
    assert found.shape == (len(rows.users), model.width)
    assert found.flags.c_contiguous
    assert not found.flags.writeable


def test_writable_and_read_only_parameters_give_the_same_rows(model, shared, tables, rows):
    copies = {array: values.copy() for array, values in shared.items()}
    one, other = (represent(model, each, tables.stage(rows), Effort())["user"] for each in (shared, copies))
    assert one.tobytes() == other.tobytes()


@pytest.mark.parametrize("few", [{"u": "a"}, {"u": "abc"}, {"u": {"a": 1.0}, "v": {"a": 5.0}}], ids=str)
def test_the_smallest_tables_give_finite_rows(model, tables, few):
    rows = tables.table(few, catalogue="abc")
    found = represent(model, model.start(rows.items, 0), tables.stage(rows, epochs=20), Effort())["user"]
    assert np.isfinite(found).all()


def test_nobody_has_no_rows(model, tables):
    nobody = tables.table({}, catalogue="abc")
    stage = tables.stage(nobody, scale=RatingScale(1, 5))
    assert represent(model, model.start(nobody.items, 0), stage, Effort(2))["user"].shape == (0, model.width)


def test_a_newcomer_starts_from_the_seed_and_the_own_id(model, shared):
    many = model.newcomers(shared, Ids.of("abc"), Ids.of("xy"), seed=2)["user"]
    assert model.newcomers(shared, Ids.of("b"), Ids.of("x"), seed=2)["user"].tobytes() == many[1:2].tobytes()
    assert (model.newcomers(shared, Ids.of("abc"), Ids.of("xy"), seed=3)["user"] != many).any(axis=1).all()
    assert not many.flags.writeable


def test_someone_with_very_many_interactions_takes_more_steps_of_bounded_size():
    steps = {count: row_solver.steps_in_pass(count) for count in (1, 31, 32, 4096, 4097, 12_800)}
    assert steps == {1: 1, 31: 31, 32: 32, 4096: 32, 4097: 33, 12_800: 100}


def test_further_items_begin_as_they_do_at_the_start(model, shared, rows):
    catalogue = Ids.of([*rows.items, "zz", "aa"])
    longer = model.extended(shared, catalogue, seed=0)
    assert longer["item"][: len(rows.items)].tobytes() == shared["item"].tobytes()
    assert longer["item"][len(rows.items) :].tobytes() == model.start(Ids.of(["zz", "aa"]), seed=0)["item"].tobytes()
    assert all(longer[array] is shared[array] for array in model.shapes)
    assert not longer["item"].flags.writeable


def test_a_catalogue_that_has_not_grown_changes_nothing(model, shared, rows):
    same = model.extended(shared, rows.items, seed=0)
    assert {array: values.tobytes() for array, values in same.items()} == {
        array: values.tobytes() for array, values in shared.items()
    }


def test_there_is_no_short_way_to_a_change_and_nothing_to_subtract(model):
    assert not isinstance(model, Amends | Subtracts)
