import numpy as np
import pytest

from erasable.data import Ids
from erasable.errors import Refused
from erasable.models import Effort
from erasable.models import machine as memory
from erasable.models._ease import EASE
from erasable.models.base import Change
from kit.ease_cases import LAMBDA, closed_form, contents, dense, nobody, pruned, reverse, scores, taken, train
from kit.model_suite import represent, scorer


@pytest.fixture(scope="module")
def model():
    return EASE(neighbours="all", regularisation=LAMBDA)


@pytest.fixture(scope="module")
def rows(tables):
    return tables.random_table(3, users=80, items=50, ratings=True)


def test_scores_are_the_paper_s_closed_form(model, rows):
    assert np.abs(scores(model, train(model, rows), rows) - closed_form(rows)).max() < 1e-6


def test_a_small_case_by_hand(tables):
    """Two items that one user has: XᵀX + I is 2 on the diagonal, 1 beside it; its inverse is ⅔ and −⅓."""
    model = EASE(neighbours="all", regularisation=1.0)
    shared = train(model, tables.table({"u": "ab"}))
    assert shared["gram"].tolist() == [[1, 1], [1, 1]]
    assert shared["inverse"] == pytest.approx(np.array([[2, -1], [-1, 2]]) / 3, rel=1e-6)
    assert scorer(model, shared)({}, np.array([0], np.int32)).tolist() == pytest.approx([0, 0.5])


def test_the_shared_parameters_are_whole_numbers_and_a_symmetric_inverse(model, rows):
    shared = train(model, rows)
    assert {name: array.dtype.str for name, array in shared.items()} == {"gram": "<i4", "inverse": "<f4"}
    assert np.array_equal(shared["gram"], dense(rows).T @ dense(rows))
    assert np.array_equal(shared["inverse"], shared["inverse"].T)


def test_a_stage_adds_to_what_another_counted(model, tables, rows):
    once = train(model, rows)
    twice = model.train(once, tables.stage(rows), Effort()).shared
    assert np.array_equal(twice["gram"], 2 * once["gram"])


def test_ratings_epochs_and_seed_make_no_difference(model, tables, rows):
    plain = tables.table({user: rows.items.take(rows.items_at(n)).texts() for n, user in enumerate(rows.users.texts())})
    other = model.train(model.start(plain.items, 7), tables.stage(plain, epochs=9, seed=7), Effort()).shared
    assert contents(other) == contents(train(model, rows))


def test_the_order_of_users_makes_no_difference(model, tables, rows):
    names = rows.users.texts()
    had = {user: rows.items.take(rows.items_at(row)).texts() for row, user in enumerate(names)}
    mirrored = tables.table(dict(zip(names, reversed(had.values()), strict=True)))
    assert contents(train(model, mirrored)) == contents(train(model, rows))


def test_there_are_no_personal_rows(model, tables, rows):
    shared = train(model, rows)
    assert model.train(shared, tables.stage(rows), Effort()).rows == {}
    assert model.newcomers(shared, rows.users, rows.items, 0) == {}
    assert represent(model, shared, tables.stage(rows), Effort()) == {}


def test_threads_do_not_change_a_byte(model, rows):
    _, change = pruned(rows, 0)
    shared = train(model, rows)
    assert contents(train(model, rows, threads=4)) == contents(shared)
    assert contents(model.amended(shared, change, Effort(4))) == contents(model.amended(shared, change, Effort(1)))


def test_stages_add_up(model, tables, rows):
    names = rows.users.texts()
    first, second = rows.of_users(names[:30]), rows.of_users(names[30:])
    shared = model.train(train(model, first), tables.stage(second, position=1), Effort()).shared
    assert contents(shared) == contents(train(model, rows))


@pytest.mark.parametrize("seed", range(4))
def test_amending_gives_the_bytes_of_training_on_changed_data(model, rows, seed):
    after, change = pruned(rows, seed)
    before_shared, after_shared = train(model, rows), train(model, after)
    assert contents(before_shared) != contents(after_shared)
    assert contents(model.amended(before_shared, change, Effort())) == contents(after_shared)
    assert contents(model.amended(after_shared, reverse(change, rows), Effort())) == contents(before_shared)


def test_taking_everyone_away_gives_the_start(model, rows):
    emptied = model.amended(train(model, rows), taken(rows, rows.users.texts()), Effort())
    assert contents(emptied) == contents(model.start(rows.items, 0))


def test_further_items_begin_as_they_do_at_the_start(model, tables):
    small, large = (tables.table({"u": "abc", "v": "bc"}, catalogue=items) for items in ("abc", "abcdef"))
    extended = model.extended(train(model, small), large.items, 0)
    assert contents(extended) == contents(train(model, large))
    assert contents(model.extended(model.start(small.items, 0), large.items, 0)) == contents(
        model.start(large.items, 0)
    )


def test_a_change_of_nothing_changes_nothing(model, rows):
    shared = train(model, rows)
    nothing = Change(nobody(rows), nobody(rows))
    assert contents(model.provisional(shared, nothing)) == contents(shared)
    assert contents(model.amended(shared, nothing, Effort())) == contents(shared)


def test_nothing_is_changed_in_place_and_all_comes_back_read_only(model, tables, rows):
    start, change = model.start(rows.items, 0), taken(rows, rows.users.texts()[:3])
    shared = train(model, rows)
    served = model.provisional(shared, change)
    before = [contents(arrays) for arrays in (start, shared, served)]
    found = [
        model.train(start, tables.stage(rows), Effort()).shared,
        model.amended(shared, change, Effort()),
        model.provisional(served, taken(rows, rows.users.texts()[3:5])),
        model.extended(served, Ids.of([*rows.items.texts(), "z"]), 0),
    ]
    scores(model, served, rows)
    assert [contents(arrays) for arrays in (start, shared, served)] == before
    for array in (array for arrays in (start, shared, served, *found) for array in arrays.values()):
        assert not array.flags.writeable
        assert array.flags.c_contiguous


def test_without_interactions_equal_copies_come_back(model, tables, rows):
    shared = train(model, rows)
    same = model.train(shared, tables.stage(nobody(rows), scale=tables.stage(rows).scale), Effort()).shared
    assert contents(same) == contents(shared)
    assert not any(np.shares_memory(same[name], shared[name]) for name in shared)


def test_a_user_s_scores_follow_from_the_own_items_alone(model, rows):
    score = scorer(model, train(model, rows))
    alone = score({}, rows.items_at(4).copy())
    rest = [score({}, rows.items_at(user)) for user in range(len(rows.users))]
    assert rest[4].tobytes() == alone.tobytes()
    assert alone.dtype == np.float32
    assert not score({}, np.empty(0, np.int32)).any()


def test_a_user_s_scores_do_not_change_with_the_company_in_a_change(model, rows):
    """Who is known settles the scores: not in which order, nor with whom, someone left."""
    shared, names = train(model, rows), rows.users.texts()
    one = model.amended(model.amended(shared, taken(rows, names[:2]), Effort()), taken(rows, names[2:5]), Effort())
    other = model.amended(shared, taken(rows, names[:5]), Effort())
    assert scores(model, one, rows).tobytes() == scores(model, other, rows).tobytes()


def test_probabilities_are_the_scores_kept_inside_0_and_1(model):
    found = model.probability(np.array([-0.3, 0, 0.25, 1, 1.2], np.float32))
    assert found.tolist() == [1e-4, 1e-4, 0.25, 1 - 1e-4, 1 - 1e-4]


def test_the_samples_announced_are_the_samples_done(model, tables, rows):
    done = []
    shared = model.train(model.start(rows.items, 0), tables.stage(rows), Effort(2, done.append)).shared
    assert sum(done) == model.samples(rows, epochs=5)
    after, change = pruned(rows, 1)
    done.clear()
    model.amended(shared, change, Effort(1, done.append))
    assert sum(done) == model.samples_amended(after, change) < model.samples(after, 1)
    assert model.samples(nobody(rows), 5) == 0


def test_a_catalogue_beyond_memory_is_refused_before_any_work(model, tables, rows, monkeypatch):
    shared = train(model, rows)
    monkeypatch.setattr(memory, "available_memory", lambda: 24 * 50**2 - 1)
    with pytest.raises(Refused, match=r"50 items needs .* GiB .*neighbours=100.*min_interactions"):
        model.start(rows.items, 0)
    monkeypatch.setattr(memory, "available_memory", lambda: 16 * 50**2 - 1)
    for attempt in (
        lambda: model.train(shared, tables.stage(rows), Effort()),
        lambda: model.amended(shared, taken(rows, ["u0003"]), Effort()),
        lambda: model.extended(shared, rows.items, 0),
    ):
        with pytest.raises(Refused, match="50 items"):
            attempt()


def test_a_million_items_are_refused_with_the_sizes(model):
    with pytest.raises(Refused, match=r"1,000,000 items needs 22,351\.7 GiB"):
        model.start(range(1_000_000), 0)


@pytest.mark.parametrize("regularisation", [1e-20, 1e-300])
def test_a_regularisation_too_small_to_invert_is_refused(tables, regularisation):
    model = EASE(neighbours="all", regularisation=regularisation)
    with pytest.raises(Refused, match="regularisation"):
        train(model, tables.table({"u": "abc", "v": "abc"}))
