import numpy as np
import pytest

from erasable.data import Ids, Interactions, RatingScale
from erasable.errors import Refused
from erasable.models import Amends, Effort, Subtracts
from erasable.models._als import ALS
from kit.model_suite import represent, scorer

SCALE = RatingScale(1, 5)
FACTORS = 5
NOTHING = np.empty(0, np.int32)


def als(factors=FACTORS, regularisation=2.0):
    return ALS(factors=factors, regularisation=regularisation)


@pytest.fixture(scope="module")
def rows(tables):
    """User 0 has every item, user 1 has one, the last item is nobody's but user 0's."""
    return tables.random_table(5, users=60, items=40, ratings=True)


@pytest.fixture(scope="module")
def wide(rows):
    """Return item factors large enough to matter beside the regularisation."""
    return {"item": np.random.default_rng(1).normal(0, 0.7, (len(rows.items), FACTORS)).astype(np.float32)}


def stage_of(tables, rows, **facts):
    return tables.stage(rows, scale=SCALE, **facts)


def plain_rows(ratings, given, regularisation):
    """Solve each row by numpy in 64 bits: a weight of 1 + 4 · rating / 5 for what there is, 1 for the rest."""
    given = given.astype(np.float64)
    shared = given.T @ given + regularisation * np.eye(given.shape[1])
    solved = []
    for row in ratings:
        own = given[row > 0]
        confidence = 1 + 4 * row[row > 0] / SCALE.high
        left = shared + (own * (confidence - 1)[:, None]).T @ own
        solved.append(np.linalg.solve(left, confidence @ own))
    return np.array(solved)


def three_steps(ratings, given, regularisation):
    """Take three steps from 0 towards what `plain_rows` solves, preconditioned by what all rows share."""
    shared = given.T @ given + regularisation * np.eye(given.shape[1])
    solved = np.zeros((len(ratings), given.shape[1]))
    for number, row in enumerate(ratings):
        own, weights = given[row > 0], 4 * row[row > 0] / SCALE.high
        left = shared + (own * weights[:, None]).T @ own
        residual = (1 + weights) @ own
        eased = direction = np.linalg.solve(shared, residual)
        for _ in range(min(3, len(own))):
            length = residual @ eased / (direction @ left @ direction)
            solved[number] += length * direction
            before, residual = residual @ eased, residual - length * left @ direction
            eased = np.linalg.solve(shared, residual)
            direction = eased + residual @ eased / before * direction
    return solved


def dense(rows):
    return rows.csr().toarray().astype(np.float64)


def solved_by_user(model, shared, tables, rows, threads=1):
    found = represent(model, shared, stage_of(tables, rows), Effort(threads))["user"]
    return {user: row.tobytes() for user, row in zip(rows.users.texts(), found, strict=True)}


def contents(parameters):
    named = {**parameters.shared, **parameters.rows}
    return {name: (array.dtype.str, array.shape, array.tobytes()) for name, array in named.items()}


def trained(tables, rows, threads=1, **facts):
    model = als()
    return model.train(model.start(rows.items, 0), stage_of(tables, rows, **facts), Effort(threads))


@pytest.mark.parametrize("regularisation", [0.01, 2, 500])
def test_a_row_is_what_numpy_solves(tables, rows, wide, regularisation):
    found = represent(als(regularisation=regularisation), wide, stage_of(tables, rows), Effort(1))["user"]
    assert found == pytest.approx(plain_rows(dense(rows), wide["item"], regularisation), rel=2e-5, abs=2e-6)


def test_a_user_of_more_items_than_one_tile_holds_is_solved_like_any_other(tables):
    items = [f"i{number:04d}" for number in range(1300)]
    rows = tables.table({"all": dict.fromkeys(items, 3.0), "some": dict.fromkeys(items[:513], 5.0), "one": items[:1]})
    shared = {"item": np.random.default_rng(1).normal(0, 0.7, (len(items), FACTORS)).astype(np.float32)}
    found = represent(als(), shared, stage_of(tables, rows), Effort(1))["user"]
    assert found == pytest.approx(plain_rows(dense(rows), shared["item"], 2), rel=2e-5, abs=2e-6)


def test_a_row_by_hand(tables):
    model = als(factors=1, regularisation=3)
    rows = tables.table({"u": {"a": 5.0}}, catalogue="ab")
    found = represent(model, {"item": np.array([[2], [1]], np.float32)}, stage_of(tables, rows), Effort(1))["user"]
    assert found[0, 0] == pytest.approx(5 * 2 / (4 + 1 + 3 + 4 * 4), rel=1e-6)


@pytest.mark.parametrize("gone", ["u0000", "u0001", "u0030", "u0059"])
def test_removing_a_user_leaves_the_bytes_of_all_other_rows(tables, rows, wide, gone):
    before = solved_by_user(als(), wide, tables, rows)
    after = solved_by_user(als(), wide, tables, rows.without([gone]))
    assert after == {user: row for user, row in before.items() if user != gone}
    assert len(after) == 59


def test_adding_users_leaves_the_bytes_of_all_other_rows(tables, rows, wide):
    further = tables.table({"a first one": ["i003"], "u0000b": rows.items.texts(), "z last": ["i001", "i007"]})
    before = solved_by_user(als(), wide, tables, rows)
    after = solved_by_user(als(), wide, tables, Interactions.merge([rows, further.with_items(rows.items)]))
    assert len(after) == 63
    assert {user: after[user] for user in before} == before


def test_a_row_alone_is_the_row_among_all(tables, rows, wide):
    among_all = solved_by_user(als(), wide, tables, rows)
    for user in ("u0000", "u0001", "u0042"):
        assert solved_by_user(als(), wide, tables, rows.of_users([user])) == {user: among_all[user]}


@pytest.mark.parametrize("threads", [2, 5])
def test_threads_change_no_byte(tables, threads):
    rows = tables.random_table(2, users=2300, items=30, ratings=True)
    model = als()
    one, several = (trained(tables, rows, count, epochs=2) for count in (1, threads))
    assert contents(one) == contents(several)
    assert solved_by_user(model, one.shared, tables, rows, threads) == solved_by_user(model, one.shared, tables, rows)


def test_training_alternates_three_steps_of_conjugate_gradients_on_each_side(tables, rows):
    items = als().start(rows.items, 0)["item"].astype(np.float64)
    for _ in range(6):
        users = three_steps(dense(rows), items, 2)
        items = three_steps(dense(rows).T, users, 2)
    found = trained(tables, rows, epochs=6)
    assert found.shared["item"] == pytest.approx(items, abs=1e-4)


def test_one_epoch_is_close_to_numpy_s(tables, rows, wide):
    users = plain_rows(dense(rows), wide["item"], 2)
    found = als().train(wide, stage_of(tables, rows), Effort(1)).shared["item"]
    assert found == pytest.approx(plain_rows(dense(rows).T, users, 2), abs=0.02)


def test_rows_are_solved_in_closed_form_and_left_out_of_training(tables, rows):
    parameters = trained(tables, rows, epochs=3)
    found = represent(als(), parameters.shared, stage_of(tables, rows), Effort(1))["user"]
    assert parameters.rows == {}
    assert found == pytest.approx(plain_rows(dense(rows), parameters.shared["item"].astype(np.float64), 2), abs=1e-4)


def test_the_same_seed_gives_the_same_bytes_and_another_does_not(tables, rows):
    model = als()
    stage = stage_of(tables, rows, epochs=2)
    one, again, other = (contents(model.train(model.start(rows.items, seed), stage, Effort(2))) for seed in (3, 3, 4))
    assert one == again
    assert one["item"] != other["item"]


def test_an_item_s_start_depends_on_the_seed_and_its_id_alone():
    model = als()
    many = model.start(Ids.of(["a", "b", "c", "d"]), seed=7)["item"]
    assert model.start(Ids.of(["d", "b"]), seed=7)["item"].tobytes() == many[[3, 1]].tobytes()
    assert model.start(Ids.of(["d", "b"]), seed=8)["item"].tobytes() != many[[3, 1]].tobytes()
    assert als(factors=64).start(Ids.of(map(str, range(500))), 0)["item"].std() == pytest.approx(0.01, rel=0.05)


def test_further_items_begin_as_at_the_start_and_the_known_ones_stay(tables, rows):
    model = als()
    shared = trained(tables, rows).shared
    grown = Ids.of([*rows.items.texts(), "new", "newer"])
    found = model.extended(shared, grown, seed=0)["item"]
    assert found[:40].tobytes() == shared["item"].tobytes()
    assert found[40:].tobytes() == model.start(Ids.of(["new", "newer"]), seed=0)["item"].tobytes()


def test_nothing_is_changed_in_place_and_what_comes_back_is_read_only(tables, rows):
    model = als()
    start = {"item": model.start(rows.items, 0)["item"].copy()}
    before = start["item"].tobytes()
    parameters = model.train(start, stage_of(tables, rows, epochs=2), Effort(2))
    solved = represent(model, start, stage_of(tables, rows), Effort(2))
    assert start["item"].tobytes() == before
    assert start["item"].flags.writeable
    everything = (model.start(rows.items, 0), parameters.shared, parameters.rows, solved)
    for array in (array for arrays in everything for array in arrays.values()):
        assert array.dtype == np.float32
        assert array.flags.c_contiguous
        assert not array.flags.writeable


def test_an_item_of_nobody_scores_0_for_everyone(tables):
    rows = tables.table({"u": "ab", "v": "bc"}, catalogue="abcd")
    parameters = trained(tables, rows, epochs=3)
    assert not parameters.shared["item"][3].any()
    row = represent(als(), parameters.shared, stage_of(tables, rows), Effort(1))["user"][0]
    assert scorer(als(), parameters.shared)({"user": row}, NOTHING)[3] == 0


def test_without_interactions_the_item_factors_stay_and_there_are_no_rows(tables):
    nobody = tables.table({}, catalogue="abc")
    model = als()
    start = model.start(nobody.items, 0)
    parameters = model.train(start, stage_of(tables, nobody, epochs=3), Effort(2))
    assert parameters.shared["item"].tobytes() == start["item"].tobytes()
    assert not np.shares_memory(parameters.shared["item"], start["item"])
    assert represent(model, start, stage_of(tables, nobody), Effort(2))["user"].shape == (0, FACTORS)
    assert model.samples(nobody, epochs=3) == 0


@pytest.mark.parametrize("start", [0.0, 1e-25, 1e15])
def test_extreme_item_factors_give_finite_rows(tables, rows, start):
    shared = {"item": np.full((len(rows.items), FACTORS), start, np.float32)}
    parameters = als(regularisation=1e-9).train(shared, stage_of(tables, rows, epochs=3), Effort(1))
    assert parameters.all_finite()


def test_newcomers_have_rows_of_zeros(rows, wide):
    found = als().newcomers(wide, Ids.of(["x", "y"]), rows.items, seed=3)["user"]
    assert found.shape == (2, FACTORS)
    assert found.dtype == np.float32
    assert not found.any()


def test_there_is_no_short_way_to_amend_and_nothing_to_subtract():
    assert not isinstance(als(), Amends | Subtracts)


def test_a_score_is_the_product_of_the_rows():
    shared = {"item": np.array([[1, 2], [0, -1], [3, 0]], np.float32)}
    found = scorer(als(factors=2), shared)({"user": np.array([2, 0.5], np.float32)}, NOTHING)
    assert found.dtype == np.float32
    assert found.tolist() == [3, -0.5, 6]


def test_a_probability_is_the_score_held_between_0_and_1():
    found = als().probability(np.array([-3, 0, 0.25, 1, 7], np.float32))
    assert found.dtype == np.float64
    assert found == pytest.approx([0, 0, 0.25, 1, 1], abs=1e-5)
    assert found.min() > 0
    assert found.max() < 1


def test_training_tells_of_all_its_samples(tables, rows):
    told = []
    model = als()
    model.train(model.start(rows.items, 0), stage_of(tables, rows, epochs=4), Effort(1, told.append))
    assert sum(told) == model.samples(rows, epochs=4)


def test_more_users_and_more_epochs_are_more_work(rows):
    model = als()
    fewer = rows.without(["u0000"])
    assert 0 < model.samples(fewer, 1) < model.samples(rows, 1) < model.samples(rows, 2)


def test_a_regularisation_too_small_for_32_bits_is_refused(tables):
    rows = tables.table({"u": "ab", "v": "b"})
    model = als(factors=8, regularisation=1e-80)  # with more factors than items nothing else bounds the root
    with pytest.raises(Refused, match="too small"):
        model.train(model.start(rows.items, 0), stage_of(tables, rows), Effort())
